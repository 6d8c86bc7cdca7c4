"""Test the admin endpoints."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.registry import Collector

from abridge.sidecar import admin
from abridge.sidecar.admin import AdminEndpoints, Health, scrape_due_at
from tests.support.asgi import call
from tests.support.loop_turns import note_calls_beside


class ThreadRecorder(Collector):
    """A collector that records in which thread it runs."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def collect(self) -> Iterator[Metric]:
        self.threads.append(threading.current_thread())
        yield from ()


async def test_metrics_are_collected_and_noted_outside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noted = note_calls_beside(monkeypatch, (admin, "_parse_counters"))
    registry, recorder = CollectorRegistry(), ThreadRecorder()
    registry.register(recorder)
    recorder.threads.clear()
    response = await call(AdminEndpoints("", Health(), registry), "/metrics", b"", method="GET")
    assert response.status == 200
    (thread,) = recorder.threads
    assert thread is not threading.current_thread()
    assert noted == {("_parse_counters", True)}


@pytest.mark.parametrize(
    ("times", "due_at"),
    [
        ([], 0),
        ([10], 0),
        ([10, 25], 0),
        ([10, 25, 40], 70),
        ([10, 11, 12], 22),
        ([10, 12, 25, 27, 40], 66),  # two who scrape alike
    ],
)
def test_a_scrape_is_due_within_twice_the_longest_pause(times: list[float], due_at: float) -> None:
    assert scrape_due_at(times) == due_at


async def test_no_scrape_is_due_of_one_who_has_stopped() -> None:
    now = [0.0]
    endpoints = AdminEndpoints("", Health(), CollectorRegistry(), clock=lambda: now[0])
    due: list[float | None] = []
    for now[0] in (0, 15, 30):
        await call(endpoints, "/metrics", b"", method="GET")
        due.append(endpoints.scrape_due_in)
    assert due == [None, None, 30]
    now[0] = 61
    assert endpoints.scrape_due_in is None
