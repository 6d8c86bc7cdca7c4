"""The content blocks of an answer, read as they stream.

A block starts, gets deltas and stops. A block of a non-streamed body starts with all its content
and yields the same events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from abridge.apis.delta_patterns import Accepts
from abridge.apis.display import Display
from abridge.apis.json import dumps, string
from abridge.apis.shapes import DropCount, opaque, rebuild
from abridge.apis.tags import TagPiece
from abridge.apis.thinking import BlockFilter, JsonBlockFilter, ThinkingFilter, visible_text
from abridge.core.conversation import Json
from abridge.core.events import (
    ContentDelta,
    Event,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ToolCallDelta,
)
from abridge.providers.profile import Profile

LANE = 0
"""The only lane: the whole answer waits together."""


class MessageState:
    """State shared by the blocks of one answer: the number of reasoning items and calls so far, how
    many characters may still be kept, and what keeps thinking out of texts if that is hidden."""

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self.item_count = 0
        self.call_count = 0
        self.text_length = 0  # characters shown in the texts that have ended, as far as translated
        self.hidden_blocks = 0  # blocks of thinking that were taken out of texts
        self._drops = DropCount()
        self._profile = profile
        self._hides_raw = display.hides_raw
        self._limit = limit
        self._room_left = limit
        self._text_filter: ThinkingFilter | None = None  # of the last text

    @property
    def dropped(self) -> int:
        return self.hidden_blocks + self._drops.count

    def read_opaque(self, value: Any) -> str:
        """Return opaque state; "" if reasoning is hidden and it could be read."""
        return string(rebuild(value, opaque, self._drops) if self._hides_raw else value)

    def new_text_filter(self) -> ThinkingFilter | None:
        """Return what keeps thinking out of a text, if that is hidden."""
        if not self._hides_raw:
            return None
        last = self._text_filter
        thinking = ThinkingFilter.for_answer(self._profile, self._limit, after=last)
        if self.item_count:
            thinking.note_reasoning()
        self._text_filter = thinking
        return thinking

    def new_arguments_filter(self) -> BlockFilter | None:
        """Return what keeps thinking out of a call's arguments, if that is hidden."""
        return JsonBlockFilter(limit=self._limit) if self._hides_raw else None

    @property
    def is_complete(self) -> bool:
        """True while everything kept fits in the limit."""
        return self._room_left >= 0

    def keep_text(self, pieces: list[str], text: str) -> None:
        self._room_left -= len(text)
        if self.is_complete:
            pieces.append(text)

    def next_item(self) -> int:
        self.item_count += 1
        return self.item_count - 1

    def next_call(self) -> int:
        self.call_count += 1
        return self.call_count - 1


class Block:
    """A content block without a translation: server tools and unknown types.

    `item` is the reasoning item a block became. Each thinking block is an item of its own, because
    its signature covers that block alone.
    """

    is_translated = False
    """True for types of blocks that are translated into events."""

    text_field = ""
    """The field of its deltas whose text `proceed` takes; "" if it has none."""

    accepts: Accepts | None = None
    """Returns whether `proceed` takes a text, where it does not take every one."""

    index = 0  # its place among the blocks of the answer
    is_moved = False  # upstream gave it another index
    is_ended = False  # upstream said that it is over

    def __init__(self, content_block: Json, state: MessageState) -> None:
        self.content_block = content_block
        self.type = string(content_block.get("type"))
        self._state = state
        self.item: int | None = None
        self.is_open = True

    def start(self) -> list[Event]:
        return []

    def add_delta(self, _delta: Json) -> list[Event]:
        """Take a delta. One of another type than the block's has no effect."""
        return []

    def proceed(self, text: str, frame: bytes | None) -> Event:
        """Take the text of a delta that holds nothing else, after another one did; asked only of a
        block that has a `text_field`."""
        raise NotImplementedError

    def stop(self) -> list[Event]:
        self.is_open = False
        return []

    def abort(self) -> list[Event]:
        """Return what was held back of the block, since the answer breaks off."""
        return []

    def to_json(self) -> Json | None:
        """Return the block as in a non-streamed body; None if it holds nothing."""
        return None


