"""What was used, by what the entries of a ledger have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Literal, NamedTuple, get_args

from abridge.observability.ledger.entry import TOKEN_COLUMNS

Grouping = Literal["team", "key", "model", "upstream", "day"]

GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)


class UsageQuery(NamedTuple):
    """The requests that arrived at `since` or later, and before `until`."""

    by: Grouping
    since: datetime
    until: datetime


@dataclass(slots=True)
class Usage:
    """The sums of a group, as far as they were reported. Requests without a price are apart from
    those that have one."""

    name: str  # empty where entries have none
    currency: str
    requests: int = 0
    tokens: list[int] = field(default_factory=lambda: [0] * len(TOKEN_COLUMNS))
    price: Decimal = Decimal(0)


class UsageSums:
    """Adds up entries that are read as text; what is not known is missing or empty."""

    def __init__(self, query: UsageQuery) -> None:
        self._query = query
        self._groups: dict[tuple[str, str], Usage] = {}

    def add(self, entry: Mapping[str, str]) -> None:
        """Raises ValueError for what is no entry."""
        time = datetime.fromisoformat(entry.get("time", ""))
        if not self._query.since <= time < self._query.until:
            return
        by = self._query.by
        name = time.date().isoformat() if by == "day" else entry.get(by, "")
        key = name, entry.get("currency", "")
        usage = self._groups.setdefault(key, Usage(*key))
        usage.requests += 1
        for index, column in enumerate(TOKEN_COLUMNS):
            usage.tokens[index] += int(entry.get(column) or 0)
        usage.price += Decimal(entry.get("price") or 0)

    def sorted(self) -> list[Usage]:
        return [self._groups[key] for key in sorted(self._groups)]
