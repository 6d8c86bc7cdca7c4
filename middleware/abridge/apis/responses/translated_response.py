"""Build a response from translated events, item by item.

One item is open at a time, and every event belongs to it or closes it.
"""

from __future__ import annotations

from collections.abc import Mapping

from abridge.apis.api import RequestEcho
from abridge.apis.call_order import CallOrder
from abridge.apis.display import Display
from abridge.apis.hosted_calls import HOSTED_CALLS
from abridge.apis.json import as_object, objects, string
from abridge.apis.openai import MintId, mint_id
from abridge.apis.places import place_after_call
from abridge.apis.responses.citations import write_annotation
from abridge.apis.responses.errors import as_failed
from abridge.apis.responses.translated_items import (
    ContentPart,
    ItemStatus,
    TranslatedCall,
    TranslatedItem,
    TranslatedMessage,
    TranslatedReasoning,
)
from abridge.apis.translated_answer import AddedText, TranslatedAnswer, WireEvents
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import ItemKey, Json
from abridge.core.events import (
    CitationDelta,
    ContentDelta,
    Event,
    Finished,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningTextEnded,
    ResponseEnded,
    ResponseStarted,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
    ToolCallDelta,
)
from abridge.core.model_request import Tool

PARAM_DEFAULTS: Json = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "truncation": "disabled",
}
"""Values of the parameters that the request does not set. Which of them a response must have:
openresponses, `ResponseResource`."""

FIXED_FIELDS: Json = {"background": False, "service_tier": "default"}
"""Fields that have the same value whatever the request says."""


def new_response(
    echo: RequestEcho, display: Display, response_id: str, model: str, created: int
) -> Json:
    """Return a response that has just begun."""
    body = echo.body
    requested = {key: body[key] for key in PARAM_DEFAULTS if body.get(key) is not None}
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        **PARAM_DEFAULTS,
        **requested,
        **FIXED_FIELDS,
        "store": echo.stored,
        "model": model,
        "output": [],
        "reasoning": {
            "effort": as_object(body.get("reasoning")).get("effort"),
            "summary": display.style if display.show_summary else None,
        },
        "text": {"format": {"type": "text"}, **as_object(body.get("text"))},
        "tools": [_fill_tool(tool) for tool in objects(body.get("tools"))],
        "usage": None,
    }


def _fill_tool(tool: Json) -> Json:
    """Return a function with all its fields. It is strict unless the request says otherwise."""
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": True, **tool}


class TranslatedOutput:
    """Write the items of one response. `tools` are those offered to upstream, by name."""

    def __init__(self, display: Display, tools: Mapping[str, Tool], mint_id: MintId) -> None:
        self.items: list[Json] = []  # those that are done
        self._display = display
        self._tools = tools
        self._mint_id = mint_id
        self._open_item: TranslatedItem | None = None
        self._order = CallOrder()
        self._text_end = 0  # characters of the answer's text in messages that are done
        self._place: bytes | None = None  # of reasoning, once there was a call
        self._reported_errors: set[ItemKey] = set()

    # Reasoning

    def start_reasoning(self) -> WireEvents:
        """Start a stretch of reasoning."""
        yield from self.finish()
        yield from self._add_item(self._new_reasoning())

    def write_reasoning(self, event: Event) -> WireEvents:
        """Write an event of the open reasoning item."""
        item = self._open_item
        if not isinstance(item, TranslatedReasoning):
            return
        match event:
            case ReasoningDelta():
                yield from item.write_raw(event.text)
            case ReasoningTextEnded():
                yield from item.end_raw()
            case SummaryPartAdded() | SummaryTextDelta() | SummaryPartDone():
                yield from item.write_part(event)
            case NativeSummary():
                yield from item.write_native(event)
            case ProviderState():
                item.add_state(event)

    def end_reasoning(self, event: ReasoningEnded) -> WireEvents:
        """End a stretch. Opaque state beyond what one item can hold goes in items of its own."""
        key = event.lane or 0, event.item
        error = event.summary.error
        item = self._open_item if isinstance(self._open_item, TranslatedReasoning) else None
        if item is not None and key not in self._reported_errors:
            item.error = error
            self._reported_errors |= {key} if error is not None else set()
        yield from self._finish_item()
        for state in item.extra_states if item is not None else ():
            yield from self._add_item(self._new_reasoning(state))
            yield from self._finish_item()

    # The answer

    def add_text(self, event: Event) -> AddedText | None:
        """Take an event that only adds to the text of the open item, if there is one."""
        item = self._open_item
        return None if item is None else item.add_text(event, self._order)

    def write_answer(self, event: ContentDelta) -> WireEvents:
        for piece in self._order.arrange(event):
            yield from self._write_piece(piece)

    def _write_piece(self, event: ContentDelta) -> WireEvents:
        """Write a piece into the open item it belongs to, or into a new one."""
        item = self._open_item
        if isinstance(event, ToolCallDelta):
            if not isinstance(item, TranslatedCall) or item.number != event.call_index:
                yield from self._finish_item()
                tool = self._tools.get(event.name)
                item = TranslatedCall(event, tool, len(self.items), self._mint_id)
                yield from self._add_item(item)
            yield from item.write(event.arguments)
            return
        if not isinstance(item, TranslatedMessage) or item.number != event.message_index:
            yield from self._finish_item()
            number, index = event.message_index, len(self.items)
            item = TranslatedMessage(self._mint_id("msg_"), index, number, self._text_end)
            yield from self._add_item(item)
        yield from item.write(event)

    @property
    def has_open_text(self) -> bool:
        return self._open_text is not None

    def cite(self, citation: CitationDelta) -> WireEvents:
        part = self._open_text
        return iter(()) if part is None else part.cite(citation)

    @property
    def _open_text(self) -> ContentPart | None:
        item = self._open_item
        return item.open_text if isinstance(item, TranslatedMessage) else None

    def finish(self, status: ItemStatus = "completed") -> WireEvents:
        """Finish the open item, and everything that is queued behind it."""
        for piece in self._order.rest():
            yield from self._write_piece(piece)
        yield from self._finish_item(status)

    # Items

    def _new_reasoning(self, state: str | None = None) -> TranslatedReasoning:
        id_, index = self._mint_id("rs_"), len(self.items)
        return TranslatedReasoning(id_, index, self._display, state=state, place=self._place)

    def _add_item(self, item: TranslatedItem) -> WireEvents:
        self._open_item = item
        if not item.is_added_late:
            yield (
                "response.output_item.added",
                {"output_index": item.index, "item": item.build_added()},
            )

    def _finish_item(self, status: ItemStatus = "completed") -> WireEvents:
        item, self._open_item = self._open_item, None
        if item is None:
            return
        address = {"output_index": item.index}
        if item.is_added_late:
            yield "response.output_item.added", {**address, "item": item.build_added()}
        yield from item.end()
        done = item.build_done(status)
        self.items.append(done)
        if isinstance(item, TranslatedMessage):
            self._text_end = item.text_end
        self._place = place_after_call(string(done.get("call_id"))) or self._place
        yield "response.output_item.done", {**address, "item": done}


