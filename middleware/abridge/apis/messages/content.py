"""Write the content of a message: its blocks, numbered densely from 0, one open at a time.

What carries a frame goes out in it, under the number that its block has for the client. What does
not is composed. Both are one way: the text of a block may come in frames, and its end be composed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from io import StringIO
from typing import Any, ClassVar, Literal, TypeAlias

from abridge.apis.display import UNSEALED, UNSEALED_RAW, Display
from abridge.apis.frames import HOLE, DeltaFrame, change_frame, encode_event, parse_frame
from abridge.apis.messages.blocks import Block, beside_text
from abridge.apis.messages.citations import write_citation
from abridge.apis.messages.envelopes import EnvelopeBuilder, EnvelopeSealer
from abridge.apis.messages.tools import client_call_id, escape_halves, wrap_invalid
from abridge.apis.openai import MintId
from abridge.apis.tools import unwrap_free_text, wrap_free_text
from abridge.apis.translated_answer import NOTHING, AddedText
from abridge.core.conversation import ItemKey, Json
from abridge.core.events import (
    Beside,
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    Event,
    NativeSummary,
    PartEnded,
    PartStarted,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    SummaryTextDelta,
    ToolCallDelta,
)
from abridge.core.model_request import Tool
from abridge.stages.order import CallOrder

PART_SEPARATOR = "\n\n"
"""Stands between the parts of a summary, and wherever else one text follows another."""

DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The field that holds the text, by the type of delta."""

THINKING: Json = {"type": "thinking", "thinking": "", "signature": ""}

MAX_SEALED_CHARS = 1 << 22
"""Characters of a thinking block that are kept to be sealed. A longer one gets no envelope."""

WireEvents: TypeAlias = Iterator[Any]
"""Events of a stream: the type of each and its other fields or, as bytes, the frame it came in."""


def encode(event: tuple[str, Json] | bytes) -> bytes:
    return event if isinstance(event, bytes) else encode_event(*event)


class BlockEvents:
    """Make the events of blocks, one after the other."""

    def __init__(self) -> None:
        self.is_open = False
        self._index = -1
        self._frames: dict[str, DeltaFrame] = {}  # of the block, by the type of delta

    def start(self, block: Json) -> WireEvents:
        """Start a block, which stops the one before it."""
        yield from self._next()
        yield "content_block_start", {"index": self._index, "content_block": block}

    def start_in(self, frame: bytes, event: Event) -> WireEvents:
        """Start a block in its frame."""
        yield from self._next()
        yield self.move(frame, event)

    def _next(self) -> WireEvents:
        yield from self.stop()
        self.is_open = True
        self._index += 1
        self._frames = {}

    def add(self, delta_type: str, text: str) -> WireEvents:
        """Add to the open block; nothing for an empty text."""
        if text:
            delta = {"type": delta_type, DELTA_FIELDS[delta_type]: text}
            yield "content_block_delta", {"index": self._index, "delta": delta}

    def add_text(self, delta_type: str, text: str) -> AddedText:
        """Add to the open block, as `add` does."""
        if not text:
            return NOTHING
        frame = self._frames.get(delta_type)
        if frame is None:
            delta = {"type": delta_type, DELTA_FIELDS[delta_type]: HOLE}
            event = {"type": "content_block_delta", "index": self._index, "delta": delta}
            frame = self._frames[delta_type] = DeltaFrame(event, "content_block_delta")
        return frame, text

    def cite(self, citation: Json) -> WireEvents:
        """Add a citation to the open block."""
        delta = {"type": "citations_delta", "citation": citation}
        yield "content_block_delta", {"index": self._index, "delta": delta}

    def move(self, frame: bytes, event: Event) -> bytes:
        """Return a frame under the index that the open block has for the client."""
        part = event.part
        is_same = isinstance(part, Block) and part.index == self._index
        return frame if is_same else with_index(frame, self._index)

    def stop(self, error: ErrorDetail | None = None, frame: bytes | None = None) -> WireEvents:
        """Stop the open block, if there is one; say why it has no summary, or not all of it."""
        if not self.is_open:
            return
        self.is_open = False
        if frame is None:
            yield "content_block_stop", {"index": self._index, **error_field(error)}
        elif error is not None:
            yield change_frame(frame, lambda stop: {**stop, **error_field(error)}) or frame
        else:
            yield frame


def error_field(error: ErrorDetail | None) -> Json:
    return {} if error is None else {"summary_error": error.as_dict()}


