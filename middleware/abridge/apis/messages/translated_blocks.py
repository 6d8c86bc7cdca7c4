"""The blocks of a translated message, as they are written: text, calls and thinking.

They are numbered densely from 0, and one is open at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any, ClassVar, Literal, TypeAlias

from abridge.apis.call_order import CallOrder
from abridge.apis.display import UNSEALED, UNSEALED_RAW, Display
from abridge.apis.frames import HOLE, DeltaFrame
from abridge.apis.messages.calls import client_call_id, escape_halves, wrap_invalid
from abridge.apis.messages.citations import write_citation
from abridge.apis.messages.envelopes import EnvelopeBuilder, EnvelopeSealer
from abridge.apis.openai import MintId
from abridge.apis.tools import unwrap_free_text, wrap_free_text
from abridge.apis.translated_answer import NOTHING, AddedText, WireEvents
from abridge.core.conversation import ItemKey, Json
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    Event,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    RefusalDelta,
    SummaryTextDelta,
    ToolCallDelta,
)
from abridge.core.model_request import Tool

PART_SEPARATOR = "\n\n"
"""Stands between the parts of a summary, and wherever else one text follows another."""

DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
"""The field that holds the text, by the type of delta."""


def delta_frame(index: int, delta_type: str) -> DeltaFrame:
    """Return the frame of deltas of one type that go into one block."""
    delta = {"type": delta_type, DELTA_FIELDS[delta_type]: HOLE}
    event = {"type": "content_block_delta", "index": index, "delta": delta}
    return DeltaFrame(event, "content_block_delta")


class BlockEvents:
    """Make the events of blocks, one after the other."""

    def __init__(self) -> None:
        self.is_open = False
        self._index = -1
        self._frames: dict[str, DeltaFrame] = {}  # of the block, by the type of delta

    def start(self, block: Json) -> WireEvents:
        """Start a block, which stops the one before it."""
        yield from self.stop()
        self.is_open = True
        self._index += 1
        self._frames = {}
        yield "content_block_start", {"index": self._index, "content_block": block}

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
            frame = self._frames[delta_type] = delta_frame(self._index, delta_type)
        return frame, text

    def cite(self, citation: Json) -> WireEvents:
        """Add a citation to the open block."""
        delta = {"type": "citations_delta", "citation": citation}
        yield "content_block_delta", {"index": self._index, "delta": delta}

    def stop(self, error: ErrorDetail | None = None) -> WireEvents:
        """Stop the open block, if there is one; say why it has no summary, or not all of it."""
        if self.is_open:
            self.is_open = False
            fields = {} if error is None else {"summary_error": error.as_dict()}
            yield "content_block_stop", {"index": self._index, **fields}


_AddText: TypeAlias = Callable[["TranslatedContent", Any], AddedText | None]


class TranslatedContent:
    """Write the content of one message. `tools` are those offered to upstream, by name."""

    def __init__(
        self, display: Display, tools: Mapping[str, Tool], limit: int, mint_id: MintId
    ) -> None:
        self.has_refusal = False
        self.has_calls = False
        self._display = display
        self._tools = tools
        self._limit = limit
        self._mint_id = mint_id
        self._blocks = BlockEvents()
        self._sealer = EnvelopeSealer(display.seal)
        self._order = CallOrder()
        self._thinking: TranslatedThinking | None = None
        self._call: TranslatedCall | None = None
        self._text: tuple[type[ContentDelta], int] | None = None  # which text is open
        self._reported_errors: set[ItemKey] = set()
        self._cited_files: list[str] = []

    # Texts that go on

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
        if not self._order.add_arguments(event):
            return None
        return self._blocks.add_text("input_json_delta", escape_halves(event.arguments))

    def _add_raw(self, event: ReasoningDelta) -> AddedText | None:
        return NOTHING if self._thinking is None else self._thinking.add_raw(event)

    def _add_summary(self, event: SummaryTextDelta) -> AddedText | None:
        return NOTHING if self._thinking is None else self._thinking.add_summary(event)

    _ADDERS: ClassVar[dict[type[Event], _AddText]] = {
        ContentDelta: _add_content,
        ToolCallDelta: _add_arguments,
        ReasoningDelta: _add_raw,
        SummaryTextDelta: _add_summary,
    }

    # Reasoning

    def start_reasoning(self) -> WireEvents:
        """Start a stretch of reasoning."""
        if not self._display.drops_reasoning:
            yield from self.finish()
            self._thinking = TranslatedThinking(
                self._display, self._blocks, self._sealer, self._limit
            )
            yield from self._thinking.start()

    def write_reasoning(self, event: Event) -> WireEvents:
        """Write an event of the open stretch."""
        if self._thinking is not None:
            yield from self._thinking.write(event)

    def end_reasoning(self, event: ReasoningEnded) -> WireEvents:
        """End the stretch. The error of an item's summary is reported once."""
        thinking, self._thinking = self._thinking, None
        if thinking is None:
            return
        key, error = (event.lane or 0, event.item), event.summary.error
        is_new = error is not None and key not in self._reported_errors
        self._reported_errors |= {key} if is_new else set()
        yield from thinking.end(error if is_new else None)

    # The answer

    def write_answer(self, event: ContentDelta) -> WireEvents:
        for piece in self._order.arrange(event):
            yield from self._write_piece(piece)

    def _write_piece(self, event: ContentDelta) -> WireEvents:
        if isinstance(event, ToolCallDelta):
            yield from self._write_call(event)
        elif isinstance(event, RefusalDelta):
            self.has_refusal = True
            yield from self._write_text(event, event.refusal)
        else:
            yield from self._write_text(event, event.text)

    def _write_text(self, event: ContentDelta, text: str) -> WireEvents:
        """Write a piece of text. Each of upstream's messages, and a refusal, has its own block.

        Anthropic refuses a block without text when it comes back, so none is begun for nothing.
        """
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
        if self._call is None or self._call.number != event.call_index:
            yield from self._stop_block()
            self.has_calls = True
            self._call = TranslatedCall(event, self._tools.get(event.name), self._mint_id)
            self._sealer.note_call(self._call.id)
            yield from self._blocks.start(self._call.build_start())
        yield from self._blocks.add(
            "input_json_delta", escape_halves(self._call.write(event.arguments))
        )

    def _stop_block(self) -> WireEvents:
        call, self._call, self._text = self._call, None, None
        if call is not None:
            yield from self._blocks.add("input_json_delta", escape_halves(call.end()))
        yield from self._blocks.stop()

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


