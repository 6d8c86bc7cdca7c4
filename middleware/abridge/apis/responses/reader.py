"""Read the Responses API, a stream or a whole response, into events.

A frame's way: most continue the text of the open item, which `ItemReader.find_continuation` finds
out at once, and those that follow are recognised by the pattern of that (`delta_patterns.py`). Any
other is read here if it is about the response. If it is about an output item,
`ItemReader` hands it to `ReasoningReader` or to the reader of the answer, which a `Framing`
chooses: events carry frames for clients of the same API (`framing.py`), none for clients of others
(`translation.py`).

Everything is in one lane. An item's number is its `output_index`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from math import isfinite
from typing import Any, ClassVar

from abridge.apis import sse
from abridge.apis.delta_patterns import DeltaPatterns, Proceed
from abridge.apis.display import Display
from abridge.apis.endings import UNFINISHED, infer_reason
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE, without_message
from abridge.apis.frames import change_frame, parse_frame, with_event_name
from abridge.apis.json import (
    begins_object,
    dumps,
    loads,
    loads_exact,
    packed,
    parse_object,
    replace_invalid,
    string,
)
from abridge.apis.openai import error_in
from abridge.apis.responses.contents import REASONING
from abridge.apis.responses.errors import as_failed
from abridge.apis.responses.framing import Framing
from abridge.apis.responses.hiding import ResponseRebuilder
from abridge.apis.responses.history import record_joined_turn, record_turns
from abridge.apis.responses.inline import InlineThinking
from abridge.apis.responses.inline_text import FramedEvent, begins_with_thinking
from abridge.apis.responses.item_reader import ItemReader
from abridge.apis.responses.items import OutputItems
from abridge.apis.responses.lifecycle import ResponseLifecycle
from abridge.apis.responses.reasoning import (
    LANE,
    is_raw_summary,
    is_reasoning,
    rename_raw_summary_in_event,
    rename_raw_summary_in_response,
    summary_is_raw,
    summary_text,
)
from abridge.apis.responses.reasoning_reader import is_empty_delta
from abridge.apis.responses.summaries import SUMMARY_TEXT_DELTA
from abridge.apis.usage import RESPONSES_USAGE, as_count
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    ErrorDetail,
    ErrorReported,
    Event,
    Passthrough,
    ResponseEnded,
    ResponseStarted,
)
from abridge.providers.learned import NO_OBSERVATION, Observation
from abridge.providers.profile import Profile

EARLY_EVENT_TYPES = {
    "response.reasoning.delta": "response.reasoning_text.delta",
    "response.reasoning.done": "response.reasoning_text.done",
    "response.reasoning_summary.delta": "response.reasoning_summary_text.delta",
    "response.reasoning_summary.done": "response.reasoning_summary_text.done",
}
"""Event types that early builds of Open Responses used (openresponses schema/events.tsp)."""

FIRST_EVENTS = ("response.created", "error")

_Handler = Callable[["ResponsesReader", Json, bytes | None], list[Event]]


class ResponsesReader:
    """Read one response. See the protocol `Reader`."""

    def __init__(self, profile: Profile, display: Display, limit: int, framing: Framing) -> None:
        self._framing = framing
        self._carries_frames = framing.carries_frames
        self._profile = profile
        self._summary_is_raw = summary_is_raw(profile, display)
        self._hides_raw = display.hides_raw
        # What is hidden keeps its type, by which it can be given back to upstream as it was sent.
        self._raw_part_type = "summary_text" if display.hides_raw else "reasoning_text"
        self._display = display
        self._rebuilder = ResponseRebuilder(display.echoed) if display.hides_raw else None
        self._output = OutputItems(limit, framing.make_frame)
        self._items = ItemReader(self._output, framing, hides_raw=self._hides_raw)
        self._inline: InlineThinking | None = None
        if display.hides_raw or profile.inline_on_responses:
            self._inline = InlineThinking(profile, display, limit, self._output, framing.make_frame)
        self._patterns = DeltaPatterns(rewrites=display.hides_raw)
        self._lifecycle = ResponseLifecycle()
        self._beginning: bytes | None = None  # a frame with the response, which the writer has too
        self._final_output: list[tuple[int | None, Any]] = []  # output indexes and items
        self._error: ErrorDetail | None = None
        self._is_done = False  # upstream has sent `[DONE]`
        self._ended = False
        self._observation = NO_OBSERVATION

    @property
    def dropped(self) -> int:
        inline = self._inline.dropped if self._inline is not None else 0
        return inline + (self._rebuilder.drops.count if self._rebuilder is not None else 0)

    @property
    def faults(self) -> int:
        return self._output.faults

    @property
    def mismatches(self) -> int:
        return self._output.mismatches

    def read_delta(self, data: bytes) -> list[Event] | None:
        events = self._patterns.read(data)
        if events is not None:
            self._output.frame_size = len(data)
        return events

    def read(self, frame: bytes) -> list[Event]:
        delta = self.read_delta(frame)
        return self._read(frame) if delta is None else delta

    def _read(self, frame: bytes) -> list[Event]:
        """Read a frame that fits no pattern."""
        data = sse.frame_data(frame)
        parse = loads if self._inline is None else loads_exact
        sent = None if data is None or self._ended else parse_object(data, parse)
        if data is None or sent is None:
            return self._read_unparsed(data, frame)
        self._output.frame_size, dropped = len(frame), self.dropped
        if sent.get("type") == "response.output_item.done":
            self._observe(sent.get("item"))
        if self._rebuilder is None:
            event, carried = self._rename(sent, frame)
        elif (rebuilt := self._rebuilder.rebuild(self._renamed(sent))) is not None:
            event, carried = rebuilt, self._framing.make_frame(rebuilt["type"], rebuilt)
        else:  # it may say what becomes of the next delta
            self._patterns.clear()
            return []
        if self._inline is not None:
            framed = tuple(self._inline.read(event, carried))
            return self._read_split(event, framed, frame if self.dropped == dropped else None)
        proceed = self._items.find_continuation(event)
        if proceed is not None:
            self._patterns.learn(frame, carried, "delta", event["delta"], proceed)
            return [proceed(event["delta"], carried)]
        self._patterns.clear()
        exact = self._renamed(parse_object(data, loads_exact) or sent)
        events = self._read_event(exact, carried)
        proceed = self._items.find_summary(events)
        if proceed is not None and event["type"] == SUMMARY_TEXT_DELTA:
            self._patterns.learn(frame, events[0].frame, "delta", string(event["delta"]), proceed)
        return events

    def _read_split(
        self, event: Json, framed: tuple[FramedEvent, ...], frame: bytes | None
    ) -> list[Event]:
        """Read what an event became where thinking in messages becomes reasoning. If it is the next
        delta as it was, learn the pattern of upstream's `frame`."""
        proceed = None
        if len(framed) == 1 and framed[0][0] is event:
            proceed = self._items.find_continuation(event)
        events = self._read_events(framed)
        if proceed is None:
            self._patterns.clear()
        elif frame is not None and len(events) == 1:
            self._learn_split(frame, event, events[0].frame, proceed)
        return events

    def _learn_split(
        self, frame: bytes, event: Json, carried: bytes | None, proceed: Proceed
    ) -> None:
        """Learn the pattern of a delta in which no thinking was found, if the next one can be known
        to have none by its text alone."""
        accepts = None if self._inline is None else self._inline.find_filter(event)
        is_reasoning = event["type"] == REASONING.delta_type and event["delta"].strip()
        if accepts is not None or is_reasoning:
            text = event["delta"]
            self._patterns.learn(frame, carried, "delta", text, proceed, accepts=accepts)

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        self._patterns.clear()
        events = self._read_events(self._inline.end()) if self._inline is not None else []
        if self._is_done and not (error or self._error):
            is_open = self._beginning is None or self._output.has_open_part
            if infer_reason(has_open_part=is_open, has_calls=False):  # calls have no reason here
                return [*events, *self._complete()]
            error = UNFINISHED
        self._ended = True
        error = self._error or error or CONNECTION_LOST
        return [
            *events,
            *self._items.abort(),
            ResponseEnded(None, self._missing_end(error), ok=False, error=error),
        ]

    def read_whole(self, body: bytes) -> list[Event]:
        sent = parse_object(body, loads_exact)
        if sent is None and (valid := replace_invalid(body)) != body:
            return self.read_whole(valid)
        frame = body if self._carries_frames and not self._hides_raw else None
        if sent is None or not isinstance(sent.get("output"), list):
            return [ResponseEnded(None, frame, ok=False, error=self._error_in(sent))]
        for item in sent["output"]:
            self._observe(item)
        response = rename_raw_summary_in_response(
            sent, self._raw_part_type, always=self._summary_is_raw
        )
        if self._rebuilder is not None:
            response = self._rebuilder.rebuild_response(response)
        if self._inline is not None:
            response = {**response, "output": self._inline.split_output(response["output"])}
        if self._carries_frames:
            response = self._lifecycle.repair_whole(response)
            frame = dumps(response) if self._hides_raw or response != sent else frame
        events = self._start(response, None)
        self._final_output = list(enumerate(response["output"]))
        for number, item in enumerate(response["output"]) if self._carries_frames else ():
            if isinstance(item, dict):
                events += self._items.read_whole(number, item)
        return self._select([*events, *self._end_events(response, frame, ok=True)])

    def recorded_turns(self) -> list[RecordedTurn]:
        record = record_turns if self._carries_frames else record_joined_turn
        return record(self._final_output)

    def observed(self) -> Observation:
        return self._observation

    # Events

    def _rename(self, event: Json, frame: bytes) -> tuple[Json, bytes | None]:
        renamed = self._renamed(event)
        if not self._carries_frames:
            return renamed, None
        if renamed is event:
            return event, with_event_name(frame, event)
        return renamed, change_frame(frame, self._renamed)

    def _renamed(self, event: Json) -> Json:
        """Return the event under its type of today, and raw reasoning that is called a summary
        as reasoning."""
        event_type = string(event.get("type"))
        if event_type in EARLY_EVENT_TYPES:
            event = {**event, "type": EARLY_EVENT_TYPES[event_type]}
        if not self._summary_is_raw:
            return event
        return rename_raw_summary_in_event(event, self._raw_part_type)

    def _read_events(self, framed_events: Iterable[FramedEvent]) -> list[Event]:
        """Read what became of an event whose thinking was taken out."""
        events: list[Event] = []
        for event, frame in framed_events:
            proceed = self._items.find_continuation(event)
            if proceed is None:
                events += self._read_event(event, frame)
            else:
                events.append(proceed(event["delta"], frame))
        return events

    def _read_event(self, event: Json, frame: bytes | None) -> list[Event]:
        event_type = string(event.get("type"))
        events = self._missing_start(event, event_type) if self._beginning is None else []
        handler = self._HANDLERS.get(event_type)
        if handler is not None:
            events += handler(self, event, frame)
        else:
            events += self._items.read(event_type, event, frame)
        return self._select(events)

    def _read_unparsed(self, data: bytes | None, frame: bytes) -> list[Event]:
        """Read a frame of which no event was parsed.

        Without an event that cannot be read the answer would be another one, so it fails.
        """
        if data is not None and not self._ended:
            if (valid := replace_invalid(frame)) != frame:
                return self.read(valid)
            if begins_object(data):
                return self.end(UNREADABLE)
        return self._read_other_frame(data, frame)

    def _read_other_frame(self, data: bytes | None, frame: bytes) -> list[Event]:
        """Read a frame that holds no event, or one after the end.

        Comments pass, and so does `[DONE]` after the end. While raw reasoning is hidden nothing
        passes but that `[DONE]`, since anything else may contain some.
        """
        is_done = data is not None and data.strip() == sse.DONE
        self._is_done = self._is_done or is_done
        if is_done and self._ended:
            passed = sse.encode_frame(sse.DONE) if self._hides_raw else frame
        elif data is None and frame.startswith(b":") and self._hides_raw:
            return []
        elif self._hides_raw or (data is not None and (is_done or self._ended)):
            return self._output.count_fault()
        else:
            passed = frame
        return [Passthrough(None, passed)] if self._carries_frames else []

    def _select(self, events: list[Event]) -> list[Event]:
        """Drop the events that say nothing without a frame."""
        if self._carries_frames:
            return events
        return [
            event
            for event in events
            if not (isinstance(event, Passthrough) or is_empty_delta(event))
        ]

    def _observe(self, item: Any) -> None:
        """Observe a finished item as upstream sent it."""
        if is_reasoning(item) and summary_text(item).strip():
            is_raw = is_raw_summary(item)
            self._observation = replace(self._observation, summary_is_raw=is_raw)
        if begins_with_thinking(item, self._profile):
            self._observation = replace(self._observation, inline_on_responses=True)

    # Beginning

    def _missing_start(self, event: Json, event_type: str) -> list[Event]:
        """Emit the beginning of the response, where upstream begins with another event.

        A translated response is begun by its writer.
        """
        is_first = event_type in FIRST_EVENTS or not event_type.startswith("response.")
        if is_first or not self._carries_frames:
            return []
        created, fields = "response.created", {"response": self._lifecycle.initial_response(event)}
        frame = self._framing.make_frame(created, fields)
        return self._on_lifecycle({"type": created, **fields}, frame)

    def _on_lifecycle(self, event: Json, frame: bytes | None) -> list[Event]:
        if self._beginning is not None and event["type"] == "response.created":
            return self._output.count_fault()
        event, frame = self._lifecycle.repair(event, frame)
        return self._start(event["response"], frame)

    def _start(self, response: Json, frame: bytes | None) -> list[Event]:
        """Store the response so far; emit it with a frame, and else the first time."""
        is_repeated = self._beginning is not None and not self._carries_frames
        self._beginning = frame or sse.encode_frame(packed({"response": response}))
        if is_repeated:
            return []
        created = response.get("created_at")
        if isinstance(created, float):
            created = int(created) if isfinite(created) else 0
        timestamp = as_count(created) or 0
        response_id, model = string(response.get("id")), string(response.get("model"))
        return [ResponseStarted(LANE, frame, response_id, model, timestamp)]

    # End

    def _error_in(self, body: Json | None) -> ErrorDetail | None:
        error = error_in(body)
        return without_message(error) if error and self._hides_raw else error

    def _on_error(self, event: Json, frame: bytes | None) -> list[Event]:
        error = event.get("error")
        message = string((error if isinstance(error, dict) else event).get("message"))
        if self._error is not None:  # it is reported once
            return [Passthrough(None, frame)]
        self._error = ErrorDetail("upstream_error", message)
        return [ErrorReported(None, frame, self._error)]

    def _on_end(self, event: Json, frame: bytes | None) -> list[Event]:
        self._ended = True
        event, frame = self._lifecycle.repair(event, frame)
        event_type, response = event["type"], event["response"]
        output = response.get("output")
        status = "completed" if event_type == "response.completed" else "incomplete"
        closing = self._items.finish(status, output)
        self._final_output = self._output.reconcile(output)
        if [item for _, item in self._final_output] != output:
            frame = change_frame(frame, self._reconciled)
        return [*closing, *self._end_events(response, frame, ok=event_type != "response.failed")]

    def _reconciled(self, event: Json) -> Json:
        response = event["response"]
        items = [item for _, item in self._output.reconcile(response.get("output"))]
        return {**event, "response": {**response, "output": items}}

    def _end_events(self, response: Json, frame: bytes | None, *, ok: bool) -> list[Event]:
        """Emit the end and, if it carries no frame, what only the final response says."""
        usage = RESPONSES_USAGE.read(response.get("usage"))
        end = ResponseEnded(None, frame, ok=ok, usage=usage)
        rest = [] if self._carries_frames else self._read_rest(response)
        return [*rest, *self._framing.make_end(end, response, self._error)]

    def _read_rest(self, response: Json) -> list[Event]:
        """Emit what only the final response says."""
        events = self._start(response, None) if response and self._beginning is None else []
        for number, item in self._final_output:
            if isinstance(item, dict):
                events += self._items.read_rest(number, item)
        return events

    def _complete(self) -> list[Event]:
        """End a response of which upstream says nothing more than that it is over."""
        response = parse_frame(self._beginning).get("response", {})
        event = {"type": "response.completed", "response": {**response, "status": "completed"}}
        return self._read_event(event, self._framing.make_frame("response.completed", event))

    def _missing_end(self, error: ErrorDetail) -> bytes | None:
        """Make the end that upstream did not send, with the output so far."""
        if self._beginning is None:
            if self._error is not None:
                return None
            return self._framing.make_frame("error", {**error.as_dict(), "param": None})
        self._final_output = self._output.reconcile(None)
        response = parse_frame(self._beginning).get("response", {})
        output = [item for _, item in self._final_output]
        failed = as_failed({**response, "output": output}, error)
        return self._framing.make_frame("response.failed", {"response": failed})

    _HANDLERS: ClassVar[dict[str, _Handler]] = {
        "response.created": _on_lifecycle,
        "response.queued": _on_lifecycle,
        "response.in_progress": _on_lifecycle,
        "response.completed": _on_end,
        "response.incomplete": _on_end,
        "response.failed": _on_end,
        "error": _on_error,
    }
