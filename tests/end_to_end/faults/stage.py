"""One request, really sent, between a client, Abridge, an upstream and a summarizer that deal in
bytes; and what must be left of it, which is nothing."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch
from weakref import WeakSet

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

from abridge.app import create_app
from abridge.core.sequencer import Sequencer
from abridge.pipeline.client import Clock
from abridge.pipeline.exchange import Exchange
from abridge.proxy.calls import log_in_one_line
from tests.end_to_end.faults.dialects import Dialect
from tests.end_to_end.faults.players import Player, on_stage
from tests.end_to_end.faults.replies import Reply, reply
from tests.end_to_end.faults.turns import Said
from tests.support.deployments import settings_for
from tests.support.servers import Peer, connect, serve, soon, until

LONG, SHORT = 60.0, 1.0
"""Seconds: no test takes as long as the one; where the other runs out, it is meant to."""

PART = 100
"""Characters of reasoning for the first part of a summary."""


@dataclass
class Stage:
    """`client` is one end of a connection to Abridge. `alive` are the exchanges and weavers that
    somebody still holds."""

    dialect: Dialect
    client: Peer
    upstream: Player
    summarizer: Player
    registry: CollectorRegistry
    alive: WeakSet[Any]
    samples: list[Sample] = field(default_factory=list)

    async def ask(self, *, streamed: bool, summary: bool = True) -> None:
        wish = {"reasoning": {"summary": "auto"}} if summary else {}
        question = self.dialect.question
        asking = {"model": "m", "stream": streamed, **question, **wish}
        body = json.dumps(asking).encode()
        head = (
            f"POST {self.dialect.path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        await self.client.send(head.encode() + body)

    async def reply(self) -> Reply:
        return await soon(reply(self.client))

    def hear(self, reply: Reply) -> Said:
        """What a complete answer says."""
        assert reply.complete
        if reply.header(b"content-type") == b"text/event-stream":
            return self.dialect.hear(reply.body)
        return self.dialect.read(reply.json)

    def count(self, name: str, label: str) -> dict[str, float]:
        """At the end, a metric's values that are not zero, by one of its labels."""
        found: dict[str, float] = {}
        for sample in self.samples:
            if sample.name == f"abridge_{name}" and sample.value:
                key = sample.labels.get(label, "")
                found[key] = found.get(key, 0) + sample.value
        return found


@asynccontextmanager
async def stage(
    dialect: Dialect, upstream: Player, summarizer: Player, /, **tables: dict[str, Any]
) -> AsyncIterator[Stage]:
    """Nothing of what happened there is left at the end."""
    registry = CollectorRegistry()
    with traced() as alive, quiet():
        async with on_stage(upstream) as (up, played), on_stage(summarizer) as (small, written):
            app = create_app(settings(dialect, up, small, **tables), registry=registry)
            async with serve(app) as url, connect(url) as client:
                here = Stage(dialect, client, upstream, summarizer, registry, alive)
                yield here
                await nothing_runs(here, lambda: {*played, *written})
            await app.aclose()
            await soon(asyncio.gather(*played, *written, return_exceptions=True))


def settings(dialect: Dialect, upstream: str, summarizer: str, /, **tables: dict[str, Any]) -> Any:
    return settings_for(
        upstreams=[{"base_url": f"{upstream}/v1", **tables.get("upstream", {})}],
        summarizer={
            "kind": "model",
            "base_url": f"{summarizer}/v1",
            "model": "mini",
            "api": dialect.name,
            "timeout": LONG,
            **tables.get("summarizer", {}),
        },
        summary={
            "grace": LONG,
            "first_token": LONG,
            "part_chars": PART,
            **tables.get("summary", {}),
        },
        limits={"connect": LONG, "headers": LONG, "idle": LONG, **tables.get("limits", {})},
    )


async def nothing_runs(here: Stage, played: Callable[[], set[asyncio.Task[None]]]) -> None:
    """Wait until nobody works at anything any more, then see that nothing is kept."""
    ours = asyncio.current_task()

    def idle() -> bool:
        running = asyncio.all_tasks() - played() - {ours}
        return not (running or here.upstream.busy or here.summarizer.busy)

    await until(idle)
    here.samples = [sample for metric in here.registry.collect() for sample in metric.samples]
    assert here.count("streams_open", "api") == {}
    assert here.count("held_bytes", "") == {}
    gc.collect()
    assert not list(here.alive)


@contextmanager
def traced() -> Iterator[WeakSet[Any]]:
    """The exchanges and weavers made meanwhile, as long as they live; their clock is the loop's."""
    alive: WeakSet[Any] = WeakSet()
    loop = asyncio.get_running_loop()

    def trace(made: type) -> Callable[..., Any]:
        def make(*args: Any, **named: Any) -> Any:
            alive.add(new := made(*args, **named))
            return new

        return make

    with (
        patch("abridge.pipeline.engage.Exchange", trace(Exchange)),
        patch("abridge.pipeline.exchange.Sequencer", trace(Sequencer)),
        patch("abridge.pipeline.exchange.Clock", partial(Clock, loop.time)),
    ):
        yield alive


@contextmanager
def quiet() -> Iterator[None]:
    """The server logs what the application raised without keeping it, as `abridge serve` does."""
    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(log_in_one_line)
    try:
        yield
    finally:
        logger.removeFilter(log_in_one_line)
