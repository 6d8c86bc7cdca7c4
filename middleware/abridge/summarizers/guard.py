"""Protect answers from slow, failing or hostile summarizers.

All requests of a process that use the same summarizer share one `Bulkhead`, and under the same
settings one `Guard`. A guard limits the number of concurrent calls (a bulkhead: fewer calls than
requests, so that a slow summarizer cannot take the proxy down), stops calling a failing summarizer
for a while (a circuit breaker), enforces a timeout, and passes on only clean, non-blank text. Every
failure becomes a `SummarizerError` whose message a client may read, whatever a user's summarizer or
review raised; the log says whose code failed.

A summarizer that misses the grace delays every answer by all of it. So after two consecutive misses
`GraceBackoff` suspends the grace of a route for a while; the first answer after that tries again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable
from functools import partial
from traceback import format_exception_only, format_tb
from typing import TypeGuard

from prometheus_client import CollectorRegistry

from abridge.apis.json import replace_halves
from abridge.breaker import CircuitBreaker
from abridge.config.tables import SummarizerSettings
from abridge.core.effects import OVERLOADED
from abridge.core.events import ErrorDetail
from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage
from abridge.errors import SummarizerError, SummaryWithheld
from abridge.observability.metrics import Metrics, metrics_for
from abridge.summarizers.call import (
    GuardedCall,
    Outcome,
    checked_usage,
    let_pass,
    runs_in_process,
)
from abridge.summarizers.checks import FAILURES
from abridge.summarizers.cleaning import clean
from abridge.summarizers.review import Reviewer
from abridge.summarizers.summarizer import Summarizer, UserSummarizer

CLOSE_SECONDS = 0.25
"""Seconds for which an ended call is waited for while it cleans up; then it is left behind."""

MAX_CAUSE_CHARS = 300
"""Maximum characters of an exception in a log line."""

BREAKER_OPEN = ErrorDetail("breaker_open", "The summarizer failed too often and is paused.")

MISSES_TO_BACK_OFF = 2

BACKOFF_SECONDS = 30.0

_log = logging.getLogger(__name__)


class Permit:
    """Permission for one call. `release` is idempotent."""

    def __init__(self, guard: Guard) -> None:
        self._guard: Guard | None = guard

    def release(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.release(self)


class Bulkhead:
    """The calls to one summarizer that are under way, and whether it fails: what its guards have in
    common, of which a change of settings makes another. `clock` returns seconds."""

    def __init__(
        self, settings: SummarizerSettings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.breaker = CircuitBreaker(settings.breaker_failures, settings.breaker_seconds, clock)
        self.left_behind: set[asyncio.Task[None]] = set()
        self.in_flight = 0
        self.guards = 0


class Guard:
    """Applies the limits in `settings` to summarizer calls and reports to `metrics`.

    `in_flight` is the number of permits not yet released.
    """

    def __init__(
        self,
        settings: SummarizerSettings,
        *,
        reviewer: Reviewer | None = None,
        metrics: Metrics | None = None,
        bulkhead: Bulkhead | None = None,
    ) -> None:
        self._metrics = metrics or metrics_for(CollectorRegistry())
        self._max_in_flight = settings.max_in_flight
        self._timeout = settings.timeout
        self._pause = settings.breaker_seconds, settings.breaker_failures
        self._reviewer = reviewer
        self._review_fails = False  # and that has been logged
        self._bulkhead = bulkhead or Bulkhead(settings)
        self._breaker, self._left_behind = self._bulkhead.breaker, self._bulkhead.left_behind

    def take_effect(self) -> None:
        """Show in the metrics that calls come this way from now on."""
        if not self._bulkhead.guards:
            self._metrics.summarizer_in_flight_limit.inc(self._max_in_flight)
        self._bulkhead.guards += 1

    def retire(self) -> None:
        """Take what nobody uses any more out of the metrics."""
        self._bulkhead.guards -= 1
        if not self._bulkhead.guards:
            self._metrics.summarizer_in_flight_limit.dec(self._max_in_flight)
            self._update_breaker(self._breaker.note_success)

    @property
    def in_flight(self) -> int:
        return self._bulkhead.in_flight

    @property
    def reviews(self) -> bool:
        """True if each part is reviewed, whole, before any of it is passed on."""
        return self._reviewer is not None

    @property
    def is_open(self) -> bool:
        return self._breaker.is_open

    def admit(self, summarizer: Summarizer) -> Permit | ErrorDetail:
        """Return a permit for a call, which must be released, or the reason there is none.

        A summarizer that runs in process is always admitted, unless its text is reviewed: its calls
        take turns.
        """
        permit = Permit(self)
        if self.reviews or not runs_in_process(summarizer):
            if self.in_flight + len(self._left_behind) >= self._max_in_flight:
                return OVERLOADED
            if not self._breaker.admit(permit):
                return BREAKER_OPEN
        self._bulkhead.in_flight += 1
        self._metrics.summarizer_in_flight.inc()
        return permit

    def release(self, permit: Permit) -> None:
        self._bulkhead.in_flight -= 1
        self._metrics.summarizer_in_flight.dec()
        self._breaker.release(permit)

    def note_late_start(self, summarizer: Summarizer) -> None:
        """Count a call as failed that was cancelled because it had not started in time, unless it
        waited for nothing but its turn in this process."""
        if runs_in_process(summarizer):
            return
        _log.warning(
            "summarizer %s failed: it did not begin within summary.first_token", summarizer.name
        )
        self._update_breaker(self._breaker.note_failure)

    def _update_breaker(self, update: Callable[[], None]) -> None:
        """Update the breaker, and its gauge if that opened or closed it. From then on the log has
        no line for each failure, so say that it opened."""
        was_open = self._breaker.is_open
        update()
        self._metrics.breaker_open.inc(self._breaker.is_open - was_open)
        if self._breaker.is_open and not was_open:
            _log.warning(
                "the summarizer is not called for %g s, after %d failures in a row", *self._pause
            )

    async def summarize(
        self, summarizer: Summarizer, passage: Passage
    ) -> AsyncGenerator[str | SummarizerUsage, None]:
        """Yield the part's text, clean and never blank, then at most one `SummarizerUsage`.

        Raises SummarizerError, with the usage of the call as far as it is known. A call that is
        cancelled or closed early counts neither as a failure nor as a success.
        """
        if runs_in_process(summarizer) and not self.reviews:
            for piece in await self._write_in_process(summarizer, passage):
                yield piece
            return
        call = GuardedCall(summarizer, passage, self._reviewer, self._timeout)
        outcome: str | Outcome = None
        try:
            while isinstance(outcome := await call.output.get(), str):
                yield outcome
        finally:
            call.stop_timer()
            self._observe_review(call, outcome)
            await self._end(call, summarizer)
        failure = self._settle(call, summarizer, outcome)
        if failure is not None:
            raise _with_usage(failure, call.usage)
        if outcome is not None:
            yield call.draft  # it could not be reviewed, and is shown all the same
        if call.usage is not None:
            yield call.usage

    async def _write_in_process(
        self, summarizer: Summarizer, passage: Passage
    ) -> list[str | SummarizerUsage]:
        """Write a part that nobody reviews: without a time limit, and so without a task for it."""
        try:
            pieces = [piece async for piece in summarizer.summarize(passage)]
            text = _clean_text(pieces)
        except Exception as error:
            failure, cause = _explain(None, summarizer, error)
            _log_failure(None, summarizer, cause, error)
            raise failure from error
        return [text, *(piece for piece in pieces if isinstance(piece, SummarizerUsage))]

    async def _end(self, call: GuardedCall, summarizer: Summarizer) -> None:
        """Stop the call if it has not ended, and wait until its task is done; not for long, since a
        user's code may ignore that it is cancelled, or never finish closing."""
        if not call.ended:
            call.task.cancel()
        try:
            if not call.task.done():
                await asyncio.wait([call.task], timeout=CLOSE_SECONDS)
        finally:
            if not call.task.done():
                _log.warning("summarizer %s does not stop and is abandoned", summarizer.name)
                call.task.cancel()
                self._left_behind.add(call.task)
                call.task.add_done_callback(self._left_behind.discard)
        if call.close_error is not None:
            cause = _describe(call, summarizer, call.close_error)
            _log.warning("summarizer %s could not be closed: %s", summarizer.name, cause)

    def _settle(
        self, call: GuardedCall, summarizer: Summarizer, outcome: Outcome
    ) -> SummarizerError | None:
        """Count how a call ended; return its failure, None if what it wrote may be shown."""
        failure: SummarizerError | None = None
        if call.verdict == "withheld":
            stops = self._reviewer is not None and self._reviewer.stops_on_flag
            failure = SummaryWithheld("The summary was withheld.", stops=stops)
        elif outcome is not None:
            failure, cause = _explain(call, summarizer, outcome)
            if not self._shows_unreviewed(call):
                # The breaker limits the number of most of these log lines.
                _log_failure(call, summarizer, cause, outcome)
                self._update_breaker(self._note_for(failure))
                return failure
            failure = None
            if not self._review_fails:
                _log_failure(call, summarizer, f"{cause}; parts are shown without it", outcome)
            self._review_fails = True
        self._update_breaker(self._breaker.note_success)
        return failure

    def _note_for(self, failure: SummarizerError) -> Callable[[], None]:
        """Return what the breaker is told of a failure: nothing bad of a server that answers. What
        its model writes depends on the reasoning, and nobody's may stop the others' summaries."""
        wrote = failure.code in FAILURES
        return self._breaker.note_success if wrote else self._breaker.note_failure

    def _shows_unreviewed(self, call: GuardedCall) -> bool:
        return call.reviewing and self._reviewer is not None and self._reviewer.shows_on_failure

    def _observe_review(self, call: GuardedCall, outcome: str | Outcome) -> None:
        """Count and time a review, if the call came to one."""
        if call.review_began is None:
            return
        if call.verdict is not None:
            self._review_fails = False
        label = call.verdict or _failure_label(outcome)
        self._metrics.review_seconds.labels(label).observe(time.monotonic() - call.review_began)


