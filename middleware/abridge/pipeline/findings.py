"""What was found out about upstreams, and counts for a while only: an upstream may be upgraded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import NamedTuple

from cachetools import TLRUCache

from abridge.caches import MODELS, is_short
from abridge.config.upstreams import UpstreamSettings

FOUND_TTL = 600.0
"""Seconds for which a finding counts."""


class FoundValue(NamedTuple):
    """A finding, until it is looked for again."""

    value: str
    until: float


class Findings:
    """A text for each upstream and some names.

    `listener` is called with an upstream of which something was found.
    """

    listener: Callable[[UpstreamSettings], None] | None = None

    def __init__(self, time: Callable[[], float] = monotonic) -> None:
        self._time = time
        self._found: TLRUCache[tuple[str, ...], FoundValue] = TLRUCache(
            MODELS, ttu=lambda _, found, _now: found.until, timer=time
        )

    def find(self, upstream: UpstreamSettings, *names: str) -> FoundValue | None:
        return self._found.get((upstream.identity, *names))

    def keep(self, upstream: UpstreamSettings, *words: str, seconds: float = FOUND_TTL) -> None:
        """Keep a value, the last of these words, under the names before it."""
        *names, value = words
        if all(map(is_short, words)):
            self._found[upstream.identity, *names] = FoundValue(value, self._time() + seconds)

    def drop(self, upstream: UpstreamSettings, *names: str) -> None:
        self._found.pop((upstream.identity, *names), None)

    def tell(self, upstream: UpstreamSettings) -> None:
        """Tell the listener that something was found, or is no longer so."""
        if self.listener is not None:
            self.listener(upstream)

    def known(self, upstream: UpstreamSettings) -> Iterator[tuple[Sequence[str], float]]:
        """Yield what is known of an upstream: the names and the value, and for how many seconds
        that counts."""
        for (identity, *names), (value, until) in list(self._found.items()):
            if identity == upstream.identity:
                yield (*names, value), until - self._time()

    def take_over(self, upstream: UpstreamSettings, words: Sequence[str], seconds: float) -> None:
        """Take over what another replica found. Raises KeyError for a value that is not known."""
        if seconds > 0:
            self.keep(upstream, *words, seconds=min(seconds, FOUND_TTL))
