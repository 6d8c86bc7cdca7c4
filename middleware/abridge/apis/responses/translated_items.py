"""The items of a translated response, as they are written: a message, a call, or reasoning."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from io import StringIO
from typing import Literal, TypeAlias

from abridge.apis.call_order import CallOrder
from abridge.apis.display import Display, Envelope
from abridge.apis.frames import DeltaFrame
from abridge.apis.json import string
from abridge.apis.openai import MintId, complete_logprobs
from abridge.apis.responses.citations import ANNOTATION_ADDED, write_annotation
from abridge.apis.responses.envelopes import EnvelopeBuilder
from abridge.apis.responses.reasoning import raw_parts, summary_parts
from abridge.apis.responses.summaries import (
    SUMMARY_TEXT_DELTA,
    numbered_delta,
    write_part,
    write_part_added,
    write_part_delta,
    write_part_done,
)
from abridge.apis.responses.tools import write_call
from abridge.apis.translated_answer import NOTHING, AddedText, WireEvents
from abridge.core.conversation import Json
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    Event,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    RefusalDelta,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
    ToolCallDelta,
)
from abridge.core.model_request import SIGNATURE_PREFIX, Tool

ItemStatus: TypeAlias = Literal["completed", "incomplete"]


class TranslatedItem(ABC):
    """An item being written: it is added, streams its content, ends, and is done."""

    def __init__(self, item_id: str, index: int) -> None:
        self.id = item_id
        self.is_added_late = False  # the item can be added only when it ends
        self.index = index
        self.address: Json = {"item_id": item_id, "output_index": index}

    @abstractmethod
    def add_text(self, event: Event, order: CallOrder) -> AddedText | None:
        """Take an event that only adds to a text of this item; return None for any other."""

    @abstractmethod
    def build_added(self) -> Json:
        """Return the item at its beginning."""

    @abstractmethod
    def end(self) -> WireEvents:
        """Close what is open in the item."""

    @abstractmethod
    def build_done(self, status: ItemStatus) -> Json:
        """Return the item at its end."""


_PartType = Literal["output_text", "refusal"]


class ContentPart:
    """Write one content part, which comes after so many characters of the answer."""

    def __init__(self, part_type: _PartType, address: Json, before: int) -> None:
        self.type = part_type
        self.address = address
        self._before = before
        self._annotations: list[Json] = []
        self._buffer = StringIO()
        self._logprobs: list[Json] = []

    def build_part(self) -> Json:
        if self.type == "refusal":
            return {"type": "refusal", "refusal": self._text}
        return {
            "type": "output_text",
            "text": self._text,
            "annotations": list(self._annotations),
            "logprobs": self._logprobs,
        }

    def write(self, text: str, logprobs: list[Json]) -> WireEvents:
        self._buffer.write(text)
        self._logprobs += logprobs
        extra = {} if self.type == "refusal" else {"logprobs": logprobs}
        yield f"response.{self.type}.delta", {**self.address, "delta": text, **extra}

    def add_text(self, text: str) -> AddedText:
        """Add a text without log probabilities."""
        self._buffer.write(text)
        return self._frame, text

    @cached_property
    def _frame(self) -> DeltaFrame:
        return numbered_delta("response.output_text.delta", self.address, logprobs=[])

    def end(self) -> WireEvents:
        whole: Json = {"text": self._text, "logprobs": self._logprobs}
        if self.type == "refusal":
            whole = {"refusal": self._text}
        yield f"response.{self.type}.done", {**self.address, **whole}
        yield "response.content_part.done", {**self.address, "part": self.build_part()}

    def cite(self, citation: CitationDelta) -> WireEvents:
        annotation = write_annotation(citation, self._before, self._buffer.tell())
        place = {"annotation_index": len(self._annotations)}
        self._annotations.append(annotation)
        yield ANNOTATION_ADDED, {**self.address, **place, "annotation": annotation}

    @property
    def text_end(self) -> int:
        """Return how many characters of the answer's text there are by its end."""
        return self._before + (self._buffer.tell() if self.type == "output_text" else 0)

    @property
    def _text(self) -> str:
        return self._buffer.getvalue()


