"""Show what upstream wrote in this API, with summaries in the place of thinking.

A thinking block whose text is shown passes as upstream sent it, and its summary, if there is one,
follows in a block of its own. One whose text is not shown keeps its place: its text is the summary,
and its signature an envelope of what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from io import StringIO
from itertools import starmap
from typing import Any, ClassVar, TypeAlias

from abridge.apis.display import UNSEALED, Display
from abridge.apis.errors import CONNECTION_LOST
from abridge.apis.frames import DeltaFrame, change_frame, encode_event, parse_frame
from abridge.apis.json import as_object, loads_exact, parse_object, string
from abridge.apis.messages.blocks import LANE
from abridge.apis.messages.envelopes import EnvelopeBuilder, EnvelopeSealer
from abridge.apis.messages.errors import error_body
from abridge.apis.messages.framing import move_index
from abridge.apis.messages.shapes import show_reasoning
from abridge.apis.messages.translated_blocks import PART_SEPARATOR, THINKING, delta_frame
from abridge.apis.messages.usage import add_share
from abridge.apis.translated_answer import NOTHING, AddedText, WireEvents
from abridge.core.conversation import Json
from abridge.core.events import (
    NO_SUMMARY,
    ErrorDetail,
    ErrorReported,
    Event,
    ItemSummary,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    SummaryTextDelta,
    ToolCallDelta,
    UsageReported,
)

MAX_SEALED_CHARS = 1 << 22
"""Characters of a thinking block that are kept to be sealed. A longer one gets no envelope."""


_Change: TypeAlias = Callable[["UpstreamMessage", Any, bytes], bytes]


class UpstreamMessage:
    """Show one message, streamed or whole."""

    def __init__(self, display: Display) -> None:
        self._display = display
        self._sealer = EnvelopeSealer(display.seal)
        self._thinking: ShownThinking | None = None
        self._added = 0  # blocks that were added so far
        self._first_usage: Json = {}
        self._has_failed = False

    def compose(self, event: Event) -> WireEvents:
        """Build the events of a stream, type and fields, for one that carries no frame."""
        if self._has_failed:
            return
        if isinstance(event, ResponseEnded) and not event.ok:
            yield self._fail(event.error or CONNECTION_LOST)

    def add_text(self, event: Event) -> AddedText | None:
        """Take a piece of a summary; return None for any other event."""
        if not isinstance(event, SummaryTextDelta):
            return None
        if self._has_failed or self._thinking is None:
            return NOTHING
        return self._thinking.add_summary(event)

    def show(self, event: Event, frame: bytes) -> bytes:
        """Return the bytes in which an event with a frame goes to the client."""
        if self._has_failed:
            return b""
        change = self._CHANGES.get(type(event))
        return self._move(event, frame) if change is None else change(self, event, frame)

    def _move(self, event: Event, frame: bytes) -> bytes:
        """Return the frame with the index that its block has for the client."""
        return move_index(frame, self._added) if self._added and event.lane is not None else frame

    def note(self, event: Event) -> None:
        """Do nothing: the end brings the whole body."""

    def build_whole(self, end: ResponseEnded) -> Json | None:
        """Build the whole message; None if upstream's body is to go out as it is."""
        message = None
        if end.ok and not self._is_unchanged(end):
            message = parse_object(end.frame or b"", loads_exact)
        if message is None:
            return None
        message["content"] = [*self._show_content(message.get("content"), end)]
        if end.share is not None:
            usage, merged = message.get("usage"), self._display.merge_usage
            message["usage"] = add_share(usage, end.share, merged=merged)
        return message

    # Thinking in a stream

    def _start_thinking(self, event: ReasoningStarted, frame: bytes) -> bytes:
        index = parse_frame(frame).get("index")
        index = index if isinstance(index, int) else 0
        self._thinking = ShownThinking(self._display, self._sealer, index + self._added)
        return self._move(event, frame)

    def _add_thinking(self, event: ReasoningDelta | ProviderState, frame: bytes) -> bytes:
        frame = self._move(event, frame)
        if self._thinking is None:
            return frame
        self._thinking.add(event, frame)
        return frame if self._display.show_raw else b""

    def _end_thinking(self, event: ReasoningEnded, frame: bytes) -> bytes:
        thinking, self._thinking = self._thinking, None
        frame, error = self._move(event, frame), event.summary.error
        if thinking is None:
            return frame
        signing = thinking.sign()
        following = b"".join(starmap(encode_event, thinking.write_following(error)))
        self._added += bool(following)
        if error is not None and not following:
            frame = change_frame(frame, lambda stop: {**stop, **_error_field(error)}) or frame
        return signing + frame + following

    # The rest of a stream

    def _note_start(self, _: ResponseStarted, frame: bytes) -> bytes:
        message = as_object(parse_frame(frame).get("message"))
        self._first_usage = as_object(message.get("usage"))
        return frame

    def _note_call(self, event: ToolCallDelta, frame: bytes) -> bytes:
        if event.id:
            self._sealer.note_call(event.id)
        return self._move(event, frame)

    def _note_error(self, _: ErrorReported, frame: bytes) -> bytes:
        self._has_failed = True
        return frame

    def _show_end(self, event: ResponseEnded, frame: bytes) -> bytes:
        return frame if event.error is None else encode_event(*self._fail(event.error))

    def _show_usage(self, event: UsageReported, frame: bytes) -> bytes:
        """Show the usage, which is cumulative. An answer that is to fail has no end to report."""
        if event.error is not None:
            return b""
        if event.share is None:
            return frame
        told = parse_frame(frame)
        usage = as_object(told.get("usage"))
        if "input_tokens" in self._first_usage:
            usage = {"input_tokens": self._first_usage["input_tokens"], **usage}
        told["usage"] = add_share(usage, event.share, merged=self._display.merge_usage)
        return encode_event("message_delta", told)

    def _fail(self, error: ErrorDetail) -> tuple[str, Json]:
        self._has_failed = True
        return "error", error_body(error.message, code=error.code)

    _CHANGES: ClassVar[dict[type[Event], _Change]] = {
        ResponseStarted: _note_start,
        ReasoningStarted: _start_thinking,
        ReasoningDelta: _add_thinking,
        ProviderState: _add_thinking,
        ReasoningEnded: _end_thinking,
        ToolCallDelta: _note_call,
        UsageReported: _show_usage,
        ErrorReported: _note_error,
        ResponseEnded: _show_end,
    }
    """Returns the bytes in which an event with a frame goes out; any other is only moved."""

    # A whole message

    def _is_unchanged(self, end: ResponseEnded) -> bool:
        has_summaries = any(one.parts or one.error for one in end.summaries.values())
        is_shown = self._display.show_raw and not self._display.hides_raw
        return is_shown and not has_summaries and end.share is None and end.error is None

    def _show_content(self, content: object, end: ResponseEnded) -> Iterator[object]:
        item = 0
        for block in content if isinstance(content, list) else ():
            kind = string(as_object(block).get("type"))
            if kind == "tool_use":
                self._sealer.note_call(string(block.get("id")))
            if kind == "thinking":
                yield from self._show_thinking(block, end.summaries.get((LANE, item), NO_SUMMARY))
                item += 1
            else:
                yield self._visible(block)

    def _show_thinking(self, block: Json, summary: ItemSummary) -> Iterator[Json]:
        """Show a thinking block as a stream would add up."""
        text, shown = PART_SEPARATOR.join(summary.parts), self._visible(block)
        marks = _error_field(summary.error)
        if self._display.show_raw:
            yield shown if text else {**shown, **marks}
            if text:
                signature = self._sealer.seal([])
                yield {**THINKING, "thinking": text, "signature": signature, **marks}
        elif text or block.get("thinking"):
            signature = self._sealer.seal([block])
            yield {**shown, "thinking": text, "signature": signature, **marks}
        else:
            yield {**shown, **marks}

    def _visible(self, block: Json) -> Json:
        return show_reasoning(block) if self._display.hides_raw else block


