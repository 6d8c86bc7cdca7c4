"""Check that the review's endpoint can be reached, gives a verdict, and is fast enough."""

from __future__ import annotations

from time import monotonic

import httpx

from abridge.config.settings import Settings
from abridge.errors import SummarizerError
from abridge.http.timers import silence_timeout
from abridge.sidecar.check.reach import CheckTarget, Finding, reach
from abridge.summarizers.review import make_moderator

SUBJECT = "review"

SAMPLE_PART = (
    "**Comparing the numbers**\n\nI compare 9.11 and 9.9 digit by digit: 9.9 is the larger one."
)


async def reach_review(settings: Settings, transport: httpx.AsyncBaseTransport) -> Finding | None:
    """Check that the endpoint's server can be reached; None if there is no review.

    Raises SettingsError.
    """
    review = settings.review
    if review.kind == "none" or review.base_url is None:
        return None
    target = CheckTarget.with_key(
        review.base_url, transport, review.api_key_env, "review.api_key_env"
    )
    return (await reach(target, SUBJECT)).finding


async def probe_review(settings: Settings, transport: httpx.AsyncBaseTransport) -> Finding | None:
    """Have a harmless part reviewed; None if there is no review. Raises SettingsError."""
    reviewer = make_moderator(settings, transport)
    if reviewer is None:
        return None
    started, timeout = monotonic(), settings.review.timeout
    try:
        async with silence_timeout(timeout):
            approved = await reviewer.review(SAMPLE_PART)
    except TimeoutError:
        return Finding(SUBJECT, f"no verdict within review.timeout, {timeout:g} s", "fault")
    except SummarizerError as error:
        return Finding(SUBJECT, str(error), "fault")
    if approved is None:
        return Finding(SUBJECT, "flags a harmless part, and would withhold most others", "fault")
    return Finding(SUBJECT, f"passes a harmless part after {monotonic() - started:.2f} s")
