"""Read the Responses API, a stream or a whole response, into events.

A frame is read here if it is about the response, and by `ItemReader` if about an output item. Most
only continue a text: `ItemReader.continuation_of` tells, and those after it that are like it are
recognised by its pattern (`delta_patterns.py`).

What is read is the same whoever the client is. Where it speaks this API, events also carry frames:
upstream's bytes, repaired where it was sloppy, or new ones where it left an event out. Only then is
an item of the answer kept open, since items follow each other there. For a client of another API
what is but a frame is dropped, and what it was told is held against final texts, which no frame
will repeat (`TranslatedItems`).

Everything is in one lane. An item's number is its `output_index`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, ClassVar

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.endings import UNFINISHED, infer_reason, reason_of_parts
from abridge.apis.errors import (
    CALL_CHANGED,
    CALL_CUT,
    CONNECTION_LOST,
    TEXT_CHANGED,
    UNREADABLE,
    read_detail,
    with_error_type,
    without_message,
)
from abridge.apis.frames import (
    SentEvent,
    parse_frame,
    with_event_name,
)
from abridge.apis.hosted_calls import describe_call
from abridge.apis.json import (
    as_integer,
    as_object,
    begins_object,
    dumps,
    first_string,
    loads_exact,
    objects,
    packed,
    parse_body,
    parse_object,
    parse_object_text,
    replace_invalid,
    string,
)
from abridge.apis.logprobs import without_logprobs
from abridge.apis.media import unrepresentable
from abridge.apis.openai import error_in, mint_id
from abridge.apis.protocols import Continuation
from abridge.apis.responses.errors import NO_ANSWERS, UNDER_WAY, as_failed, read_failure
from abridge.apis.responses.history import record_output
from abridge.apis.responses.items import (
    ADDRESS_FIELDS,
    ANNOTATION_ADDED,
    CALL_TYPES,
    CONTENT_PART_ADDED,
    CONTENT_PART_DONE,
    EVENT_STAGES,
    INDEX_FIELDS,
    ITEM_ADDED,
    ITEM_DONE,
    REASONING,
    SUMMARY,
    SUMMARY_STAGES,
    TEXT,
    TEXT_DELTA,
    TEXT_TYPES,
    OutputEntry,
    OutputItem,
    OutputItems,
    ResponseState,
    StreamedPart,
    content_kind_of,
    event_text,
    is_reasoning_content,
    mint_item_id,
    rename_raw_summary_in_event,
    says_anything,
    without_content,
)
from abridge.apis.responses.messages import IMAGE_CALL
from abridge.apis.responses.reasoning import (
    REASONING_PREFIX,
    is_opaque,
    is_raw_summary,
    is_reasoning,
    raw_text,
    rename_raw_summary_in_response,
    summary_is_raw,
    summary_text,
)
from abridge.apis.responses.shapes import ResponsesRebuilder
from abridge.apis.responses.texts import ShownItems, begins_with_thinking, expects_thinking
from abridge.apis.shapes import CITATION_TYPES, DropCount, is_withheld
from abridge.apis.usage import RESPONSES_USAGE, as_count, report_tier
from abridge.core.answer import Part, PartKind
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    LANE,
    CitationDelta,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    FinishReason,
    ImageDelta,
    NativeSummary,
    PartEnded,
    PartStarted,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
    ToolCallDelta,
    said_text,
)
from abridge.providers.learned import NO_OBSERVATION, Observation
from abridge.providers.profile import Profile
from abridge.stages.order import ENDS, Order

EARLY_EVENT_TYPES = {
    "response.reasoning.delta": "response.reasoning_text.delta",
    "response.reasoning.done": "response.reasoning_text.done",
    "response.reasoning_summary.delta": "response.reasoning_summary_text.delta",
    "response.reasoning_summary.done": "response.reasoning_summary_text.done",
}
"""Event types that early builds of Open Responses used (openresponses schema/events.tsp)."""

FIRST_EVENTS = ("response.created", "error")

_ResponseHandler = Callable[["ResponsesReader", Json], list[Event]]


class ResponsesReader:
    """Read one response. See the protocol `Reader`.

    With `translates` its client speaks another API, so that no event carries a frame.
    """

    def __init__(
        self, profile: Profile, display: Display, limit: int, *, translates: bool = False
    ) -> None:
        self._state = ResponseState(display, limit, carries_frames=not translates)
        self._profile = profile
        self._summary_is_raw = summary_is_raw(profile, display)
        self._hides_raw = display.hides_raw
        # What is replaced keeps its type, by which it can be given back to upstream as it was sent.
        keeps_type = display.hides_raw or display.replaces_native
        self._raw_part_type = "summary_text" if keeps_type else "reasoning_text"
        self._rebuilder: ResponsesRebuilder | None = None
        if display.hides_raw:
            self._rebuilder = ResponsesRebuilder(display.echoed, DropCount.of(display))
        self._output = OutputItems(self._state)
        self._texts: ShownItems | None = None
        if expects_thinking(profile, display):
            self._texts = ShownItems(profile, self._output)
        read_items = TranslatedItems if translates else ItemReader
        self._items = read_items(self._output, self._texts)
        self.continuation: Continuation | None = None
        self._lifecycle = ResponseLifecycle()
        self._beginning: bytes | None = None  # a frame with the response, which the writer has too
        self._final_output: list[OutputEntry] = []
        self._error: ErrorDetail | None = None
        self._is_done = False  # upstream has sent `[DONE]`
        self._ended = False
        self._observation = NO_OBSERVATION

    @property
    def dropped(self) -> int:
        texts = self._texts.thinking.dropped if self._texts is not None else 0
        rebuilt = self._rebuilder.drops.count if self._rebuilder is not None else 0
        return texts + rebuilt + self._items.foreign

    @property
    def faults(self) -> int:
        return self._output.faults

    @property
    def mismatches(self) -> int:
        return self._output.mismatches

    def read(self, frame: bytes) -> list[Event]:
        self.continuation = None
        data = sse.frame_data(frame)
        sent = None if data is None or self._ended else parse_object(data, loads_exact)
        if data is None or sent is None:
            return self._read_unparsed(data, frame)
        self._output.frame_size = len(frame)
        if sent.get("type") == ITEM_DONE:
            self._observe(sent.get("item"))
        event = self._renamed(sent)
        if self._rebuilder is not None:
            rebuilt = self._rebuilder.rebuild(event)
            if rebuilt is None:
                return []
            event = rebuilt
        elif event is sent:
            event = SentEvent(sent, with_event_name(frame, sent))
        events = self._read_event(event)
        if events:
            self.continuation = self._items.continuation_of(event, events[-1])
        return events

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        if self._is_done and not (error or self._error):
            is_open = self._beginning is None or self._output.has_open_part
            if infer_reason(has_open_part=is_open, has_calls=False):  # calls have no reason here
                return self._complete()
            error = UNFINISHED
        self._ended = True
        error = self._error or error or CONNECTION_LOST
        events = self._select(self._items.abort())
        return [*events, ResponseEnded(None, self._missing_end(error), ok=False, error=error)]

    def read_whole(self, body: bytes) -> list[Event]:
        sent, body = parse_body(body)
        frame = body if self._state.carries_frames and not self._hides_raw else None
        if sent is None or not isinstance(sent.get("output"), list):
            return [ResponseEnded(None, frame, ok=False, error=self._error_in(sent))]
        for item in sent["output"]:
            self._observe(item)
        response = rename_raw_summary_in_response(
            sent, self._raw_part_type, always=self._summary_is_raw
        )
        if self._rebuilder is not None:
            response = self._rebuilder.rebuild_response(response)
        if self._state.carries_frames:
            if self._texts is not None:
                response = self._texts.show_whole(response)
            response = self._lifecycle.repair_whole(response)
            frame = dumps(response) if self._hides_raw or response != sent else frame
        output: list[OutputEntry] = list(enumerate(response["output"]))
        events = self._read_rest(response, output)
        if self._state.carries_frames:
            self._final_output = output  # it is as it is shown
        else:
            self._note_final(output)
        return self._select([*events, *self._make_end(response, frame, ok=True)])

    def recorded_turns(self) -> list[RecordedTurn]:
        return record_output(self._final_output, joined=not self._state.carries_frames)

    def observed(self) -> Observation:
        return self._observation

    # Events

    def _renamed(self, event: Json) -> Json:
        """Return the event under its type of today, its indexes as integers, and raw reasoning
        that is called a summary as reasoning."""
        event = with_error_type(event)
        if odd := [name for name in INDEX_FIELDS if isinstance(event.get(name), float | str)]:
            event = {**event, **{name: as_integer(event[name]) for name in odd}}
        event_type = string(event.get("type"))
        if event_type in EARLY_EVENT_TYPES:
            event = {**event, "type": EARLY_EVENT_TYPES[event_type]}
        if not self._summary_is_raw:
            return event
        return rename_raw_summary_in_event(event, self._raw_part_type)

    def _read_event(self, event: Json) -> list[Event]:
        event_type = string(event.get("type"))
        events = self._missing_start(event, event_type) if self._beginning is None else []
        handler = self._HANDLERS.get(event_type)
        events += self._items.read(event) if handler is None else handler(self, event)
        failure = None if self._ended else self._items.failure
        return self._select(events) + ([] if failure is None else self.end(failure))

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
        return [Passthrough(None, passed)] if self._state.carries_frames else []

    def _select(self, events: list[Event]) -> list[Event]:
        """Drop the events that say nothing without a frame."""
        if self._state.carries_frames:
            return events
        silent = PartStarted | PartEnded | Passthrough
        return [one for one in events if not (isinstance(one, silent) or is_empty_delta(one))]

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
        if is_first or not self._state.carries_frames:
            return []
        response = self._lifecycle.initial_response(event)
        return self._on_lifecycle({"type": "response.created", "response": response})

    def _on_lifecycle(self, event: Json) -> list[Event]:
        if self._beginning is not None and event["type"] == "response.created":
            return self._output.count_fault()
        event = self._lifecycle.repair(event)
        if self._texts is not None and (output := event["response"]["output"]):
            event = _with_output(event, self._texts.show_unfinished(output))
        return self._start(event["response"], self._state.frame_of(event))

    def _start(self, response: Json, frame: bytes | None) -> list[Event]:
        """Store the response so far; emit it with a frame, and else the first time."""
        is_repeated = self._beginning is not None and not self._state.carries_frames
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

    def _on_error(self, event: Json) -> list[Event]:
        frame = self._state.frame_of(event)
        if self._error is not None:  # it is reported once
            return [Passthrough(None, frame)]
        self._error = read_detail(event if event.get("error") else {"error": event})
        return [ErrorReported(None, frame, self._error)]

    def _on_end(self, event: Json) -> list[Event]:
        error = self._error_in(as_object(event.get("response")))
        if error and self._output.is_empty and event["type"] == "response.completed":
            return self.end(error)
        self._ended = True
        event = self._lifecycle.repair(event)
        event_type, response = event["type"], event["response"]
        output = response.get("output")
        status = "completed" if event_type == "response.completed" else "incomplete"
        closing = self._items.break_off() if event_type == "response.failed" else []
        closing += self._items.finish(status, output)
        final = self._output.reconcile(output)
        rest = [] if self._state.carries_frames else self._read_rest(response, final)
        self._note_final(final)
        ended = _with_output(event, [item for _, item in self._final_output])
        frame, ok = self._state.frame_of(ended), event_type != "response.failed"
        return [*closing, *rest, *self._make_end(response, frame, ok=ok)]

    def _note_final(self, output: list[OutputEntry]) -> None:
        """Note the output of the final response, as it is shown."""
        self._final_output = output if self._texts is None else self._texts.show_output(output)

    def _make_end(self, response: Json, frame: bytes | None, *, ok: bool) -> list[Event]:
        usage = RESPONSES_USAGE.read(response.get("usage"))
        end = ResponseEnded(None, frame, ok=ok, usage=usage)
        tier = None if self._state.carries_frames else response.get("service_tier")
        return [*report_tier(tier), *self._items.make_end(end, response, self._error)]

    def _read_rest(self, response: Json, output: list[OutputEntry]) -> list[Event]:
        """Emit what only the final response says."""
        events = self._start(response, None) if response and self._beginning is None else []
        for number, item in output:
            if isinstance(item, dict):
                events += self._items.read_rest(number, item)
        return events if self._texts is None else [*events, *self._texts.finish()]

    def _complete(self) -> list[Event]:
        """End a response of which upstream says nothing more than that it is over."""
        response = parse_frame(self._beginning).get("response", {})
        completed = {**response, "status": "completed"}
        return self._read_event({"type": "response.completed", "response": completed})

    def _missing_end(self, error: ErrorDetail) -> bytes | None:
        """Make the end that upstream did not send, with the output so far."""
        if self._beginning is None:
            if self._error is not None:
                return None
            return self._state.make_frame("error", {**error.as_dict(), "param": None})
        self._note_final(self._output.reconcile(None))
        response = parse_frame(self._beginning).get("response", {})
        output = [item for _, item in self._final_output]
        failed = as_failed({**response, "output": output}, error)
        return self._state.make_frame("response.failed", {"response": failed})

    _HANDLERS: ClassVar[dict[str, _ResponseHandler]] = {
        "response.created": _on_lifecycle,
        "response.queued": _on_lifecycle,
        "response.in_progress": _on_lifecycle,
        "response.completed": _on_end,
        "response.incomplete": _on_end,
        "response.failed": _on_end,
        "error": _on_error,
    }


def _with_output(event: Json, output: list[Any]) -> Json:
    """Return an event about the response with these items."""
    if output == event["response"].get("output"):
        return event
    return {**event, "response": {**event["response"], "output": output}}


# Output items


_ItemHandler = Callable[["ItemReader", Json], list[Event]]


class ItemReader:
    """Read the stream events that concern an output item.

    Each is a part of the answer. They are read as they come, and put in order as frames require
    (`stages/order.py`): one after the other. Then thinking is taken out of what they say
    (`responses/texts.py`). An item that the next one ends is closed here; its later events, like
    all events out of order, are counted as faults and dropped.

    Arguments may change until upstream ends them, though they are JSON. llama.cpp's server ends no
    item before the whole answer is sent, and numbers none (ggml-org/llama.cpp
    tools/server/server-task.cpp): there arguments are whole once they are JSON.
    """

    def __init__(self, output: OutputItems, texts: ShownItems | None) -> None:
        self.foreign = 0  # events that were left out, since their items cannot have them
        self.failure: ErrorDetail | None = None  # why the answer cannot go on
        self._output = output
        self._texts = texts
        self._state = state = output.state
        self._hides_raw = state.display.hides_raw
        beside: Sequence[PartKind] = () if state.carries_frames else ("text", "call", "other")
        self._order = Order(state.limit, iter(()), beside)

    def continuation_of(self, event: Json, delta: Event) -> Continuation | None:
        """Return how a delta is continued by others like it, if it said nothing but a next text."""
        part = delta.part
        item = self._output.get(part.number) if isinstance(part, StreamedPart) else None
        if not isinstance(part, StreamedPart) or item is None or not item.is_open:
            return None
        if not self._is_next_text(item, event):
            return None
        contents = item.native if part.content_kind is SUMMARY else item.contents
        found = contents.continuation_of(event, part)
        if found is None or self._texts is None:
            return found
        return found.looked_at(self._texts.thinking.accepts(part))

    def read(self, event: Json) -> list[Event]:
        """Read any other event that is not about the response."""
        if self._hides_raw and self._is_foreign(event):
            self.foreign += 1
            return []
        handler = self._HANDLERS.get(string(event.get("type")), ItemReader._on_other)
        events = handler(self, event)
        if self._texts is not None and not self._hides_raw and len(events) == 1:
            _note_rest(events[0], event)
        return self._place(self._order.take(events))

    def _is_foreign(self, event: Json) -> bool:
        """Return whether an event is content that its item cannot have, so that nobody would look
        for thinking in it. An item that nobody announced is a message."""
        if event.get("type") not in EVENT_STAGES or is_reasoning_content(event):
            return False
        item = self._output.find(event)
        return content_kind_of(event, "message" if item is None else item.type) is None

    def _place(self, events: list[Event], call_status: str = "completed") -> list[Event]:
        """Return events in their order, with all the events of the items that it has ended."""
        placed: list[Event] = []
        for event in events:
            part = event.part if isinstance(event, ENDS) else None
            item = None if part is None or part.item else self._output.get(part.number)
            if part is None or item is None or not item.is_open:
                placed.append(event)
                continue
            if part is self._order.cut and item.type in CALL_TYPES:
                self.failure, call_status = CALL_CUT, "incomplete"
            placed += self._close(item, call_status if part.kind == "call" else "completed")
        return self._show(placed)

    def _show(self, events: list[Event]) -> list[Event]:
        """Return events in their order without thinking in what they say."""
        return events if self._texts is None else self._texts.take(events)

    def finish(self, status: str, output: Any) -> list[Event]:
        """Close the open items at the end of the response, as its `output` has them. If none was
        streamed, as gateways do that only wrap a whole response, all are streamed here."""
        left, events = self._output.all_open, list[Event]()
        if self._state.carries_frames and self._output.is_empty:
            for index, whole in enumerate(objects(output)):
                events += self.read({"type": ITEM_DONE, "output_index": index, "item": whole})
        finals = self._output.find_finals(output) if left else {}
        for item in left:
            if item.is_open and (item.is_reasoning or self._state.carries_frames):
                ending = self._finish(item, status, finals.get(item.output_index))
                events += self._place(self._order.take(ending))
        return events

    def _finish(self, item: OutputItem, status: str, final: Json | None) -> list[Event]:
        """End an item as the final output has it: some upstreams end items in no other way
        (anomalyco/opencode pull 44893)."""
        if final is None:
            return self._close(item, status)
        return self._end(item, item.event(ITEM_DONE, {"status": status, **final}))

    def make_end(
        self, end: ResponseEnded, _response: Json, _error: ErrorDetail | None
    ) -> list[Event]:
        """Return the last events. The error was reported in the stream, if there was one."""
        return self._show([end])

    def break_off(self) -> list[Event]:
        """Return what is held of texts, as the answer breaks off."""
        return [] if self._texts is None else self._texts.break_off()

    def abort(self) -> list[Event]:
        """End the items as they stand because the stream broke."""
        events = self.break_off()
        events += self._place(self._order.release_all(), "incomplete")
        events += self.break_off()
        item = self._output.open_reasoning
        if item is not None:
            events += self._place(item.native.close())
            item.done = item.snapshot("incomplete")
        return events

    def read_rest(self, number: int | None, done: Json) -> list[Event]:
        """Read an item of a response that is not streamed."""
        if not is_reasoning(done):
            return [ContentDelta(LANE, None, raw_text(done))]
        unstreamed = ResponseState(self._state.display, sys.maxsize, carries_frames=False)
        item = OutputItem(number or 0, done, unstreamed)
        begun = ReasoningStarted(LANE, None, item.output_index)
        return [begun, *self._complete_reasoning(item, done, None)]

    # Beginning and end of an item

    def _on_added(self, event: Json) -> list[Event]:
        added, index = event.get("item"), event.get("output_index")
        if not isinstance(added, dict):
            return [Passthrough(LANE, self._state.frame_of(event))]
        if self._output.has_item(added, index):
            return self._output.count_fault()
        item = self._output.add(added, index)
        return self._begin(item, item.address(event))

    def _begin(self, item: OutputItem, event: Json) -> list[Event]:
        self._output.note_begun(item)
        if not item.is_reasoning:
            return self._begin_answer(item, event)
        frame = self._state.frame_of(event)
        return [ReasoningStarted(LANE, frame, item.output_index, part=item.part)]

    def _announce(self, item: OutputItem) -> list[Event]:
        """Begin an item whose beginning upstream left out."""
        return self._begin(item, item.event(ITEM_ADDED, item.snapshot("in_progress")))

    def _on_done(self, event: Json) -> list[Event]:
        done, index = event.get("item"), event.get("output_index")
        if not isinstance(done, dict):
            return [Passthrough(LANE, self._state.frame_of(event))]
        item, opening = self._output.find_by_end(done, index), list[Event]()
        if item is None:
            item = self._output.add(without_content(done), index)
            opening = self._announce(item)
        if item.is_reasoning != is_reasoning(done):
            return self._output.count_fault()
        if not item.is_open:
            item.settle(done)
            self._output.store_done(item, item.reconcile(done))
            return [*self._output.count_fault(), *self._settle(item)]
        return [*opening, *self._end(item, event)]

    # Content

    def _on_content(self, event: Json) -> list[Event]:
        """Read a content event. It is reasoning if its item is, or if its own type says so."""
        named, kind = self._output.find(event), content_kind_of(event, "reasoning")
        of_reasoning = named is not None and named.is_reasoning
        if kind is None or not (of_reasoning or is_reasoning_content(event)):
            return self._on_other(event)
        text, item = event_text(event, kind) or "", self._output.find_reasoning(event)
        if item is not None:
            return self._read_reasoning(item, event)
        if named is not None and self._state.carries_frames:
            part = named.part if named.is_open else None  # it is within an item of the answer
            return [ReasoningDelta(LANE, self._state.frame_of(event), 0, text, part=part)]
        if not text:
            return self._output.count_fault()
        added = {"id": event.get("item_id"), "type": "reasoning"}
        item = self._output.add(added, event.get("output_index"))
        return [*self._announce(item), *self._read_reasoning(item, event)]

    def _on_other(self, event: Json) -> list[Event]:
        """Read an event of another type. Any of a reasoning item may contain reasoning.

        Where no frames are carried, nothing is known that another API could express of types but
        those of content.
        """
        event_type = string(event.get("type"))
        is_known = event_type in EVENT_STAGES or event_type == ANNOTATION_ADDED
        if not (is_known or self._state.carries_frames):
            return []
        item = self._output.find(event)
        of_reasoning = item is not None and item.is_reasoning
        may_be_reasoning = event_type.startswith(REASONING_PREFIX)
        if of_reasoning or (may_be_reasoning and (item is None or item.is_open)):
            return self._read_other_reasoning(event)
        return self._read_answer(item, event)

    # Reasoning

    def _read_reasoning(self, item: OutputItem, event: Json) -> list[Event]:
        """Read an event of a reasoning item's content."""
        events = item.contents.read(event, REASONING) if item.is_open else None
        return self._output.count_fault() if events is None else events

    def _read_other_reasoning(self, event: Json) -> list[Event]:
        """Read an event of unknown meaning, which may contain reasoning."""
        item = self._output.find_reasoning(event)
        if item is None:
            frame, part = self._state.frame_of(event), self._last_part(event)
            return [ReasoningDelta(LANE, frame, 0, "", part=part)]
        if not item.is_open:
            return self._output.count_fault()
        frame = self._state.frame_of(item.address(event))
        return [ReasoningDelta(LANE, frame, item.output_index, "", part=item.part)]

    def _on_summary(self, event: Json) -> list[Event]:
        """Read an event of the summary that upstream makes itself.

        Hold it while it may turn out to be raw reasoning: real summaries announce their parts.
        """
        item = self._output.find_reasoning(event)
        if item is None or not item.is_open:
            return self._output.count_fault()
        event = item.address(event)
        if SUMMARY_STAGES[event["type"]] == "added" or item.native.has_begun:
            return [*self._release_held(item), *self._read_native(item, event)]
        if not self._state.reserve(self._output.frame_size):
            return self._output.count_fault()
        item.held_events.append(event)
        return []

    def _complete_reasoning(self, item: OutputItem, done: Json, frame: bytes | None) -> list[Event]:
        """Emit what the finished item says beyond what was streamed, and close it."""
        item.is_open = False
        events = [*item.contents.finish(done), *item.native.finish(done)]
        if not self._state.carries_frames:
            events += _state_events(item, done, self._state.display)
        return [*events, ReasoningEnded(LANE, frame, item.output_index, part=item.part)]

    def _release_held(self, item: OutputItem) -> list[Event]:
        """Read the held events, as the summary or the raw reasoning that they are."""
        events: list[Event] = []
        held, item.held_events = item.held_events, []
        for event in held:
            if item.summary_is_raw:
                events += self._read_reasoning(item, rename_raw_summary_in_event(event))
            else:
                events += self._read_native(item, event)
        return events

    def _read_native(self, item: OutputItem, event: Json) -> list[Event]:
        events = item.native.read(event, SUMMARY)
        return self._output.count_fault() if events is None else events

    # The answer

    def _read_answer(self, named: OutputItem | None, event: Json) -> list[Event]:
        item = self._find_target(named, event)
        opening = self._announce(item) if item is not None and item is not named else []
        events = self._read_item(item, event)
        return self._output.count_fault() if events is None else [*opening, *events]

    def _find_target(self, item: OutputItem | None, event: Json) -> OutputItem | None:
        """Find the item that takes an event.

        Text of an unknown item becomes a message. A delta of an item that was closed for others
        becomes an item that continues it.
        """
        if item is None:
            kind = content_kind_of(event, "message")
            if kind is None or not event_text(event, kind):
                return None
            added: Json = {"id": event.get("item_id"), "type": "message", "role": "assistant"}
            item = self._output.add(added, event.get("output_index"))
            item.is_announced = False
            return item
        if item.is_closed_early and EVENT_STAGES.get(string(event.get("type"))) == "delta":
            kind = content_kind_of(event, item.type)
            if kind is not None and kind.is_part:
                return self._output.continue_item(item)
        return item

    def _last_part(self, event: Json) -> Part | None:
        """Return the part that an event about an unknown item goes with."""
        last, is_addressed = self._output.open_answer, not event.keys().isdisjoint(ADDRESS_FIELDS)
        return last.part if last is not None and is_addressed else None

    # The end of an item

    def _end(self, item: OutputItem, event: Json) -> list[Event]:
        """Read the event that ends an item."""
        if item.is_reasoning:
            item.summary_is_raw = not item.native.has_begun and is_raw_summary(event["item"])
            rest = self._release_held(item)
        else:
            rest = self._read_end(item, event["item"])
        event = item.reconcile_done(event)
        done, frame = event["item"], self._state.frame_of(event)
        self._output.store_done(item, done)
        if item.is_reasoning:
            return [*rest, *self._complete_reasoning(item, done, frame)]
        item.is_open = False
        return [*rest, *self._end_answer(item, done, frame)]

    def _close(self, item: OutputItem, status: str) -> list[Event]:
        """Close an item that upstream does not end, because others follow or the response ends."""
        is_reasoning = item.is_reasoning
        rest = self._release_held(item) if is_reasoning else item.contents.finish_early(item.added)
        item.done = item.snapshot(status)
        frame = self._state.frame_of(item.event(ITEM_DONE, item.done))
        if is_reasoning:
            return [*rest, *self._complete_reasoning(item, item.done, frame)]
        item.is_open, item.is_closed_early = False, True
        return [*rest, PartEnded(LANE, frame, part=item.part)]

    # What other APIs need otherwise

    def _begin_answer(self, item: OutputItem, event: Json) -> list[Event]:
        """Begin an item of the answer."""
        if without_content(item.added) != item.added:  # that comes in events of its own
            event = {**event, "item": without_content(event["item"])}
        return [PartStarted(LANE, self._state.frame_of(event), part=item.part)]

    def _read_item(self, item: OutputItem | None, event: Json) -> list[Event] | None:
        """Read an event of an item of the answer; return None if it is out of order."""
        if item is None:
            is_content = string(event.get("type")) in EVENT_STAGES
            return None if is_content else [self._other_event(event, self._last_part(event))]
        if not item.is_open:
            return None
        if (kind := content_kind_of(event, item.type)) is not None:
            return item.contents.read(event, kind)
        return [self._other_event(item.address(event), item.part)]

    def _other_event(self, event: Json, part: Part | None) -> Event:
        """Return an event of unknown meaning. Deltas count as text only if they are known as
        that."""
        event_type, frame = string(event.get("type")), self._state.frame_of(event)
        if not event_type.endswith(".delta"):
            return Passthrough(LANE, frame, part=part)
        text = string(event.get("delta")) if event_type == TEXT_DELTA else ""
        return ContentDelta(LANE, frame, text, part=part)

    def _is_next_text(self, item: OutputItem, _event: Json) -> bool:
        """Return whether an event was but the next text of an item, and that goes out at once."""
        return item.part is self._order.next_part

    def _read_end(self, item: OutputItem, done: Json) -> list[Event]:
        """Return what an item says at its end beyond what was streamed."""
        return item.contents.finish(done)

    def _end_answer(self, item: OutputItem, _done: Json, frame: bytes | None) -> list[Event]:
        return [PartEnded(LANE, frame, part=item.part)]

    def _settle(self, _item: OutputItem) -> list[Event]:
        """Return what final texts that came after an item was closed have beyond its deltas."""
        return []

    _HANDLERS: ClassVar[dict[str, _ItemHandler]] = {
        ITEM_ADDED: _on_added,
        ITEM_DONE: _on_done,
        **dict.fromkeys((CONTENT_PART_ADDED, CONTENT_PART_DONE), _on_content),
        **dict.fromkeys((REASONING.delta_type, REASONING.done_type), _on_content),
        **dict.fromkeys(SUMMARY_STAGES, _on_summary),
    }