class TranslatedMessage(TranslatedItem):
    """Write one message, which comes after so many characters of the answer."""

    def __init__(self, item_id: str, index: int, number: int, before: int) -> None:
        super().__init__(item_id, index)
        self.number = number  # among upstream's messages
        self._before = before
        self._parts: list[ContentPart] = []

    def build_added(self) -> Json:
        return self._build_item("in_progress", [])

    def add_text(self, event: Event, _: CallOrder) -> AddedText | None:
        if type(event) is not ContentDelta or event.logprobs or event.message_index != self.number:
            return None
        part = self._parts[-1] if self._parts else None
        return part.add_text(event.text) if part and part.type == "output_text" else None

    def write(self, event: ContentDelta) -> WireEvents:
        is_refusal = isinstance(event, RefusalDelta)
        part_type: _PartType = "refusal" if is_refusal else "output_text"
        if not self._parts or self._parts[-1].type != part_type:
            yield from self.end()
            address = {**self.address, "content_index": len(self._parts)}
            part = ContentPart(part_type, address, self.text_end)
            self._parts.append(part)
            yield "response.content_part.added", {**part.address, "part": part.build_part()}
        text = event.refusal if isinstance(event, RefusalDelta) else event.text
        yield from self._parts[-1].write(text, complete_logprobs(event.logprobs))

    @property
    def open_text(self) -> ContentPart | None:
        """Return the part whose text goes on, if it is of the answer."""
        part = self._parts[-1] if self._parts else None
        return part if part is not None and part.type == "output_text" else None

    @property
    def text_end(self) -> int:
        """Return how many characters of the answer's text there are so far."""
        return self._parts[-1].text_end if self._parts else self._before

    def end(self) -> WireEvents:
        if self._parts:
            yield from self._parts[-1].end()

    def build_done(self, status: ItemStatus) -> Json:
        return self._build_item(status, [part.build_part() for part in self._parts])

    def _build_item(self, status: str, content: list[Json]) -> Json:
        head = {"id": self.id, "type": "message", "status": status, "role": "assistant"}
        return {**head, "content": content}


CALL_ID_PREFIXES = {"custom": "ctc_", "local_shell": "lsh_", "tool_search": "tsc_"}

LATE_KINDS = ("local_shell", "tool_search")
"""Kinds of tools whose calls have no events for their arguments."""


class TranslatedCall(TranslatedItem):
    """Write one call.

    Stream arguments as they come, unless the tool is offered to upstream as a function: then what
    they are for the client is known once they are whole.
    """

    def __init__(
        self, event: ToolCallDelta, tool: Tool | None, index: int, mint_id: MintId
    ) -> None:
        if tool is None and event.custom:
            tool = Tool(event.name, "custom", client_name=event.name)
        self._tool_kind = tool.kind if tool is not None else "function"
        super().__init__(mint_id(CALL_ID_PREFIXES.get(self._tool_kind, "fc_")), index)
        self.number = event.call_index  # among the calls of the answer
        self.is_added_late = self._tool_kind in LATE_KINDS
        self._tool = tool
        self._is_custom = event.custom
        self._call_id = event.id or mint_id("call_")
        self._name = event.name
        self._arguments = StringIO()

    def build_added(self) -> Json:
        return self._build_item(self._text if self.is_added_late else "", "in_progress")

    def add_text(self, event: Event, order: CallOrder) -> AddedText | None:
        if not (isinstance(event, ToolCallDelta) and event.arguments and self._streams_arguments):
            return None
        if event.call_index != self.number or not order.add_arguments(event):
            return None
        self._arguments.write(event.arguments)
        return self._frame, event.arguments

    @cached_property
    def _frame(self) -> DeltaFrame:
        return numbered_delta(f"{self._event_prefix}.delta", self.address)

    def write(self, arguments: str) -> WireEvents:
        self._arguments.write(arguments)
        if arguments and self._streams_arguments:
            yield f"{self._event_prefix}.delta", {**self.address, "delta": arguments}

    def end(self) -> WireEvents:
        if self.is_added_late:
            return
        item = self.build_done("completed")
        if self._tool_kind != "custom":
            name, arguments = string(item["name"]), item["arguments"]
            yield (
                f"{self._event_prefix}.done",
                {**self.address, "name": name, "arguments": arguments},
            )
            return
        if item["input"] and not self._streams_arguments:
            yield f"{self._event_prefix}.delta", {**self.address, "delta": item["input"]}
        yield f"{self._event_prefix}.done", {**self.address, "input": item["input"]}

    def build_done(self, status: ItemStatus) -> Json:
        return self._build_item(self._text, status)

    def _build_item(self, arguments: str, status: str) -> Json:
        return write_call(self._tool, self._call_id, self._name, arguments, self.id, status=status)

    @property
    def _text(self) -> str:
        return self._arguments.getvalue()

    @property
    def _streams_arguments(self) -> bool:
        return self._tool_kind == "function" or (self._tool_kind == "custom" and self._is_custom)

    @property
    def _event_prefix(self) -> str:
        custom = self._tool_kind == "custom"
        return "response." + ("custom_tool_call_input" if custom else "function_call_arguments")