def _clean_text(pieces: list[str | SummarizerUsage]) -> str:
    """Return the text in what a summarizer yielded. Raises SummarizerError if there is none."""
    text = clean("".join([piece for piece in pieces if isinstance(piece, str)])).lstrip()
    if not text:
        raise SummarizerError("empty", "The summarizer returned no text.")
    return text


def _failure_label(outcome: str | Outcome) -> str:
    """Return the outcome of a review without a verdict, as in the metrics."""
    if isinstance(outcome, TimeoutError):
        return "timeout"
    return "failed" if isinstance(outcome, BaseException) else "cancelled"


def _explain(
    call: GuardedCall | None, summarizer: Summarizer, error: BaseException
) -> tuple[SummarizerError, str]:
    """Return a failure as the client may see it, and its cause for the log."""
    if isinstance(error, SummarizerError):
        failure = _as_reported(error)
        cause = f"{failure} ({failure.code})"
        if not _is_users(call, summarizer):
            cause = "; ".join([cause, *getattr(error, "__notes__", ())])
        elif call.is_quoted_in(_in_one_line(cause)):
            cause = type(error).__name__
        cause = _in_one_line(cause)
    elif isinstance(error, TimeoutError):
        failure = SummarizerError("timeout", "The summarizer took too long.")
        cause = _describe(call, summarizer, error) if error.args else "it took too long"
    else:
        failure = SummarizerError("upstream_error", "The summarizer failed.")
        cause = _describe(call, summarizer, error)
    if call is not None and call.reviewing:
        failure = SummaryWithheld("The summary was withheld because it could not be reviewed.")
    return failure, cause


