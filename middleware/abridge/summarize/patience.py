"""How long an answer may wait, seen over many answers.

A summarizer that misses the grace makes every answer late by all of it. Two misses running, and a
route's answers do not wait at all for a while; the first after that tries again.
"""

from __future__ import annotations

from dataclasses import dataclass

MISSES = 2
SECONDS = 30.0
ROUTES = 1024
"""How many routes are remembered; beyond them the one that missed longest ago is forgotten."""


@dataclass(slots=True)
class _Record:
    misses: int = 0
    until: float = 0.0


class Patience:
    """Remembers who missed. `now` is in seconds, on any clock that does not go back."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def grace(self, route: str, now: float, grace: float) -> float:
        """The grace that the route's next answer has: `grace`, or nothing."""
        record = self._records.get(route)
        return 0.0 if record is not None and now < record.until else grace

    def missed(self, route: str, now: float) -> None:
        """A summary was not ready within the grace. Without one, that says nothing."""
        if not self.grace(route, now, 1.0):
            return
        record = self._records.pop(route, None) or _Record()
        self._records[route] = record
        record.misses += 1
        if record.misses >= MISSES:
            record.until = now + SECONDS
        if len(self._records) > ROUTES:
            del self._records[next(iter(self._records))]

    def met(self, route: str) -> None:
        """A summary was ready in time."""
        self._records.pop(route, None)
