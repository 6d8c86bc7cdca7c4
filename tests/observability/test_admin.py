"""Abridge's own paths."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from abridge.observability.admin import AdminEndpoints, Health
from tests.support.asgi import call


class Where(Collector):
    """Notes in which thread the figures are collected."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def collect(self) -> Iterator[Metric]:
        self.threads.append(threading.current_thread())
        yield from ()


async def test_streams_go_on_while_the_figures_of_many_are_collected() -> None:
    registry, where = CollectorRegistry(), Where()
    registry.register(where)
    where.threads.clear()
    response = await call(AdminEndpoints("", Health(), registry), "/metrics", b"", method="GET")
    assert response.status == 200
    (thread,) = where.threads
    assert thread is not threading.current_thread()