def _log_failure(
    call: GuardedCall | None, summarizer: Summarizer, cause: str, error: BaseException
) -> None:
    if call is not None and call.reviewing:
        _log.warning("review failed: %s", cause)
    else:
        _log.warning("summarizer %s failed: %s", summarizer.name, cause)
    if _log.isEnabledFor(logging.DEBUG):  # it reads source files
        _log.debug("it failed here:\n%s", "".join(format_tb(error.__traceback__)))


def _is_users(call: GuardedCall | None, summarizer: Summarizer) -> TypeGuard[GuardedCall]:
    """Return whether what failed is a user's code."""
    return call is not None and (call.reviewing or isinstance(summarizer, UserSummarizer))


def _describe(call: GuardedCall | None, summarizer: Summarizer, error: BaseException) -> str:
    """Return an exception's type and its message, if that is a user's own.

    Another message might quote a key, and a user's a prompt.
    """
    if _is_users(call, summarizer):
        try:
            described = _in_one_line(_tell(error))
        except Exception:  # noqa: BLE001 -- a SyntaxError's may fail, where its position is odd
            return type(error).__name__
        if not call.is_quoted_in(described):
            return described
    return type(error).__name__


def _tell(error: BaseException) -> str:
    """Return an exception's type and message, and those of the first one in a group."""
    told = "".join(format_exception_only(error)).strip()
    if isinstance(error, BaseExceptionGroup):
        return f"{told}: {_tell(error.exceptions[0])}"
    return told


def _in_one_line(text: str) -> str:
    return " ".join(replace_halves(text).split())[:MAX_CAUSE_CHARS]


def _as_reported(error: SummarizerError) -> SummarizerError:
    """Return the error with what it should have; a user's may lack anything, or raise it."""
    try:
        code, spent, model = (getattr(error, name, None) for name in ("code", "spent", "model"))
        usage = checked_usage(SummarizerUsage(spent, model))
        return SummarizerError(
            replace_halves(code) if isinstance(code, str) else "upstream_error",
            replace_halves(str(error)),
            spent=usage.tokens,
            model=usage.model,
        )
    except BaseException as raised:  # noqa: BLE001 -- a user's may raise anything
        let_pass(raised)
        return SummarizerError("upstream_error", "The summarizer failed.")


def _with_usage(error: SummarizerError, usage: SummarizerUsage | None) -> SummarizerError:
    """Add the usage of the call to an error that does not state it."""
    if usage is not None:
        error.spent = error.spent or usage.tokens
        error.model = error.model or usage.model
    return error


class GraceBackoff(defaultdict[str, CircuitBreaker]):
    """A breaker for each route, which opens when summaries miss the grace. `clock` returns
    seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(partial(CircuitBreaker, MISSES_TO_BACK_OFF, BACKOFF_SECONDS, clock))

    def note(self, route: str, *, missed: bool) -> None:
        """Note whether a summary was ready within the grace. A miss is ignored while backing off:
        nothing waited for it."""
        breaker = self[route]
        if not missed:
            breaker.note_success()
        elif breaker.admits:
            breaker.note_failure()
