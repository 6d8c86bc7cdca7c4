"""Read the items of a stream, or of a whole response, for clients of another API.

Read the Responses API for clients of another API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from abridge.apis.display import Display
from abridge.apis.json import objects, string
from abridge.apis.responses.contents import (
    TEXT,
    ContentEvent,
    content_kind_of,
    event_text,
    no_frame,
)
from abridge.apis.responses.history import record_joined_turn
from abridge.apis.responses.item_reader import ItemReader
from abridge.apis.responses.items import OutputItem
from abridge.apis.responses.reader import ResponsesReader
from abridge.apis.responses.reasoning import LANE, count_unknown_fields, is_opaque
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    ContentDelta,
    ErrorDetail,
    Event,
    Finished,
    FinishReason,
    NativeSummary,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    RefusalDelta,
    ResponseEnded,
    ResponseStarted,
    ToolCallDelta,
)
from abridge.providers.profile import Profile

ARGUMENT_FIELDS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Types of calls that the client answers, and the field of their arguments."""

HOSTED_TYPES = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "code_interpreter_call_output",
        "image_generation_call",
        "computer_call",
        "mcp_call",
        "mcp_list_tools",
        "compaction",
    }
)
"""Types of items that upstream handles itself, without an answer from the client."""

TEXT_FIELDS = ("delta", "text", "refusal")
"""Fields that may hold the text of a message."""


@dataclass(slots=True)
class _Progress:
    """Progress in translating an item of the answer."""

    number: int | None = None  # among the messages, or among the calls announced so far
    has_arguments: bool = False  # arguments of the call were emitted


_Translate = Callable[["TranslatingItemReader", OutputItem, _Progress, Json], list[Event]]


