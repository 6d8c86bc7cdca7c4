"""Results of a benchmark: rows, one per round, saved as CSV; and findings derived from them."""

from __future__ import annotations

import csv
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from abridge import __version__

FOLDER = Path(__file__).with_name("results")

Row = dict[str, str | float]

Target = tuple[float | None, str]
"""A bound, and what the figure was before; None: it has no target."""

NO_TARGET: Target = (None, "")


@dataclass(frozen=True)
class Finding:
    """A figure and its bounds, if any; a target that is worked towards also has what it was
    `before`."""

    name: str
    value: float
    unit: str = ""
    most: float | None = None
    least: float | None = None
    before: str = ""

    @property
    def figure(self) -> str:
        return f"{short(self.value)} {self.unit}".rstrip()

    @property
    def target(self) -> str:
        if self.most is not None:
            return f"≤ {self.most:g} {self.unit}".rstrip()
        return "" if self.least is None else f"≥ {self.least:g} {self.unit}".rstrip()

    @property
    def met(self) -> bool | None:
        if self.most is not None:
            return self.value <= self.most
        return None if self.least is None else self.value >= self.least


def short(value: float) -> str:
    """Format a figure in about three digits, which is all a noisy machine supports."""
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
        file.write(f"# {_here()}\n")
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        for row in rows:
            table.writerow(
                {
                    key: f"{cell:.6g}" if isinstance(cell, float) else cell
                    for key, cell in row.items()
                }
            )


def read(name: str) -> list[Row]:
    """Return the rows of the last run, if any."""
    path = FOLDER / f"{name}.csv"
    lines = path.read_text().splitlines()[1:] if path.exists() else []
    return [dict(row) for row in csv.DictReader(lines)]


def where(name: str) -> str:
    """Return the machine, versions and date of the last run."""
    with (FOLDER / f"{name}.csv").open() as file:
        return file.readline().removeprefix("# ").strip()


def _here() -> str:
    processors = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line for line in processors if line.startswith("model name")), "")
    return (
        f"abridge {__version__}, Python {platform.python_version()}, Linux {platform.release()}, "
        f"{os.cpu_count()} cores of {model.partition(': ')[2] or platform.machine()}, "
        f"{datetime.now(UTC):%Y-%m-%d}"
    )
