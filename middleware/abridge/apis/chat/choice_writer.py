"""Write events that carry no frame as deltas of one choice.

Summaries are written here for every client; raw reasoning that moves to another field, too; the
answer and opaque state only where the response is translated. The summary goes where clients look
for reasoning: alone, in the field that upstream uses for its reasoning; with raw reasoning, in
`reasoning_content`, with the raw in `reasoning`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from abridge.apis.chat.accumulator import ARGUMENTS_FIELDS
from abridge.apis.chat.citations import write_annotation
from abridge.apis.chat.envelopes import (
    EnvelopeBuilder,
    list_visible_entries,
    make_entry,
    make_envelope,
    next_index,
)
from abridge.apis.chat.reasoning import FieldLayout
from abridge.apis.display import Display, Envelope, ListField
from abridge.apis.hosted_calls import HOSTED_CALLS
from abridge.apis.openai import MintId, complete_logprobs, mint_id
from abridge.apis.tools import unwrap_free_text
from abridge.core.conversation import Json
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    Event,
    Finished,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    SummaryTextDelta,
    ToolCallDelta,
    TurnRecorded,
    text_size,
)
from abridge.core.model_request import Tool

PART_SEPARATOR = "\n\n"


TextPlace: TypeAlias = str | int
"""Where a delta adds text: the field, or the number of the call."""

AddedText: TypeAlias = tuple[TextPlace, str]

NOTHING: AddedText = ("", "")

_AddText: TypeAlias = Callable[["ChoiceWriter", Any], AddedText | None]

_Write: TypeAlias = Callable[["ChoiceWriter", Any], list[Json]]


class ChoiceWriter:
    """Write each event as choices of chunks.

    Only a translated answer needs more than the display: the tools that were offered, by the names
    that upstream uses, the maker of call ids and the builder of its envelope.
    """

    def __init__(
        self,
        lane: int,
        display: Display,
        tools: Mapping[str, Tool] | None = None,
        mint_id: MintId = mint_id,
        envelope_builder: EnvelopeBuilder | None = None,
        *,
        max_held: int = 0,
        whole: bool = False,
    ) -> None:
        self.lane = lane
        self._display = display
        self._tools = tools or {}
        self._mint_id = mint_id
        self._envelope_builder = envelope_builder
        self.remaining = max_held  # characters of arguments and sources that may still be held
        self.reasoning = ReasoningFields(display)
        self._blocks = ThinkingBlocks(with_text=whole)
        self._calls: dict[int, _WrittenCall] = {}
        self._last_message: int | None = None
        self._separator_count = 0  # between messages of the answer
        self._annotations: list[Json] = []
        self._error_written = False

    def write(self, event: Event) -> list[Json]:
        added = self.add_text(event)
        if added is not None:
            place, text = added
            return [self._wrap(self.build_delta(place, text))] if text else []
        if self._envelope_builder is not None:
            self._envelope_builder.add_event(event)
        write = self._WRITERS.get(type(event))
        return [] if write is None else write(self, event)

    # Deltas that only add to one text, as nearly all do

    def add_text(self, event: Event) -> AddedText | None:
        """Take an event of which only text is written, if anything; return where, and what.

        Return None for any other, which is not taken.
        """
        add = self._ADDERS.get(type(event))
        return None if add is None else add(self, event)

    def build_delta(self, place: TextPlace, text: Any) -> Json:
        """Return a delta that adds a text in its place."""
        if isinstance(place, str):
            return {place: text}
        return {"tool_calls": [{"index": place, **self._calls[place].fragment(text)}]}

    def _add_content(self, event: ContentDelta) -> AddedText | None:
        if event.logprobs or not event.text:
            return None
        text = self._separate(event)
        if self._envelope_builder is not None:
            self._envelope_builder.add_content(text)
        return "content", text

    def _add_arguments(self, event: ToolCallDelta) -> AddedText | None:
        call = self._calls.get(event.call_index)
        if call is None or call.custom_tool is not None:
            return None
        if self._envelope_builder is not None and event.arguments:
            delta = self.build_delta(event.call_index, event.arguments)
            self._envelope_builder.add_answer(delta)
        return event.call_index, event.arguments

    def _add_summary(self, event: SummaryTextDelta) -> AddedText | None:
        if self._display.add_details:
            return None
        return self.reasoning.add_summary(event.item, event.index, event.text)

    def _add_raw(self, event: ReasoningDelta) -> AddedText | None:
        is_shown = self._display.show_raw and event.text
        if is_shown and self._display.add_details:
            return None
        if self._envelope_builder is not None:
            self._envelope_builder.add_event(event)
        if not is_shown:
            return NOTHING
        self._blocks.add_raw(event.text)
        return self.reasoning.add_raw(event.item, event.text)

    _ADDERS: ClassVar[dict[type[Event], _AddText]] = {
        ContentDelta: _add_content,
        ToolCallDelta: _add_arguments,
        SummaryTextDelta: _add_summary,
        ReasoningDelta: _add_raw,
    }

    # Upstream's reasoning and its summary, where they are shown, and opaque state

    def _write_summary(self, event: SummaryTextDelta) -> list[Json]:
        return [self._wrap(self.reasoning.build_summary(event.item, event.index, event.text))]

    def _write_raw(self, event: ReasoningDelta) -> list[Json]:
        self._blocks.add_raw(event.text)
        return [self._wrap(self.reasoning.build_raw(event.item, event.text))]

    def _write_native(self, event: NativeSummary) -> list[Json]:
        if not (self._display.show_summary and event.text):
            return []
        delta = self.reasoning.build_summary(event.item, event.index, event.text)
        return [self._wrap({**delta, **self._blocks.add_summary(event.index, event.text)})]

    def _write_state(self, event: ProviderState) -> list[Json]:
        return [self._wrap(self._blocks.add_state(event))]

    def _start_stretch(self, event: ReasoningStarted) -> list[Json]:
        self.reasoning.note_start(event)
        return []

    def _wrap(self, delta: Json) -> Json:
        return {"index": self.lane, "delta": delta, "finish_reason": None}

    def _end_stretch(self, event: ReasoningEnded) -> list[Json]:
        """End a stretch; report, once, why there is no summary, before the answer is released."""
        self._blocks.close()
        error = event.summary.error
        if error is None or self._error_written:
            return []
        self._error_written = True
        return [self._wrap({"summary_error": error.as_dict()})]

    def _finish(self, event: Finished) -> list[Json]:
        choices = [*self._write_held_calls(), *self._write_sources(event)]
        if self._envelope_builder is not None:
            choices += self._write_envelope(self._envelope_builder.build())
        return [*choices, {"index": self.lane, "delta": {}, "finish_reason": event.reason}]

    # The answer

    def _wrap_answer(self, delta: Json) -> Json:
        if self._envelope_builder is not None:
            self._envelope_builder.add_answer(delta)
        return self._wrap(delta)

    def _write_content(self, event: ContentDelta) -> list[Json]:
        return [_add_logprobs(self._wrap_answer({"content": self._separate(event)}), event)]

    def _separate(self, event: ContentDelta) -> str:
        """Return a piece of the answer; a blank line separates several messages of upstream's."""
        is_new = self._last_message not in (None, event.message_index)
        self._last_message = event.message_index
        if not is_new:
            return event.text
        self._separator_count += 1
        return PART_SEPARATOR + event.text

    def _write_refusal(self, event: RefusalDelta) -> list[Json]:
        return [_add_logprobs(self._wrap_answer({"refusal": event.refusal}), event)]

    def _hold_citation(self, event: CitationDelta) -> list[Json]:
        """Hold a source until the answer is whole: OpenAI's client adds lists of several deltas up
        only by an `index` in their entries, which annotations do not have."""
        self.remaining -= text_size(event)
        moved = len(PART_SEPARATOR) * self._separator_count
        self._annotations.append(write_annotation(event, moved))
        return []

    def _write_sources(self, event: Finished) -> list[Json]:
        """Write the sources, and what upstream ran itself."""
        fields = {"annotations": self._annotations, HOSTED_CALLS: list(event.hosted_calls)}
        written = {name: entries for name, entries in fields.items() if entries}
        return [self._wrap(written)] if written else []

    def _write_call(self, event: ToolCallDelta) -> list[Json]:
        call = self._calls.get(event.call_index)
        if call is None:
            return [self._wrap_answer({"tool_calls": [self._start_call(event)]})]
        self._hold_arguments(call, event.arguments)
        return []

    def _start_call(self, event: ToolCallDelta) -> Json:
        tool = self._tools.get(event.name)
        custom = event.custom or (tool is not None and tool.kind == "custom")
        call = self._calls[event.call_index] = _WrittenCall("custom" if custom else "function")
        text = event.arguments
        if custom and not event.custom:
            call.custom_tool, text = tool, ""
            self._hold_arguments(call, event.arguments)
        name = tool.client_name if tool is not None and tool.client_name else event.name
        return {
            "index": event.call_index,
            "id": event.id or self._mint_id("call_"),
            "type": call.kind,
            call.kind: {"name": name, ARGUMENTS_FIELDS[call.kind]: text},
        }

    def _hold_arguments(self, call: _WrittenCall, arguments: str) -> None:
        self.remaining -= len(arguments)
        call.held_arguments.append(arguments)

    def _write_held_calls(self) -> list[Json]:
        """Write the input of the custom tools' calls, whose arguments are whole now."""
        choices = []
        for number, call in self._calls.items():
            if call.custom_tool is not None:
                text = unwrap_free_text(call.custom_tool, "".join(call.held_arguments))
                choices.append(self._wrap_answer(self.build_delta(number, text)))
        return choices

    # The envelope

    def _write_recorded(self, event: TurnRecorded) -> list[Json]:
        turn = event.turn
        next_free = next_index(list_visible_entries(turn, self._display))
        return self._write_envelope(make_envelope(turn), next_free)

    def _write_envelope(self, envelope: Envelope | None, next_free: int = 0) -> list[Json]:
        """Write the envelope in which the reasoning comes back unchanged, if there is to be one.

        `next_free` is the index free after upstream's entries in its list.
        """
        if self._display.seal is None or envelope is None:
            return []
        blob, name = self._display.seal(envelope), self._display.envelope_field
        written = self.reasoning.count_entries(name)
        index = max(next_free, self._blocks.next_index if name == "thinking_blocks" else written)
        return [self._wrap({name: [make_entry(blob, name, index)]})] if blob else []

    _WRITERS: ClassVar[dict[type[Event], _Write]] = {
        ContentDelta: _write_content,
        RefusalDelta: _write_refusal,
        ToolCallDelta: _write_call,
        CitationDelta: _hold_citation,
        SummaryTextDelta: _write_summary,
        ReasoningStarted: _start_stretch,
        ReasoningDelta: _write_raw,
        NativeSummary: _write_native,
        ProviderState: _write_state,
        ReasoningEnded: _end_stretch,
        TurnRecorded: _write_recorded,
        Finished: _finish,
    }