_INDEX = re.compile(rb'("index"\s*:\s*)(\d+)')


def with_index(frame: bytes, index: int) -> bytes:
    """Return the frame of an event with this index."""
    found = _INDEX.search(frame) if frame.count(b'"index"') == 1 else None
    if found is None:
        return change_frame(frame, lambda event: {**event, "index": index}) or frame
    if int(found[2]) == index:
        return frame
    return b"%b%d%b" % (frame[: found.start(2)], index, frame[found.end(2) :])


_AddText: TypeAlias = Callable[["MessageContent", Any], AddedText | None]


class MessageContent:
    """Write the content of one message. `tools` are those offered to upstream, by name. What is
    `given` comes in order, from an upstream that speaks Messages, too."""

    def __init__(
        self,
        display: Display,
        tools: Mapping[str, Tool],
        limit: int,
        mint_id: MintId,
        *,
        given: bool = False,
    ) -> None:
        self._is_given = given
        self.has_refusal = False
        self.has_calls = False
        self.sealer = EnvelopeSealer(display.seal)
        self._display = display
        self._tools = tools
        self._limit = limit
        self._mint_id = mint_id
        self._blocks = BlockEvents()
        self._order = CallOrder()
        self._thinking: ThinkingContent | None = None
        self._call: CallContent | None = None
        self._text: tuple[type[ContentDelta], int] | None = None  # which text is open
        self._reported_errors: set[ItemKey] = set()
        self._cited_files: list[str] = []

    @property
    def failure(self) -> ErrorDetail | None:
        return self._order.failure

    # Texts that go on

    def pass_delta(self, event: Event, frame: bytes) -> bytes | None:
        """Return what the client gets of a delta in its frame; None for any other event."""
        kind = type(event)
        if kind is ContentDelta or (isinstance(event, ToolCallDelta) and event.arguments):
            return self._blocks.move(frame, event)
        if isinstance(event, ReasoningDelta) and self._thinking is not None:
            return self._thinking.pass_raw(event, frame)
        return None

    def add_text(self, event: Event) -> AddedText | None:
        """Take an event that only adds to the text of the open block, if it can be told here."""
        add = self._ADDERS.get(type(event))
        return None if add is None else add(self, event)

    def _add_content(self, event: ContentDelta) -> AddedText | None:
        if self._text != (ContentDelta, event.message_index):
            return None
        return self._blocks.add_text("text_delta", event.text)

    def _add_arguments(self, event: ToolCallDelta) -> AddedText | None:
        call = self._call
        if call is None or call.number != event.call_index or not call.streams:
            return None
        if not (self._is_given or self._order.add_arguments(event)):
            return None
        return self._blocks.add_text("input_json_delta", escape_halves(event.arguments))

    def _add_raw(self, event: ReasoningDelta) -> AddedText | None:
        thinking = self._thinking
        return self._dropped() if thinking is None else thinking.add_raw(event)

    def _add_summary(self, event: SummaryTextDelta) -> AddedText | None:
        thinking = self._thinking
        return self._dropped() if thinking is None else thinking.add_summary(event)

    def _dropped(self) -> AddedText | None:
        """Drop reasoning where none is shown; elsewhere its stretch waits for a call."""
        return NOTHING if self._display.drops_reasoning else None

    _ADDERS: ClassVar[dict[type[Event], _AddText]] = {
        ContentDelta: _add_content,
        ToolCallDelta: _add_arguments,
        ReasoningDelta: _add_raw,
        SummaryTextDelta: _add_summary,
    }

    # In order

    def write(self, event: Event) -> WireEvents:
        """Write an event of the answer or its reasoning, and those that waited for it."""
        if self._is_given:
            yield from self._write_piece(event)
        elif isinstance(event, ContentDelta) or not self._display.drops_reasoning:
            for piece in self._order.take([event]):
                yield from self._write_piece(piece)

    def _write_piece(self, event: Event) -> WireEvents:
        match event:
            case ToolCallDelta():
                yield from self._write_call(event)
            case RefusalDelta():
                self.has_refusal = True
                yield from self._write_text(event, event.refusal)
            case ContentDelta():
                yield from self._write_text(event, event.text)
            case ReasoningStarted():
                yield from self._start_reasoning(event)
            case ReasoningEnded():
                yield from self._end_reasoning(event)
            case _ if self._is_given and event.part is not None:
                yield from self._write_given(event)
            case _ if self._thinking is not None:
                yield from self._thinking.write(event)

    def _write_given(self, event: Event) -> WireEvents:
        """Write what only an upstream says that speaks Messages, too."""
        frame = event.frame
        match event:
            case PartStarted():
                yield from self._start_part(event)
            case PartEnded():
                yield from self._stop_block(frame and self._blocks.move(frame, event))
            case Passthrough() if frame is not None:
                yield frame if event.lane is None else self._blocks.move(frame, event)
            case Beside() if frame is not None:
                rest = beside_text(parse_frame(frame), frame)
                if rest is not None:
                    yield self._blocks.move(rest, event)
            case _ if self._thinking is not None:
                yield from self._thinking.write(event)

    # Reasoning

    def _start_reasoning(self, event: ReasoningStarted) -> WireEvents:
        """Start a stretch of reasoning."""
        yield from self._stop_block()
        self._thinking = ThinkingContent(
            self._display, self._blocks, self.sealer, self._limit, is_given=self._is_given
        )
        if event.frame is None:
            yield from self._blocks.start(THINKING)
        else:
            yield from self._blocks.start_in(event.frame, event)

    def _end_reasoning(self, event: ReasoningEnded) -> WireEvents:
        """End the stretch. The error of an item's summary is reported once."""
        thinking, self._thinking = self._thinking, None
        if thinking is None:
            return
        key, error = (event.lane or 0, event.item), event.summary.error
        is_new = error is not None and key not in self._reported_errors
        self._reported_errors |= {key} if is_new else set()
        frame = event.frame and self._blocks.move(event.frame, event)
        yield from thinking.end(error if is_new else None, frame)

    # The answer

    def _start_part(self, event: PartStarted) -> WireEvents:
        """Start a block of upstream's, or a text that goes on with one that was stopped."""
        yield from self._stop_block()
        is_text = event.part is not None and event.part.kind == "text"
        self._text = (ContentDelta, 0) if is_text else None
        if event.frame is not None:
            yield from self._blocks.start_in(event.frame, event)
        elif is_text:
            yield from self._blocks.start({"type": "text", "text": ""})

    def _write_text(self, event: ContentDelta, text: str) -> WireEvents:
        """Write a piece of text. Each of upstream's messages, and a refusal, has its own block.

        Anthropic refuses a block without text when it comes back, so none is begun for nothing.
        """
        if event.frame is not None:
            yield self._blocks.move(event.frame, event)
            return
        key = type(event), event.message_index
        if self._text != key and text:
            yield from self._stop_block()
            self._text = key
            yield from self._blocks.start({"type": "text", "text": ""})
        yield from self._blocks.add("text_delta", text)

    @property
    def has_open_text(self) -> bool:
        return self._text is not None and self._blocks.is_open

    def cite(self, citation: CitationDelta) -> WireEvents:
        yield from self._blocks.cite(self.write_citation(citation))

    def write_citation(self, citation: CitationDelta) -> Json:
        return write_citation(citation, self._cited_files)

    def _write_call(self, event: ToolCallDelta) -> WireEvents:
        if event.frame is not None:
            yield from self._pass_call(event, event.frame)
            return
        if self._is_given:
            yield from self._blocks.add("input_json_delta", event.arguments)
            return
        if self._call is None or self._call.number != event.call_index:
            yield from self._stop_block()
            self.has_calls = True
            self._call = CallContent(event, self._tools.get(event.name), self._mint_id)
            self.sealer.note_call(self._call.id)
            yield from self._blocks.start(self._call.build_start())
        yield from self._blocks.add(
            "input_json_delta", escape_halves(self._call.write(event.arguments))
        )

    def _pass_call(self, event: ToolCallDelta, frame: bytes) -> WireEvents:
        if event.arguments:
            yield self._blocks.move(frame, event)
            return
        if event.id:
            self.sealer.note_call(event.id)
        yield from self._stop_block()
        yield from self._blocks.start_in(frame, event)

    def _stop_block(self, frame: bytes | None = None) -> WireEvents:
        call, self._call, self._text = self._call, None, None
        if call is not None:
            yield from self._blocks.add("input_json_delta", escape_halves(call.end()))
        yield from self._blocks.stop(frame=frame)

    def finish(self) -> WireEvents:
        """Finish the open block, and everything that is queued behind it."""
        for piece in self._order.rest():
            yield from self._write_piece(piece)
        yield from self._end_thinking()
        yield from self._stop_block()

    def break_off(self) -> WireEvents:
        """Stop the open block, unless it is a call, which a client might run once it is stopped."""
        if self._call is None:
            yield from self._end_thinking()
            yield from self._blocks.stop()

    def _end_thinking(self) -> WireEvents:
        thinking, self._thinking = self._thinking, None
        if thinking is not None:
            yield from thinking.end(None)


