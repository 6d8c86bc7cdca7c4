"""The content blocks of an answer, read as they stream.

A block starts, gets deltas and stops. Each of these says in events what it says in all APIs, and
the event that says it carries upstream's frame if the client speaks Messages, too. A block of a
whole message starts with all its content and yields the same events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from abridge.apis.display import Display
from abridge.apis.frames import SentEvent, encode_event, parse_frame
from abridge.apis.hosted_calls import describe_call
from abridge.apis.json import (
    as_integer,
    as_object,
    dumps,
    first_string,
    loads_exact,
    objects,
    parse_object_text,
    string,
)
from abridge.apis.media import REMOTE
from abridge.apis.messages.shapes import show_reasoning
from abridge.apis.protocols import Continuation
from abridge.apis.shapes import DropCount, is_withheld
from abridge.core.answer import Part, PartKind
from abridge.core.conversation import Json
from abridge.core.events import (
    LANE,
    CitationDelta,
    ContentDelta,
    Event,
    PartEnded,
    PartStarted,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ToolCallDelta,
)
from abridge.core.native import is_one_part

EMPTY_CONTENT: Mapping[str, Json] = {
    "thinking": {"thinking": "", "signature": ""},
    "text": {"text": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
    "mcp_tool_use": {"input": {}},
}
"""What a block starts with, by its type: its content comes in deltas (Anthropic API reference,
`content_block_start`)."""

HOSTED_CALL_TYPES = ("server_tool_use", "mcp_tool_use")
"""Types of blocks with calls that Anthropic runs itself."""

DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The field that holds the text, by the type of delta."""

DELTA_BLOCK_TYPES = {
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "text_delta": "text",
}
"""Block types that a delta implies, for upstreams that leave out `content_block_start`."""


@dataclass(slots=True)
class MessageState:
    """What the blocks of one answer share, of which at most `room_left` more characters are kept.

    With `carries_frames` the client speaks Messages: blocks are kept as upstream sent them.
    """

    display: Display
    carries_frames: bool
    room_left: int
    item_count: int = 0  # reasoning items so far
    call_count: int = 0
    text_length: int = 0  # characters of the texts that have ended
    untranslated: int = 0  # blocks that no other API has
    withheld: int = 0  # opaque states that no client is shown

    @property
    def is_complete(self) -> bool:
        """True while everything kept fits in the limit."""
        return self.room_left >= 0

    def keep(self, pieces: list[str], text: str) -> None:
        self.room_left -= len(text)
        if text and self.room_left >= 0:
            pieces.append(text)

    def frame_of(self, event: Json) -> bytes | None:
        """Return the frame of an event: upstream's, unless the event was made or changed."""
        if isinstance(event, SentEvent) and self.carries_frames:
            return event.frame
        return encode_event(string(event.get("type")), event) if self.carries_frames else None

    def make_state(self, block: Block, value: Any, *, signs: bool) -> ProviderState:
        """Return the event of a block's opaque state, which is kept."""
        data, withheld = string(value), is_withheld(value, self.display)
        self.keep([], data)
        if withheld:
            self.withheld += 1
            self.display.hidden["state"] += 1
        return ProviderState(LANE, None, block.number, data, signs, withheld, part=block)


