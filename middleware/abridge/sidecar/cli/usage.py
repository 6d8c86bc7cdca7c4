"""`abridge usage`: add up what requests used, as the ledger has it."""

from __future__ import annotations

import asyncio
import csv
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from unicodedata import normalize

import click

from abridge.config.loading import load_settings
from abridge.errors import SettingsError
from abridge.observability.ledger import open_backend
from abridge.observability.ledger.entry import TOKEN_COLUMNS
from abridge.observability.ledger.usage import GROUPINGS, Grouping, Usage, UsageQuery
from abridge.sidecar.cli.options import file_option, parse_time, text_columns

FORMULA_STARTS = ("=", "+", "-", "@")
"""How a cell begins that a spreadsheet would run; clients choose the names of models."""


@click.command()
@click.option(
    "--by",
    type=click.Choice(GROUPINGS),
    default="team",
    show_default="team",
    help="What to add up by.",
)
@click.option(
    "--since", metavar="WHEN", help="A day or time, UTC unless it says otherwise.  [this month]"
)
@click.option("--until", metavar="WHEN", help="The same, not itself included.  [now]")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with exact amounts.")
@file_option("--config", "The settings file, of which [ledger] counts.")
def usage(
    by: Grouping, *, since: str | None, until: str | None, as_csv: bool, config: Path | None
) -> None:
    """Add up requests, tokens and money, as the ledger has them.

    Requests count by the time at which they arrived. Each currency has lines of its own, and so
    have requests without a price.
    """
    now = datetime.now(UTC)
    month = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    begin = month if since is None else parse_time("--since", since)
    end = now if until is None else parse_time("--until", until)
    query = UsageQuery(by, begin, end)
    found = asyncio.run(_read(query, config))
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerows(_csv_rows(found, by))  # elsewhere a semicolon is what ends a cell
        return
    for line in usage_table(found, by):
        click.echo(line)


async def _read(query: UsageQuery, config: Path | None) -> list[Usage]:
    """Raises SettingsError and click.ClickException."""
    backend = open_backend(load_settings(config))
    if backend is None:
        raise SettingsError(
            "ledger.url: is not set, so there is no ledger; --config names the settings file"
        )
    try:
        return await backend.read(query)
    except Exception as error:  # noqa: BLE001 -- a client's may be any
        text = str(error).partition("\n")[0] or type(error).__name__
        raise click.ClickException(
            f"the ledger at {backend.server} cannot be read: {text:.300}"
        ) from None
    finally:
        await backend.aclose()


def _csv_rows(found: Sequence[Usage], by: Grouping) -> Iterator[tuple[object, ...]]:
    yield (by, "requests", *TOKEN_COLUMNS, "price", "currency")
    for each in found:
        is_formula = normalize("NFKC", each.name).lstrip().startswith(FORMULA_STARTS)
        name = f"'{each.name}" if is_formula else each.name
        price = f"{each.price:f}" if each.currency else ""
        yield (name, each.requests, *each.tokens, price, each.currency)


def usage_table(found: Sequence[Usage], by: Grouping) -> Iterator[str]:
    """Yield the lines of a table."""
    titles = (column.removesuffix("_tokens").replace("_", " ") for column in TOKEN_COLUMNS)
    rows = [(by, "requests", *titles, "price")]
    for each in found:
        price = f"{each.price:,.4f} {each.currency}" if each.currency else "-"
        counts = (f"{count:,}" for count in (each.requests, *each.tokens))
        rows.append((each.name or "(none)", *counts, price))
    yield from text_columns(rows, numbers=True)
