"""What the Sequencer has others do, and the errors of a summary that it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from abridge.core.events import ErrorDetail, Event
from abridge.core.plan import Passage

DEADLINE_PASSED = ErrorDetail("deadline", "The summary was not ready in time.")

FIRST_TOKEN_TIMEOUT = ErrorDetail("timeout", "The summarizer did not begin in time.")

EMPTY_SUMMARY = ErrorDetail("empty", "The summarizer wrote nothing.")

OVERLOADED = ErrorDetail("shed", "Too many summaries were in progress.")

RESPONSE_CUT_OFF = ErrorDetail(
    "upstream_error", "The response broke off before its summary was made."
)


@dataclass(slots=True, frozen=True)
class RequestPart:
    """Have this part written."""

    part_id: int
    passage: Passage


@dataclass(slots=True, frozen=True)
class CancelPart:
    """Stop writing this part; nothing more of it will be used."""

    part_id: int
    timed_out: bool = False  # it had no text by the first-token timeout


Effect: TypeAlias = Event | RequestPart | CancelPart
