"""Test what holds for each backend, with real servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from abridge.config.settings import Settings
from abridge.observability.ledger import open_backend
from abridge.observability.ledger.entry import TOKEN_COLUMNS
from abridge.observability.ledger.ledger import BATCH_SIZE, LedgerBackend
from abridge.observability.ledger.redis_stream import STREAM
from abridge.observability.ledger.usage import Grouping
from tests.observability.ledger.cases import ENTRY, NOON, entry, requests, usage_query

DAY = timedelta(days=1)


@dataclass
class Case:
    """Opens backends of one ledger, which begins empty."""

    url: str
    retention: float = 400 * 86400

    def open(self) -> LedgerBackend:
        settings = Settings(ledger={"url": self.url, "retention": self.retention})
        backend = open_backend(settings)
        assert backend is not None
        return backend


@pytest.fixture(params=["redis_server", "redis_cluster", "postgres_server"])
async def case(request: pytest.FixtureRequest) -> Case:
    server = request.getfixturevalue(request.param)
    if request.param == "postgres_server":
        return Case(await server.new_database())
    made = Case(server.url)
    backend: Any = made.open()
    await backend._eval("return redis.call('DEL', KEYS[1])", 1, STREAM)
    await backend.aclose()
    return made


@pytest.fixture
async def backend(case: Case) -> AsyncIterator[LedgerBackend]:
    opened = case.open()
    yield opened
    await opened.aclose()


async def test_what_is_written_is_read(backend: LedgerBackend) -> None:
    await backend.write([ENTRY])
    (found,) = await backend.read(usage_query())
    assert (found.name, found.requests) == ("research", 1)
    assert found.tokens == [getattr(ENTRY, column) for column in TOKEN_COLUMNS]
    assert (found.price, found.currency) == (Decimal("0.1"), "USD")


async def test_sums_are_exact(backend: LedgerBackend) -> None:
    prices = [Decimal("0.1"), Decimal("0.2"), Decimal("123456789012.000000000001")]
    await backend.write([entry(n, price=price) for n, price in enumerate(prices)])
    (found,) = await backend.read(usage_query())
    assert found.price == Decimal("123456789012.300000000001")


async def test_a_batch_that_comes_twice_is_written_once(backend: LedgerBackend) -> None:
    batch = [entry(n) for n in range(3)]
    for again in (batch, batch, [entry(9)]):
        await backend.write(again)
    assert requests(await backend.read(usage_query())) == {"research": 4}


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 10, 20])
async def test_a_batch_that_was_broken_off_is_written_once(
    backend: LedgerBackend, turns: int
) -> None:
    """Whatever the server had of it, and whether or not it could still reply."""
    await backend.write([entry(9)])
    batch = [entry(n) for n in range(3)]
    writing = asyncio.ensure_future(backend.write(batch))
    for _ in range(turns):
        await asyncio.sleep(0.0002)
    writing.cancel()
    await asyncio.wait([writing])
    await backend.write(batch)
    assert requests(await backend.read(usage_query())) == {"research": 4}


async def test_processes_write_beside_each_other(case: Case, backend: LedgerBackend) -> None:
    other = case.open()
    await asyncio.gather(
        backend.write([entry(n) for n in range(BATCH_SIZE)]),
        other.write([entry(BATCH_SIZE + n) for n in range(BATCH_SIZE)]),
    )
    await other.aclose()
    assert requests(await backend.read(usage_query())) == {"research": 2 * BATCH_SIZE}


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("team", {"": 1, "research": 1, "sales": 1}),
        ("key", {"alice": 2, "bob": 1}),
        ("model", {"gpt-oss": 1, "qwen": 2}),
        ("upstream", {"default": 3}),
        ("day", {"2026-11-28": 2, "2026-11-29": 1}),
    ],
)
async def test_usage_is_added_up_by(
    backend: LedgerBackend, by: Grouping, names: dict[str, int]
) -> None:
    await backend.write(
        [
            entry(1),
            entry(2, team="sales", model="qwen", time=NOON + DAY / 2),
            entry(3, team=None, key="bob", model="qwen", time=NOON + DAY / 2 - DAY / 86400),
        ]
    )
    found = await backend.read(usage_query(by))
    assert requests(found) == names
    assert [each.name for each in found] == sorted(names)


async def test_currencies_and_requests_without_a_price_are_apart(backend: LedgerBackend) -> None:
    await backend.write(
        [
            entry(1),
            entry(2, currency="EUR", price=Decimal(2)),
            entry(3, currency=None, price=None),
            entry(4, price=Decimal(0)),
        ]
    )
    found = await backend.read(usage_query())
    assert [(each.currency, each.requests, each.price) for each in found] == [
        ("", 1, 0),
        ("EUR", 1, 2),
        ("USD", 2, Decimal("0.1")),
    ]


async def test_tokens_that_nobody_reported_are_no_tokens(backend: LedgerBackend) -> None:
    await backend.write([entry(1, **dict.fromkeys(TOKEN_COLUMNS)), entry(2)])
    (found,) = await backend.read(usage_query())
    assert found.tokens == [getattr(ENTRY, column) for column in TOKEN_COLUMNS]


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [(NOON, NOON + DAY, 1), (NOON - DAY, NOON, 0), (NOON + DAY / 1000, NOON + DAY, 0)],
)
async def test_a_request_counts_by_its_arrival(
    backend: LedgerBackend, since: datetime, until: datetime, expected: int
) -> None:
    await backend.write([ENTRY])
    found = await backend.read(usage_query(since=since, until=until))
    assert sum(each.requests for each in found) == expected


async def test_a_time_may_be_of_any_zone(backend: LedgerBackend) -> None:
    east = timezone(timedelta(hours=9))
    await backend.write([ENTRY])
    day = datetime(2026, 11, 28, tzinfo=east)
    assert await backend.read(usage_query("day", day, day + DAY))
    assert not await backend.read(usage_query("day", day + DAY, day + 2 * DAY))


async def test_a_clock_that_is_ahead_loses_nothing(backend: LedgerBackend) -> None:
    """Redis notes when an entry was written by a clock of its own."""
    ahead = datetime.now(UTC) + timedelta(minutes=10)
    await backend.write([entry(1, time=ahead)])
    found = await backend.read(usage_query(since=ahead, until=ahead + DAY))
    assert requests(found) == {"research": 1}


async def test_more_than_a_page_is_read(backend: LedgerBackend) -> None:
    for start in range(0, 2400, BATCH_SIZE):
        await backend.write([entry(start + n) for n in range(BATCH_SIZE)])
    assert requests(await backend.read(usage_query())) == {"research": 2400}


async def test_names_of_any_script_are_kept(backend: LedgerBackend) -> None:
    name = "模型 «ü» 'x'; --"
    await backend.write([entry(1, model=name, response_model="")])
    assert requests(await backend.read(usage_query("model"))) == {name: 1}
