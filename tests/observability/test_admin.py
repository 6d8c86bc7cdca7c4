"""Test the admin endpoints."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from abridge.observability.admin import AdminEndpoints, Health
from tests.support.asgi import call


class ThreadRecorder(Collector):
    """A collector that records in which thread it runs."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def collect(self) -> Iterator[Metric]:
        self.threads.append(threading.current_thread())
        yield from ()


async def test_metrics_are_collected_outside_the_event_loop() -> None:
    registry, recorder = CollectorRegistry(), ThreadRecorder()
    registry.register(recorder)
    recorder.threads.clear()
    response = await call(AdminEndpoints("", Health(), registry), "/metrics", b"", method="GET")
    assert response.status == 200
    (thread,) = recorder.threads
    assert thread is not threading.current_thread()
