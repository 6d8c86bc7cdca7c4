"""The figures that pages state, drawn from the findings of the last runs.

The report writes them to `figures.toml`, each with its command, machine and date, and into the
pages; a test compares them.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import results
from tests.benchmarks.results import Finding

FILE = Path(__file__).with_name("figures.toml")

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "cost.md", ROOT / "deploy" / "README.md")
"""Those that state what was measured."""

REPLICA_SHARE = 0.6
"""The autoscaler's target: of a core, what a replica uses before there is another."""

OPENING = """\
# What pages state of speed and memory: the least and the most of a benchmark's findings.
# Written by `python -m tests.benchmarks report`; do not edit.
"""


class Figure(NamedTuple):
    """What a pattern finds among a benchmark's findings; `per_second` counts how many of them a
    replica carries."""

    benchmark: str
    findings: str
    per_second: bool = False


_REWRITTEN_OPEN = r".*, rewritten: CPU an event, 1,000 streams"
_REWRITTEN_PACED = r".*, 5 ms apart: rewritten, CPU an event"
_PASSED_OPEN = r".*, passed through: CPU an event, 1,000 streams"
_PASSED = r"`abridge serve`, CPU a request"
_ENGAGED = r".*, engaged: 100KB, CPU a request"

FIGURES = {
    "event rewritten, paced": Figure("stream", _REWRITTEN_PACED),
    "events rewritten a second, paced": Figure("stream", _REWRITTEN_PACED, per_second=True),
    "event bridged, paced": Figure("stream", r".*, 5 ms apart: bridged .*, CPU an event"),
    "event passed, paced": Figure("stream", r".*, 5 ms apart: passed through, CPU an event"),
    "event rewritten, open": Figure("open", _REWRITTEN_OPEN),
    "events rewritten a second, open": Figure("open", _REWRITTEN_OPEN, per_second=True),
    "event passed, open": Figure("open", _PASSED_OPEN),
    "events passed a second, open": Figure("open", _PASSED_OPEN, per_second=True),
    "delay of an event, open": Figure("open", r".*, rewritten, 1,000 streams: p99 delay .*"),
    "memory of a stream, open": Figure("open", r".*, rewritten: memory a stream, of 1,000"),
    "memory of a stream, fast": Figure("open", r".*, rewritten: memory a stream, of 200 at 50 .*"),
    "memory, idle": Figure("open", "memory, idle"),
    "request passed": Figure("passthrough", _PASSED),
    "requests passed a second": Figure("passthrough", _PASSED, per_second=True),
    "stock httpx": Figure("passthrough", "CPU of stock httpx, relative to ours"),
    "request engaged": Figure("bodies", _ENGAGED),
    "requests engaged a second": Figure("bodies", _ENGAGED, per_second=True),
    "history restored": Figure("history", r".*, 100KB: what restoring adds"),
    "history opened": Figure("history", r".*, 100KB: what opening what the client carries adds"),
    "history opened first": Figure("history", r".*, 100KB: what opening all of it .* adds"),
}


def read() -> Mapping[str, Mapping[str, str]]:
    """Return what the file says of each figure."""
    return tomllib.loads(FILE.read_text())


def write(findings: Mapping[str, Sequence[Finding]]) -> None:
    """Write the file, and put what has changed into the pages."""
    before = read()
    FILE.write_text(render(findings))
    new = {old["figure"]: read()[name]["figure"] for name, old in before.items() if name in FIGURES}
    longest_first = sorted(map(re.escape, new), key=len, reverse=True)
    stated = re.compile(rf"(?<![\d.])(?:{'|'.join(longest_first)})(?!\w)")
    for page in PAGES:
        page.write_text(stated.sub(lambda found: new[found[0]], page.read_text()))


def render(findings: Mapping[str, Sequence[Finding]]) -> str:
    """Return the text of the file, from the findings of each benchmark."""
    return OPENING + "".join(_entries(findings))


def _entries(findings: Mapping[str, Sequence[Finding]]) -> Iterator[str]:
    for name, figure in FIGURES.items():
        stated = {
            "figure": _stated(figure, findings[figure.benchmark]),
            "command": f"python -m tests.benchmarks {figure.benchmark}",
            "measured": results.where(figure.benchmark),
        }
        yield f"\n[{json.dumps(name)}]\n"
        yield from (
            f"{key} = {json.dumps(text, ensure_ascii=False)}\n" for key, text in stated.items()
        )


def _stated(figure: Figure, findings: Sequence[Finding]) -> str:
    found = [each for each in findings if re.fullmatch(figure.findings, each.name)]
    if not figure.per_second:
        return between([each.value for each in found], found[0].unit)
    scale = {"µs": 1e6, "ms": 1e3}[found[0].unit]
    return between([REPLICA_SHARE * scale / each.value for each in found], "a second")


def between(values: Sequence[float], unit: str) -> str:
    """Return the least and the most of some values, or one where they read alike."""
    least, most = (_rounded(value) for value in (min(values), max(values)))
    return f"{least} {unit}" if least == most else f"{least} to {most} {unit}"


def _rounded(value: float) -> str:
    """Return what a noisy machine supports: two digits, or three from a hundred on."""
    if value >= 1000:
        return f"{round(value, -2):,.0f}"
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