class Block(Part):
    """A content block; this is one that passes as it is, and that no other API has."""

    part_kind: PartKind = "other"

    text_field = ""
    """The field of its deltas with nothing but its next text; "" if it has none."""

    is_void = False  # it ended before it said anything, and is no part

    def __init__(self, content_block: Json, index: object, state: MessageState) -> None:
        super().__init__(self.part_kind)
        self.content_block = content_block
        self.type = string(content_block.get("type"))
        self.index = index  # in upstream's frames
        self.is_stopped = False
        self._state = state

    def start(self, frame: bytes | None) -> list[Event]:
        """Start the block without content: that comes in deltas."""
        if self._is_untranslated:
            self._state.untranslated += 1
            return []
        first = self._begin()
        if self._state.carries_frames:
            first.frame = self._start_frame(frame)
        return [first, *self._read(self.content_block)]

    def add(self, event: Json) -> list[Event]:
        """Take a delta. The event that is all it says carries its frame."""
        events, frame = self._read(event["delta"]), self._state.frame_of(event)
        if frame is None or any(isinstance(one, ProviderState) and one.withheld for one in events):
            return events
        if not events:
            return [] if self._hides(event) else [Passthrough(LANE, frame, part=self)]
        is_one = len(events) == 1
        rest = [] if is_one and not self._is_replaced else self._rest(event, frame)
        first = events[0]
        if is_one and not rest:
            first.frame = frame
            if isinstance(first, ContentDelta):
                first.says_more = not is_bare(event)
        return events + rest

    def continuation_of(self, event: Json) -> Continuation | None:
        """Return how a delta of the block is continued, if it held nothing but the next text."""
        delta, key = event["delta"], self.text_field
        if not key or delta.keys() != {"type", key} or not string(delta[key]):
            return None
        keep = partial(self._state.keep, self.texts)
        return Continuation(key, delta[key], (keep,))

    def stop(self, frame: bytes | None) -> list[Event]:
        """Stop the block. Without a frame upstream left its stop out."""
        self.is_stopped = True
        rest = self._rest_of_input()
        if not self._state.is_complete:
            self.content_block = {"type": self.type}
        if self._is_untranslated:
            return []
        return [*rest, PartEnded(LANE, frame, part=self), *self._sources()]

    def break_off(self) -> list[Event]:
        """End the block, as the answer breaks off: only of reasoning that is an end."""
        return []

    def to_json(self) -> Json | None:
        """Return the block as in a whole message; None if it holds nothing."""
        return self.content_block if self._state.carries_frames else None

    @property
    def _is_replaced(self) -> bool:
        """Return whether the text is not shown, but what its frames say beside it is."""
        display = self._state.display
        return self.kind == "reasoning" and not (display.show_raw or display.hides_raw)

    def _hides(self, event: Json) -> bool:
        """Return whether a delta that says nothing here may hold thinking."""
        return self._state.display.hides_raw and string(event["delta"].get("type")) in DELTA_FIELDS

    @property
    def _is_untranslated(self) -> bool:
        return self.kind == "other" and not self._state.carries_frames

    def _begin(self) -> Event:
        """Return the event that begins the block."""
        self._state.keep([], dumps(self.content_block).decode())
        return PartStarted(LANE, None, part=self)

    def _read(self, _delta: Json) -> list[Event]:
        """Read a delta, or what the block starts with."""
        return []

    def _rest_of_input(self) -> list[Event]:
        """Return what is said only as the block stops."""
        return []

    def _sources(self) -> list[Event]:
        """Return the sources of a block that has ended."""
        return []

    def _start_frame(self, frame: bytes | None) -> bytes:
        given, display = self.content_block, self._state.display
        empty = {**complete_call(given), **EMPTY_CONTENT.get(self.type, {})}
        if display.hides_raw:
            empty = show_reasoning(empty, DropCount.of(display))
        if frame is not None and empty == given:
            return frame
        return encode_event("content_block_start", {"index": self.index, "content_block": empty})

    def _rest(self, event: Json, frame: bytes) -> list[Event]:
        """Return the event of what a frame says beside its text."""
        rest = beside_text(event, frame)
        return [] if rest is None else [Passthrough(LANE, rest, part=self)]


_EVENT_FIELDS, _BARE_FIELDS = {"type", "index", "delta"}, {"type", *DELTA_FIELDS.values()}


def is_bare(event: Json) -> bool:
    """Return whether an event with a delta says nothing but its texts."""
    return event.keys() <= _EVENT_FIELDS and event["delta"].keys() <= _BARE_FIELDS


