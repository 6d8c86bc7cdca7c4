"""Write the Responses API: events as a stream, or into a whole response.

An event with a frame goes out in the bytes it came in, with only its number spliced in, unless more
is in it than is shown. An event without one is built: one of Abridge's summary or, where the
response is translated, any. A translated response has no use for a frame.

The writer owns `sequence_number`, dense from 0; ids and `output_index` stay as the reader has them.
"""

from __future__ import annotations

import re
import sys
from itertools import starmap

from abridge.apis import sse
from abridge.apis.api import RequestEcho
from abridge.apis.display import Display
from abridge.apis.json import dumps, loads_exact, packed, parse_object, string
from abridge.apis.openai import MintId, failure_body, mint_id
from abridge.apis.responses.envelopes import EnvelopeSealer
from abridge.apis.responses.errors import as_failed
from abridge.apis.responses.frames import encode_event, parse_frame
from abridge.apis.responses.reasoning import as_shown, without_raw_content, without_reasoning
from abridge.apis.responses.response import show_final, snapshot
from abridge.apis.responses.summaries import WireEvents, write_part
from abridge.apis.responses.translated_response import TranslatedResponse
from abridge.core.conversation import Json
from abridge.core.events import (
    Event,
    NativeSummary,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
)
from abridge.providers.profile import Profile

WRITER_FIELDS = frozenset({"type", "sequence_number"})
"""Fields of an event that the writer sets."""

_NUMBER_KEY = b'"sequence_number"'

_RAW_PART_TYPE = b'"reasoning_text"'

_NUMBER_PATTERN = re.compile(_NUMBER_KEY + rb"\s*:\s*(\d+)")

_PART_INDEX_PATTERN = re.compile(rb'"summary_index"(\s*:\s*)\d+')


class ResponsesWriter:
    """Writes one response. See `abridge.apis.api.Writer`.

    `echo` is given for a translated response, whose stream fails once it exceeds `limit`
    characters.
    """

    def __init__(
        self,
        _profile: Profile,
        display: Display,
        echo: RequestEcho | None = None,
        limit: int = sys.maxsize,
        mint_id: MintId = mint_id,
    ) -> None:
        self._display = display
        self._translated = (
            None if echo is None else TranslatedResponse(display, echo, limit, mint_id)
        )
        self._next_number = 0
        self._is_numbered: bool | None = None  # upstream numbers its events; None until one came
        self._response: bytes | None = None  # as it began
        self._item_ids: dict[int, str] = {}  # of reasoning items, by output index
        self._envelopes = EnvelopeSealer(display.seal)
        self._final_response: Json | None = None

    @property
    def final_response(self) -> Json | None:
        translated = self._translated
        if translated is None:
            return self._final_response
        return translated.response if translated.is_over else None

    def write(self, event: Event) -> bytes:
        if event.frame is None or self._translated is not None:
            return b"".join(starmap(self._encode, self._build(event)))
        match event:
            case ReasoningDelta() if not self._display.show_raw:
                return b""
            case NativeSummary():
                return self._write_native(event, event.frame)
            case ReasoningStarted():
                return self._write_reasoning_start(event, event.frame)
            case ReasoningEnded():
                return self._write_reasoning_end(event, event.frame)
            case ResponseStarted():
                return self._write_start(event.frame)
            case ResponseEnded():
                return self._write_end(event, event.frame)
        return self._renumber(event.frame)

    def keep_alive(self) -> bytes:
        """Repeat the response so far, which every client accepts and Codex counts as activity."""
        if self._translated is not None:
            response = None if self._translated.is_over else self._translated.response
        else:
            response = parse_object(self._response) if self._response is not None else None
        if response is None:
            return b""
        return self._encode("response.in_progress", {"response": response})

    def note(self, event: Event) -> None:
        """Take an event of a translated response. Any other comes whole, with its end."""
        if self._translated is not None:
            for _ in self._translated.build(event):
                pass

    def write_whole(self, end: ResponseEnded) -> bytes:
        self.note(end)
        if self._translated is not None:
            response = self._translated.response or {}
        elif (given := parse_object(end.frame or b"", loads_exact) if end.ok else None) is not None:
            response = self._show_final(given, end)
        else:
            return end.frame or b""
        if end.error is None or not end.ok:
            return dumps(response)
        return dumps(failure_body(end.error, as_failed(response, end.error)))

    # Events that are built

    def _build(self, event: Event) -> WireEvents:
        if self._translated is not None:
            return self._translated.stream(event)
        if not isinstance(event, SummaryPartAdded | SummaryTextDelta | SummaryPartDone):
            return iter(())
        address: Json = {
            "item_id": self._item_ids.get(event.item, ""),
            "output_index": event.item,
            "summary_index": event.index,
        }
        return write_part(event, address)

    def _encode(self, event_type: str, fields: Json) -> bytes:
        self._next_number += 1
        return encode_event(event_type, {"sequence_number": self._next_number - 1, **fields})

    # Events that carry a frame

    def _write_start(self, frame: bytes) -> bytes:
        response = parse_frame(frame).get("response")
        if isinstance(response, dict):
            self._response = packed(snapshot(response, self._display))
        return self._renumber(frame)

    def _write_reasoning_start(self, event: ReasoningStarted, frame: bytes) -> bytes:
        added = parse_frame(frame)
        item = added.get("item")
        if not isinstance(item, dict):
            return b""
        self._item_ids[event.item] = string(item.get("id"))
        if self._display.show_raw:
            return self._renumber(frame)
        item = without_reasoning(item)
        item.pop("encrypted_content", None)
        return self._rewrite({**added, "item": item})

    def _write_native(self, event: NativeSummary, frame: bytes) -> bytes:
        if not self._display.show_summary:
            return b""
        return self._renumber(
            _PART_INDEX_PATTERN.sub(rb'"summary_index"\g<1>%d' % event.index, frame)
        )

    def _write_reasoning_end(self, event: ReasoningEnded, frame: bytes) -> bytes:
        done = parse_frame(frame)
        item = done.get("item")
        if not isinstance(item, dict):
            return b""
        blob = self._envelopes.get_blob(event.item, item)
        shown = as_shown(item, event.summary, self._display, blob)
        return self._renumber(frame) if shown == item else self._rewrite({**done, "item": shown})

    def _write_end(self, event: ResponseEnded, frame: bytes) -> bytes:
        ended = parse_frame(frame)
        response = ended.get("response")
        if not isinstance(response, dict):
            return self._renumber(frame)
        shown = self._show_final(response, event)
        if event.ok and event.error is not None:
            return self._encode("response.failed", {"response": as_failed(shown, event.error)})
        if shown == response:
            return self._renumber(frame)
        return self._rewrite({**ended, "response": shown})

    def _show_final(self, response: Json, end: ResponseEnded) -> Json:
        shown = show_final(response, end, self._item_ids, self._display, self._envelopes)
        self._final_response = shown
        return shown

    # Frames

    def _renumber(self, frame: bytes) -> bytes:
        """Give a frame the next number, spliced in where it can only be the event's own."""
        is_plain = b'"response"' not in frame and (
            self._display.show_raw or _RAW_PART_TYPE not in frame
        )
        if self._is_numbered and is_plain and frame.count(_NUMBER_KEY) == 1:
            found = _NUMBER_PATTERN.search(frame)
            if found is not None:
                number, self._next_number = self._next_number, self._next_number + 1
                return frame[: found.start(1)] + b"%d" % number + frame[found.end(1) :]
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
