"""Test a ledger whose server is killed and comes back, with real servers."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry

from abridge.config.settings import Settings
from abridge.observability.ledger import open_ledger
from abridge.observability.ledger.ledger import Ledger
from abridge.observability.metrics import metrics_for
from abridge.observability.spending import Prices
from tests.observability.ledger.cases import ALL_TIME, record, requests, usage_query
from tests.support.postgres_server import PostgresServer
from tests.support.redis_server import Server
from tests.support.servers import Peer, listen, until

FREE = Prices(Settings())

DURABLE = {"appendonly": "yes", "appendfsync": "always"}


class Kept:
    """A ledger at an address, and what it counts."""

    def __init__(self, url: str) -> None:
        self._registry = CollectorRegistry()
        ledger = open_ledger(Settings(ledger={"url": url}), metrics_for(self._registry))
        assert ledger is not None
        self.ledger: Ledger = ledger

    def count(self, name: str) -> float:
        return self._registry.get_sample_value(f"abridge_ledger_{name}") or 0.0

    async def add_and_wait(self, *models: str) -> None:
        for model in models:
            self.ledger.add(record(model=model), FREE)
        await until(lambda: not self.count("waiting"))

    async def models(self) -> dict[str, int]:
        return requests(await self.ledger._backend.read(usage_query("model", *ALL_TIME)))


@pytest.fixture
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("abridge.observability.ledger.ledger.WRITE_SECONDS", 0.01)
    monkeypatch.setattr("abridge.observability.ledger.ledger.RETRY_SECONDS", 0.01)


@pytest.mark.parametrize(
    ("scheme", "module"), [("redis", "redis_stream"), ("postgresql", "postgres")]
)
async def test_a_server_that_does_not_reply_is_given_up(
    scheme: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"abridge.observability.ledger.{module}.PATIENCE", 0.1)

    async def say_nothing(peer: Peer) -> None:
        await peer.reader.read()

    async with listen(say_nothing) as silent:
        kept = Kept(f"{scheme}://{silent.url.removeprefix('http://')}/0")
        kept.ledger.add(record(), FREE)
        await until(lambda: kept.count("failures_total") > 1)
        await kept.ledger.aclose()
    assert kept.count("lost_total") == 1


@pytest.mark.usefixtures("soon_again")
@pytest.mark.parametrize("kind", ["redis", "postgres"])
async def test_what_was_queued_is_written_once_the_server_is_back(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server = Server(**DURABLE) if kind == "redis" else PostgresServer()
    with server:
        url = server.url if isinstance(server, Server) else await server.new_database()
        stop: Callable[[], None] = server.kill if isinstance(server, Server) else server.stop
        kept = Kept(url)
        await kept.add_and_wait("before")
        stop()
        kept.ledger.add(record(model="meanwhile"), FREE)
        await until(lambda: kept.count("failures_total") > 2)
        kept.ledger.add(record(model="meanwhile"), FREE)
        server.start()
        await until(lambda: not kept.count("waiting"))
        await kept.add_and_wait("after")
        assert await kept.models() == {"after": 1, "before": 1, "meanwhile": 2}
        assert kept.count("lost_total") == 0
        await kept.ledger.aclose()
    messages = [each.message for each in caplog.records if "ledger" in each.name]
    assert len(messages) == 2
    assert "cannot be written" in messages[0]
    assert messages[1].endswith(": written again")
