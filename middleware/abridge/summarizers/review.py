"""The review of a part: who does it, and what follows from it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from inspect import iscoroutinefunction, isroutine, unwrap
from typing import TYPE_CHECKING, Any

import httpx

from abridge.config.loading import read_secret
from abridge.config.review import EXTRACT_UNREVIEWED
from abridge.config.settings import Settings
from abridge.errors import SettingsError
from abridge.http.transport import Transport
from abridge.summarizers.moderation import Moderation

if TYPE_CHECKING:
    from abridge.observability.tracing.spans import Tracing

Review = Callable[[str], Awaitable[str | None]]
"""Receives each complete part before the client does; returns the text to show, or None to withhold
it."""

_AWAITABLE = re.compile("Awaitable|Coroutine|Future|Task|Any")
"""Names of types that are awaitable, or may be."""


@dataclass(slots=True, frozen=True)
class Reviewer:
    """A review, how long it may take, and what becomes of a part that it flags or cannot check."""

    review: Review
    timeout: float | None = None  # in seconds; None: what the summarizer left of its own
    stops_on_flag: bool = False  # no further part of a response is shown after a flagged one
    shows_on_failure: bool = False  # a part that cannot be checked is shown

    async def aclose(self) -> None:
        if isinstance(self.review, Moderation):
            await self.review.aclose()


def select_reviewer(
    settings: Settings,
    override: Review | None,
    transport: httpx.AsyncBaseTransport | None = None,
    tracing: Tracing | None = None,
) -> Reviewer | None:
    """Return the reviewer named in the settings, or the one in its place; None if there is none.

    Raises SettingsError for a contradiction, or if the key is missing.
    """
    if override is None:
        return make_moderator(settings, transport, tracing)
    if _is_sync(override):
        raise SettingsError("review: must be an async function of a part's text (async def)")
    if settings.review.kind != "none":
        raise SettingsError(
            f"review.kind: {settings.review.kind!r} cannot be combined with a review passed to "
            "the middleware; set it to none, or pass none"
        )
    if any(route.summary.on_failure == "extract" for route in settings.routes):
        raise SettingsError(f"summary.on_failure: {EXTRACT_UNREVIEWED}")
    return Reviewer(override)


def _is_sync(review: Any) -> bool:
    """Return whether a call surely returns nothing to await. What a lambda or an object returns is
    not known before, and a function may say by its annotation that it returns an awaitable."""
    while isinstance(review, partial):
        review = review.func
    if not callable(review):
        return True
    if not isroutine(review) or getattr(review, "__name__", "") == "<lambda>":
        return False
    function = unwrap(review)
    returns = str(getattr(function, "__annotations__", {}).get("return", ""))
    return not (iscoroutinefunction(function) or _AWAITABLE.search(returns))


def make_moderator(
    settings: Settings, transport: httpx.AsyncBaseTransport | None, tracing: Tracing | None = None
) -> Reviewer | None:
    """Make the reviewer of kind `moderations` if the settings name it. Raises SettingsError.

    `transport`, or a new one if none is given, is closed with the reviewer.
    """
    review = settings.review
    if review.kind != "moderations":
        return None
    key = read_secret(review.api_key_env, "review.api_key_env") if review.api_key_env else None
    transport = transport or Transport(
        connect=settings.limits.connect, headers=review.timeout, idle=review.timeout
    )
    if tracing is not None:
        transport = tracing.wrap_transport(transport)
    return Reviewer(
        Moderation(review, transport, key),
        review.timeout,
        stops_on_flag=review.on_flag == "stop",
        shows_on_failure=review.on_failure == "show",
    )