class TranslatedCall:
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


THINKING: Json = {"type": "thinking", "thinking": "", "signature": ""}


class TranslatedThinking:
    """Write one stretch of reasoning.

    It is one block, of the summary or of the raw text. Where both are shown the summary is a block
    after the raw one, and its text waits until that is whole. What a signature of upstream's signs
    is a block of its own. Any other block is signed with an envelope, from which the reasoning is
    restored; without one, opaque state follows in blocks of redacted thinking.
    """

    def __init__(
        self, display: Display, blocks: BlockEvents, sealer: EnvelopeSealer, limit: int
    ) -> None:
        self._display = display
        self._blocks = blocks
        self._sealer = sealer
        self._builder = EnvelopeBuilder(limit) if sealer.is_sealing else None
        self._kind: Literal["raw", "summary"] | None = None  # of the text in the last block
        self._last_part: int | None = None
        self._held_summary = StringIO()
        self._states: list[str] = []
        self._is_signed = False  # upstream signed a block

    def start(self) -> WireEvents:
        yield from self._blocks.start(THINKING)

    def write(self, event: Event) -> WireEvents:
        if self._builder is not None:
            self._builder.add(event)
        match event:
            case ReasoningDelta() if self._display.show_raw and event.text:
                yield from self._write_raw(event.text)
            case NativeSummary() if self._display.show_summary and event.text:
                yield from self._write_summary(event.index, event.text)
            case SummaryTextDelta():  # comes before the raw text where that was queued
                waits = self._display.show_raw and self._kind is None
                yield from self._write_summary(event.index, event.text, waits=waits)
            case ProviderState():
                yield from self._add_state(event)

    def add_raw(self, event: ReasoningDelta) -> AddedText | None:
        """Take a piece of reasoning, unless a block has to be started for it."""
        is_shown = self._display.show_raw and event.text
        if is_shown and not (self._kind == "raw" and self._blocks.is_open):
            return None
        if self._builder is not None:
            self._builder.add(event)
        return self._blocks.add_text("thinking_delta", event.text) if is_shown else NOTHING

    def add_summary(self, event: SummaryTextDelta) -> AddedText | None:
        """Take a piece of the summary, if it goes on the part that is being written."""
        if self._kind != "summary" or self._last_part != event.index:
            return None
        return self._blocks.add_text("thinking_delta", event.text)

    def _write_raw(self, text: str) -> WireEvents:
        if self._kind == "summary" or not self._blocks.is_open:
            yield from self._blocks.start(THINKING)
        self._kind = "raw"
        yield from self._blocks.add("thinking_delta", text)

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
        if not event.signs:
            self._states.append(event.data)
        elif self._display.show_raw and self._kind != "summary" and self._blocks.is_open:
            self._kind, self._is_signed = "raw", True
            yield from self._blocks.add("signature_delta", event.data)
            yield from self._blocks.stop()

    def _write_waiting_summary(self) -> WireEvents:
        """Write the summary that waited for raw text which did not come."""
        summary = self._held_summary.getvalue()
        if self._kind is None and summary:
            self._kind, self._held_summary = "summary", StringIO()
            yield from self._blocks.add("thinking_delta", summary)

    def end(self, error: ErrorDetail | None) -> WireEvents:
        yield from self._write_waiting_summary()
        signature, summary = self._seal(), self._held_summary.getvalue()
        states = self._states if signature in {"", UNSEALED, UNSEALED_RAW} else []
        needs_block = bool(summary) or (error is not None and not self._blocks.is_open)
        yield from self._blocks.add("signature_delta", signature if self._blocks.is_open else "")
        yield from self._blocks.stop(None if needs_block else error)
        for state in states:
            yield from self._blocks.start({"type": "redacted_thinking", "data": state})
        if needs_block:
            yield from self._blocks.start(THINKING)
            yield from self._blocks.add("thinking_delta", summary)
            yield from self._blocks.add("signature_delta", self._sealer.seal([]))
        yield from self._blocks.stop(error if needs_block else None)

    def _seal(self) -> str:
        """Return the envelope of the stretch; "" if upstream signed some of it itself, or if there
        is nothing in it."""
        if self._is_signed:
            return ""
        blocks = None if self._builder is None else self._builder.build()
        if not blocks and self._kind is None:
            return ""
        signature = self._sealer.seal(blocks)
        return UNSEALED_RAW if (signature, self._kind) == (UNSEALED, "raw") else signature
