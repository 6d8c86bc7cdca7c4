"""Protect responses from slow, failing or hostile summarizers.

All requests of a process that use the same summarizer share one guard. It limits the number of
concurrent calls (a bulkhead: fewer calls than requests, so that a slow summarizer cannot take the
proxy down), stops calling a failing summarizer for a while (a circuit breaker), enforces a timeout,
and passes on only clean, non-blank text. Every failure becomes a `SummarizerError` whose message a
client may read, whatever the summarizer raised.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from prometheus_client import CollectorRegistry

from abridge.breaker import Breaker
from abridge.errors import SummarizerError
from abridge.metrics import Metrics, metrics_on
from abridge.settings import SummarizerSettings
from abridge.summarize import Spent, Summarizer
from abridge.summarize.clean import Cleaner
from abridge.summarize.closing import closing
from abridge.turn.events import Trouble
from abridge.turn.part import Passage
from abridge.turn.weave import SHED

MOST = 32_000
"""Maximum characters of a part; the call is ended when a summarizer exceeds them."""

BREAKER_OPEN = Trouble("breaker_open", "The summarizer failed too often and is left alone.")

Review = Callable[[str], Awaitable[str | None]]
"""Receives each complete part before the client does; returns the text to show, or None to withhold
it."""

logger = logging.getLogger("abridge.summarize")


class Permit:
    """Permission for one call. `release` is idempotent."""

    def __init__(self, guard: Guard) -> None:
        self._guard: Guard | None = guard

    def release(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.take_back(self)


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
        self._metrics = metrics or metrics_on(CollectorRegistry())
        self._metrics.summarizer_in_flight_limit.inc(settings.max_in_flight)
        self._most = settings.max_in_flight
        self._timeout = settings.timeout
        self._review = review
        self._breaker = Breaker(settings.breaker_failures, settings.breaker_seconds, clock)
        self.in_flight = 0

    @property
    def open(self) -> bool:
        return self._breaker.open

    def admit(self) -> Permit | Trouble:
        """Return a permit for a call, which must be released, or the reason there is none."""
        if self.in_flight >= self._most:
            return SHED
        permit = Permit(self)
        if not self._breaker.admits(permit):
            return BREAKER_OPEN
        self.in_flight += 1
        self._metrics.summarizer_in_flight.inc()
        return permit

    def take_back(self, permit: Permit) -> None:
        self.in_flight -= 1
        self._metrics.summarizer_in_flight.dec()
        self._breaker.released(permit)

    def blame(self, summarizer: Summarizer) -> None:
        """Count a call as failed that was cancelled because it had not started in time."""
        self._fail(summarizer, "it did not begin in time")

    def _fail(self, summarizer: Summarizer, cause: object) -> None:
        # The breaker limits the number of these log lines.
        self._turn(self._breaker.failed)
        logger.warning("summarizer %s failed: %s", summarizer.name, cause)

    def _turn(self, turn: Callable[[], None]) -> None:
        """Update the breaker, and its gauge if that opened or closed it."""
        before = self._breaker.open
        turn()
        self._metrics.breaker_open.inc(self._breaker.open - before)

    async def write(
        self, summarizer: Summarizer, passage: Passage
    ) -> AsyncGenerator[str | Spent, None]:
        """Yield the part's text, clean and never blank, then at most one `SummarizerUsage`.

        Raise SummarizerError, with the usage of the call as far as it is known. A call that is
        cancelled or closed early counts neither as a failure nor as a success.
        """
        call = _Call(self._timeout)
        pieces = call.pieces(summarizer, passage)
        if self._review is not None:
            pieces = call.reviewed(pieces, self._review)
        try:
            async with closing(pieces):
                async for text in pieces:
                    yield text
        except SummarizerError as error:
            self._fail(summarizer, f"{error} ({error.code})")
            raise call.blame(error) from None
        except TimeoutError:
            self._fail(summarizer, "it took too long")
            raise call.error("timeout", "The summarizer took too long.") from None
        except Exception as error:  # noqa: BLE001 - a user's summarizer may raise anything
            self._fail(summarizer, type(error).__name__)
            raise call.error("upstream_error", "The summarizer failed.") from None
        self._turn(self._breaker.succeeded)
        if call.withheld:
            raise call.error("empty", "The summary was withheld.")
        if call.spent is not None:
            yield call.spent


class _Call:
    """One call: cleans its text and remembers its usage. `deadline` is in the loop's time."""

    def __init__(self, timeout: float) -> None:
        self.deadline = asyncio.get_running_loop().time() + timeout
        self.spent: Spent | None = None
        self.withheld = False
        self._cleaner = Cleaner()
        self._room = MOST
        self._spoke = False

    async def pieces(self, summarizer: Summarizer, passage: Passage) -> AsyncIterator[str]:
        async with closing(aiter(summarizer.summarize(passage))) as said:
            while self._room > 0 and (piece := await self._next(said)) is not None:
                if isinstance(piece, Spent):
                    self.spent = piece
                elif text := self._clean(piece):
                    yield text
        if text := self._shown(self._cleaner.end()):
            yield text
        if not self._spoke:
            raise self.error("empty", "The summarizer said nothing.")

    async def reviewed(self, pieces: AsyncIterator[str], review: Review) -> AsyncIterator[str]:
        """Collect the whole text and yield what `review` returns for it."""
        async with closing(pieces):
            whole = "".join([text async for text in pieces])
        async with asyncio.timeout_at(self.deadline):
            shown = await review(whole)
        self.withheld = shown is None or not shown.strip()
        if shown is not None and not self.withheld:
            yield shown

    def error(self, code: str, message: str) -> SummarizerError:
        return self.blame(SummarizerError(code, message))

    def blame(self, error: SummarizerError) -> SummarizerError:
        """Add the usage of the call to an error that does not state it."""
        if self.spent is not None:
            error.spent = error.spent or self.spent.tokens
            error.model = error.model or self.spent.model
        return error

    async def _next(self, said: AsyncIterator[str | Spent]) -> str | Spent | None:
        async with asyncio.timeout_at(self.deadline):
            return await anext(said, None)

    def _clean(self, piece: str) -> str:
        piece = piece[: self._room]
        self._room -= len(piece)
        return self._shown(self._cleaner.feed(piece))

    def _shown(self, text: str) -> str:
        """Strip whitespace before the first word of the part."""
        text = text if self._spoke else text.lstrip()
        self._spoke = self._spoke or bool(text)
        return text