def beside_text(event: Json, frame: bytes) -> bytes | None:
    """Return the frame of a delta without its texts; None if it says nothing else."""
    if is_bare(event):
        return None
    exact = parse_frame(frame)
    empty = dict.fromkeys(exact["delta"].keys() & {"text", "thinking", "signature"}, "")
    return encode_event("content_block_delta", {**exact, "delta": {**exact["delta"], **empty}})


class ReasoningBlock(Block):
    """A block that is a reasoning item of its own, once it holds something."""

    part_kind: PartKind = "reasoning"
    _has_begun = False

    def stop(self, frame: bytes | None) -> list[Event]:
        self.is_stopped = True
        ended = ReasoningEnded(LANE, frame, self.number, part=self)
        return [ended] if self._has_begun else []

    def break_off(self) -> list[Event]:
        return self.stop(None)

    def to_json(self) -> Json | None:
        return self.content_block if self._has_begun else None

    def _begin(self) -> Event:
        self._has_begun = True
        self.number = self._state.item_count
        self._state.item_count += 1
        return ReasoningStarted(LANE, None, self.number, part=self)


class ThinkingBlock(ReasoningBlock):
    """Thinking. Each block is an item of its own, because its signature covers that block alone;
    for a client of another API one without any content is none."""

    text_field = "thinking"

    def __init__(self, content_block: Json, index: object, state: MessageState) -> None:
        super().__init__(content_block, index, state)
        self._signature = ""
        self._is_shown: bool | None = None  # whether all of it is, known once it is signed

    def start(self, frame: bytes | None) -> list[Event]:
        if self._state.carries_frames:
            return super().start(frame)
        return self._read(self.content_block)

    def stop(self, frame: bytes | None) -> list[Event]:
        self.is_void = not self._has_begun
        return super().stop(frame)

    def to_json(self) -> Json | None:
        if not self._has_begun:
            return None
        signature = {"signature": self._signature}
        if not (self._signature or self._state.carries_frames):
            signature = {}
        return {**self.content_block, "thinking": self.said_text, **signature}

    def _ensure_begun(self) -> list[Event]:
        return [] if self._has_begun else [self._begin()]

    def _read(self, delta: Json) -> list[Event]:
        """Read a text, or a signature: each replaces the one before, as in the official client."""
        carries_frames, kind = self._state.carries_frames, delta.get("type")
        text = string(delta.get("thinking"))
        events: list[Event] = []
        if text or (carries_frames and kind == "thinking_delta"):
            self._state.keep(self.texts, text)
            if self._is_shown is not None:  # what is signed before its end is not checked twice
                self._is_shown = self._shows_raw
            begun = self._ensure_begun()
            events = [*begun, ReasoningDelta(LANE, None, self.number, text, part=self)]
        signature = delta.get("signature")
        if signature or (carries_frames and kind == "signature_delta"):
            events += self._ensure_begun()
            state = self._state.make_state(self, signature, signs=True)
            if self._is_shown is None:
                self._is_shown = self._shows_all()
            state.withheld = state.withheld or not self._is_shown
            self._signature = state.data
            events.append(state)
        return events

    @property
    def _shows_raw(self) -> bool:
        return self._state.carries_frames or self._state.display.show_raw

    def _shows_all(self) -> bool:
        """Return whether a client is shown just this text. One of another API that is not would
        return the signature without it, which upstream refuses."""
        display, text = self._state.display, self.said_text
        if self._shows_raw or not text:
            return True
        return display.native and display.show_summary and is_one_part(text)


class RedactedThinkingBlock(ReasoningBlock):
    """Redacted thinking, for a client of another API. It arrives whole in its start event."""

    def start(self, _frame: bytes | None) -> list[Event]:
        data = string(self.content_block.get("data"))
        if not data:
            return []
        begun = self._begin()
        return [begun, self._state.make_state(self, data, signs=False)]


class OpaqueThinkingBlock(Block):
    """Redacted thinking, which passes as it is."""

    part_kind: PartKind = "redacted"


