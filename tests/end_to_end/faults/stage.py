"""One request over real sockets between a client, Abridge, an upstream and a summarizer.

Nothing of it may be left at the end.
"""

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

from abridge.core.sequencer import Sequencer
from abridge.pipeline.client import Clock
from abridge.pipeline.exchange import Exchange
from abridge.pipeline.exchange_plan import FIRST_SHARE
from abridge.sidecar.app import create_app
from abridge.sidecar.proxy.calls import log_in_one_line
from tests.end_to_end.faults.dialects import Dialect
from tests.end_to_end.faults.players import Player, serve_player
from tests.end_to_end.faults.replies import Reply, reply
from tests.end_to_end.faults.turns import ParsedAnswer
from tests.support.deployments import settings_for
from tests.support.servers import Peer, connect, serve, soon, until

LONG, SHORT = 60.0, 3.0
"""Seconds: a limit that no test reaches, and one that is meant to run out."""

PART = round(100 / FIRST_SHARE)
"""The setting `part_chars`, by which the first part of a summary is cut at 100 characters."""


@dataclass
class Stage:
    """`client` is a connection to Abridge; `alive` are the exchanges and sequencers in memory."""

    dialect: Dialect
    client: Peer
    upstream: Player
    summarizer: Player
    registry: CollectorRegistry
    alive: WeakSet[Any]
    samples: list[Sample] = field(default_factory=list)

    async def ask(self, *, streamed: bool, summary: bool = True) -> None:
        wish = self.dialect.wish if summary else {}
        request = {"model": "m", "stream": streamed, **self.dialect.question, **wish}
        body = json.dumps(request).encode()
        head = (
            f"POST {self.dialect.path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        await self.client.send(head.encode() + body)

    async def reply(self) -> Reply:
        return await soon(reply(self.client))

    def parse(self, reply: Reply) -> ParsedAnswer:
        """Parse a complete answer."""
        assert reply.complete
        if reply.header(b"content-type") == b"text/event-stream":
            return self.dialect.parse_stream(reply.body)
        return self.dialect.parse_body(reply.json)

    def count(self, name: str, label: str) -> dict[str, float]:
        """Return a metric's final non-zero values by one of its labels."""
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
    """Set up the parties; assert at the end that nothing is left."""
    registry = CollectorRegistry()
    with track_instances() as alive, log_as_serve_does():
        async with (
            serve_player(upstream) as (upstream_url, played),
            serve_player(summarizer) as (summarizer_url, written),
        ):
            app = create_app(
                settings(dialect, upstream_url, summarizer_url, **tables), registry=registry
            )
            async with serve(app) as url, connect(url) as client:
                here = Stage(dialect, client, upstream, summarizer, registry, alive)
                yield here
                await assert_all_stopped(here, lambda: {*played, *written})
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


async def assert_all_stopped(here: Stage, played: Callable[[], set[asyncio.Task[None]]]) -> None:
    """Wait until everything is idle, then assert that nothing is left."""
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
def track_instances() -> Iterator[WeakSet[Any]]:
    """Track the exchanges and sequencers created; give them the loop's clock."""
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
def log_as_serve_does() -> Iterator[None]:
    """Let the server log exceptions without keeping them, as `abridge serve` does."""
    logger = logging.getLogger("uvicorn.error")
    logger.addFilter(log_in_one_line)
    try:
        yield
    finally:
        logger.removeFilter(log_in_one_line)