class TranslatingItemReader(ItemReader):
    """Reads the items of one response into translated events."""

    def __init__(self, limit: int, *, hidden: bool) -> None:
        super().__init__(limit, hidden=hidden, make_frame=no_frame)
        self._progress: dict[int, _Progress | None] = {}
        self._message_count = 0
        self._call_count = 0
        self._last_message: OutputItem | None = None

    @property
    def has_calls(self) -> bool:
        """Return whether there are calls for the client to answer."""
        return self._call_count > 0

    def read_whole_item(self, number: int | None, item: Json) -> list[Event]:
        """Read an item of a final response, as far as it was not streamed."""
        known = self.output.get(number)
        if known is None:
            known = self.output.add(item, number)
            events = self._begin_item(known, None)
            return [*events, *self._end_item(known, item)]
        return self._end_item(known, item) if known.is_open else []

    def complete_reasoning(self, item: OutputItem, done: Json, _frame: bytes | None) -> list[Event]:
        events = [*self._remaining_reasoning(item, done), *item.native.finish(done)]
        state = string(done.get("encrypted_content"))
        if state and is_opaque(done):  # else it repeats the reasoning
            events.append(ProviderState(LANE, None, item.output_index, state))
        if self._hides_raw:
            self.dropped += count_unknown_fields(done)
        return [*events, ReasoningEnded(LANE, None, item.output_index)]

    def _end_item(self, item: OutputItem, done: Json) -> list[Event]:
        if item.is_reasoning:
            return self.complete_reasoning(item, done, None)
        item.is_open = False
        return self._translate(item, done, TranslatingItemReader._finish_answer_item)

    def _begin_item(self, item: OutputItem, frame: bytes | None) -> list[Event]:
        if item.type == "message":
            self._last_message = item
        events = [
            event
            for event in super()._begin_item(item, frame)
            if not isinstance(event, Passthrough)
        ]
        return [*events, *self._translate(item, item.added, TranslatingItemReader._call_start)]

    def _finish_item(self, item: OutputItem, event: Json, frame: bytes | None) -> list[Event]:
        events = [
            event for event in super()._finish_item(item, event, frame) if is_meaningful(event)
        ]
        return [
            *events,
            *self._translate(item, event["item"], TranslatingItemReader._finish_answer_item),
        ]

    def _read_reasoning(self, event: Json, frame: bytes | None, text: str = "") -> list[Event]:
        """Read reasoning; add an item for it where none was announced."""
        opening: list[Event] = []
        if text and self._find_reasoning(event) is None:
            opening = self._announce_item(self.output.add({"type": "reasoning"}, None))
        return [*opening, *super()._read_reasoning(event, frame, text)]

    def _on_other(
        self,
        event: Json,
        frame: bytes | None,
        text: str = "",  # noqa: ARG002 -- read from the event
    ) -> list[Event]:
        translate, item = self._TRANSLATORS.get(string(event.get("type"))), self._find_item(event)
        if translate is None:
            return []
        if item is None and (content_kind := content_kind_of(event, "message")) is not None:
            item = self._find_message(event, event_text(event, content_kind))
        if item is None:
            return []
        if item.is_reasoning:
            return [event for event in super()._on_other(event, frame) if is_meaningful(event)]
        return self._translate(item, event, translate)

    def _find_message(self, event: Json, text: str) -> OutputItem | None:
        """Find the message of text that names no known item: the open one, else a new one."""
        item, index = self._last_message, event.get("output_index")
        if text and (item is None or not item.is_open):
            item = self.output.add({"type": "message", "id": event.get("item_id")}, index)
            self._last_message = item
        if item is not None:
            self.output.register_id(item, event.get("item_id"))
        return item

    def _translate(self, item: OutputItem, fields: Json, translate: _Translate) -> list[Event]:
        """Translate part of an item of the answer; close the reasoning before it."""
        if item.is_reasoning:
            return []
        if item.output_index not in self._progress:
            self._progress[item.output_index] = self._start_progress(item)
        progress = self._progress[item.output_index]
        events = [] if progress is None else translate(self, item, progress, fields)
        return [*self.close_reasoning(), *events] if events else []

    def _start_progress(self, item: OutputItem) -> _Progress | None:
        if item.type == "message":
            self._message_count += 1
            return _Progress(self._message_count - 1)
        if item.type in ARGUMENT_FIELDS:
            return _Progress()
        self.faults += item.type not in HOSTED_TYPES
        return None

    # Messages

    def _on_content_event(self, item: OutputItem, progress: _Progress, event: Json) -> list[Event]:
        content_kind = content_kind_of(event, item.type)
        content_events = (
            None if content_kind is None else item.contents.read(event, content_kind, None)
        )
        return self._content_deltas(
            progress, content_events or (), objects([event.get("part"), event])
        )

    def _content_deltas(
        self, progress: _Progress, content_events: Iterable[ContentEvent], sources: list[Json]
    ) -> list[Event]:
        """Emit new text of a message; log probabilities only where they are for just that text."""
        events, number = list[Event](), progress.number or 0
        for event in (event for event in content_events if event.text):
            matching = (
                part for part in sources if event.text in (part.get(key) for key in TEXT_FIELDS)
            )
            logprobs = objects(next(matching, {}).get("logprobs"))
            if event.kind is TEXT:
                events.append(ContentDelta(LANE, None, event.text, logprobs, number))
            else:
                events.append(RefusalDelta(LANE, None, "", logprobs, number, refusal=event.text))
        return events

    # Calls

    def _call_start(self, item: OutputItem, progress: _Progress, added: Json) -> list[Event]:
        """Announce a call once its name is known.

        Its arguments come from its deltas, or else from its end.
        """
        name = string(added.get("name"))
        if item.type not in ARGUMENT_FIELDS or progress.number is not None or not name:
            return []
        progress.number = self._call_count
        self._call_count += 1
        head = self._call_delta(item, progress, "")
        head.id, head.name = string(added.get("call_id")), name
        return [head]

    def _on_arguments_delta(
        self, item: OutputItem, progress: _Progress, event: Json
    ) -> list[Event]:
        text = string(event.get("delta"))
        if item.type not in ARGUMENT_FIELDS or progress.number is None or not text:
            return []
        progress.has_arguments = True
        return [self._call_delta(item, progress, text)]

    def _on_arguments_done(self, item: OutputItem, progress: _Progress, event: Json) -> list[Event]:
        if item.type not in ARGUMENT_FIELDS or progress.number is None or progress.has_arguments:
            return []
        return self._on_arguments_delta(
            item, progress, {"delta": event.get(ARGUMENT_FIELDS[item.type])}
        )

    def _empty_arguments(self, item: OutputItem, progress: _Progress, done: Json) -> list[Event]:
        """Emit `{}` for a call without arguments, which some servers leave out."""
        if (
            item.type != "function_call"
            or progress.has_arguments
            or done.get("status") == "incomplete"
        ):
            return []
        return self._on_arguments_delta(item, progress, {"delta": "{}"})

    def _call_delta(self, item: OutputItem, progress: _Progress, text: str) -> ToolCallDelta:
        custom = item.type == "custom_tool_call"
        return ToolCallDelta(
            LANE, None, call_index=progress.number or 0, arguments=text, custom=custom
        )

    def _finish_answer_item(self, item: OutputItem, progress: _Progress, done: Json) -> list[Event]:
        """Emit what is left of a finished item."""
        if item.type in ARGUMENT_FIELDS:
            head = self._call_start(item, progress, done)
            rest = self._on_arguments_done(item, progress, done)
            return [*head, *rest, *self._empty_arguments(item, progress, done)]
        return self._content_deltas(
            progress, item.contents.finish(done), objects(done.get("content"))
        )

    _TRANSLATORS: ClassVar[dict[str, _Translate]] = {
        "response.output_text.delta": _on_content_event,
        "response.output_text.done": _on_content_event,
        "response.refusal.delta": _on_content_event,
        "response.refusal.done": _on_content_event,
        "response.content_part.added": _on_content_event,
        "response.content_part.done": _on_content_event,
        "response.function_call_arguments.delta": _on_arguments_delta,
        "response.function_call_arguments.done": _on_arguments_done,
        "response.custom_tool_call_input.delta": _on_arguments_delta,
        "response.custom_tool_call_input.done": _on_arguments_done,
    }


