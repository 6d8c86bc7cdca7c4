"""Frame the blocks of an answer: strategies that say what becomes of what upstream sends.

There are two. `OriginalFrames` is for clients of Messages: an event carries the frame it came in,
changed where it was repaired, or a new one where upstream left the event out. `TranslatedEvents`
(`translation.py`) is for clients of other APIs: an event has no frame and says everything itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import ClassVar, Protocol

from abridge.apis.display import Display
from abridge.apis.frames import change_frame, encode_event, parse_frame
from abridge.apis.json import as_object, dumps, loads_exact, parse_object, string
from abridge.apis.messages.blocks import (
    LANE,
    Block,
    MessageState,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from abridge.apis.messages.lifecycle import complete_call
from abridge.apis.messages.shapes import show_reasoning
from abridge.core.conversation import Json
from abridge.core.events import (
    ContentDelta,
    Event,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ToolCallDelta,
    text_size,
)

EMPTY_CONTENT: dict[str, Json] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
    "mcp_tool_use": {"input": {}},
}
"""What a block starts with, by its type: its content comes in deltas (Anthropic API reference,
`content_block_start`)."""

_INDEX = re.compile(rb'("index"\s*:\s*)(\d+)')


class Framing(Protocol):
    """Say what becomes of the blocks of one response."""

    carries_frames: ClassVar[bool]

    def make_frame(self, event_type: str, fields: Json, /) -> bytes | None:
        """Make the frame of an event that upstream left out, if events carry frames."""

    def make_block(self, content_block: Json, state: MessageState) -> Block:
        """Make a block of its type."""

    def start(self, block: Block, frame: bytes | None, /) -> list[Event]:
        """Start a block."""

    def add_delta(self, block: Block, event: Json, frame: bytes | None, /) -> list[Event]:
        """Add the delta of an event to a block."""

    def stop(self, block: Block, frame: bytes | None, /) -> list[Event]:
        """Stop a block. Without a frame upstream left its stop out."""

    def abort(self, block: Block) -> list[Event]:
        """End an open block, as the answer breaks off."""

    def other(self, frame: bytes | None, /) -> list[Event]:
        """Return the events for a frame that is about no block."""


class OriginalFrames:
    """Carry upstream's frames, repaired. See the protocol `Framing`.

    Where raw reasoning is hidden, texts are looked through for thinking, so that their frames are
    new ones. Where it is merely replaced, what else a frame of it says goes out in another one.
    """

    carries_frames: ClassVar[bool] = True

    def __init__(self, display: Display) -> None:
        self._hides_raw = display.hides_raw
        self._replaces_raw = not (display.show_raw or display.hides_raw)

    def make_frame(self, event_type: str, fields: Json) -> bytes | None:
        return encode_event(event_type, fields)

    def make_block(self, content_block: Json, state: MessageState) -> Block:
        return ORIGINAL_TYPES.get(string(content_block.get("type")), OriginalBlock)(
            content_block, state
        )

    def start(self, block: Block, frame: bytes | None) -> list[Event]:
        """Start a block without content: that comes in deltas."""
        given = block.content_block
        shown = show_reasoning(given) if self._hides_raw else given
        empty = {**complete_call(shown), **EMPTY_CONTENT.get(block.type, {})}
        if frame is None or empty != given:
            fields = {"index": block.index, "content_block": empty}
            frame = encode_event("content_block_start", fields)
        first, *content = block.start()
        first.frame = with_index(frame, block.index)
        return [first, *_framed(content, block)]

    def add_delta(self, block: Block, event: Json, frame: bytes | None) -> list[Event]:
        delta = event["delta"]
        events = block.add_delta(delta)
        is_rebuilt = self._hides_raw and delta.get("type") in TEXT_DELTAS
        if is_rebuilt or frame is None:
            return _framed(events, block)
        if len(events) > 1:
            return [*_framed(events, block), *_rest_of(event, frame, block)]
        read = events[0] if events else Passthrough(LANE, None)
        read.frame = with_index(frame, block.index) if block.is_moved else frame
        if not self._replaces_raw or not isinstance(read, ReasoningDelta | ProviderState):
            return [read]
        return [read, *_rest_of(event, frame, block)]

    def stop(self, block: Block, frame: bytes | None) -> list[Event]:
        *rest, last = block.stop()
        if frame is None:
            last.frame = encode_event("content_block_stop", {"index": block.index})
        else:
            last.frame = with_index(frame, block.index)
        return [*_framed(rest, block), last]

    def abort(self, block: Block) -> list[Event]:
        """End thinking, so that its summary is. Another block stays as it is."""
        if isinstance(block, ThinkingBlock):
            return self.stop(block, None)
        return _framed(block.abort(), block)

    def other(self, frame: bytes | None) -> list[Event]:
        return [Passthrough(None, frame)]


def without_frames(events: Iterable[Event]) -> list[Event]:
    """Return the events of a whole message without those that stand for frames alone."""
    selected = [event for event in events if not isinstance(event, Passthrough)]
    for event in selected:
        event.frame = None
    return selected


def with_index(frame: bytes, index: int) -> bytes:
    """Return the frame of an event with this index."""
    found = _find_index(frame)
    if found is None:
        return change_frame(frame, lambda event: {**event, "index": index}) or frame
    return frame if int(found[2]) == index else _splice(frame, found, index)


def move_index(frame: bytes, by: int) -> bytes:
    """Return the frame of an event with its index moved by so many."""
    found = _find_index(frame) if by else None
    if found is not None:
        return _splice(frame, found, int(found[2]) + by)
    index = parse_frame(frame).get("index") if by else None
    return with_index(frame, index + by) if isinstance(index, int) else frame


def _find_index(frame: bytes) -> re.Match[bytes] | None:
    """Find the index where it can only be the event's own."""
    return _INDEX.search(frame) if frame.count(b'"index"') == 1 else None