class TextBlock(Block):
    """Answer text. For a client of another API its sources follow it."""

    part_kind: PartKind = "text"
    text_field = "text"

    def __init__(self, content_block: Json, index: object, state: MessageState) -> None:
        super().__init__(content_block, index, state)
        self._citations: list[CitationDelta] = []

    def to_json(self) -> Json | None:
        given = self.content_block if self._state.carries_frames else {"type": "text"}
        return {**given, "text": self.shown_text}

    def _begin(self) -> Event:
        return PartStarted(LANE, None, part=self)

    def _read(self, delta: Json) -> list[Event]:
        text = string(delta.get("text"))
        self._state.keep(self.texts, text)
        if not self._state.carries_frames:
            self._note([delta.get("citation"), *objects(delta.get("citations"))])
        return [ContentDelta(LANE, None, text, part=self)] if text else []

    def _note(self, citations: list[Any]) -> None:
        for citation in map(read_citation, objects(citations)):
            self._state.keep([], citation.source + citation.title + citation.quote)
            if citation.source and self._state.is_complete:
                self._citations.append(replace(citation, lane=LANE, part=self))

    def _sources(self) -> list[Event]:
        """Name the sources of the block. Their passage is all of it."""
        start = self._state.text_length
        end = self._state.text_length = start + sum(map(len, self.texts))
        passage = (start, end) if self._state.is_complete else None
        return [replace(citation, passage=passage) for citation in self._citations]


class CallBlock(Block):
    """A call of one of the client's tools. The input in a stream's start event is empty, and is
    used only if no delta follows."""

    part_kind: PartKind = "call"
    text_field = "partial_json"
    _has_input = False  # in deltas, of which not all are kept

    def __init__(self, content_block: Json, index: object, state: MessageState) -> None:
        super().__init__(content_block, index, state)
        self.number = state.call_count
        state.call_count += 1

    def to_json(self) -> Json | None:
        given = parse_object_text(self.said_text, loads_exact)
        return {**self.content_block, "input": as_object(given)}

    def _begin(self) -> Event:
        call_id, name = (string(self.content_block.get(key)) for key in ("id", "name"))
        return ToolCallDelta(LANE, None, call_index=self.number, id=call_id, name=name, part=self)

    def _read(self, delta: Json) -> list[Event]:
        fragment = string(delta.get("partial_json"))
        if not fragment:
            return []
        self._has_input = True
        self._state.keep(self.texts, fragment)
        return [ToolCallDelta(LANE, None, call_index=self.number, arguments=fragment, part=self)]

    def _rest_of_input(self) -> list[Event]:
        """Add the input of the start. Without any, a block has no delta; others need `{}`."""
        given = self.content_block.get("input")
        if self._has_input:
            return []
        if not given and self._state.carries_frames:
            self.texts.append("{}")
            return []
        return self._read({"partial_json": dumps(given or {}).decode()})


class HostedCallBlock(CallBlock):
    """A call of a tool of the server's. It is part of the answer, which clients return whole."""

    def _begin(self) -> Event:
        return PartStarted(LANE, None, part=self)


SHARED_TYPES: Mapping[str, type[Block]] = {
    "thinking": ThinkingBlock,
    "text": TextBlock,
    "tool_use": CallBlock,
}

TYPES: Mapping[bool, Mapping[str, type[Block]]] = {
    True: {
        **SHARED_TYPES,
        **dict.fromkeys(HOSTED_CALL_TYPES, HostedCallBlock),
        "redacted_thinking": OpaqueThinkingBlock,
    },
    False: {**SHARED_TYPES, "redacted_thinking": RedactedThinkingBlock},
}
"""The blocks that are read by type, for clients of this API and of others; any other is a
`Block`."""