class TranslatedReasoning(TranslatedItem):
    """Write one reasoning item. An envelope of it is bound to `place` (see `places.py`)."""

    def __init__(
        self,
        item_id: str,
        index: int,
        display: Display,
        *,
        state: str | None = None,
        place: bytes | None = None,
    ) -> None:
        super().__init__(item_id, index)
        self.error: ErrorDetail | None = None  # why the summary is missing or incomplete
        self._display = display
        self._state = state
        self._place = place
        self._raw = StringIO()
        self._raw_is_done = False
        self._summary: list[str] = []
        self._native_part: tuple[int, list[str]] | None = None
        self._envelope = EnvelopeBuilder() if display.seal is not None else None
        self.extra_states: list[str] = []  # opaque state beyond what one item can hold

    def build_added(self) -> Json:
        head = {"id": self.id, "type": "reasoning", "status": "in_progress"}
        return {**head, "summary": [], "content": []}

    def add_state(self, event: ProviderState) -> None:
        """Add opaque state; mark a signature as one."""
        state = SIGNATURE_PREFIX + event.data if event.signs else event.data
        if self._envelope is not None:
            self._envelope.add_state(state)
        if self._state is None:
            self._state = state
        else:
            self.extra_states.append(state)

    def add_text(self, event: Event, _: CallOrder) -> AddedText | None:
        if isinstance(event, ReasoningDelta):
            return self._add_raw(event.text)
        if isinstance(event, SummaryTextDelta) and self._native_part is None:
            return self._part_frame, event.text
        return None

    def _add_raw(self, text: str) -> AddedText | None:
        is_shown = self._display.show_raw and text
        if is_shown and not self._raw.tell():
            return None
        if self._envelope is not None:
            self._envelope.add_text(text)
        if not is_shown:
            return NOTHING
        self._raw.write(text)
        return self._raw_frame, text

    @cached_property
    def _raw_frame(self) -> DeltaFrame:
        return numbered_delta("response.reasoning_text.delta", self._raw_address)

    @cached_property
    def _part_frame(self) -> DeltaFrame:
        """Return the frame for the text of the part that is open."""
        return numbered_delta(SUMMARY_TEXT_DELTA, self._part_address)

    def write_raw(self, text: str) -> WireEvents:
        if self._envelope is not None:
            self._envelope.add_text(text)
        if not (self._display.show_raw and text):
            return
        address = self._raw_address
        if not self._raw.tell():
            part = {"type": "reasoning_text", "text": ""}
            yield "response.content_part.added", {**address, "part": part}
        self._raw.write(text)
        yield "response.reasoning_text.delta", {**address, "delta": text}

    def write_part(
        self, event: SummaryPartAdded | SummaryTextDelta | SummaryPartDone
    ) -> WireEvents:
        """Write an event of one of Abridge's summary parts.

        Parts are counted from 0 in each item, however many earlier stretches had.
        """
        yield from self._end_native_part()
        yield from write_part(event, self._part_address)
        if isinstance(event, SummaryPartDone):
            self._end_part(event.text)

    def write_native(self, event: NativeSummary) -> WireEvents:
        """Write a piece of the native summary, which may lack the beginning or end of a part."""
        if not self._display.show_summary:
            return
        if event.stage == "done":
            yield from self._end_native_part()
            return
        if self._native_part is None or self._native_part[0] != event.index:
            yield from self._end_native_part()
            self._native_part = event.index, []
            yield from write_part_added(self._part_address)
        if event.text:
            self._native_part[1].append(event.text)
            yield from write_part_delta(self._part_address, event.text)

    def end(self) -> WireEvents:
        yield from self._end_native_part()
        yield from self.end_raw()

    def end_raw(self) -> WireEvents:
        """End the raw text, once. It ends before the summary may, as with upstreams that stream
        both (openai-openapi, `ResponseReasoningTextDoneEvent`)."""
        text = "" if self._raw_is_done else self._raw.getvalue()
        if text:
            self._raw_is_done = True
            part = {"type": "reasoning_text", "text": text}
            yield "response.reasoning_text.done", {**self._raw_address, "text": text}
            yield "response.content_part.done", {**self._raw_address, "part": part}

    def build_done(self, status: ItemStatus) -> Json:
        """Return the item at its end. Opaque state in the blob is not repeated beside it."""
        if blob := self._seal_envelope():
            self._state, self.extra_states = blob, []
        item: Json = {
            "id": self.id,
            "type": "reasoning",
            "status": status,
            "summary": summary_parts(self._summary),
            "content": raw_parts(filter(None, [self._raw.getvalue()])),
        }
        if self._state is not None:
            item["encrypted_content"] = self._state
        if self.error is not None:
            item["summary_error"] = self.error.as_dict()
        return item

    def _seal_envelope(self) -> str:
        if self._display.seal is None or self._envelope is None or not self._envelope.has_text:
            return ""
        items = self._envelope.build_items(self.id)
        return self._display.seal(Envelope(items, self.id, self._place))

    def _end_native_part(self) -> WireEvents:
        if self._native_part is not None:
            text = "".join(self._native_part[1])
            yield from write_part_done(self._part_address, text)
            self._end_part(text)
            self._native_part = None

    def _end_part(self, text: str) -> None:
        self._summary.append(text)
        vars(self).pop("_part_frame", None)

    @property
    def _raw_address(self) -> Json:
        return {**self.address, "content_index": 0}

    @property
    def _part_address(self) -> Json:
        return {**self.address, "summary_index": len(self._summary)}
