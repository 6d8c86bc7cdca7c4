"""Suspend the grace of a route whose summaries keep missing it.

A summarizer that misses the grace delays every answer by all of it. After two consecutive misses
the answers of a route do not wait at all for a while; the first answer after that tries again.
"""

from __future__ import annotations

from dataclasses import dataclass

MISSES = 2
SECONDS = 30.0
ROUTES = 1024
"""Maximum routes remembered; beyond that, the route whose last miss is oldest is forgotten."""


@dataclass(slots=True)
class _Record:
    misses: int = 0
    until: float = 0.0


class Patience:
    """Remembers misses per route. `now` is in seconds on any monotonic clock."""

    def __init__(self) -> None:
        self._records: dict[str, _Record] = {}

    def grace(self, route: str, now: float, grace: float) -> float:
        """Return the grace for the route's next answer: `grace`, or 0 while backing off."""
        record = self._records.get(route)
        return 0.0 if record is not None and now < record.until else grace

    def missed(self, route: str, now: float) -> None:
        """Note that a summary was not ready within the grace; ignored while backing off."""
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
        """Note that a summary was ready in time."""
        self._records.pop(route, None)
