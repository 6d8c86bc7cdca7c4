"""Write Chat Completions: events as chunks, or into a whole completion.

An event that carries its frame goes out in it, patched if it holds something that the client is to
see elsewhere or not at all. For an event without a frame new chunks are composed
(`choice_writer.py`). How a response begins and ends, and what a whole one is built from, depends on
the upstream's API (`completion.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from abridge.apis import sse
from abridge.apis.chat.choice_writer import ChoiceWriter, TextPlace
from abridge.apis.chat.completion import Completion
from abridge.apis.chat.errors import encode_error
from abridge.apis.chat.framing import DONE_FRAME, encode_chunk
from abridge.apis.chat.reasoning import replace_reasoning
from abridge.apis.display import Display
from abridge.apis.errors import ANSWER_TOO_LONG, CONNECTION_LOST
from abridge.apis.frames import HOLE, DeltaFrame
from abridge.apis.json import dumps, loads_exact, objects, parse_object
from abridge.apis.openai import failure_body
from abridge.apis.usage import CHAT_USAGE
from abridge.core.conversation import Json
from abridge.core.events import (
    ErrorDetail,
    ErrorReported,
    Event,
    NativeSummary,
    ReasoningDelta,
    ResponseEnded,
    UsageReported,
)

MAX_FRAMES = 64
"""Frames of deltas that are kept of one response."""

_Change: TypeAlias = Callable[["ChatWriter", Any, bytes], bytes]


class ChatWriter:
    """Write one response. See the protocol `Writer`."""

    final_response = None

    def __init__(self, display: Display, completion: Completion) -> None:
        self._display = display
        self._passes_reasoning = display.is_plain
        self._completion = completion
        self._carries_frames = not completion.is_translated
        self._drops_reasoning = self._carries_frames and not display.show_raw
        self._last_fields: Json = {"usage": None} if completion.includes_usage else {}
        self._error: ErrorDetail | None = None
        self._frames: dict[tuple[int, TextPlace], DeltaFrame] = {}
        self._frames_header: Json = {}

    def write(self, event: Event) -> bytes:
        if self._drops_reasoning and type(event) is ReasoningDelta:
            return b""
        if event.frame is not None and self._carries_frames:
            change = self._CHANGES.get(type(event))
            return event.frame if change is None else change(self, event, event.frame)
        if self._error is not None and not self._carries_frames:
            return b""  # nothing follows an error
        if isinstance(event, ErrorReported):
            return self._write_error(event.error)
        if isinstance(event, ResponseEnded):
            return self._write_end(event)
        choice = self._completion.choices.get(event.lane)
        added = choice.add_text(event) if choice is not None else None
        if choice is not None and added is not None:
            return self._write_text(choice, *added)
        choices = self._completion.compose(event)
        data = self._encode(choices) if choices else b""
        return data + self._write_error(ANSWER_TOO_LONG) if self._completion.over_limit else data

    def keep_alive(self) -> bytes:
        return b""

    def note(self, event: Event) -> None:
        if isinstance(event, ErrorReported):
            self._error = event.error
        self._completion.note(event)

    def write_whole(self, end: ResponseEnded) -> bytes:
        completion = self._completion.build_whole(end)
        if completion is None:
            return end.frame or b""
        error = end.error if end.ok else end.error or self._error or CONNECTION_LOST
        if error is None:
            return dumps(completion)
        return dumps(failure_body(error, completion))

    # Events with frames

    def _patch_reasoning(self, event: ReasoningDelta, frame: bytes) -> bytes:
        """Move raw reasoning to the field where the client looks for it."""
        if self._passes_reasoning:
            return frame
        lane = event.lane
        choice = self._completion.get_choice(lane) if lane is not None else None
        if choice is None:
            return b""
        delta = choice.reasoning.build_raw(event.item, event.text)
        if choice.reasoning.keeps_raw:
            return frame
        chunk = _parse_chunk(frame)
        for fields in objects(chunk.get("choices")):
            fields["delta"] = replace_reasoning(fields.get("delta") or {}, delta)
        return encode_chunk(chunk, obfuscate=self._display.obfuscate)

    def _patch_usage(self, event: UsageReported, frame: bytes) -> bytes:
        if event.share is None and event.error is None:
            return frame
        chunk = _parse_chunk(frame)
        if event.error is not None:
            del chunk["usage"]
            return sse.encode_frame(dumps(chunk)) if chunk.get("choices") else b""
        CHAT_USAGE.add_share(chunk, event.share, merged=self._display.merge_usage)
        return sse.encode_frame(dumps(chunk))

    def _pass_native(self, _: NativeSummary, frame: bytes) -> bytes:
        return frame if self._display.show_summary else b""

    def _pass_error(self, event: ErrorReported, frame: bytes) -> bytes:
        self._error = event.error
        return frame

    def _pass_end(self, event: ResponseEnded, frame: bytes) -> bytes:
        return frame if event.error is None else self._write_end(event)

    # Events without frames

    def _write_error(self, error: ErrorDetail) -> bytes:
        self._error = error
        return encode_error(error)

    def _write_end(self, event: ResponseEnded) -> bytes:
        """Write the end: an error unless one is written already, or the usage and `[DONE]`."""
        opening, error = self._encode(self._completion.compose(event)), event.error
        if error is None and not event.ok and self._error is None:
            error = CONNECTION_LOST
        if error is not None:
            return opening + encode_error(error)
        if not event.ok:
            return opening
        if self._completion.includes_usage:
            usage = self._completion.write_usage(event)
            opening += sse.encode_frame(dumps({**self._completion.header, "choices": [], **usage}))
        return opening + DONE_FRAME

    def _encode(self, choices: list[Json]) -> bytes:
        """Encode chunks, one for each of these choices."""
        return b"".join(
            encode_chunk(self._wrap(choice), obfuscate=self._display.obfuscate)
            for choice in choices
        )

    def _write_text(self, choice: ChoiceWriter, place: TextPlace, text: str) -> bytes:
        """Write a chunk that adds a text to a choice; nothing for an empty one."""
        if not text:
            return b""
        frame = self._frames.get((choice.lane, place))
        if frame is None or self._frames_header is not self._completion.header:
            frame = self._make_frame(choice, place)
        return frame.write_obfuscated(text) if self._display.obfuscate else frame.write(text)

    def _make_frame(self, choice: ChoiceWriter, place: TextPlace) -> DeltaFrame:
        if self._frames_header is not self._completion.header or len(self._frames) == MAX_FRAMES:
            self._frames, self._frames_header = {}, self._completion.header
        delta = choice.build_delta(place, HOLE)
        chunk = self._wrap({"index": choice.lane, "delta": delta, "finish_reason": None})
        (value,) = delta.values()
        overhead = -len('""') if value is HOLE else len(dumps(value)) - len(dumps(HOLE))
        frame = self._frames[choice.lane, place] = DeltaFrame(chunk, overhead=overhead)
        return frame

    def _wrap(self, choice: Json) -> Json:
        return {**self._completion.header, "choices": [choice], **self._last_fields}

    _CHANGES: ClassVar[dict[type[Event], _Change]] = {
        ReasoningDelta: _patch_reasoning,
        NativeSummary: _pass_native,
        UsageReported: _patch_usage,
        ErrorReported: _pass_error,
        ResponseEnded: _pass_end,
    }
    """Returns the bytes in which an event with a frame goes out; any other passes in it."""


def _parse_chunk(frame: bytes) -> Json:
    return parse_object(sse.frame_data(frame) or b"", loads_exact) or {}
