"""Print findings as tables on the terminal, or write them into the README with a plot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType

from tests.benchmarks import (
    bodies,
    figures,
    history,
    live,
    passthrough,
    peers,
    plot,
    results,
    start,
    stream,
)
from tests.benchmarks import open as open_streams
from tests.benchmarks.results import Finding, Row

BENCHMARKS: dict[str, ModuleType] = {
    "passthrough": passthrough,
    "stream": stream,
    "live": live,
    "open": open_streams,
    "bodies": bodies,
    "history": history,
    "start": start,
}
AGAINST = ("passthrough", "stream", "open", "start")
"""Those that can run another checkout's sidecar in turns with this one's."""

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- report -->\n", "<!-- end of report -->\n"


def show(findings: Iterable[Finding]) -> None:
    for finding in findings:
        met = {True: "met", False: "NOT MET", None: ""}[finding.met]
        print(f"  {finding.name:86} {finding.figure:>10}  {finding.target:10} {met}".rstrip())


def show_beside(name: str, other: str, rows: list[Row], others: list[Row]) -> None:
    """Print this checkout's findings and another's."""
    print(f"  {'':86} {'here':>10}  {other:>10}")
    findings = BENCHMARKS[name].findings
    for here, there in zip(findings(rows), findings(others), strict=True):
        print(f"  {here.name:86} {here.figure:>10}  {there.figure:>10}")


def show_targets(findings: Iterable[Finding]) -> None:
    """Print those that are worked towards, of all benchmarks, in one table."""
    for line in _targets(findings):
        print(line)


def _targets(findings: Iterable[Finding]) -> Iterator[str]:
    yield "| | before | target | measured | met |\n|---|---:|---:|---:|:---:|"
    for finding in findings:
        if finding.before:
            cells = (finding.before, finding.target, finding.figure, _met(finding))
            yield f"| {finding.name} | {' | '.join(cells)} |"


def write() -> None:
    """Rewrite the generated part of the README, and the figures that pages state."""
    before, _, rest = README.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    plot.draw()
    README.write_text(before + BEGIN + table() + END + after)
    figures.write(saved_findings())
    peers.write()


def table() -> str:
    """Return the generated part of the README."""
    return "\n".join(_lines()) + "\n"


def saved_findings() -> dict[str, list[Finding]]:
    """Return what the last run of each benchmark found."""
    read = {name: results.read(name) for name in BENCHMARKS}
    return {name: list(BENCHMARKS[name].findings(rows)) for name, rows in read.items() if rows}


def _lines() -> Iterator[str]:
    saved = saved_findings()
    yield "### Targets\n"
    yield from _targets(chain(*saved.values()))
    for file, shown in plot.FILES.items():
        yield f"\n![{shown}](results/{file})\n"
    for name, findings in saved.items():
        yield f"### `{name}`\n\n{(BENCHMARKS[name].__doc__ or '').strip()}\n"
        yield "| | | target | met |\n|---|---:|---:|:---:|"
        for finding in findings:
            yield f"| {finding.name} | {finding.figure} | {finding.target} | {_met(finding)} |"
        yield f"\n{results.where(name)}\n"


def _met(finding: Finding) -> str:
    return {True: "yes", False: "**no**", None: ""}[finding.met]