class ReasoningBlock(Block):
    """A thinking block of either type. The item starts with the first content: a block without any
    is no item."""

    is_translated = True

    def _start_item(self) -> list[Event]:
        if self.item is not None:
            return []
        self.item = self._state.next_item()
        return [ReasoningStarted(LANE, None, self.item)]

    def _state_events(self, opaque: str, *, signs: bool) -> list[Event]:
        if not opaque:
            return []
        return [*self._start_item(), ProviderState(LANE, None, self.item or 0, opaque, signs)]

    def stop(self) -> list[Event]:
        self.is_open = False
        return [] if self.item is None else [ReasoningEnded(LANE, None, self.item)]


class ThinkingBlock(ReasoningBlock):
    text_field = "thinking"

    def __init__(self, content_block: Json, state: MessageState) -> None:
        super().__init__(content_block, state)
        self._texts: list[str] = []
        self._signature = ""

    def start(self) -> list[Event]:
        return self.add_delta(self.content_block)

    def add_delta(self, delta: Json) -> list[Event]:
        if signature := self._state.read_opaque(delta.get("signature")):
            self._keep_signature(signature)
        return self._add_text(string(delta.get("thinking")))

    def proceed(self, text: str, frame: bytes | None) -> Event:
        self._state.keep_text(self._texts, text)
        return ReasoningDelta(LANE, frame, self.item or 0, text)

    def _keep_signature(self, signature: str) -> None:
        """Keep a signature. Each delta replaces it, as in the official client."""
        self._state.keep_text([], signature)
        self._signature = signature

    def stop(self) -> list[Event]:
        return [*self._state_events(self._signature, signs=True), *super().stop()]

    def to_json(self) -> Json | None:
        if self.item is None:
            return None
        signature = {"signature": self._signature} if self._signature else {}
        return {**self.content_block, "thinking": "".join(self._texts), **signature}

    def _add_text(self, text: str) -> list[Event]:
        if not text:
            return []
        self._state.keep_text(self._texts, text)
        return [*self._start_item(), ReasoningDelta(LANE, None, self.item or 0, text)]


class RedactedThinkingBlock(ReasoningBlock):
    """Redacted thinking. It arrives whole in its start event."""

    def start(self) -> list[Event]:
        data = self._state.read_opaque(self.content_block.get("data"))
        self._state.keep_text([], data)
        return self._state_events(data, signs=False)

    def to_json(self) -> Json | None:
        return None if self.item is None else self.content_block


class TextBlock(Block):
    """Answer text."""

    is_translated = True
    text_field = "text"

    def __init__(self, content_block: Json, state: MessageState) -> None:
        super().__init__(content_block, state)
        self._texts: list[str] = []
        self._filter = state.new_text_filter()
        self.accepts = None if self._filter is None else self._filter.passes

    def start(self) -> list[Event]:
        return self.add_delta(self.content_block)

    def add_delta(self, delta: Json) -> list[Event]:
        text = string(delta.get("text"))
        self._state.keep_text(self._texts, text)
        return self._show(text if self._filter is None else visible_text(self._filter.feed(text)))

    def proceed(self, text: str, frame: bytes | None) -> Event:
        self._state.keep_text(self._texts, text)
        return ContentDelta(LANE, frame, text)

    def stop(self) -> list[Event]:
        return super().stop() if self._filter is None else self._end(self._filter.end)

    def abort(self) -> list[Event]:
        return super().abort() if self._filter is None else self._end(self._filter.abort)

    def _end(self, end: Callable[[], list[TagPiece]]) -> list[Event]:
        """End the text; show what was held back that is no thinking."""
        if not self.is_open or self._filter is None:
            return []
        self.is_open = False
        rest = visible_text(end())
        self._state.hidden_blocks += self._filter.blocks
        return self._show(rest)

    def _show(self, text: str) -> list[Event]:
        return [ContentDelta(LANE, None, text)] if text else []

    def to_json(self) -> Json | None:
        return {"type": "text", "text": "".join(self._texts)}


