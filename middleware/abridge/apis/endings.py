"""How an answer ends whose upstream did not say why it stops: the one rule of all readers.

An end is never invented. Where upstream says that its answer is over, but not why, all parts of it
have to be whole: a call that was cut must not become one that clients run. Where it says neither,
the answer was cut short, and fails in any case.
"""

from __future__ import annotations

from abridge.core.events import AnswerFault, FinishReason

UNFINISHED = AnswerFault(
    "upstream_error", "Upstream ended its answer before every part was complete."
)


def reason_of_parts(*, has_calls: bool) -> FinishReason:
    """Return the finish reason that an answer's parts tell: a client continues with its calls."""
    return "tool_calls" if has_calls else "stop"


def infer_reason(*, has_open_part: bool, has_calls: bool) -> FinishReason | None:
    """Return the finish reason of an answer that upstream ended without one; None if it fails.

    A reader that gets a reason counts a fault.
    """
    return None if has_open_part else reason_of_parts(has_calls=has_calls)
