"""A circuit breaker for calls that may fail."""

from __future__ import annotations

from collections.abc import Callable


class CircuitBreaker:
    """Opens for `seconds` after `failures` consecutive failures.

    After that it lets one trial through at a time; a success closes it. `clock` returns seconds.
    """

    def __init__(self, failures: int, seconds: float, clock: Callable[[], float]) -> None:
        self._failure_limit = failures
        self._seconds = seconds
        self._clock = clock
        self._failures = 0
        self._opened_at: float | None = None
        self._trial: object | None = None

    @property
    def is_open(self) -> bool:
        return self._opened_at is not None

    @property
    def admits(self) -> bool:
        """Whether a caller may proceed."""
        if self._opened_at is None:
            return True
        return self._trial is None and self._clock() >= self._opened_at + self._seconds

    def admit(self, caller: object) -> bool:
        """Return true if `caller` may proceed; while open, it is the trial until it is released."""
        if not self.admits:
            return False
        if self.is_open:
            self._trial = caller
        return True

    def release(self, caller: object) -> None:
        if self._trial is caller:
            self._trial = None

    def note_success(self) -> None:
        self._failures, self._opened_at = 0, None

    def note_failure(self) -> None:
        self._failures += 1
        if self.is_open or self._failures >= self._failure_limit:
            self.open()

    def open(self) -> None:
        """Open it now, for what somebody else has seen."""
        self._opened_at = self._clock()