class CallContent:
    """Write one call of a client's tool.

    Arguments stream as they come. They are held until they are whole where an object has to be made
    of them: those of a custom tool, and those that begin as none.
    """

    def __init__(self, event: ToolCallDelta, tool: Tool | None, mint_id: MintId) -> None:
        self.number = event.call_index  # among the calls of the answer
        self.id = client_call_id(event.id) or mint_id("toolu_")
        self._tool = tool
        self._name = tool.client_name if tool is not None and tool.client_name else event.name
        self._is_custom = event.custom
        self._held = StringIO()
        self.streams: bool | None = False if event.custom else None
        """The arguments begin as an object; None until they begin."""

    def build_start(self) -> Json:
        return {"type": "tool_use", "id": self.id, "name": self._name, "input": {}}

    def write(self, arguments: str) -> str:
        """Take a piece of the arguments; return the JSON that is to be written."""
        if self.streams is None and (begun := arguments.lstrip()):
            self.streams = begun.startswith("{")
        if self.streams:
            return arguments
        self._held.write(arguments)
        return ""

    def end(self) -> str:
        """Return the rest of the JSON."""
        held = self._held.getvalue()
        if self._is_custom and held:
            tool = self._tool
            return wrap_free_text(held if tool is None else unwrap_free_text(tool, held))
        if self.streams or not held.strip():
            return ""
        return json.dumps(wrap_invalid(held), ensure_ascii=False)


