"""Read an answer of the Interactions API, streamed or whole, into translated events.

A stream tells of its steps one by one, and of the status that it ends with at last
(ai.google.dev: gemini-api/docs/interactions/streaming). What a server leaves out of that is made up
for, but not its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.endings import UNFINISHED, infer_reason, reason_of_parts
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE
from abridge.apis.gemini.answer import LANE
from abridge.apis.gemini.errors import read_error_chunk
from abridge.apis.gemini.reader import parse_answer
from abridge.apis.gemini.usage import INTERACTIONS_USAGE
from abridge.apis.interactions.history import record_turn
from abridge.apis.interactions.steps import AnswerState, AnswerSteps, as_step
from abridge.apis.json import as_object, begins_object, objects, string
from abridge.core.answer import Part
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    ErrorDetail,
    Event,
    Finished,
    FinishReason,
    ResponseEnded,
)
from abridge.providers.learned import NO_OBSERVATION, Observation

FINISH_REASONS: Mapping[str, FinishReason | None] = MappingProxyType(
    {
        **dict.fromkeys(("completed", "requires_action"), None),
        **dict.fromkeys(("incomplete", "requires_continuation", "budget_exceeded"), "length"),
    }
)
"""Finish reasons by the status of an answer that is over (google-genai, `InteractionStatus`); None
means `stop`, or `tool_calls` if there were calls."""

FAILURES = frozenset({"failed", "cancelled"})

EVENT_KEYS = frozenset({"event_type", "event_id", "index", "delta", "metadata"})
"""The keys of an event with a delta: where thinking is hidden, another one may say that it is
thinking."""


class InteractionsReader:
    """Read one response. See the protocols `Reader` and `ReaderOfParts`."""

    continuation = None  # each frame is read by itself

    def __init__(self, display: Display, limit: int) -> None:
        self._state = AnswerState(display, limit)
        self._steps = AnswerSteps(self._state)
        self._usage: Json = {}
        self._status = ""
        self._is_over = False  # upstream said so
        self._ended = False
        self.faults = 0
        self.mismatches = 0

    @property
    def dropped(self) -> int:
        return self._state.dropped

    def read(self, frame: bytes) -> list[Event]:
        data = sse.frame_data(frame)
        if data is None and begins_object(frame):  # as errors may come: googleapis/js-genai 1973
            data = frame
        if data is None or self._ended:
            return []
        if data.startswith(sse.DONE):
            self._is_over = True
            return self.end()
        event = parse_answer(data)
        if event is None:
            self.faults += 1
            return self.end(UNREADABLE) if begins_object(data) else []
        events = self._read_event(event)
        failure = self._state.failure
        return events if failure is None else [*events, *self.end(failure)]

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        self._ended = True
        error = self._state.reported or error or self._find_failure()
        usage = INTERACTIONS_USAGE.read(self._usage)
        if error is not None:
            final = usage if self._is_over else None
            return [ResponseEnded(None, None, ok=False, usage=final, error=error)]
        reason = FINISH_REASONS.get(self._status)
        events = self._steps.close_all(is_cut=reason is not None)
        default = reason_of_parts(has_calls=self._state.call_count > 0)
        hosted_calls = self._state.only_hosted_calls(says_text=self._state.text_length > 0)
        finished = Finished(LANE, None, reason or default, hosted_calls=hosted_calls)
        return [*events, finished, ResponseEnded(None, None, ok=True, usage=usage)]

    def read_whole(self, body: bytes) -> list[Event]:
        answer = parse_answer(body) or {}
        if not isinstance(answer.get("steps"), list):
            error = self._read_error(answer) if answer.get("error") is not None else None
            return [ResponseEnded(None, None, ok=False, error=error)]
        events = [*self._start(answer), *self._read_steps(answer)]
        errors = objects(answer.get("errors"))
        if string(answer.get("status")) in FAILURES and errors:
            self._state.reported = self._read_error({"error": errors[0]})
        return [*events, *self._complete(answer, self._state.failure)]

    def observed(self) -> Observation:
        """Return nothing: this API leaves nobody a choice of format."""
        return NO_OBSERVATION

    def recorded_turns(self) -> list[RecordedTurn]:
        return self.record(self._steps.all)

    def record(self, parts: Sequence[Part]) -> list[RecordedTurn]:
        """See `ReaderOfParts`."""
        if not self._state.is_complete:
            return []
        keys = tuple((LANE, part.number) for part in parts if part.kind == "reasoning")
        return record_turn(list(filter(None, map(as_step, parts))), keys)

    def _read_event(self, event: Json) -> list[Event]:
        if event.get("error") is not None:
            return self._report_error(event)
        interaction = as_object(event.get("interaction"))
        for holder in (as_object(event.get("metadata")).get("total_usage"), event.get("usage")):
            self._usage = {**self._usage, **as_object(holder)}
        kind, index = event.get("event_type"), event.get("index")
        match kind:
            case "step.start":
                return [*self._start({}), *self._steps.open(index, as_object(event.get("step")))]
            case "step.delta":
                return [*self._start({}), *self._read_delta(event)]
            case "step.stop":
                ended = self._steps.stop(index)
                self.faults += ended is None
                return ended or []
            case "interaction.status_update":
                self._status = string(event.get("status"))
            case "interaction.completed":
                unstreamed = [] if self._steps.all else self._read_steps(interaction)
                return [*self._start(interaction), *unstreamed, *self._complete(interaction)]
            case "interaction.created":
                return self._start(interaction)
        return []

    def _read_delta(self, event: Json) -> list[Event]:
        if self._state.hides_raw and not event.keys() <= EVENT_KEYS:
            return self._state.leave_out()
        return self._steps.add(event.get("index"), as_object(event.get("delta")))

    def _read_steps(self, answer: Json) -> list[Event]:
        """Read the steps of a whole answer."""
        events = list[Event]()
        for number, sent in enumerate(objects(answer.get("steps"))):
            events += self._steps.open(number, sent)
            events += self._steps.stop(number) or []
        return events

    def _start(self, interaction: Json) -> list[Event]:
        return self._state.start(interaction.get("id"), interaction.get("model"))

    def _complete(self, interaction: Json, error: ErrorDetail | None = None) -> list[Event]:
        self._is_over = True
        self._usage = {**self._usage, **as_object(interaction.get("usage"))}
        self._status = string(interaction.get("status")) or self._status
        return self.end(error)

    def _report_error(self, event: Json) -> list[Event]:
        events = self._state.report(read_error_chunk(event))
        self.faults += not events
        return events

    def _read_error(self, event: Json) -> ErrorDetail:
        return self._state.hide(read_error_chunk(event))

    def _find_failure(self) -> ErrorDetail | None:
        """Return why the answer is none; None if it is one."""
        if not self._is_over:
            return CONNECTION_LOST
        if self._status in FAILURES:
            return ErrorDetail("upstream_error", f"The model's answer failed: {self._status}.")
        if self._status in FINISH_REASONS:
            return None
        is_open = self._steps.has_open_part
        reason = infer_reason(has_open_part=is_open, has_calls=self._state.call_count > 0)
        self.faults += reason is not None
        return UNFINISHED if reason is None else None