def _note_rest(delta: Event, event: Json) -> None:
    """Note whether the frame of a delta of a text says more than that."""
    if isinstance(delta, ContentDelta) and delta.frame is not None and said_text(delta):
        delta.says_more = says_anything(without_logprobs({**event, "delta": ""}))


def _state_events(item: OutputItem, done: Json, display: Display) -> list[Event]:
    """Return the item's opaque state, unless it only repeats the reasoning."""
    state = string(done.get("encrypted_content"))
    if not (state and is_opaque(done)):
        return []
    withheld = is_withheld(state, display)
    return [ProviderState(LANE, None, item.output_index, state, withheld=withheld, part=item.part)]


def is_empty_delta(event: Event) -> bool:
    """Return whether an event of reasoning adds no text: it repeats or closes earlier text."""
    if isinstance(event, NativeSummary):
        return event.stage == "delta" and not event.text
    return isinstance(event, ReasoningDelta) and not event.text


# What a client of another API was told

FINISH_REASONS: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",  # of gateways
    "content_filter": "content_filter",
}
"""Why a response is incomplete. Without one of these it is taken for cut by its length."""

HOSTED_TYPES = frozenset(
    {
        *("web_search_call", "file_search_call", "code_interpreter_call", "computer_call"),
        *("code_interpreter_call_output", IMAGE_CALL, "mcp_call", "mcp_list_tools", "compaction"),
    }
)
"""Types of items that upstream handles itself, without an answer from the client."""

