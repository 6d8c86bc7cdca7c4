"""`abridge usage`, with real servers."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from click.testing import CliRunner, Result

from abridge.config.settings import Settings
from abridge.observability.ledger import open_backend
from abridge.observability.ledger.entry import Entry
from abridge.observability.ledger.redis_stream import STREAM
from abridge.sidecar.cli.commands import main
from tests.observability.ledger.cases import entry
from tests.support.redis_server import Server
from tests.support.servers import unused_address

NOVEMBER = ("--since", "2026-11-01", "--until", "2026-12-01")


def usage(url: str, *words: str, **environ: str) -> Result:
    address = {"ABRIDGE_LEDGER__URL": url} if url else {}
    return CliRunner().invoke(main, ["usage", *words], env={**address, **environ})


async def _write(url: str, entries: Sequence[Entry]) -> None:
    backend = open_backend(Settings(ledger={"url": url}))
    assert backend is not None
    await backend.write(entries)
    await backend.aclose()


@pytest.fixture(params=["redis_server", "postgres_server"])
def url(request: pytest.FixtureRequest) -> str:
    """The address of an empty ledger."""
    server = request.getfixturevalue(request.param)
    if not isinstance(server, Server):
        return str(asyncio.run(server.new_database()))
    with server.client() as client:
        client.delete(STREAM)
    return server.url


def test_a_table_for_a_reader(url: str) -> None:
    entries = [
        entry(1, input_tokens=1_234_567),
        entry(2, team="sales", price=None, currency=None),
        entry(3, team=None, price=Decimal("0.00005"), currency="EUR"),
    ]
    asyncio.run(_write(url, entries))
    result = usage(url, *NOVEMBER)
    assert result.exit_code == 0
    head, none, research, sales = result.stdout.splitlines()
    assert head.split()[:6] == ["team", "requests", "input", "cached", "cache", "write"]
    amounts = ["1", "100", "40", "5", "50", "30", "20", "10"]
    assert none.split() == ["(none)", *amounts, "0.0000", "EUR"]
    assert research.split()[2] == "1,234,567"
    assert research.endswith("0.1000 USD")
    assert sales.split() == ["sales", *amounts, "-"]


def test_csv_for_finance_is_exact(url: str) -> None:
    """What floats would make of these sums, no book has."""
    prices = [Decimal("0.1")] * 10 + [Decimal("0.000000000001"), Decimal("98765432109876.5")]
    asyncio.run(_write(url, [entry(n, price=price) for n, price in enumerate(prices)]))
    result = usage(url, "--by", "key", "--csv", *NOVEMBER)
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert row == {
        "key": "alice",
        "requests": "12",
        "input_tokens": "1200",
        "cached_tokens": "480",
        "cache_write_tokens": "60",
        "output_tokens": "600",
        "reasoning_tokens": "360",
        "summarizer_input_tokens": "240",
        "summarizer_output_tokens": "120",
        "price": "98765432109877.500000000001",
        "currency": "USD",
    }


@pytest.mark.parametrize(
    "name", ["=1+1", "+1", "-1", "@x", " =1", "\uff1d1+1", "=cmd|'/c calc'!A1"]
)
def test_a_name_is_no_formula(url: str, name: str) -> None:
    asyncio.run(_write(url, [entry(1, model=name)]))
    result = usage(url, "--by", "model", "--csv", *NOVEMBER)
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert row["model"] == f"'{name}"


def test_a_name_stays_in_its_cell_where_semicolons_part_them(url: str) -> None:
    asyncio.run(_write(url, [entry(1, model="x;=1+1;")]))
    result = usage(url, "--by", "model", "--csv", *NOVEMBER)
    _, row = csv.reader(io.StringIO(result.stdout), delimiter=";")
    assert row[0].startswith("x;=1+1;")


def test_a_request_without_a_price_has_none_in_the_csv(url: str) -> None:
    asyncio.run(_write(url, [entry(1, price=None, currency=None)]))
    (row,) = csv.DictReader(io.StringIO(usage(url, "--csv", *NOVEMBER).stdout))
    assert (row["price"], row["currency"]) == ("", "")


def test_this_month_is_meant_where_nothing_is_said(url: str) -> None:
    now = datetime.now(UTC)
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    times = month, month - timedelta(seconds=1)
    asyncio.run(_write(url, [entry(n, time=time) for n, time in enumerate(times)]))
    (row,) = csv.DictReader(io.StringIO(usage(url, "--csv").stdout))
    assert row["requests"] == "1"


def test_an_empty_ledger_has_a_head_alone(redis_server: Server) -> None:
    with redis_server.client() as client:
        client.delete(STREAM)
    assert usage(redis_server.url).stdout.split()[0] == "team"


def test_without_a_ledger_the_error_names_the_setting() -> None:
    result = usage("")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: ledger.url: is not set, so there is no ledger; --config names the settings file\n"
    )


@pytest.mark.parametrize("scheme", ["redis", "postgresql"])
def test_a_server_that_is_away_is_named_without_its_password(scheme: str) -> None:
    host = unused_address().removeprefix("http://")
    variable = {"ABRIDGE_LEDGER__URL_ENV": "LEDGER", "LEDGER": f"{scheme}://anna:hidden@{host}/0"}
    result = usage("", **variable)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: the ledger at {host} cannot be read: ")
    assert "hidden" not in result.output
    assert len(result.stderr.splitlines()) == 1


def test_a_database_without_a_ledger_says_so(request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("postgres_server")
    result = usage(asyncio.run(server.new_database()))
    assert result.exit_code == 1
    assert "abridge_ledger" in result.stderr
    assert "does not exist" in result.stderr


@pytest.mark.parametrize("flag", ["--since", "--until"])
def test_a_time_that_is_none_is_refused(flag: str) -> None:
    result = usage("redis://127.0.0.1/0", flag, "last week")
    assert result.exit_code == 2
    assert f"{flag}: got 'last week'; must be a day or a time, such as 2027" in result.stderr
