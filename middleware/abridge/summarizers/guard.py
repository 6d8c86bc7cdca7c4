"""Protect answers from slow, failing or hostile summarizers.

All requests of a process that use the same summarizer share one `Guard`. It limits the number of
concurrent calls (a bulkhead: fewer calls than requests, so that a slow summarizer cannot take the
proxy down), stops calling a failing summarizer for a while (a circuit breaker), enforces a timeout,
and passes on only clean, non-blank text. Every failure becomes a `SummarizerError` whose message a
client may read, whatever the summarizer raised.

A summarizer that misses the grace delays every answer by all of it. So after two consecutive misses
`GraceBackoff` suspends the grace of a route for a while; the first answer after that tries again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from abridge.config.settings import SummarizerSettings
from abridge.core.events import ErrorDetail
from abridge.core.plan import Passage
from abridge.core.sequencer import OVERLOADED
from abridge.core.usage import SummarizerUsage
from abridge.errors import SummarizerError
from abridge.http.breaker import CircuitBreaker
from abridge.observability.metrics import Metrics, metrics_for
from abridge.summarizers.cleaning import Cleaner
from abridge.summarizers.summarizer import Summarizer, closing_iterator

MAX_PART_CHARS = 32_000
"""Maximum characters of a part; the call is ended when a summarizer exceeds them."""

BREAKER_OPEN = ErrorDetail(
    "breaker_open", "The summarizer failed too often and is not called for a while."
)

MISSES_TO_BACK_OFF = 2

BACKOFF_SECONDS = 30.0

MAX_ROUTES = 1024
"""Maximum routes remembered; beyond that, the route whose last miss is oldest is forgotten."""

Review = Callable[[str], Awaitable[str | None]]
"""Receives each complete part before the client does; returns the text to show, or None to withhold
it."""

_log = logging.getLogger(__name__)


class Permit:
    """Permission for one call. `release` is idempotent."""

    def __init__(self, guard: Guard) -> None:
        self._guard: Guard | None = guard

    def release(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.release(self)


class Guard:
    """Applies the limits in `settings` to summarizer calls and reports to `metrics`.

    `clock` returns seconds. `in_flight` is the number of permits not yet released.
    """

    def __init__(
        self,
        settings: SummarizerSettings,
        *,
        review: Review | None = None,
        clock: Callable[[], float] = time.monotonic,
        metrics: Metrics | None = None,
    ) -> None:
        self._metrics = metrics or metrics_for(CollectorRegistry())
        self._metrics.summarizer_in_flight_limit.inc(settings.max_in_flight)
        self._max_in_flight = settings.max_in_flight
        self._timeout = settings.timeout
        self._review = review
        self._breaker = CircuitBreaker(settings.breaker_failures, settings.breaker_seconds, clock)
        self.in_flight = 0

    @property
    def is_open(self) -> bool:
        return self._breaker.is_open

    def admit(self) -> Permit | ErrorDetail:
        """Return a permit for a call, which must be released, or the reason there is none."""
        if self.in_flight >= self._max_in_flight:
            return OVERLOADED
        permit = Permit(self)
        if not self._breaker.admit(permit):
            return BREAKER_OPEN
        self.in_flight += 1
        self._metrics.summarizer_in_flight.inc()
        return permit

    def release(self, permit: Permit) -> None:
        self.in_flight -= 1
        self._metrics.summarizer_in_flight.dec()
        self._breaker.release(permit)

    def note_late_start(self, summarizer: Summarizer) -> None:
        """Count a call as failed that was cancelled because it had not started in time."""
        self._note_failure(summarizer, "it did not begin in time")

    def _note_failure(self, summarizer: Summarizer, cause: object) -> None:
        # The breaker limits the number of these log lines.
        self._update_breaker(self._breaker.note_failure)
        _log.warning("summarizer %s failed: %s", summarizer.name, cause)

    def _update_breaker(self, update: Callable[[], None]) -> None:
        """Update the breaker, and its gauge if that opened or closed it."""
        was_open = self._breaker.is_open
        update()
        self._metrics.breaker_open.inc(self._breaker.is_open - was_open)

    async def summarize(
        self, summarizer: Summarizer, passage: Passage
    ) -> AsyncGenerator[str | SummarizerUsage, None]:
        """Yield the part's text, clean and never blank, then at most one `SummarizerUsage`.

        Raises SummarizerError, with the usage of the call as far as it is known. A call that is
        cancelled or closed early counts neither as a failure nor as a success.
        """
        call = _GuardedCall(self._timeout)
        pieces = call.stream_text(summarizer, passage)
        if self._review is not None:
            pieces = call.review_text(pieces, self._review)
        try:
            async with closing_iterator(pieces):
                async for text in pieces:
                    yield text
        except SummarizerError as error:
            self._note_failure(summarizer, f"{error} ({error.code})")
            raise call.add_usage(error) from None
        except TimeoutError:
            self._note_failure(summarizer, "it took too long")
            raise call.error("timeout", "The summarizer took too long.") from None
        except Exception as error:  # noqa: BLE001 - a user's summarizer may raise anything
            self._note_failure(summarizer, type(error).__name__)
            raise call.error("upstream_error", "The summarizer failed.") from None
        self._update_breaker(self._breaker.note_success)
        if call.withheld:
            raise call.error("empty", "The summary was withheld.")
        if call.usage is not None:
            yield call.usage


class _GuardedCall:
    """One call: cleans its text and remembers its usage. `deadline` is in the loop's time."""

    def __init__(self, timeout: float) -> None:
        self.deadline = asyncio.get_running_loop().time() + timeout
        self.usage: SummarizerUsage | None = None
        self.withheld = False
        self._cleaner = Cleaner()
        self._remaining_chars = MAX_PART_CHARS
        self._has_text = False

    async def stream_text(self, summarizer: Summarizer, passage: Passage) -> AsyncIterator[str]:
        async with closing_iterator(aiter(summarizer.summarize(passage))) as output:
            while (
                self._remaining_chars > 0 and (piece := await self._next_piece(output)) is not None
            ):
                if isinstance(piece, SummarizerUsage):
                    self.usage = piece
                elif text := self._clean_piece(piece):
                    yield text
        if text := self._strip_start(self._cleaner.end()):
            yield text
        if not self._has_text:
            raise self.error("empty", "The summarizer returned no text.")

    async def review_text(self, pieces: AsyncIterator[str], review: Review) -> AsyncIterator[str]:
        """Collect the whole text and yield what `review` returns for it."""
        async with closing_iterator(pieces):
            whole = "".join([text async for text in pieces])
        async with asyncio.timeout_at(self.deadline):
            approved = await review(whole)
        self.withheld = approved is None or not approved.strip()
        if approved is not None and not self.withheld:
            yield approved

    def error(self, code: str, message: str) -> SummarizerError:
        return self.add_usage(SummarizerError(code, message))

    def add_usage(self, error: SummarizerError) -> SummarizerError:
        """Add the usage of the call to an error that does not state it."""
        if self.usage is not None:
            error.spent = error.spent or self.usage.tokens
            error.model = error.model or self.usage.model
        return error

    async def _next_piece(
        self, output: AsyncIterator[str | SummarizerUsage]
    ) -> str | SummarizerUsage | None:
        async with asyncio.timeout_at(self.deadline):
            return await anext(output, None)

    def _clean_piece(self, piece: str) -> str:
        piece = piece[: self._remaining_chars]
        self._remaining_chars -= len(piece)
        return self._strip_start(self._cleaner.feed(piece))

    def _strip_start(self, text: str) -> str:
        """Strip whitespace before the first word of the part."""
        text = text if self._has_text else text.lstrip()
        self._has_text = self._has_text or bool(text)
        return text


@dataclass(slots=True)
class _RouteMisses:
    misses: int = 0
    backs_off_until: float = 0.0


class GraceBackoff:
    """Remembers misses per route. `now` is in seconds on any monotonic clock."""

    def __init__(self) -> None:
        self._routes: dict[str, _RouteMisses] = {}

    def grace(self, route: str, now: float, grace: float) -> float:
        """Return the grace for the route's next answer: `grace`, or 0 while backing off."""
        entry = self._routes.get(route)
        return 0.0 if entry is not None and now < entry.backs_off_until else grace

    def note_miss(self, route: str, now: float) -> None:
        """Note that a summary was not ready within the grace; ignored while backing off."""
        if not self.grace(route, now, 1.0):
            return
        entry = self._routes.pop(route, None) or _RouteMisses()
        self._routes[route] = entry
        entry.misses += 1
        if entry.misses >= MISSES_TO_BACK_OFF:
            entry.backs_off_until = now + BACKOFF_SECONDS
        if len(self._routes) > MAX_ROUTES:
            del self._routes[next(iter(self._routes))]

    def note_success(self, route: str) -> None:
        """Note that a summary was ready in time."""
        self._routes.pop(route, None)