def is_meaningful(event: Event) -> bool:
    """Return whether an event without a frame says anything."""
    is_empty_raw = isinstance(event, ReasoningDelta) and not event.text
    is_empty_native = isinstance(event, NativeSummary) and event.stage == "delta" and not event.text
    return not (is_empty_raw or is_empty_native or isinstance(event, Passthrough))


FINISH_REASONS: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "content_filter",
}


class ResponsesTranslatingReader(ResponsesReader):
    """Reads one response into translated events. See `abridge.apis.api.Reader`."""

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        super().__init__(profile, display, limit)
        self._item_reader: TranslatingItemReader = TranslatingItemReader(
            limit, hidden=not display.show_raw
        )
        self._started = False

    def read(self, frame: bytes) -> list[Event]:
        return self._meaningful_events(super().read(frame))

    def read_whole(self, body: bytes) -> list[Event]:
        return self._meaningful_events(super().read_whole(body))

    def recorded_turns(self) -> list[RecordedTurn]:
        return record_joined_turn(self._final_output)

    def _meaningful_events(self, events: list[Event]) -> list[Event]:
        """Drop events that say nothing, and the start of the response after the first time."""
        meaningful = []
        for event in events:
            if isinstance(event, ResponseStarted):
                if self._started:
                    continue
                self._started = True
            if is_meaningful(event):
                meaningful.append(event)
        return meaningful

    def _missing_start(self, event: Json, kind: str) -> list[Event]:  # noqa: ARG002 -- the writer adds it
        return []

    def _carry_frame(self, frame: bytes | None) -> bytes | None:  # noqa: ARG002 -- no frames
        return None

    def _end_events(
        self,
        response: Json,
        frame: bytes | None,  # noqa: ARG002 -- no frames
        *,
        ok: bool,
    ) -> list[Event]:
        """Emit what only the final response says, and the end."""
        ok = ok and response.get("status") not in ("failed", "cancelled")
        remaining = self._remaining_events(response)
        finished = [Finished(LANE, None, self._finish_reason(response))] if ok else []
        usage = RESPONSES_USAGE.read(response.get("usage"))
        error = None if ok else self._error or _read_error(response)
        end = ResponseEnded(None, None, ok=ok, usage=usage, error=error)
        return [*remaining, *finished, end]

    def _remaining_events(self, response: Json) -> list[Event]:
        is_first = bool(response) and self._response is None
        events = self._start_response(response, None) if is_first else []
        for number, item in self._final_output:
            if isinstance(item, dict):
                events += self._item_reader.read_whole_item(number, item)
        return events

    def _finish_reason(self, response: Json) -> FinishReason:
        details = response.get("incomplete_details")
        reason = string(details.get("reason")) if isinstance(details, dict) else ""
        return FINISH_REASONS.get(reason, "tool_calls" if self._item_reader.has_calls else "stop")


def _read_error(response: Json) -> ErrorDetail:
    error = response.get("error")
    message = string(error.get("message")) if isinstance(error, dict) else ""
    return ErrorDetail("upstream_error", message)
