"""Read an answer of Gemini's, streamed or whole, into translated events.

Each chunk of a stream has the form of a whole answer. A stream has no last chunk that says so: it
ends with the connection, after a finish reason. What follows that reason is still read. Without one
a text was cut, for it might have gone on; calls come whole, and tell the reason. Only the
first candidate is read, whatever place it has: only one is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.endings import infer_reason, reason_of_parts
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE
from abridge.apis.gemini.answer import LANE
from abridge.apis.gemini.citations import AnswerCitations
from abridge.apis.gemini.errors import read_error_chunk
from abridge.apis.gemini.history import record_turn
from abridge.apis.gemini.parts import AnswerParts, SentPart
from abridge.apis.gemini.usage import GEMINI_USAGE
from abridge.apis.json import (
    as_object,
    begins_object,
    loads_exact,
    objects,
    parse_object,
    replace_invalid,
    string,
)
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

_FILTERED: tuple[str, ...] = (
    *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "MODEL_ARMOR", "ESCALATION"),
)

FINISH_REASONS: Mapping[str, FinishReason] = MappingProxyType(
    {
        "MAX_TOKENS": "length",
        "CONTINUATION": "length",
        **dict.fromkeys(_FILTERED, "content_filter"),
    }
)
"""Finish reasons (google-genai, `FinishReason`); any other means `stop`, or `tool_calls` if there
were calls."""

FAILURES = frozenset(
    {
        *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"),
        *("MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE", "PUP_LIMITED_DISABLED"),
    }
)
"""Finish reasons that say that there is no answer, or not all of it."""


class GeminiReader:
    """Read one response. See the protocols `Reader` and `ReaderOfParts`."""

    continuation = None  # each frame is read by itself

    def __init__(self, display: Display, limit: int) -> None:
        self._parts = AnswerParts(display, limit)
        self._citations = AnswerCitations(display)
        self._usage: Json = {}
        self._reason = ""  # upstream's finish reason
        self._ended = False
        self._is_streamed = True
        self.faults = 0
        self.mismatches = 0

    @property
    def dropped(self) -> int:
        return self._parts.dropped + self._citations.dropped

    def read(self, frame: bytes) -> list[Event]:
        data = sse.frame_data(frame)
        if data is None or data.startswith(sse.DONE):  # [DONE]: of gateways
            return []
        chunk = None if self._ended else parse_answer(data)
        if chunk is None:
            is_lost = not self._ended and begins_object(data)
            self.faults += not is_lost
            return self.end(UNREADABLE) if is_lost else []
        return self._read_chunk(chunk)

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        self._ended = True
        error = self._parts.reported or error or self._find_failure()
        usage = GEMINI_USAGE.read(self._usage)
        if error is not None:
            final = usage if self._reason else None  # not final before
            return [ResponseEnded(None, None, ok=False, usage=final, error=error)]
        return [
            *self._parts.end(is_cut=self._reason in FINISH_REASONS),
            *self._citations.read(self._parts.said_text),
            Finished(
                LANE,
                None,
                self._finish_reason(),
                hosted_calls=self._parts.only_hosted_calls(says_text=self._parts.said_text != ""),
            ),
            ResponseEnded(None, None, ok=True, usage=usage),
        ]

    def read_whole(self, body: bytes) -> list[Event]:
        answer = parse_answer(body) or {}
        if not ("candidates" in answer or "promptFeedback" in answer):
            error = self._read_error(answer) if answer.get("error") is not None else None
            return [ResponseEnded(None, None, ok=False, error=error)]
        self._is_streamed = False
        return [*self._read_chunk(answer), *self.end()]

    def observed(self) -> Observation:
        """Return nothing: this API leaves nobody a choice of format."""
        return NO_OBSERVATION

    def recorded_turns(self) -> list[RecordedTurn]:
        return self.record(self._parts.all)

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

    def _read_chunk(self, chunk: Json) -> list[Event]:
        if chunk.get("error") is not None:
            return self._report_error(chunk)
        self._usage = {**self._usage, **as_object(chunk.get("usageMetadata"))}
        events = self._start(chunk)
        if as_object(chunk.get("promptFeedback")).get("blockReason"):
            self._reason = self._reason or "SAFETY"
        candidates = objects(chunk.get("candidates"))
        for candidate in (one for one in candidates if one.get("index") in (None, 0)):
            for part in objects(as_object(candidate.get("content")).get("parts")):
                events += self._parts.read(part)
            self._citations.note(candidate)
            self._reason = string(candidate.get("finishReason")) or self._reason
        failure = self._parts.failure
        return events if failure is None else [*events, *self.end(failure)]

    def _start(self, chunk: Json) -> list[Event]:
        return self._parts.start(chunk.get("responseId"), chunk.get("modelVersion"))

    def _report_error(self, chunk: Json) -> list[Event]:
        events = self._parts.report(read_error_chunk(chunk))
        self.faults += not events
        return events

    def _read_error(self, chunk: Json) -> ErrorDetail:
        return self._parts.hide(read_error_chunk(chunk))

    def _find_failure(self) -> ErrorDetail | None:
        """Return why the answer is none; None if it is one."""
        if not self._reason:
            return None if self._explain_end() else CONNECTION_LOST
        if self._reason not in FAILURES:
            return None
        return ErrorDetail("upstream_error", f"The model's answer failed: {self._reason}.")

    def _explain_end(self) -> bool:
        """Return whether the parts tell why the answer stops, where upstream does not."""
        is_open = self._parts.has_open_part(streamed=self._is_streamed)
        reason = infer_reason(has_open_part=is_open, has_calls=self._parts.call_count > 0)
        self.faults += reason is not None
        return reason is not None

    def _finish_reason(self) -> FinishReason:
        """Return the finish reason. A client continues with the calls that it got."""
        default = reason_of_parts(has_calls=self._parts.call_count > 0)
        return FINISH_REASONS.get(self._reason, default)


def parse_answer(data: bytes) -> Json | None:
    return parse_object(data, loads_exact) or parse_object(replace_invalid(data), loads_exact)