TOLD_TYPES = ("message", *CALL_TYPES)
"""Types of items that other APIs have, too."""

PART_TEXT_FIELDS = ("delta", "text", "refusal")
"""Fields that may hold the text of a message."""


class TranslatedItems(ItemReader):
    """Read items for a client of another API.

    A message becomes the pieces of its text, a call its head and the pieces of its arguments. Items
    of other types are left out: upstream handles them itself. Items need not be kept in order: each
    event says which message or call it belongs to.

    Other APIs have no final text beside the deltas. So what one has beyond them is emitted while it
    can be, which is until the text of another message begins or, of a call, until that is done. If
    it says anything else, the client has been told another answer, and this one fails.
    """

    def __init__(self, output: OutputItems, texts: ShownItems | None) -> None:
        super().__init__(output, texts)
        self._call_count = 0
        self._has_images = False
        self._citations = MessageCitations()
        self._hosted_calls: list[dict[str, str]] = []
        self._speaker: OutputItem | None = None  # the message whose text was emitted last
        self._turns = 0  # messages that have begun their text
        self._confirmed = 0  # the turn of the last message of the final response so far
        self._failure: ErrorDetail | None = None

    def _begin_answer(self, item: OutputItem, _event: Json) -> list[Event]:
        begun = PartStarted(LANE, None, part=item.part)
        if item.type in TOLD_TYPES:
            item.contents.takes_rest = "last part"
            item.telling.is_named = item.type == "message"
            return [begun, *self._call_start(item, item.added)]
        self._output.faults += item.type not in HOSTED_TYPES
        if item.type in HOSTED_TYPES:
            self._hosted_calls.append(describe_call(item.type, string(item.added.get("name"))))
        return [begun]

    def _is_next_text(self, item: OutputItem, event: Json) -> bool:
        if item.is_reasoning or event.get("type") == TEXT_DELTA:
            return item.is_reasoning or not event.get("logprobs")
        return item.telling.is_named and item.telling.has_arguments

    def _read_item(self, item: OutputItem | None, event: Json) -> list[Event] | None:
        if item is None or item.type not in TOLD_TYPES:
            return []
        if event.get("type") not in EVENT_STAGES:
            cites = item.telling.is_named and event.get("type") == ANNOTATION_ADDED
            if cites and self._state.reserve(self._output.frame_size):
                self._citations.note(item.contents.number, event)
            return []
        if not item.is_open:
            return None
        kind = content_kind_of(event, item.type)
        events = None if kind is None else item.contents.read(event, kind)
        if not item.telling.is_named:  # its arguments come with its name
            return []
        deltas = self._deltas(item, events or (), objects([event.get("part"), event]))
        is_end = EVENT_STAGES[event["type"]] != "delta"
        return [*deltas, *self._check(item)] if is_end else deltas

    def _read_end(self, item: OutputItem, done: Json) -> list[Event]:
        return self._rest(item, done) if item.type in TOLD_TYPES else []

    def _end_answer(self, item: OutputItem, done: Json, _frame: bytes | None) -> list[Event]:
        if item.type in CALL_TYPES:
            item.contents.takes_rest = "no part"
        if item.type == IMAGE_CALL and (data := string(done.get("result"))):
            return self._read_image(string(done.get("output_format")) or "png", data)
        return [*self._citations.read(item, done)] if item.type == "message" else []

    def _read_image(self, format_: str, data: str) -> list[Event]:
        """Read an image that was made. What the client's API has no form for fails the answer."""
        self._has_images = True
        if not self._state.display.carries_images:
            return self._fail(unrepresentable("image"))
        return [ImageDelta(LANE, None, media_type=f"image/{format_}", data=data)]

    def _settle(self, item: OutputItem) -> list[Event]:
        late, item.late_texts = item.late_texts, []
        if not item.telling.is_named:
            return []
        return [*self._deltas(item, late, []), *self._check(item)]

    def read_rest(self, number: int | None, done: Json) -> list[Event]:
        """Read an item of the final response, as far as it was not streamed."""
        return self._place(self._order.take(self._read_rest(number, done)))

    def _read_rest(self, number: int | None, done: Json) -> list[Event]:
        item, opening = self._output.get(number), list[Event]()
        if item is None:
            item = self._output.add(done, number)
            opening = self._begin(item, item.event(ITEM_ADDED, done))
        if item.is_reasoning:
            return [*opening, *self._complete_reasoning(item, done, None)] if item.is_open else []
        if item.is_open:
            opening += self._end(item, item.event(ITEM_DONE, done))
        return [*opening, *self._confirm(item)]

    def _confirm(self, item: OutputItem) -> list[Event]:
        """Return what the final texts of an item have beyond its deltas. Fail also where the final
        response alone has a text, before one that was told."""
        settling, turn = self._settle(item), item.telling.turn
        if turn and turn < self._confirmed:
            self._output.misplaced += 1
            return [*settling, *self._fail(TEXT_CHANGED)]
        self._confirmed = turn or self._confirmed
        return settling

    def make_end(
        self, end: ResponseEnded, response: Json, error: ErrorDetail | None
    ) -> list[Event]:
        if self._failure or not end.ok or response.get("status") in NO_ANSWERS:
            end.ok, end.error = False, self._failure or error or read_failure(response)
            return self._show([end])
        rest = self._release_withheld()
        is_told = self._output.message_count or self._call_count or self._has_images
        hosted, reason = [] if is_told else self._hosted_calls, self._finish_reason(response)
        return self._show([*rest, Finished(LANE, None, reason, hosted_calls=hosted), end])

    def _finish_reason(self, response: Json) -> FinishReason:
        reason = string(as_object(response.get("incomplete_details")).get("reason"))
        if response.get("status") == "incomplete":
            return FINISH_REASONS.get(reason, "length")
        return FINISH_REASONS.get(reason) or reason_of_parts(has_calls=self._call_count > 0)

    # Items

    def _rest(self, item: OutputItem, done: Json) -> list[Event]:
        head = self._call_start(item, done, is_last=True)
        rest = self._deltas(item, item.contents.finish(done), objects(done.get("content")))
        rest += self._check(item)
        return [*head, *rest, *self._final_arguments(item, done)]

    def _deltas(
        self, item: OutputItem, events: Iterable[Event], sources: list[Json]
    ) -> list[Event]:
        """Return the events with new text; log probabilities only where they are for just that
        text. Arguments `{}` are withheld until the call ends: upstream's last word may be
        another."""
        deltas: list[Event] = []
        for event in events:
            if isinstance(event, PartEnded):
                deltas.append(event)
            elif isinstance(event, ToolCallDelta) and event.arguments:
                if not self._withholds(item, event.arguments):
                    item.telling.has_arguments = True
                    deltas.append(event)
            elif isinstance(event, ContentDelta) and (text := said_text(event)):
                self._take_turn(item)
                matching = (part for part in sources if text in map(part.get, PART_TEXT_FIELDS))
                event.logprobs = objects(next(matching, {}).get("logprobs")) or ()
                deltas.append(event)
        return deltas

    # Final texts

    def _take_turn(self, item: OutputItem) -> None:
        """Note that the text of a message goes on: what that before it lacks has no place now."""
        last = self._speaker
        if last is item:
            return
        if last is not None:
            last.contents.takes_rest = "no part"
        self._speaker = item
        if not item.telling.turn:
            self._turns = item.telling.turn = self._turns + 1

    def _check(self, item: OutputItem) -> list[Event]:
        """Fail an answer if an item ends with another text than was streamed, or as another call:
        a client might run one that upstream has not made."""
        told, final = item.contents.contradicted, item.contents
        if told is None:
            return []
        if item.type not in CALL_TYPES:
            return self._fail(TEXT_CHANGED)
        told = item.telling.written or told
        is_same = not final.text or _read_json(told) == _read_json(final.text)
        return [] if is_same or not item.telling.has_arguments else self._fail(CALL_CHANGED)

    def _fail(self, error: ErrorDetail) -> list[Event]:
        if self._failure is not None:
            return []
        self._failure = error
        return [ErrorReported(None, None, error)]

    # Calls

    def _call_start(self, item: OutputItem, added: Json, *, is_last: bool = False) -> list[Event]:
        """Announce a call once its name is known, or with what `is_last` said of it.

        Its arguments come from its deltas, or else from its end.
        """
        name = string(added.get("name"))
        if item.telling.is_named or not (name or is_last):
            return []
        item.telling.is_named, item.contents.number = True, self._call_count
        self._call_count += 1
        head = self._call_delta(item, item.contents.text)
        head.id, head.name = string(added.get("call_id")), name
        return [head]

    def _withholds(self, item: OutputItem, text: str) -> bool:
        telling = item.telling
        arguments = telling.withheld + text
        if item.type != "function_call" or telling.has_arguments or arguments.strip() != "{}":
            return False
        telling.withheld = arguments
        return True

    def _final_arguments(self, item: OutputItem, done: Json) -> list[Event]:
        """Emit the arguments of a call that has had none: `{}` where a server leaves them out."""
        telling = item.telling
        if item.type != "function_call" or telling.has_arguments:
            return []
        if done.get("status") == "incomplete" and not telling.withheld:
            return []
        final = string(item.reconcile(done).get("arguments")) or telling.withheld or "{}"
        telling.written = final
        return [self._call_delta(item, final)]

    def _release_withheld(self) -> list[Event]:
        """Emit the arguments that were withheld of calls which upstream does not end."""
        events = list[Event]()
        for item in self._output.all_open:
            if item.telling.withheld:
                events += self._final_arguments(item, item.snapshot("completed"))
        return events

    def _call_delta(self, item: OutputItem, text: str) -> ToolCallDelta:
        item.telling.has_arguments = item.telling.has_arguments or bool(text)
        call, custom = item.contents.number, item.type == "custom_tool_call"
        return ToolCallDelta(
            LANE, None, call_index=call, arguments=text, custom=custom, part=item.part
        )


