"""Test what `abridge check` says of fallbacks and of upstreams that are down."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client import CollectorRegistry

from abridge.config.settings import Settings
from abridge.memory.registry import MemoryRegistry
from abridge.memory.stores.store import observe_nothing
from abridge.observability.metrics import metrics_for
from abridge.pipeline.health import UpstreamHealth
from abridge.pipeline.shared_findings import SharedFindings
from abridge.sidecar.check.fallbacks import (
    STORE_ANSWERS,
    STORE_FAILS,
    check_store,
    describe_fallbacks,
)
from abridge.sidecar.cli.commands import main
from tests.support.redis_server import Server
from tests.support.servers import HANG, unused_address


def settings_with(fallback: Any, **tables: Any) -> Settings:
    upstreams = [{"name": each, "base_url": f"http://{each}.test/v1"} for each in "abcd"]
    upstreams[0] |= {"fallback": fallback, "breaker_failures": 2}
    return Settings(upstreams=upstreams, **tables)


@pytest.mark.parametrize(
    ("fallback", "said"),
    [
        ("b", "b"),
        (["b", "c"], "b, then c"),
        (
            [{"upstream": "b", "weight": 3}, {"upstream": "c", "weight": 1}, "d"],
            "b (75%) or c (25%), then d",
        ),
    ],
)
def test_fallbacks_are_said_in_order_with_their_shares(fallback: Any, said: str) -> None:
    settings = settings_with(fallback)
    (found,) = describe_fallbacks(settings.routes[0], settings)
    assert found.subject == "upstream a"
    assert found.text == (f"falls back to {said}; after 2 failures in a row, at once for 30 s")
    assert not list(describe_fallbacks(settings.routes[1], settings))


async def test_what_a_replica_found_down_is_said(
    redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("abridge.memory.stores.redis_client.MAX_WAIT", HANG)
    monkeypatch.setenv("SEAL", f"a:{b64encode(bytes(32)).decode()}")
    history = {"store": redis_server.url, "seal_keys_env": "SEAL"}
    settings = settings_with("b", history=history)
    assert [each async for each in check_store(settings)] == [STORE_ANSWERS]
    registry = MemoryRegistry(settings, observe_nothing, None)
    assert registry.stores.shared is not None
    health = UpstreamHealth(metrics_for(CollectorRegistry()))
    sharing = SharedFindings(registry.stores.shared, health, {})
    for each in (health, sharing):
        each.watch(settings.upstreams)
    sharing.start()
    for _ in range(2):
        health.note(settings.upstreams[0], is_up=False)
    async with asyncio.timeout(HANG):
        while len(found := [each async for each in check_store(settings)]) == 1:  # noqa: ASYNC110 -- a task
            await asyncio.sleep(0.05)
    assert [(each.subject, each.grade) for each in found[1:]] == [("upstream a", "note")]
    await sharing.aclose()
    await registry.stores.aclose()


async def test_a_store_that_cannot_be_reached_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEAL", f"a:{b64encode(bytes(32)).decode()}")
    address = unused_address().replace("http", "redis")
    settings = settings_with("b", history={"store": address, "seal_keys_env": "SEAL"})
    assert [each async for each in check_store(settings)] == [STORE_FAILS]


async def test_without_a_shared_store_none_is_spoken_of() -> None:
    assert not [each async for each in check_store(settings_with("b"))]


def test_findings_can_be_had_as_json() -> None:
    words = ["check", "--json", "--upstream", f"{unused_address()}/v1"]
    result = CliRunner().invoke(main, words)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert all(each.keys() == {"subject", "text", "grade"} for each in found)
    assert "fault" in {each["grade"] for each in found}
