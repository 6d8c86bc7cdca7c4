"""Which upstreams are up, as requests show.

An upstream that fails several times in a row is down for a while: requests that may go elsewhere
do. Then one request at a time tries it, and the first answer shows that it is up again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Self

from abridge.breaker import CircuitBreaker
from abridge.config.settings import Route
from abridge.config.upstreams import UpstreamSettings
from abridge.observability.metrics import Metrics

_log = logging.getLogger(__name__)


class UpstreamHealth:
    """Knows whether the upstreams of the settings in force are up.

    `listener` is called with an upstream that is found to be up again, or down, or still down.
    """

    listener: Callable[[UpstreamSettings], None] | None = None

    def __init__(self, metrics: Metrics, time: Callable[[], float] = monotonic) -> None:
        self._metrics = metrics
        self._time = time
        self._names: set[str] = set()
        self._breakers: dict[tuple[str, int, float], CircuitBreaker] = {}  # by upstream

    def watch(self, upstreams: Sequence[UpstreamSettings]) -> None:
        """Watch these upstreams from now on, and no others."""
        names = {upstream.name for upstream in upstreams}
        for name in self._names - names:
            self._metrics.upstream_up.labels(name).set(1)  # which ends an alert
        self._names = names
        self._breakers = {_key(upstream): self.breaker(upstream) for upstream in upstreams}
        for upstream in upstreams:
            self._show(upstream)

    def breaker(self, upstream: UpstreamSettings) -> CircuitBreaker:
        """Return an upstream's breaker, which is open while it is down; a new one for an upstream
        that is not watched."""
        key = _key(upstream)
        return self._breakers.get(key) or CircuitBreaker(*key[1:], self._time)

    def note(self, upstream: UpstreamSettings, *, is_up: bool) -> None:
        """Note that an upstream answered, or that it failed."""
        breaker = self._breakers.get(_key(upstream))
        if breaker is None:
            return
        was_open = breaker.is_open
        (breaker.note_success if is_up else breaker.note_failure)()
        why = f"{upstream.breaker_failures} failures in a row"
        self._tell_change(upstream, why, was_open=was_open)
        if self.listener is not None and (was_open or breaker.is_open):
            self.listener(upstream)

    def take_over(self, upstream: UpstreamSettings, *, is_up: bool) -> None:
        """Take over what another replica found."""
        breaker = self.breaker(upstream)
        was_open = breaker.is_open
        (breaker.note_success if is_up else breaker.open)()
        self._tell_change(upstream, "what another replica found", was_open=was_open)

    def _show(self, upstream: UpstreamSettings) -> None:
        """Have the metrics show whether an upstream is up."""
        is_up = not self.breaker(upstream).is_open
        self._metrics.upstream_up.labels(upstream.name).set(is_up)

    def _tell_change(self, upstream: UpstreamSettings, why: str, *, was_open: bool) -> None:
        is_open = self.breaker(upstream).is_open
        if is_open is was_open:
            return
        self._show(upstream)
        if is_open:
            _log.warning(
                "upstream %s: down after %s; requests with a fallback skip it for %g seconds",
                *(upstream.name, why, upstream.breaker_seconds),
            )
        else:
            _log.info("upstream %s: up again", upstream.name)


def _key(upstream: UpstreamSettings) -> tuple[str, int, float]:
    return upstream.identity, upstream.breaker_failures, upstream.breaker_seconds


class Attempt:
    """A request's attempt at the upstream of a route. The proxy reports how it goes; where the
    attempt `moves_on`, another upstream is asked if this one cannot answer; where it `stands_in`,
    the request's own is another one."""

    def __init__(
        self, health: UpstreamHealth, route: Route, *, moves_on: bool, stands_in: bool = False
    ) -> None:
        self.route = route
        self.moves_on = moves_on
        self.stands_in = stands_in
        self._health = health
        self._breaker = health.breaker(route.upstream)

    def __enter__(self) -> Self:
        self._breaker.admit(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._breaker.release(self)

    def note(self, *, is_up: bool) -> None:
        self._health.note(self.route.upstream, is_up=is_up)