class AnswerBlocks:
    """The blocks of one answer: which there are, and which an event is about."""

    def __init__(self, state: MessageState) -> None:
        self._state = state
        self._by_index: dict[int | None, Block] = {}
        self.all: list[Block] = []

    @property
    def has_open_part(self) -> bool:
        """Return whether upstream has begun a block and not ended it."""
        return not all(block.is_ended for block in self.all)

    @property
    def has_open_call(self) -> bool:
        return any(block.kind == "call" and not block.is_ended for block in self.all)

    @property
    def open_text(self) -> Block | None:
        """Return the text that upstream began last, if nothing was said after it."""
        last = self.all[-1] if self.all else None
        return None if last is None or last.is_stopped or last.kind != "text" else last

    @property
    def only_hosted_calls(self) -> list[dict[str, str]]:
        """Return the calls that upstream ran itself, if there is nothing else."""
        state = self._state
        if state.text_length or state.call_count or not state.is_complete:
            return []
        contents = (block.content_block for block in self.all if block.type in HOSTED_CALL_TYPES)
        return [describe_call(content["type"], string(content.get("name"))) for content in contents]

    def find(self, index: object) -> Block | None:
        """Return the block that began last under an index."""
        block = self._by_index.get(as_integer(index))
        return None if block is None or block.is_void else block

    def has_begun(self, index: object, content_block: Json) -> bool:
        """Return whether a block is open that began with just this, its id among it."""
        block = self.find(index)
        same = block is not None and not block.is_stopped and block.content_block == content_block
        return same and bool(content_block.get("id"))

    def open(self, event: Json) -> list[Event]:
        """Open a block, in the place of one that is still open under its index."""
        index, content_block = event.get("index"), event["content_block"]
        previous, kind = self.find(index), string(content_block.get("type"))
        ending = self._close(previous) if previous is not None else []
        make = TYPES[self._state.carries_frames].get(kind, Block)
        block = self._by_index[as_integer(index)] = make(content_block, index, self._state)
        self.all.append(block)
        return [*ending, *block.start(self._state.frame_of(event))]

    def close_all(self) -> list[Event]:
        """Stop what is open, as the answer is over."""
        return [event for block in self.all for event in self._close(block)]

    def break_off(self) -> list[Event]:
        """End what is open, as the answer breaks off. Calls stay incomplete."""
        open_blocks = (block for block in self.all if not block.is_stopped)
        return [event for block in open_blocks for event in block.break_off()]

    def _close(self, block: Block) -> list[Event]:
        return [] if block.is_stopped else block.stop(None)


def is_of_other_type(delta: Json, block: Block) -> bool:
    """Return whether a delta holds text that is none of its block's: that is of another type, and
    of texts as well, or is over."""
    kind = string(delta.get("type"))
    if kind not in ("text_delta", "thinking_delta") or not delta.get(DELTA_FIELDS[kind]):
        return False
    is_over = block.is_stopped or block.is_closed or block.type in DELTA_BLOCK_TYPES.values()
    return is_over and block.type != DELTA_BLOCK_TYPES[kind]


def is_lost_fragment(delta: Json, block: Block | None) -> bool:
    """Return whether a delta holds arguments of no call that could take them: without them, another
    call would be made than upstream's."""
    if delta.get("type") != "input_json_delta" or not string(delta.get("partial_json")).strip():
        return False
    return block is None or block.type in DELTA_BLOCK_TYPES.values()


def read_citation(citation: Json) -> CitationDelta:
    """Read a citation. A document of the request has no name but its title."""
    title = first_string(citation, "title", "document_title")
    source = first_string(citation, "url", "source")
    is_page = source.startswith(REMOTE)
    return CitationDelta(
        None,
        None,
        url=source if is_page else "",
        file_id="" if is_page else source or string(citation.get("file_id")) or title,
        title=title,
        quote=string(citation.get("cited_text")),
    )


def complete_call(content_block: Json) -> Json:
    """Return a call with a name, which clients require; any other block as it is."""
    is_nameless = content_block.get("type") == "tool_use" and "name" not in content_block
    return {**content_block, "name": ""} if is_nameless else content_block
