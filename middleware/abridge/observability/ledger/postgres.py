"""The ledger in a table of PostgreSQL, 12 or newer: `abridge_ledger`.

The table is made, or brought up to date, when a process first writes to it. Who only reads it needs
no other right than that. Unnamed statements alone are used, so that PgBouncer may stand between.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from math import inf
from time import monotonic
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from abridge.config.setting_types import SQL_SCHEMES
from abridge.observability.ledger.entry import COLUMNS, TOKEN_COLUMNS, Entry
from abridge.observability.ledger.usage import Grouping, Usage, UsageQuery

INVALID_ADDRESS = "must be an address such as postgresql://user:password@host:5432/database"

PATIENCE = 5.0
"""Seconds to connect, and to write."""

LONG_PATIENCE = 600.0
"""Seconds to read or change the whole table."""

TRIM_SECONDS = 60.0
"""Seconds between two removals of entries that are older than is to be kept, unless there are more
than can be removed at once."""

TRIM_SIZE = 10_000
"""Entries removed at once."""

MIGRATIONS = (
    """
    CREATE TABLE abridge_ledger (
        id uuid PRIMARY KEY, time timestamptz NOT NULL, request text NOT NULL,
        outcome text NOT NULL, key text, team text, upstream text, model text, response_model text,
        input_tokens bigint, cached_tokens bigint, output_tokens bigint, reasoning_tokens bigint,
        summarizer_input_tokens bigint, summarizer_output_tokens bigint,
        price numeric, currency text
    )
    """,
    "CREATE INDEX abridge_ledger_time ON abridge_ledger (time)",
    "ALTER TABLE abridge_ledger ADD COLUMN cache_write_tokens bigint",
)
"""What makes each version of the schema from the one before. Those that were released stay as they
are; another process may still write as of the version before."""

LOCK = "SELECT pg_advisory_xact_lock(hashtext('abridge_ledger'))"

HAS_VERSION = "SELECT to_regclass('abridge_ledger_schema') IS NOT NULL"

INSERT = (
    f"INSERT INTO abridge_ledger ({', '.join(COLUMNS)}) "  # noqa: S608 -- its own names
    f"VALUES ({', '.join(f'${number}' for number, _ in enumerate(COLUMNS, 1))}) "
    "ON CONFLICT (id) DO NOTHING"
)

TRIM = """
    DELETE FROM abridge_ledger WHERE id IN
        (SELECT id FROM abridge_ledger WHERE time < now() - $1::interval LIMIT $2)
"""


class PostgresTable:
    """Keeps entries for `retention` seconds. Raises ValueError for an invalid address, which its
    message does not repeat."""

    def __init__(self, url: str, retention: float) -> None:
        self.server = _server_name(url)
        self._url = url
        self._retention = timedelta(seconds=retention)
        self._connection: Any = None
        self._trimmed_at = -inf

    async def write(self, batch: Sequence[Entry]) -> None:
        rows = [[getattr(entry, column) for column in COLUMNS] for entry in batch]
        try:
            if self._connection is None:
                self._connection = await self._connect()
                await _migrate(self._connection)
            await self._connection.executemany(INSERT, rows, timeout=PATIENCE)
            await self._trim()
        except BaseException:
            if self._connection is not None:
                self._connection.terminate()
                self._connection = None
            raise

    async def read(self, query: UsageQuery) -> list[Usage]:
        connection = await self._connect()
        try:
            span = query.since, query.until
            rows = await connection.fetch(_sums(query.by), *span)
        finally:
            connection.terminate()
        found = (
            Usage(name, currency, requests, [int(count) for count in tokens], price)
            for name, currency, requests, price, *tokens in rows
        )
        return sorted(found, key=lambda usage: (usage.name, usage.currency))

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                await connection.close(timeout=PATIENCE)

    async def _connect(self) -> Any:
        return await asyncpg.connect(
            self._url,
            timeout=PATIENCE,
            command_timeout=LONG_PATIENCE,
            statement_cache_size=0,
            server_settings={"application_name": "abridge"},
        )

    async def _trim(self) -> None:
        """Now and then, remove entries that are older than is to be kept."""
        if monotonic() - self._trimmed_at > TRIM_SECONDS:
            self._trimmed_at = monotonic()
            span = self._retention, TRIM_SIZE
            done = await self._connection.execute(TRIM, *span, timeout=PATIENCE)
            if done == f"DELETE {TRIM_SIZE}":  # there may be more
                self._trimmed_at = -inf


async def _migrate(connection: Any) -> None:
    """Make the table, or bring it up to date; processes that begin together do it in turns."""
    async with connection.transaction():
        await connection.execute(LOCK)
        version = 0
        if await connection.fetchval(HAS_VERSION):
            version = await connection.fetchval("SELECT version FROM abridge_ledger_schema")
        else:
            await connection.execute("CREATE TABLE abridge_ledger_schema (version integer)")
            await connection.execute("INSERT INTO abridge_ledger_schema VALUES (0)")
        for step in MIGRATIONS[version:]:
            await connection.execute(step)
        if version < len(MIGRATIONS):
            done = "UPDATE abridge_ledger_schema SET version = $1"
            await connection.execute(done, len(MIGRATIONS))


def _sums(by: Grouping) -> str:
    name = "to_char(time AT TIME ZONE 'UTC', 'YYYY-MM-DD')" if by == "day" else by
    tokens = ", ".join(f"coalesce(sum({column}), 0)" for column in TOKEN_COLUMNS)
    return (
        f"SELECT coalesce({name}, ''), coalesce(currency, ''), count(*), "  # noqa: S608 -- likewise
        f"coalesce(sum(price), 0), {tokens} "
        "FROM abridge_ledger WHERE time >= $1 AND time < $2 GROUP BY 1, 2"
    )


def _server_name(url: str) -> str:
    """Return the server's name for the log. Raises ValueError where what looks like it may be a
    part of a password."""
    scheme, separator, rest = url.partition("://")
    login, _, _ = rest.rpartition("@")
    if scheme not in SQL_SCHEMES or not separator or set(login) & set("/?#"):
        raise ValueError(INVALID_ADDRESS)
    return re.split("[/?#]", rest[len(login) :].lstrip("@"))[0] or "this machine"
