"""Test what only PostgreSQL has: a schema with versions, and rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

pytest.importorskip("asyncpg", reason="asyncpg is not installed")

from abridge.observability.ledger import postgres
from abridge.observability.ledger.postgres import LOCK, MIGRATIONS, PostgresTable
from tests.docs.pages import ROOT
from tests.observability.ledger.cases import entry, requests, usage_query
from tests.support.postgres_server import PostgresServer

YEAR = 366 * 86400.0

VERSION = "SELECT version FROM abridge_ledger_schema"


@pytest.fixture
async def url(postgres_server: PostgresServer) -> str:
    return await postgres_server.new_database()


@pytest.fixture
async def table(url: str) -> AsyncIterator[PostgresTable]:
    opened = PostgresTable(url, YEAR)
    yield opened
    await opened.aclose()


async def make_version(url: str, version: int) -> None:
    """Make the table as an older Abridge did."""
    for step in MIGRATIONS[:version]:
        await PostgresServer.query(url, step)
    await PostgresServer.query(url, "CREATE TABLE abridge_ledger_schema (version integer)")
    await PostgresServer.query(url, "INSERT INTO abridge_ledger_schema VALUES ($1)", version)


async def indices(url: str) -> set[str]:
    found = await PostgresServer.query(
        url, "SELECT indexname FROM pg_indexes WHERE tablename = 'abridge_ledger'"
    )
    return {name for (name,) in found}


async def test_an_older_table_is_brought_up_to_date_and_keeps_its_entries(
    url: str, table: PostgresTable
) -> None:
    await make_version(url, 1)
    columns = "INSERT INTO abridge_ledger (id, time, request, outcome, team)"
    older = f"{columns} VALUES ($1, $2, 'r', 'ok', 't')"
    await PostgresServer.query(url, older, "0" * 32, datetime.now(UTC))
    assert "abridge_ledger_time" not in await indices(url)
    await table.write([entry(1)])
    assert "abridge_ledger_time" in await indices(url)
    assert await PostgresServer.query(url, VERSION) == [(len(MIGRATIONS),)]
    assert requests(await table.read(usage_query())) == {"research": 1, "t": 1}


async def test_a_newer_table_is_written_as_it_is(url: str, table: PostgresTable) -> None:
    """As while replicas are replaced one by one."""
    await make_version(url, len(MIGRATIONS))
    await PostgresServer.query(url, "UPDATE abridge_ledger_schema SET version = 99")
    await PostgresServer.query(url, "ALTER TABLE abridge_ledger ADD COLUMN mood text")
    await table.write([entry(1)])
    assert await PostgresServer.query(url, VERSION) == [(99,)]
    assert requests(await table.read(usage_query())) == {"research": 1}


async def test_processes_that_begin_together_make_one_table(url: str) -> None:
    tables = [PostgresTable(url, YEAR) for _ in range(8)]
    await asyncio.gather(*(each.write([entry(n)]) for n, each in enumerate(tables)))
    assert requests(await tables[0].read(usage_query())) == {"research": 8}
    for each in tables:
        await each.aclose()


async def test_a_migration_that_is_broken_off_leaves_the_version_before(
    url: str, table: PostgresTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_version(url, 1)
    module = "abridge.observability.ledger.postgres.MIGRATIONS"
    monkeypatch.setattr(module, (*MIGRATIONS, "SELECT 1 / 0"))
    with pytest.raises(Exception, match="division by zero"):
        await table.write([entry(1)])
    assert await PostgresServer.query(url, VERSION) == [(1,)]
    assert "abridge_ledger_time" not in await indices(url)


async def test_old_entries_are_removed_by_the_servers_clock(url: str, table: PostgresTable) -> None:
    now = datetime.now(UTC)
    ages = timedelta(days=400), timedelta(days=300)
    await table.write([entry(n, time=now - age) for n, age in enumerate(ages)])
    assert requests(await table.read(usage_query())) == {"research": 1}


async def test_old_entries_are_removed_as_fast_as_others_come(
    table: PostgresTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "TRIM_SIZE", 2)
    now = datetime.now(UTC)
    old = [entry(n, time=now - timedelta(days=400)) for n in range(5)]
    await table.write(old)
    assert requests(await table.read(usage_query())) == {"research": 3}
    for number in (5, 6):
        await table.write([entry(number, time=now - timedelta(days=300))])
    assert requests(await table.read(usage_query())) == {"research": 2}


async def test_who_only_writes_and_trims_needs_no_right_to_make_tables(url: str) -> None:
    owner = PostgresTable(url, YEAR)
    await owner.write([entry(1)])
    await owner.aclose()
    writer, reader = url.replace("abridge@", "writer@"), url.replace("abridge@", "reader@")
    for statement in (
        "DROP ROLE IF EXISTS writer",
        "DROP ROLE IF EXISTS reader",
        "CREATE ROLE writer LOGIN",
        "CREATE ROLE reader LOGIN",
        "GRANT INSERT, SELECT, DELETE ON abridge_ledger TO writer",
        "GRANT SELECT ON abridge_ledger_schema TO writer",
        "GRANT SELECT ON abridge_ledger TO reader",
    ):
        await PostgresServer.query(url, statement)
    limited = PostgresTable(writer, YEAR)
    await limited.write([entry(2)])
    await limited.aclose()
    found = await PostgresTable(reader, YEAR).read(usage_query())
    assert requests(found) == {"research": 2}
    for name in ("writer", "reader"):
        await PostgresServer.query(url, f"DROP OWNED BY {name}")


async def test_the_query_that_the_page_shows_adds_up(url: str, table: PostgresTable) -> None:
    await table.write([entry(1), entry(2), entry(3, outcome="failed")])
    page = (ROOT / "docs" / "ledger.md").read_text()
    query = page.partition("```sql\n")[2].partition("```")[0].replace(";", "")
    ((_, team, currency, price),) = await PostgresServer.query(url, query)
    assert (team, currency, price) == ("research", "USD", Decimal("0.2"))


async def test_a_process_waits_for_another_that_changes_the_schema(
    url: str, table: PostgresTable
) -> None:
    import asyncpg  # type: ignore[import-untyped]

    other = await asyncpg.connect(url)
    async with other.transaction():
        await other.execute(LOCK)
        writing = asyncio.create_task(table.write([entry(1)]))
        done, _ = await asyncio.wait([writing], timeout=0.2)
        assert not done
    await writing
    await other.close()
    assert requests(await table.read(usage_query())) == {"research": 1}


@pytest.mark.parametrize(
    ("address", "server"),
    [
        ("postgresql://anna:secret@db.example:5432/abridge", "db.example:5432"),
        ("postgres://db.example/abridge?sslmode=require", "db.example"),
        ("postgresql://anna:secret@one:1,two:2/abridge", "one:1,two:2"),
        ("postgresql:///abridge", "this machine"),
    ],
)
def test_the_server_is_named_without_the_login(address: str, server: str) -> None:
    assert PostgresTable(address, YEAR).server == server


@pytest.mark.parametrize(
    "address", ["postgresql://anna:sec/ret@db.example/abridge", "postgresql:/x", "mysql://db"]
)
def test_an_address_that_cannot_be_is_not_repeated(address: str) -> None:
    with pytest.raises(ValueError, match="must be an address") as caught:
        PostgresTable(address, YEAR)
    assert "sec" not in str(caught.value)
