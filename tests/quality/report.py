"""Tables on the terminal, rows in a CSV, and parts in a file to read beside the reasonings."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.quality.corpus import Reasoning
from tests.quality.gates import GATES, score
from tests.quality.measure import Measure, measure
from tests.quality.run import Shown
from tests.quality.style import Figure, estimate_tokens, figures
from tests.quality.texts import Part


@dataclass(frozen=True)
class Result:
    """A summary and its measure."""

    shown: Shown
    measure: Measure

    @classmethod
    def of(cls, shown: Shown) -> Result:
        return cls(shown, measure(shown.reasoning, shown.parts))

    @property
    def row(self) -> dict[str, Any]:
        shown, reasoning = self.shown, self.shown.reasoning
        return {
            "name": reasoning.name,
            "language": reasoning.language,
            "kind": reasoning.kind,
            "score": self.measure.score,
            **asdict(self.measure),
            "first_text": shown.first_text,
            "held": shown.held,
            "failed": len(shown.failures),
        }


COLUMNS = (
    *("name", "language", "score", "parts", "sentences", "key", "final", "secrets", "never"),
    *("taken_back", "dangling", "debris", "again", "contradicts", "bad_titles"),
)
TIMES = ("first_text", "held")


def score_table(results: Sequence[Result], *, timed: bool) -> list[str]:
    columns = COLUMNS + TIMES if timed else COLUMNS
    return _table([columns, *(tuple(_cell(one.row[name]) for name in columns) for one in results)])


def style_table(results: Sequence[Result], *, timed: bool) -> list[str]:
    rows = [(one.name, short(one.value), one.openai) for one in style(results, timed=timed)]
    return _table([("style", "here", "OpenAI's"), *rows])


def style(results: Sequence[Result], *, timed: bool) -> list[Figure]:
    shown = [one.shown for one in results if one.shown.parts]
    english = [one for one in shown if one.reasoning.language == "en"]
    return figures(
        [Part(text) for one in english for text in one.parts],
        [estimate_tokens(one.reasoning.prose) / len(one.parts) for one in shown],
        [60 * len(one.parts) / one.seconds for one in shown if timed],
    )


def gate_table(results: Sequence[Result]) -> list[str]:
    """Return the gates, each with what is measured and whether it holds."""
    measures = [one.measure for one in results]
    rows = []
    for gate in GATES:
        value = gate.figure(measures)
        holds = "holds" if gate.holds(value) else "FAILS"
        rows.append((gate.name, short(value), gate.target, holds))
    return _table([("gate", "here", "bound", ""), *rows, ("score", short(score(measures)), "", "")])


def all_hold(results: Sequence[Result]) -> bool:
    measures = [one.measure for one in results]
    return all(gate.holds(gate.figure(measures)) for gate in GATES)


def append_csv(path: Path, results: Sequence[Result], run: dict[str, Any]) -> None:
    """Append a row a reasoning, each with what is said of the run. Raises ValueError if the file
    has other columns."""
    rows = [{**run, **one.row} for one in results]
    columns = list(rows[0])
    is_new = not path.exists()
    if not is_new:
        with path.open(newline="", encoding="utf-8") as file:
            if next(csv.reader(file), None) != columns:
                raise ValueError(f"{path} has other columns; name another file")
    with path.open("a", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, columns, lineterminator="\n")
        if is_new:
            table.writeheader()
        for row in rows:
            table.writerow({name: _cell(cell) for name, cell in row.items()})


def describe_run(summarizer: str, pace: float, style: str) -> dict[str, Any]:
    """Return what is said of a run in each of its rows."""
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        "revision": _revision(),
        "summarizer": summarizer,
        "style": style,
        "pace": pace,
    }


def write_parts(path: Path, shown: Iterable[Shown]) -> None:
    """Write `[{"name": …, "parts": [{"text": …}]}]`."""
    written = [
        {"name": one.reasoning.name, "parts": [{"text": text} for text in one.parts]}
        for one in shown
    ]
    path.write_text(json.dumps(written, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_shown(path: Path, reasonings: Sequence[Reasoning]) -> list[Shown]:
    """Return what such a file has of these reasonings. It has no times."""
    written = json.loads(path.read_text(encoding="utf-8"))
    parts = {entry["name"]: [part["text"] for part in entry["parts"]] for entry in written}
    return [Shown(one, parts[one.name]) for one in reasonings if one.name in parts]


def _revision() -> str:
    """Return the commit that was measured, or nothing outside a repository."""
    git = shutil.which("git")
    if git is None:
        return ""
    command = [git, "describe", "--always", "--dirty"]
    found = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return found.stdout.strip()


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return "" if value is None else str(value)


def short(value: float | None) -> str:
    """Return a figure as short as it may be read."""
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 20 or value == int(value) else f"{value:.1f}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return lines with aligned columns, the first to the left."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