class ThinkingContent:
    """Write one stretch of reasoning.

    It is one block, of the summary or of the raw text. Where both are shown the summary is a block
    after the raw one, and its text waits until that is whole. What a signature of upstream's signs
    is a block of its own. Any other block is signed with an envelope, from which the reasoning is
    restored; without one, opaque state follows in blocks of redacted thinking.

    A block `is_given` by an upstream that speaks Messages, too. Shown raw, it passes as upstream
    sent it; unchanged, it keeps upstream's signature.
    """

    def __init__(
        self,
        display: Display,
        blocks: BlockEvents,
        sealer: EnvelopeSealer,
        limit: int,
        *,
        is_given: bool,
    ) -> None:
        self._display = display
        self._blocks = blocks
        self._sealer = sealer
        self._is_given = is_given
        self._builder: EnvelopeBuilder | None = None
        if sealer.is_sealing and not (is_given and display.show_raw):
            self._builder = EnvelopeBuilder(MAX_SEALED_CHARS if is_given else limit)
        self._kind: Literal["raw", "summary"] | None = None  # of the text in the last block
        self._last_part: int | None = None
        self._held_summary = StringIO()
        self._states: list[str] = []
        self._is_signed = is_given and display.show_raw  # upstream signs its blocks itself
        self._has_text = False  # there was reasoning, shown or not
        self._given: tuple[ProviderState, bytes] | None = None  # upstream's last signature

    def write(self, event: Event) -> WireEvents:
        if self._builder is not None and not self._is_given:
            self._builder.add(event)
        match event:
            case ReasoningDelta():
                yield from self._write_raw(event)
            case NativeSummary() if self._display.show_summary and event.text:
                yield from self._write_summary(event.index, event.text)
            case SummaryTextDelta():  # comes before the raw text where that was queued
                waits = self._display.show_raw and self._kind is None
                yield from self._write_summary(event.index, event.text, waits=waits)
            case ProviderState():
                yield from self._add_state(event)

    def pass_raw(self, event: ReasoningDelta, frame: bytes) -> bytes:
        """Return what the client gets of a piece of reasoning in its frame."""
        self._note_raw(event)
        return self._blocks.move(frame, event) if self._display.show_raw else b""

    def add_raw(self, event: ReasoningDelta) -> AddedText | None:
        """Take a piece of reasoning, unless a block has to be started for it."""
        is_shown = self._display.show_raw and event.text
        if is_shown and not (self._kind == "raw" and self._blocks.is_open):
            return None
        if self._builder is not None and not self._is_given:
            self._builder.add(event)
        elif self._is_given:
            self._note_raw(event)
        return self._blocks.add_text("thinking_delta", event.text) if is_shown else NOTHING

    def add_summary(self, event: SummaryTextDelta) -> AddedText | None:
        """Take a piece of the summary, if it goes on the part that is being written."""
        if self._kind != "summary" or self._last_part != event.index:
            return None
        return self._blocks.add_text("thinking_delta", event.text)

    def end(self, error: ErrorDetail | None, frame: bytes | None = None) -> WireEvents:
        """End the stretch, in the frame that stops its block if there is one."""
        yield from self._write_waiting_summary()
        yield from self._sign()
        summary = self._held_summary.getvalue()
        needs_block = bool(summary) or (error is not None and not self._blocks.is_open)
        yield from self._blocks.stop(None if needs_block else error, frame)
        for state in self._states:
            yield from self._blocks.start({"type": "redacted_thinking", "data": state})
        if needs_block:
            yield from self._blocks.start(THINKING)
            yield from self._blocks.add("thinking_delta", summary)
            yield from self._blocks.add("signature_delta", self._sealer.seal([]))
        yield from self._blocks.stop(error if needs_block else None)

    def _note_raw(self, event: ReasoningDelta) -> None:
        self._has_text = self._has_text or bool(event.text)
        if self._builder is not None:
            self._builder.add(event)
        if self._display.show_raw:
            self._kind = "raw"

    def _write_raw(self, event: ReasoningDelta) -> WireEvents:
        if self._is_given:
            self._note_raw(event)
        if not (self._display.show_raw and event.text):
            return
        if event.frame is not None:
            yield self._blocks.move(event.frame, event)
            return
        if self._kind == "summary" or not self._blocks.is_open:
            yield from self._blocks.start(THINKING)
        self._kind = "raw"
        yield from self._blocks.add("thinking_delta", event.text)

    def _write_summary(self, part: int, text: str, *, waits: bool = False) -> WireEvents:
        """Write a piece of the summary; keep it where it `waits` for the raw text."""
        text = PART_SEPARATOR * (self._last_part not in (None, part)) + text
        self._last_part = part
        if self._kind == "raw" or waits:
            self._held_summary.write(text)
        else:
            self._kind = "summary"
            yield from self._blocks.add("thinking_delta", text)

    def _add_state(self, event: ProviderState) -> WireEvents:
        if self._is_given:
            yield from self._take_signature(event)
        elif not event.signs:
            self._states.append(event.data)
        elif self._display.show_raw and self._kind != "summary" and self._blocks.is_open:
            self._kind, self._is_signed = "raw", True
            yield from self._blocks.add("signature_delta", event.data)
            yield from self._blocks.stop()

    def _take_signature(self, event: ProviderState) -> WireEvents:
        """Take the signature of a given block. It fits only the text that it signs."""
        if event.frame is not None:
            frame = self._blocks.move(event.frame, event)
        else:
            frame = b"".join(map(encode, self._blocks.add("signature_delta", event.data)))
        self._given = event, frame
        if self._display.show_raw:
            yield frame

    def _write_waiting_summary(self) -> WireEvents:
        """Write the summary that waited for raw text which did not come."""
        summary = self._held_summary.getvalue()
        if self._kind is None and summary and not self._is_signed:
            self._kind, self._held_summary = "summary", StringIO()
            yield from self._blocks.add("thinking_delta", summary)

    def _sign(self) -> WireEvents:
        """Sign the open block; unless that is done, opaque state goes into the envelope, too."""
        is_unchanged = self._is_given and not self._has_text and self._kind is None
        if is_unchanged and self._given is not None and not self._display.show_raw:
            yield self._given[1]
        elif not (is_unchanged or self._is_signed):
            signature = self._seal()
            self._states = self._states if signature in {"", UNSEALED, UNSEALED_RAW} else []
            yield from self._blocks.add(
                "signature_delta", signature if self._blocks.is_open else ""
            )

    def _seal(self) -> str:
        """Return the envelope of the stretch; "" if there is nothing in it."""
        if self._builder is not None and self._given is not None:
            self._builder.add(self._given[0])
        blocks = None if self._builder is None else self._builder.build()
        if not (blocks or self._is_given) and self._kind is None:
            return ""
        signature = self._sealer.seal(blocks)
        return UNSEALED_RAW if (signature, self._kind) == (UNSEALED, "raw") else signature
