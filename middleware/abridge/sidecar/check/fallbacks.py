"""Say which upstreams stand in for another, which are known to be down, and whether the store that
knows it can be reached."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import groupby

from abridge.config.settings import Route, Settings
from abridge.errors import SettingsError
from abridge.memory.registry import MemoryRegistry
from abridge.memory.stores.store import observe_nothing
from abridge.pipeline.shared_findings import found_down
from abridge.sidecar.check.reach import Finding


def describe_fallbacks(route: Route, settings: Settings) -> Iterator[Finding]:
    """Yield the fallbacks of an upstream in order, and when they answer."""
    upstream, parts = route.upstream, []
    for is_drawn, group in groupby(settings.fallbacks_of(route), lambda each: each[1] is not None):
        named = [(each.upstream.name, weight or 0.0) for each, weight in group]
        total = sum(weight for _, weight in named)
        drawn = " or ".join(f"{name} ({weight / (total or 1):.0%})" for name, weight in named)
        parts += [drawn] if is_drawn else [name for name, _ in named]
    if parts:
        text = (
            f"falls back to {', then '.join(parts)}; after {upstream.breaker_failures} failures in "
            f"a row, at once for {upstream.breaker_seconds:g} s"
        )
        yield Finding(f"upstream {upstream.name}", text)


STORE_ANSWERS = Finding("store", "history.store answers")

STORE_FAILS = Finding("store", "history.store does not answer; the log says why", "fault")


async def check_store(settings: Settings) -> AsyncIterator[Finding]:
    """Yield whether a shared store answers, and the upstreams that its replicas have found down."""
    try:
        registry = MemoryRegistry(settings, observe_nothing, None)
    except SettingsError:  # which was said
        return
    if (store := registry.stores.shared) is not None:
        down = await found_down(store, [route.upstream for route in settings.routes])
        yield STORE_FAILS if store.is_down else STORE_ANSWERS
        for each in down:
            text = "a replica has found it down; requests with a fallback skip it"
            yield Finding(f"upstream {each.name}", text, "note")
    await registry.stores.aclose()