def _read_json(text: str) -> Any:
    """Return the object that a text spells, or else the text."""
    parsed = parse_object_text(text, loads_exact)
    return text if parsed is None else parsed


# Sources


class MessageCitations:
    """Read what the messages of one response cite in the annotations of their texts, each at its
    end.

    OpenAI names pages as `url_citation`, with the passage, and files as `file_citation`, with the
    place in the text (`index`) where the file is cited (openai-openapi, `Annotation`). xAI's
    annotations have neither title nor passage.
    """

    def __init__(self) -> None:
        self._messages_read = 0
        self._text_length = 0  # of these messages
        self._streamed: dict[tuple[int, int], list[Json]] = {}
        """Annotations that streamed, by message and part."""

    def note(self, number: int, event: Json) -> None:
        """Note an annotation that streams, in case the end of its message repeats none."""
        place = number, as_count(event.get("content_index")) or 0
        self._streamed.setdefault(place, []).append(as_object(event.get("annotation")))

    def read(self, item: OutputItem, message: Json) -> list[CitationDelta]:
        """Read the sources of a message. Where passages are is known if it ends in its turn."""
        number = item.contents.number
        before = self._text_length if number == self._messages_read else -1
        citations, length = list[CitationDelta](), 0
        for index, part in enumerate(objects(message.get("content"))):
            if string(part.get("type")) not in TEXT_TYPES:
                continue
            text = string(part.get("text"))
            streamed = self._streamed.pop((number, index), [])
            annotations = objects(part.get("annotations")) or streamed
            place = (before + length, len(text)) if before >= 0 else None
            citations += [_read_annotation(each, item, place) for each in annotations]
            length += len(text)
        self._messages_read, self._text_length = self._messages_read + 1, self._text_length + length
        return [citation for citation in citations if citation.source]


