"""Read an answer of the Interactions API, streamed or whole, into translated events.

A stream tells of its steps one by one, and of the status that it ends with at last
(ai.google.dev: gemini-api/docs/interactions/streaming). What a server leaves out of that is made up
for, but not its end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.endings import UNFINISHED
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE
from abridge.apis.gemini.reader import GoogleReader
from abridge.apis.gemini.usage import INTERACTIONS_USAGE
from abridge.apis.interactions.history import InteractionsHistory
from abridge.apis.interactions.steps import DELTA_STEPS, AnswerState, AnswerSteps, as_step
from abridge.apis.json import as_object, begins_object, objects, parse_body, string
from abridge.core.answer import Part
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import LANE, ErrorDetail, Event, FinishReason

FINISH_REASONS: Mapping[str, FinishReason | None] = {
    **dict.fromkeys(("completed", "requires_action"), None),
    **dict.fromkeys(("incomplete", "requires_continuation", "budget_exceeded"), "length"),
}
"""Finish reasons by the status of an answer that is over (google-genai, `InteractionStatus`); None
means `stop`, or `tool_calls` if there were calls."""

FAILURES = frozenset({"failed", "cancelled"})

EVENT_KEYS = frozenset({"event_type", "event_id", "index", "delta", "metadata"})
"""The keys of an event with a piece of a text: where thinking is hidden, another one may say that
it is thinking. Arguments never are: a call would lack them."""


class InteractionsReader(GoogleReader):
    """See `GoogleReader`."""

    usage_fields = INTERACTIONS_USAGE

    def __init__(self, display: Display, limit: int) -> None:
        self._state = AnswerState(display, limit)
        self._steps = AnswerSteps(self._state)
        super().__init__(self._state)

    def read(self, frame: bytes) -> list[Event]:
        data = sse.frame_data(frame)
        if data is None and begins_object(frame):  # as errors may come: googleapis/js-genai 1973
            data = frame
        if data is None or self._ended:
            return []
        if data.startswith(sse.DONE):
            self._is_over = True
            return self.end()
        event, _ = parse_body(data)
        if event is None:
            self.faults += 1
            return self.end(UNREADABLE) if begins_object(data) else []
        events = self._read_event(event)
        failure = self._state.failure
        return events if failure is None else [*events, *self.end(failure)]

    def record(self, parts: Sequence[Part]) -> list[RecordedTurn]:
        """See `ReaderOfParts`."""
        if not self._state.is_complete:
            return []
        keys = tuple((LANE, part.number) for part in parts if part.kind == "reasoning")
        return InteractionsHistory.record_joined_turn(list(filter(None, map(as_step, parts))), keys)

    def read_whole(self, body: bytes) -> list[Event]:
        answer = parse_body(body)[0] or {}
        if not isinstance(answer.get("steps"), list):
            return self._read_no_answer(answer)
        events = [*self._start(answer), *self._read_steps(answer)]
        errors = objects(answer.get("errors"))
        if string(answer.get("status")) in FAILURES and errors:
            self._state.reported = self._read_error({"error": errors[0]})
        return [*events, *self._complete(answer, self._state.failure)]

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
                self._reason = string(event.get("status"))
            case "interaction.completed":
                unstreamed = [] if self._steps.all else self._read_steps(interaction)
                return [*self._start(interaction), *unstreamed, *self._complete(interaction)]
            case "interaction.created":
                return self._start(interaction)
        return []

    def _read_delta(self, event: Json) -> list[Event]:
        delta = as_object(event.get("delta"))
        is_call = DELTA_STEPS.get(string(delta.get("type"))) == "function_call"
        if self._state.hides_raw and not (is_call or event.keys() <= EVENT_KEYS):
            return self._state.leave_out()
        return self._steps.add(event.get("index"), delta)

    def _read_steps(self, answer: Json) -> list[Event]:
        """Read the steps of a whole answer."""
        events: list[Event] = []
        for number, sent in enumerate(objects(answer.get("steps"))):
            events += self._steps.open(number, sent)
            events += self._steps.stop(number) or []
        return events

    def _start(self, interaction: Json) -> list[Event]:
        return self._state.start(interaction.get("id"), interaction.get("model"))

    def _complete(self, interaction: Json, error: ErrorDetail | None = None) -> list[Event]:
        self._is_over = True
        self._usage = {**self._usage, **as_object(interaction.get("usage"))}
        self._reason = string(interaction.get("status")) or self._reason
        return self.end(error)

    def _find_failure(self) -> ErrorDetail | None:
        if not self._is_over:
            return CONNECTION_LOST
        if self._reason in FAILURES:
            return self._name_failure()
        if self._reason in FINISH_REASONS:
            return None
        return None if self._explain_end(is_open=self._steps.has_open_part) else UNFINISHED

    def _finish(self) -> list[Event]:
        reason = FINISH_REASONS.get(self._reason)
        events = self._steps.close_all(is_cut=reason is not None)
        return [*events, self._finished(reason, says_text=self._state.text_length > 0)]