def _add_logprobs(choice: Json, event: ContentDelta) -> Json:
    """Return the choice of a delta with the event's log probabilities, if it has any."""
    logprobs = complete_logprobs(event.logprobs) if event.logprobs else None
    if not logprobs:
        return choice
    name = next(iter(choice["delta"]))
    fields = {"logprobs": {"content": None, "refusal": None, name: logprobs}}
    return {"index": choice["index"], "delta": choice["delta"], **fields, "finish_reason": None}


@dataclass(slots=True)
class _WrittenCall:
    kind: str
    custom_tool: Tool | None = None  # a custom tool, which upstream was offered as a function
    held_arguments: list[str] = field(default_factory=list)  # held until they are whole

    def fragment(self, text: str) -> Json:
        return {self.kind: {ARGUMENTS_FIELDS[self.kind]: text}}


class ReasoningFields:
    """Build the fields of one choice's deltas that hold reasoning or a summary.

    A blank line separates the parts of a summary, and the reasoning of several items that goes into
    one field.
    """

    def __init__(self, display: Display) -> None:
        self._writes_details = display.add_details
        self._shows_raw = display.show_raw
        self._layout = FieldLayout(display)
        self._last_item: int | None = None
        self._last_part: tuple[int, int] | None = None
        self._last_index = -1
        self._use_fields("")

    def note_start(self, event: ReasoningStarted) -> None:
        """Note the field in which upstream puts its reasoning."""
        self._use_fields(event.field)

    def _use_fields(self, upstream: str) -> None:
        self._raw_field = self._layout.raw_field(upstream)
        self._summary_field = self._layout.summary_field(upstream)
        self.keeps_raw = self._raw_field == upstream and not self._writes_details
        """Raw reasoning is shown as upstream writes it."""

    def count_entries(self, name: ListField) -> int:
        """Return how many entries of a list Abridge has written, after reasoning."""
        counted = self._writes_details and name == "reasoning_details"
        return self._shows_raw + self._last_index + 1 if counted else 0

    def add_raw(self, item: int, text: str) -> tuple[str, str]:
        """Return the field and the text for a piece of an item's reasoning."""
        is_new = self._last_item not in (None, item)
        self._last_item = item
        return self._raw_field, PART_SEPARATOR + text if is_new else text

    def add_summary(self, item: int, index: int, text: str) -> tuple[str, str]:
        """Return the field and the text for a piece of a summary part of an item."""
        if self._last_part != (item, index):
            text = text if self._last_part is None else PART_SEPARATOR + text
            self._last_part = item, index
            self._last_index += 1
        return self._summary_field, text

    def build_raw(self, item: int, text: str) -> Json:
        """Build the delta for a piece of an item's reasoning."""
        return self._layout.build_raw(*self.add_raw(item, text))

    def build_summary(self, item: int, index: int, text: str) -> Json:
        """Build the delta for a piece of a summary part of an item."""
        name, written = self.add_summary(item, index, text)
        delta: Json = {name: written}
        if self._writes_details:
            detail = self._layout.build_summary_detail(text, self._last_index)
            delta["reasoning_details"] = [detail]
        return delta


