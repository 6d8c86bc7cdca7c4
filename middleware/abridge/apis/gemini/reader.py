"""Read an answer of Gemini's, streamed or whole, into translated events.

Each chunk of a stream has the form of a whole answer. A stream has no last chunk that says so: it
ends with the connection, after a finish reason. What follows that reason is still read. Without one
a text was cut, for it might have gone on; calls come whole, and tell the reason. Only the
first candidate is read, whatever place it has: only one is asked for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.endings import infer_reason, reason_of_parts
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE, read_detail
from abridge.apis.gemini.answer import GoogleAnswer
from abridge.apis.gemini.citations import AnswerCitations
from abridge.apis.gemini.history import record_turn
from abridge.apis.gemini.parts import AnswerParts, SentPart
from abridge.apis.gemini.usage import GEMINI_USAGE, GoogleUsage
from abridge.apis.json import as_object, begins_object, objects, parse_body, string
from abridge.apis.usage import report_tier
from abridge.core.answer import Part
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import LANE, ErrorDetail, Event, Finished, FinishReason, ResponseEnded

_FILTERED: tuple[str, ...] = (
    *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR", "ESCALATION"),
)

FINISH_REASONS: Mapping[str, FinishReason] = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    **dict.fromkeys(_FILTERED, "content_filter"),
}
"""Finish reasons (google-genai, `FinishReason`); any other means `stop`, or `tool_calls` if there
were calls."""

FAILURES = frozenset(
    {
        *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"),
        *("MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "PUP_LIMITED_DISABLED"),
    }
)
"""Finish reasons that say that there is no answer, or not all of it."""


class GoogleReader(ABC):
    """Read one response of either of Google's APIs. See the protocol `ReaderOfParts`."""

    usage_fields: ClassVar[GoogleUsage]

    continuation = None  # each frame is read by itself

    def __init__(self, answer: GoogleAnswer) -> None:
        self._answer = answer
        self._usage: Json = {}
        self._reason = ""  # why the answer stops, in upstream's word
        self._is_over = False  # upstream has said all, so that its usage is final
        self._ended = False
        self.faults = 0

    @property
    def dropped(self) -> int:
        return self._answer.dropped

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        self._ended = True
        error = self._answer.reported or error or self._find_failure()
        usage = self.usage_fields.read(self._usage)
        if error is not None:
            final = usage if self._is_over else None
            return [ResponseEnded(None, None, ok=False, usage=final, error=error)]
        last = [*report_tier(self._usage.get("serviceTier")), *self._finish()]
        return [*last, ResponseEnded(None, None, ok=True, usage=usage)]

    @abstractmethod
    def _find_failure(self) -> ErrorDetail | None:
        """Return why the answer is none; None if it is one."""

    @abstractmethod
    def _finish(self) -> list[Event]:
        """Return the last events of an answer."""

    def _finished(self, reason: FinishReason | None, *, says_text: bool) -> Finished:
        """Return the event that ends the answer. A client continues with the calls that it got."""
        default = reason_of_parts(has_calls=self._answer.call_count > 0)
        hosted_calls = self._answer.only_hosted_calls(says_text=says_text)
        return Finished(LANE, None, reason or default, hosted_calls=hosted_calls)

    def _explain_end(self, *, is_open: bool) -> bool:
        """Return whether the parts tell why the answer stops, where upstream does not."""
        reason = infer_reason(has_open_part=is_open, has_calls=self._answer.call_count > 0)
        self.faults += reason is not None
        return reason is not None

    def _name_failure(self) -> ErrorDetail:
        return ErrorDetail("upstream_error", f"The model's answer failed: {self._reason}.")

    def _report_error(self, chunk: Json) -> list[Event]:
        events = self._answer.report(read_detail(chunk))
        self.faults += not events
        return events

    def _read_no_answer(self, body: Json) -> list[Event]:
        """Read a whole body that is no answer."""
        error = self._read_error(body) if body.get("error") is not None else None
        return [ResponseEnded(None, None, ok=False, error=error)]

    def _read_error(self, chunk: Json) -> ErrorDetail:
        return self._answer.hide(read_detail(chunk))


class GeminiReader(GoogleReader):
    """See `GoogleReader`."""

    usage_fields = GEMINI_USAGE

    def __init__(self, display: Display, limit: int) -> None:
        self._parts = AnswerParts(display, limit)
        self._citations = AnswerCitations(display)
        self._is_streamed = True
        super().__init__(self._parts)

    @property
    def dropped(self) -> int:
        return self._parts.dropped + self._citations.dropped

    def read(self, frame: bytes) -> list[Event]:
        data = sse.frame_data(frame)
        if data is None or data.startswith(sse.DONE):  # [DONE]: of gateways
            return []
        chunk = None if self._ended else parse_body(data)[0]
        if chunk is None:
            is_lost = not self._ended and begins_object(data)
            self.faults += not is_lost
            return self.end(UNREADABLE) if is_lost else []
        return self._read_chunk(chunk)

    def record(self, parts: Sequence[Part]) -> list[RecordedTurn]:
        """See `ReaderOfParts`. Thinking that a text began with was the first of the answer's."""
        if not self._parts.is_complete:
            return []
        items = [part for part in parts if part.kind == "reasoning"]
        made = [part.said_text for part in items if not isinstance(part, SentPart)]
        sent: list[Json] = [{"text": text, "thought": True} for text in made]
        sent += [each for part in self._parts.all for each in part.to_json()]
        keys = tuple((LANE, part.number) for part in items)
        return record_turn(sent, keys, self._parts.call_ids)

    def read_whole(self, body: bytes) -> list[Event]:
        answer = parse_body(body)[0] or {}
        if not ("candidates" in answer or "promptFeedback" in answer):
            return self._read_no_answer(answer)
        self._is_streamed = False
        return [*self._read_chunk(answer), *self.end()]

    def _read_chunk(self, chunk: Json) -> list[Event]:
        if chunk.get("error") is not None:
            return self._report_error(chunk)
        self._usage = {**self._usage, **as_object(chunk.get("usageMetadata"))}
        events = self._parts.start(chunk.get("responseId"), chunk.get("modelVersion"))
        if as_object(chunk.get("promptFeedback")).get("blockReason"):
            self._reason = self._reason or "SAFETY"
        candidates = objects(chunk.get("candidates"))
        for candidate in (one for one in candidates if one.get("index") in (None, 0)):
            for part in objects(as_object(candidate.get("content")).get("parts")):
                events += self._parts.read(part)
            self._citations.note(candidate)
            self._reason = string(candidate.get("finishReason")) or self._reason
        self._is_over, failure = bool(self._reason), self._parts.failure
        return events if failure is None else [*events, *self.end(failure)]

    def _find_failure(self) -> ErrorDetail | None:
        if not self._reason:
            is_open = self._parts.has_open_part(streamed=self._is_streamed)
            return None if self._explain_end(is_open=is_open) else CONNECTION_LOST
        return self._name_failure() if self._reason in FAILURES else None

    def _finish(self) -> list[Event]:
        reason = FINISH_REASONS.get(self._reason)
        return [
            *self._parts.end(is_cut=reason is not None),
            *self._citations.read(self._parts.said_text),
            self._finished(reason, says_text=self._parts.said_text != ""),
        ]
