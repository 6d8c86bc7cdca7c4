"""What stands between a response and any summarizer.

One guard is shared by all requests of a process. It lets only so many calls run at once, fewer than
there are requests, so that a slow summarizer cannot take the proxy with it; leaves a failing one
alone for a while; ends a call that takes too long; and hands on text only that is clean, and is
any. What goes wrong is a `SummarizerError` that a client may read, whoever wrote the summarizer.
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
"""Characters of a part; what a summarizer says beyond them is not waited for."""

BREAKER_OPEN = Trouble("breaker_open", "The summarizer failed too often and is left alone.")

Review = Callable[[str], Awaitable[str | None]]
"""Sees each part whole before it is shown; returns what is shown, or None to withhold it."""

logger = logging.getLogger("abridge.summarize")


class Permit:
    """Leave for one call. `release` may be called any number of times."""

    def __init__(self, guard: Guard) -> None:
        self._guard: Guard | None = guard

    def release(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.take_back(self)


class Guard:
    """Guards the calls that `settings` bound, and shows in `metrics` how that goes. `clock` is in
    seconds; `in_flight` counts the permits that are out, `open` says whether the breaker is."""

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
        """Leave for a call, or why there is none. The permit must be released."""
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
        """A call was given up since it kept an answer waiting and did not even begin."""
        self._fail(summarizer, "it did not begin in time")

    def _fail(self, summarizer: Summarizer, cause: object) -> None:
        """Few of these are logged: the breaker sees to it."""
        self._turn(self._breaker.failed)
        logger.warning("summarizer %s failed: %s", summarizer.name, cause)

    def _turn(self, turn: Callable[[], None]) -> None:
        """Tell the breaker something, and show whether that opened or closed it."""
        before = self._breaker.open
        turn()
        self._metrics.breaker_open.inc(self._breaker.open - before)

    async def write(
        self, summarizer: Summarizer, passage: Passage
    ) -> AsyncGenerator[str | Spent, None]:
        """The part's text, clean and never blank, then at most one `Spent`.

        Raises SummarizerError, with what the call cost as far as that is known. A call that is
        cancelled, or left early, counts neither as a failure nor as a success.
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
    """One call: what was said is cleaned, what was spent is kept. `deadline` is the loop's time."""

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
        """The whole text, as `review` wants it."""
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
        """The error, with what the call cost where it does not say so itself."""
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
        """What of a clean text is shown: all, but no blanks before the first word."""
        text = text if self._spoke else text.lstrip()
        self._spoke = self._spoke or bool(text)
        return text
