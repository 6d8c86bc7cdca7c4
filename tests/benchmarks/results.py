"""What a benchmark found: rows, one a round, kept as CSV; and findings, which rows come to."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

FOLDER = Path(__file__).with_name("results")

Row = dict[str, str | float]


@dataclass(frozen=True)
class Finding:
    """A figure, and what it may be at most, where that was set."""

    benchmark: str
    what: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None

    @property
    def target(self) -> str:
        if self.most is not None:
            return f"≤ {figure(self.most)} {self.unit}".rstrip()
        return "" if self.least is None else f"≥ {figure(self.least)} {self.unit}".rstrip()

    @property
    def met(self) -> bool | None:
        if self.most is not None:
            return self.value <= self.most
        return None if self.least is None else self.value >= self.least

    def cells(self) -> tuple[str, str, str, str]:
        met = {True: "yes", False: "**no**", None: ""}[self.met]
        return self.what, f"{figure(self.value)} {self.unit}".rstrip(), self.target, met


def figure(value: float) -> str:
    """Three digits are more than a noisy machine can vouch for."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def middle(rows: Iterable[Row], key: str, **where: str) -> float:
    """The median of a column over the rounds of one contender."""
    chosen = [row for row in rows if all(row[name] == value for name, value in where.items())]
    return median(float(row[key]) for row in chosen)


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def write(name: str, rows: Sequence[Row]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{name}.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow({key: _short(value) for key, value in row.items()})


def read(name: str) -> list[Row]:
    path = FOLDER / f"{name}.csv"
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


def _short(value: str | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