def _read_annotation(
    annotation: Json, message: OutputItem, place: tuple[int, int] | None
) -> CitationDelta:
    """Read a source of a message. `place` says where its text begins in the answer, and how long it
    is."""
    is_known = string(annotation.get("type")) in CITATION_TYPES
    url, file_id = string(annotation.get("url")), string(annotation.get("file_id"))
    return CitationDelta(
        LANE,
        None,
        message_index=message.contents.number,
        url=url if is_known else "",
        file_id=file_id if is_known else "",
        title=first_string(annotation, "title", "filename"),
        passage=_read_passage(annotation, *place) if place is not None else None,
        part=message.part,
    )


def _read_passage(annotation: Json, before: int, length: int) -> tuple[int, int] | None:
    """Read a passage; None where there is none in the text. A file is cited at one place."""
    keys, index = ("start_index", "end_index"), annotation.get("index")
    start, end = (as_count(annotation.get(key, index)) for key in keys)
    if start is None or not end or not start <= end <= length:
        return None
    return before + start, before + end


# The response

REQUIRED_FIELDS: Json = {
    "object": "response",
    "created_at": 0,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "",
    "output": [],
    "parallel_tool_calls": True,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
}
"""Fields that every response has (openai-openapi, `Response`; openresponses, `ResponseResource`),
with values that claim nothing which upstream did not say. llama.cpp's server begins with only an id
and a status."""