def _splice(frame: bytes, found: re.Match[bytes], index: int) -> bytes:
    return b"%b%d%b" % (frame[: found.start(2)], index, frame[found.end(2) :])


TEXT_DELTAS = ("text_delta", "thinking_delta", "signature_delta", "input_json_delta")
"""Types of deltas whose text the blocks read."""


def make_delta(event: Event) -> Json | None:
    """Return the delta that says what a translated event does; None if there is none."""
    match event:
        case ReasoningDelta():
            return {"type": "thinking_delta", "thinking": event.text}
        case ProviderState():
            return {"type": "signature_delta", "signature": event.data}
        case ToolCallDelta():
            return {"type": "input_json_delta", "partial_json": event.arguments}
        case ContentDelta():
            return {"type": "text_delta", "text": event.text}
    return None


_THINKING_FIELDS = {"type", "thinking", "signature"}


def _rest_of(event: Json, frame: bytes, block: Block) -> list[Event]:
    """Return what a frame of thinking says beside its text."""
    if event["delta"].keys() <= _THINKING_FIELDS and event.keys() <= {"type", "index", "delta"}:
        return []
    exact = parse_frame(frame)
    delta = exact["delta"]
    empty = {**delta, **dict.fromkeys(delta.keys() & {"thinking", "signature"}, "")}
    rest = {**exact, "index": block.index, "delta": empty}
    return [Passthrough(LANE, encode_event("content_block_delta", rest))]


def _framed(events: Iterable[Event], block: Block) -> list[Event]:
    """Return the events of a block's content that say something, with new frames."""
    framed = [event for event in events if text_size(event)]
    for event in framed:
        fields = {"index": block.index, "delta": make_delta(event)}
        event.frame = encode_event("content_block_delta", fields)
    return framed


# Blocks, recorded as upstream sent them. The first event is that of the start, the last the stop's.


class OriginalBlock(Block):
    """A block without streamed text, or of an unknown type: it passes as it is."""

    def __init__(self, content_block: Json, state: MessageState) -> None:
        super().__init__(content_block, state)
        state.keep_text([], dumps(content_block).decode())

    def start(self) -> list[Event]:
        return [Passthrough(LANE, None)]

    def stop(self) -> list[Event]:
        stopping = super().stop()
        if not self._state.is_complete:
            self.content_block = {"type": self.type}
        return [*stopping, Passthrough(LANE, None)]

    def to_json(self) -> Json | None:
        return self.content_block


class OriginalThinking(ThinkingBlock):
    """Thinking. Every block is an item, and its signature is reported where upstream sent it."""

    def start(self) -> list[Event]:
        self.item = self._state.next_item()
        return [ReasoningStarted(LANE, None, self.item), *self.add_delta(self.content_block)]

    def add_delta(self, delta: Json) -> list[Event]:
        events: list[Event] = []
        kind, item = delta.get("type"), self.item or 0
        text = string(delta.get("thinking"))
        if text or kind == "thinking_delta":
            self._state.keep_text(self._texts, text)
            events.append(ReasoningDelta(LANE, None, item, text))
        signature = self._state.read_opaque(delta.get("signature"))
        if signature or kind == "signature_delta":
            self._keep_signature(signature)
            events.append(ProviderState(LANE, None, item, signature, signs=True))
        return events

    def stop(self) -> list[Event]:
        self.is_open = False
        return [ReasoningEnded(LANE, None, self.item or 0)]

    def to_json(self) -> Json | None:
        return {
            **self.content_block,
            "thinking": "".join(self._texts),
            "signature": self._signature,
        }


class OriginalText(TextBlock):
    """Text. What is thinking in it was taken out before (`inline.py`)."""

    def __init__(self, content_block: Json, state: MessageState) -> None:
        super().__init__(content_block, state)
        self._filter = self.accepts = None

    def start(self) -> list[Event]:
        return [Passthrough(LANE, None), *super().start()]

    def stop(self) -> list[Event]:
        return [*super().stop(), Passthrough(LANE, None)]


class OriginalCall(ToolUseBlock):
    """A call of one of the client's tools."""

    def stop(self) -> list[Event]:
        return [*super().stop(), Passthrough(LANE, None)]

    def _add_given_input(self) -> list[Event]:
        """Add the input of the start, if there is any; without any, a block has no delta."""
        if self.content_block.get("input"):
            return super()._add_given_input()
        self._fragments.append("{}")
        return []


class OriginalServerCall(OriginalCall):
    """A call of a tool of the server's. It is part of the answer, which clients return whole."""

    def start(self) -> list[Event]:
        return [Passthrough(LANE, None)]

    def to_json(self) -> Json | None:
        arguments = "".join(self._fragments).encode(errors="surrogatepass")
        given = parse_object(arguments, loads_exact)
        return {**self.content_block, "input": as_object(given)}


ORIGINAL_TYPES: dict[str, type[Block]] = {
    "thinking": OriginalThinking,
    "text": OriginalText,
    "tool_use": OriginalCall,
    "server_tool_use": OriginalServerCall,
    "mcp_tool_use": OriginalServerCall,
}
