"""Write Chat Completions: events as chunks, or into a whole completion.

An event that carries its frame goes out in it, patched if it holds something that the client is to
see elsewhere or not at all. For an event without a frame new chunks are composed
(`choice_writer.py`). How a response begins and ends, and what a whole one is built from, depends on
the upstream's API (`completion.py`).
"""

from __future__ import annotations

from abridge.apis import sse
from abridge.apis.chat.completion import Completion
from abridge.apis.chat.errors import encode_error
from abridge.apis.chat.framing import DONE_FRAME, encode_chunk
from abridge.apis.chat.reasoning import replace_reasoning
from abridge.apis.display import Display
from abridge.apis.errors import ANSWER_TOO_LONG, CONNECTION_LOST
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


class ChatWriter:
    """Write one response. See the protocol `Writer`."""

    final_response = None

    def __init__(self, display: Display, completion: Completion) -> None:
        self._display = display
        self._passes_reasoning = display.is_plain
        self._completion = completion
        self._carries_frames = not completion.is_translated
        self._last_fields: Json = {"usage": None} if completion.includes_usage else {}
        self._error: ErrorDetail | None = None

    def write(self, event: Event) -> bytes:
        if event.frame is not None and self._carries_frames:
            return self._pass_on(event, event.frame)
        if self._error is not None and not self._carries_frames:
            return b""  # nothing follows an error
        if isinstance(event, ErrorReported):
            return self._write_error(event.error)
        if isinstance(event, ResponseEnded):
            return self._write_end(event)
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

    def _pass_on(self, event: Event, frame: bytes) -> bytes:
        match event:
            case ReasoningDelta() if not self._passes_reasoning:
                return self._patch_reasoning(event, frame)
            case NativeSummary() if not self._display.show_summary:
                return b""
            case UsageReported():
                return self._patch_usage(event, frame)
            case ErrorReported():
                self._error = event.error
            case ResponseEnded(error=ErrorDetail()):
                return self._write_end(event)
        return frame

    def _patch_reasoning(self, event: ReasoningDelta, frame: bytes) -> bytes:
        """Move raw reasoning to the field where the client looks for it, if it is shown."""
        lane = event.lane
        choice = self._completion.get_choice(lane) if lane is not None else None
        if choice is None or not self._display.show_raw:
            return b""
        delta = choice.reasoning.add_raw(event.item, event.text)
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
        header, data = self._completion.header, b""
        for choice in choices:
            chunk = {**header, "choices": [choice], **self._last_fields}
            data += encode_chunk(chunk, obfuscate=self._display.obfuscate)
        return data


def _parse_chunk(frame: bytes) -> Json:
    return parse_object(sse.frame_data(frame) or b"", loads_exact) or {}