EVENT_STATUS = {
    "response.created": "in_progress",
    "response.queued": "queued",
    "response.in_progress": "in_progress",
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}


class ResponseLifecycle:
    """Repair the lifecycle events of one response.

    Its first id stays its id; where upstream gives none, one is minted. What an event that ends it
    says by its type holds, if the status in it is still that of the beginning.
    """

    def __init__(self) -> None:
        self._id = ""

    def initial_response(self, event: Json) -> Json:
        """Return the response at its beginning, where upstream began with this event."""
        repaired = self._repaired({**event, "type": "response.created"})
        return {**repaired["response"], "status": "in_progress", "output": [], "usage": None}

    def repair(self, event: Json) -> Json:
        """Repair an event that repeats the response."""
        repaired = self._repaired(event)
        return event if repaired == event else repaired

    def _repaired(self, event: Json) -> Json:
        response = as_object(event.get("response"))
        self._id = self._id or string(response.get("id")) or mint_id("resp_")
        status = EVENT_STATUS[event["type"]]
        fields = {"id": self._id, "status": status, **REQUIRED_FIELDS, **response}
        if fields["status"] in UNDER_WAY and status not in UNDER_WAY:
            fields["status"] = status
        if not isinstance(fields["output"], list):
            fields["output"] = []
        if "usage" in fields:
            fields["usage"] = RESPONSES_USAGE.fill_details(fields["usage"])
        return {**event, "response": {**fields, "id": self._id}}

    def repair_whole(self, response: Json) -> Json:
        """Return a response that is not streamed with what upstream leaves out of it, and of its
        items: their ids and statuses, and the annotations of texts."""
        is_incomplete = bool(response.get("incomplete_details"))
        status = "incomplete" if is_incomplete else "completed"
        repaired: Json = self._repaired({"type": f"response.{status}", "response": response})
        ids: set[str] = set()
        output = [
            _repair_item(item, status, ids) if isinstance(item, dict) else item
            for item in repaired["response"]["output"]
        ]
        status = response.get("status", status)  # it may be under way
        return {**repaired["response"], "status": status, "output": output}


def _repair_item(item: Json, status: str, ids: set[str]) -> Json:
    """Return an item with what upstream leaves out; `ids` are those of the items before it."""
    item_type, item_id = string(item.get("type")), string(item.get("id"))
    fields: Json = {}
    if not item_id or item_id in ids:
        fields["id"] = item_id = mint_item_id(item_type)
    ids.add(item_id)
    if item_type in ("message", "function_call") and "status" not in item:
        fields["status"] = status
    if item_type == "message" and isinstance(item.get("content"), list):
        fields["content"] = [_repair_part(part) for part in item["content"]]
        fields["role"] = item.get("role") or "assistant"
    if is_reasoning(item) and not isinstance(item.get("summary"), list):
        fields["summary"] = []
    return {**item, **fields}


def _repair_part(part: Any) -> Any:
    is_text = isinstance(part, dict) and part.get("type") == TEXT.name
    return {**TEXT.other_fields, **part} if is_text and "annotations" not in part else part
