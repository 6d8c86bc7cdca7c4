"""Write the Responses API: events as a stream, or into a whole response.

An event that carries its frame goes out in it, with only its number spliced in, unless more is in
it than is shown. An event without a frame is built: which ones there are, and how a response begins
and ends, depends on the upstream's API (`response.py`, `translated_response.py`). A translated
response has no use for a frame.

The writer owns `sequence_number`, dense from 0; ids and `output_index` stay as the reader has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import starmap
from typing import Any, ClassVar, TypeAlias

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.frames import DeltaFrame, encode_event
from abridge.apis.json import dumps, loads_exact, parse_object, string
from abridge.apis.obfuscation import obfuscate_event
from abridge.apis.openai import failure_body
from abridge.apis.responses.errors import as_failed
from abridge.apis.responses.reasoning import without_raw_content
from abridge.apis.responses.response import Response, UpstreamResponse, snapshot
from abridge.apis.responses.translated_response import TranslatedResponse
from abridge.core.conversation import Json
from abridge.core.events import (
    Event,
    NativeSummary,
    Passthrough,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
)

WRITER_FIELDS = frozenset({"type", "sequence_number"})
"""Fields of an event that the writer sets."""

_NUMBER_KEY = b'"sequence_number"'

MAX_HEAD = 256
"""Bytes before a number that are kept, to compare the next frame with."""

_HIDDEN_PREFIX = b'"re'
"""Begins what a frame is looked through for: `"response"` and `"reasoning_text"`."""

_RESPONSE_KEY, _RAW_PART_TYPE = b'"response"', b'"reasoning_text"'

_LAST_NUMBER, _LAST_END = b',"sequence_number":', b"}\n\n"
"""What stands before and after a number that comes last in its event."""

_NUMBER_PATTERN = re.compile(_NUMBER_KEY + rb"\s*:\s*(\d+)")

_PART_INDEX_KEY = b'"summary_index"'

_PART_INDEX_PATTERN = re.compile(_PART_INDEX_KEY + rb"(\s*:\s*)\d+")


_Change: TypeAlias = Callable[["ResponsesWriter", Any, bytes], bytes]


class ResponsesWriter:
    """Write one response. See the protocol `Writer`."""

    def __init__(self, display: Display, response: UpstreamResponse | TranslatedResponse) -> None:
        self._display = display
        self._shows_raw = display.show_raw
        self._obfuscates = display.obfuscate
        self._response: Response = response
        self._upstream = response if isinstance(response, UpstreamResponse) else None
        self._next_number = 0
        self._is_numbered: bool | None = None  # upstream numbers its events; None until one came
        self._head = b""  # what came before the number in the last frame, unless it was long

    @property
    def final_response(self) -> Json | None:
        return self._response.final

    def write(self, event: Event) -> bytes:
        upstream, frame = self._upstream, event.frame
        if frame is None or upstream is None:
            added = self._response.add_text(event)
            if added is None:
                return b"".join(starmap(self._encode, self._response.compose(event)))
            return self._write_text(*added)
        change = self._CHANGES.get(type(event))
        return self._renumber(frame) if change is None else change(self, event, frame)

    def keep_alive(self) -> bytes:
        """Repeat the response so far, which every client accepts and Codex counts as activity."""
        response = self._response.so_far()
        if response is None:
            return b""
        return self._encode("response.in_progress", {"response": response})

    def note(self, event: Event) -> None:
        self._response.note(event)

    def write_whole(self, end: ResponseEnded) -> bytes:
        response = self._response.build_whole(end)
        if response is None:
            return end.frame or b""
        if end.error is None or not end.ok:
            return dumps(response)
        return dumps(failure_body(end.error, as_failed(response, end.error)))

    def _write_text(self, frame: DeltaFrame | None, text: str) -> bytes:
        if frame is None:
            return b""
        number = self._take_number()
        return (
            frame.write_obfuscated(text, number) if self._obfuscates else frame.write(text, number)
        )

    def _take_number(self) -> bytes:
        self._next_number += 1
        return str(self._next_number - 1).encode()

    # Frames

    def _write_raw(self, _: ReasoningDelta, frame: bytes) -> bytes:
        return self._renumber(frame) if self._shows_raw else b""

    def _write_native(self, event: NativeSummary, frame: bytes) -> bytes:
        if not self._display.show_summary:
            return b""
        return self._renumber(with_part_index(frame, event.index))

    def _write_shown(self, event: Event, frame: bytes) -> bytes:
        shown = self._upstream.show(event) if self._upstream is not None else None
        if shown is None:
            return self._renumber(frame)
        return self._rewrite(shown) if shown else b""

    def _write_other(self, _: Passthrough, frame: bytes) -> bytes:
        if self._upstream is not None:
            self._upstream.note_frame(frame)
        return self._renumber(frame)

    _CHANGES: ClassVar[dict[type[Event], _Change]] = {
        ReasoningStarted: _write_shown,
        ReasoningDelta: _write_raw,
        NativeSummary: _write_native,
        ReasoningEnded: _write_shown,
        Passthrough: _write_other,
        ResponseStarted: _write_shown,
        ResponseEnded: _write_shown,
    }
    """Returns the bytes in which an event with a frame goes out; any other is only renumbered."""

    def _renumber(self, frame: bytes) -> bytes:
        """Give a frame the next number. Mostly it begins as the last one did.

        `rfind` takes half as long as `find` for these.
        """
        head = self._head
        if head and frame.startswith(head):
            start = len(head)
            if frame.rfind(_NUMBER_KEY, start) < 0 and frame.rfind(_HIDDEN_PREFIX, start) < 0:
                end = frame.find(b",", start)
                if frame[start:end].isdigit():
                    return b"".join((head, self._take_number(), frame[end:]))
        return self._find_number(frame)

    def _find_number(self, frame: bytes) -> bytes:
        """Give a frame the next number, spliced in where it can only be the event's own.

        `rfind` takes less than half of the time of `in`.
        """
        is_plain = frame.rfind(_RESPONSE_KEY) < 0
        is_plain = is_plain and (self._shows_raw or frame.rfind(_RAW_PART_TYPE) < 0)
        if self._is_numbered and is_plain and frame.count(_NUMBER_KEY) == 1:
            start = frame.rfind(_LAST_NUMBER) + len(_LAST_NUMBER)
            if frame.endswith(_LAST_END) and frame[start : -len(_LAST_END)].isdigit():
                return b"".join((frame[:start], self._take_number(), _LAST_END))
            found = _NUMBER_PATTERN.search(frame)
            if found is not None:
                start, end = found.span(1)
                self._head = frame[:start] if start <= MAX_HEAD else b""
                return b"".join((frame[:start], self._take_number(), frame[end:]))
        data = sse.frame_data(frame)
        if data is None or not data.startswith(b"{"):
            return frame
        event = parse_object(data, loads_exact)
        return frame if event is None else self._write_parsed(event, frame)

    def _write_parsed(self, event: Json, frame: bytes) -> bytes:
        """Write a frame that had to be parsed. Upstream numbers all of its events or none."""
        number = event.get("sequence_number")
        if self._is_numbered is None:
            self._is_numbered = isinstance(number, int)
        shown = self._hide_raw(event)
        if shown != event or number != self._next_number:
            return self._rewrite(shown)
        self._next_number += 1
        return frame

    def _hide_raw(self, event: Json) -> Json:
        """Return the event with no more reasoning in its response or item than is shown."""
        visible, response = event, event.get("response")
        if isinstance(response, dict):
            visible = {**visible, "response": snapshot(response, self._display)}
        if "item" in event:
            visible = {**visible, "item": without_raw_content(event["item"], self._display)}
        return visible

    def _rewrite(self, event: Json) -> bytes:
        fields = {key: value for key, value in event.items() if key not in WRITER_FIELDS}
        return self._encode(string(event.get("type")), fields)

    def _encode(self, event_type: str, fields: Json) -> bytes:
        self._next_number += 1
        event = {"sequence_number": self._next_number - 1, **fields}
        return encode_event(event_type, obfuscate_event(event) if self._obfuscates else event)


def with_part_index(frame: bytes, index: int) -> bytes:
    """Return the frame of a native summary with this `summary_index`, which it mostly has."""
    if frame.count(_PART_INDEX_KEY) == 1 and b"%b:%d," % (_PART_INDEX_KEY, index) in frame:
        return frame
    return _PART_INDEX_PATTERN.sub(rb"%b\g<1>%d" % (_PART_INDEX_KEY, index), frame)