class ToolUseBlock(Block):
    """A call of one of the client's tools. The input in a stream's start event is empty, and is
    used only if no delta follows."""

    is_translated = True
    text_field = "partial_json"

    def __init__(self, content_block: Json, state: MessageState) -> None:
        super().__init__(content_block, state)
        self._call = state.next_call()
        self._id, self._name = (string(content_block.get(key)) for key in ("id", "name"))
        self._fragments: list[str] = []
        self._has_no_input = True
        self._filter = state.new_arguments_filter()
        self.accepts = None if self._filter is None else self._filter.passes

    def start(self) -> list[Event]:
        return [ToolCallDelta(LANE, None, call_index=self._call, id=self._id, name=self._name)]

    def add_delta(self, delta: Json) -> list[Event]:
        fragment = string(delta.get("partial_json"))
        if not fragment:
            return []
        self._has_no_input = False
        self._state.keep_text(self._fragments, fragment)
        return self._show(
            fragment if self._filter is None else visible_text(self._filter.feed(fragment))
        )

    def proceed(self, text: str, frame: bytes | None) -> Event:
        self._state.keep_text(self._fragments, text)
        return ToolCallDelta(LANE, frame, call_index=self._call, arguments=text)

    def stop(self) -> list[Event]:
        self.is_open = False
        events = self._add_given_input() if self._has_no_input else []
        if self._filter is None:
            return events
        rest = visible_text(self._filter.end())
        self._state.hidden_blocks += self._filter.blocks
        return [*events, *self._show(rest)]

    def _add_given_input(self) -> list[Event]:
        given = dumps(self.content_block.get("input") or {}).decode()
        return self.add_delta({"partial_json": given})

    def _show(self, arguments: str) -> list[Event]:
        if not arguments:
            return []
        return [ToolCallDelta(LANE, None, call_index=self._call, arguments=arguments)]

    def to_json(self) -> Json | None:
        arguments = "".join(self._fragments)
        return {"type": "tool_use", "id": self._id, "name": self._name, "input": arguments}


BLOCK_TYPES: dict[str, type[Block]] = {
    "thinking": ThinkingBlock,
    "redacted_thinking": RedactedThinkingBlock,
    "text": TextBlock,
    "tool_use": ToolUseBlock,
}

DELTA_BLOCK_TYPES = {
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "text_delta": "text",
}
"""Block types that a delta implies, for upstreams that leave out `content_block_start`."""

TEXT_FIELDS = {"thinking_delta": "thinking", "text_delta": "text"}
"""The fields of deltas that hold text, by type."""


def is_stray(delta: Json, block: Block, *, is_translated: bool) -> bool:
    """Return whether a delta holds text that cannot go on with its block: one that was closed, or
    is of another type. For clients of other APIs thinking is none: it can be left out."""
    kind = string(delta.get("type"))
    if kind not in TEXT_FIELDS or not delta.get(TEXT_FIELDS[kind]):
        return False
    if is_translated and kind == "thinking_delta":
        return False
    is_other = block.type in DELTA_BLOCK_TYPES.values() and block.type != DELTA_BLOCK_TYPES[kind]
    return is_other or not block.is_open


def is_lost_fragment(delta: Json, block: Block | None) -> bool:
    """Return whether a delta holds arguments of no call that could take them: without them, another
    call would be made than upstream's."""
    if delta.get("type") != "input_json_delta" or not string(delta.get("partial_json")).strip():
        return False
    return block is None or not block.is_open or block.type in DELTA_BLOCK_TYPES.values()