class ShownThinking:
    """What is shown of the open thinking block."""

    def __init__(self, display: Display, sealer: EnvelopeSealer, index: int) -> None:
        self._shows_raw = display.show_raw
        self._sealer = sealer
        self._index = index  # in what the client gets
        self._builder: EnvelopeBuilder | None = None
        if sealer.is_sealing and not display.show_raw:
            self._builder = EnvelopeBuilder(MAX_SEALED_CHARS)
        self._state: ProviderState | None = None  # upstream's signature, the last one
        self._signature = b""  # its frame
        self._is_changed = False
        self._held_summary = StringIO()
        self._last_part: int | None = None

    def add(self, event: ReasoningDelta | ProviderState, frame: bytes) -> None:
        """Take what upstream wrote in this block."""
        if isinstance(event, ReasoningDelta):
            self._is_changed = self._is_changed or bool(event.text)
            if self._builder is not None:
                self._builder.add(event)
        else:
            self._state, self._signature = event, frame

    def add_summary(self, event: SummaryTextDelta) -> AddedText:
        """Take a piece of the summary, which waits where it is to follow the raw text."""
        text = PART_SEPARATOR * (self._last_part not in (None, event.index)) + event.text
        self._last_part = event.index
        if self._shows_raw:
            self._held_summary.write(text)
            return NOTHING
        self._is_changed = True
        return (self._frame, text) if text else NOTHING

    @cached_property
    def _frame(self) -> DeltaFrame:
        return delta_frame(self._index, "thinking_delta")

    def sign(self) -> bytes:
        """Return the signature of a block that has none yet: upstream's if it is unchanged."""
        if self._shows_raw:
            return b""
        if not self._is_changed:
            return self._signature
        signing = _write_text(self._index, "signature", self._seal())
        return b"".join(starmap(encode_event, signing))

    def write_following(self, error: ErrorDetail | None) -> WireEvents:
        """Write the block with the summary that follows the raw text, if there is one."""
        summary, index = self._held_summary.getvalue(), self._index + 1
        if not summary:
            return
        yield "content_block_start", {"index": index, "content_block": THINKING}
        yield from _write_text(index, "thinking", summary)
        yield from _write_text(index, "signature", self._sealer.seal([]))
        yield "content_block_stop", {"index": index, **_error_field(error)}

    def _seal(self) -> str:
        if self._builder is None:
            return UNSEALED
        if self._state is not None:
            self._builder.add(self._state)
        return self._sealer.seal(self._builder.build())


def _write_text(index: int, field: str, text: str) -> WireEvents:
    """Add text to a field of a block; nothing for an empty one."""
    if text:
        delta = {"type": f"{field}_delta", field: text}
        yield "content_block_delta", {"index": index, "delta": delta}


def _error_field(error: ErrorDetail | None) -> Json:
    return {} if error is None else {"summary_error": error.as_dict()}