INCOMPLETE_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}


class TranslatedResponse(TranslatedAnswer):
    """Build a response from translated events. See the protocol `Response`.

    The last event of a stream repeats the whole response, so a stream fails once it exceeds `limit`
    characters.
    """

    def __init__(
        self, display: Display, echo: RequestEcho, limit: int, mint_id: MintId = mint_id
    ) -> None:
        self._output = TranslatedOutput(display, echo.tools, mint_id)
        super().__init__(self._output, limit)
        self._display = display
        self._echo = echo
        self._mint_id = mint_id
        self._response: Json | None = None  # as its last lifecycle event has it
        self._finished = Finished(None, None, "stop")

    @property
    def final(self) -> Json | None:
        return self._response if self._is_over else None

    def so_far(self) -> Json | None:
        return None if self._is_over else self._response

    def note(self, event: Event) -> None:
        for _ in self._translate(event):
            pass

    def build_whole(self, end: ResponseEnded) -> Json:
        self.note(end)
        return self._response or {}

    # Events

    def _start(self, event: Event) -> WireEvents:
        started = (
            event if isinstance(event, ResponseStarted) else ResponseStarted(None, None, "", "", 0)
        )
        self._response = new_response(
            self._echo,
            self._display,
            self._mint_id("resp_"),
            started.model or string(self._echo.body.get("model")),
            started.created or int(self._echo.now()),
        )
        yield "response.created", {"response": self._response}
        yield "response.in_progress", {"response": self._response}

    def _finish(self, event: Finished) -> WireEvents:
        self._finished = event
        is_cut = event.reason in INCOMPLETE_REASONS
        yield from self._output.finish("incomplete" if is_cut else "completed")

    def _end(self, event: ResponseEnded) -> WireEvents:
        yield from self._output.finish("completed" if event.ok else "incomplete")
        self._is_over = True
        response = self._response = self._build_final(event)
        yield f"response.{response['status']}", {"response": response}

    def _build_final(self, event: ResponseEnded) -> Json:
        usage, merged = event.usage or self._usage, self._display.merge_usage
        response = {**(self._response or {}), "output": self._output.items}
        RESPONSES_USAGE.write_with_share(response, usage, event.share, merged=merged)
        response |= self._other_fields()
        if (error := self._failure(event)) is not None:
            return as_failed(response, error)
        if reason := INCOMPLETE_REASONS.get(self._finished.reason):
            details = {"reason": reason}
            return {**response, "status": "incomplete", "incomplete_details": details}
        completed = max(response["created_at"], int(self._echo.now()))
        return {**response, "status": "completed", "completed_at": completed}

    def _other_fields(self) -> Json:
        """Return what no item can say: sources that came after their text, and what upstream ran
        itself."""
        annotations = [write_annotation(citation, 0, 0) for citation in self._citations]
        fields = {"annotations": annotations, HOSTED_CALLS: list(self._finished.hosted_calls)}
        return {name: entries for name, entries in fields.items() if entries}