class ThinkingBlocks:
    """Write the thinking blocks of one choice, in which clients keep the state upstream wants back.

    They have LiteLLM's shape: `{"type": "thinking", "thinking", "signature"}` and `{"type":
    "redacted_thinking", "data"}`; pieces of one block have the same `index`.

    A block without a signature holds a summary that upstream made; next to shown raw reasoning none
    is written. While raw reasoning streams it is not known if it will be signed, so the block of a
    signature has no text; with `with_text` it has the text, too.
    """

    def __init__(self, *, with_text: bool) -> None:
        self._with_text = with_text
        self._index = 0
        self._raw_pieces: list[str] | None = None
        self._summary_part: int | None = None

    @property
    def next_index(self) -> int:
        """The index of the next block."""
        return self._index + (self._summary_part is not None)

    def add_raw(self, text: str) -> None:
        """Add a piece of raw reasoning that is shown."""
        self._raw_pieces = self._raw_pieces or []
        if self._with_text:
            self._raw_pieces.append(text)

    def add_summary(self, part: int, text: str) -> Json:
        """Write a piece of upstream's summary; empty if raw reasoning is shown."""
        if self._raw_pieces is not None:
            return {}
        separator = PART_SEPARATOR if self._summary_part not in (None, part) else ""
        self._summary_part = part
        return _wrap_block({"type": "thinking", "thinking": separator + text, "index": self._index})

    def add_state(self, event: ProviderState) -> Json:
        if not event.signs:
            self.close()
            block = {"type": "redacted_thinking", "data": event.data, "index": self._index}
        else:
            text = "".join(self._raw_pieces or ())
            signed = {"thinking": text, "signature": event.data, "index": self._index}
            block = {"type": "thinking", **signed}
        self._index += 1
        self._raw_pieces = self._summary_part = None
        return _wrap_block(block)

    def close(self) -> None:
        """End a stretch."""
        self._index += self._summary_part is not None
        self._raw_pieces = self._summary_part = None


def _wrap_block(block: Json) -> Json:
    return {"thinking_blocks": [block]}
