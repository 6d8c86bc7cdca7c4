"""Records, and entries of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from abridge.core.usage import Tokens
from abridge.observability.ledger.entry import Entry
from abridge.observability.ledger.usage import Grouping, Usage, UsageQuery
from abridge.observability.record import Record

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)

ENTRY = Entry(
    id="0" * 32,
    time=NOON,
    request="req-1",
    outcome="ok",
    key="alice",
    team="research",
    upstream="default",
    model="gpt-oss",
    response_model="gpt-oss-120b",
    input_tokens=100,
    cached_tokens=40,
    cache_write_tokens=5,
    output_tokens=50,
    reasoning_tokens=30,
    summarizer_input_tokens=20,
    summarizer_output_tokens=10,
    price=Decimal("0.1"),
    currency="USD",
)

ALL_TIME = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def entry(number: int = 1, **fields: Any) -> Entry:
    return replace(ENTRY, id=f"{number:032x}", **fields)


def record(**fields: Any) -> Record:
    given = {"api": "chat", "model": "m", "outcome": "ok", **fields}
    return Record("req-1", NOON.timestamp(), 0.0, **given)


def usage_query(
    by: Grouping = "team", since: datetime = ALL_TIME[0], until: datetime = ALL_TIME[1]
) -> UsageQuery:
    return UsageQuery(by, since, until)


def requests(found: Sequence[Usage]) -> dict[str, int]:
    return {each.name: each.requests for each in found}


REPORTED = Tokens(input=100, output=50, total=150, reasoning=30, cached=40, cache_written=5)
