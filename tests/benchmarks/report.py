"""Print findings as tables on the terminal, or write them into the README with a plot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from tests.benchmarks import bodies, history, live, passthrough, plot, results, stream
from tests.benchmarks import open as open_streams
from tests.benchmarks.results import Finding

BENCHMARKS: dict[str, ModuleType] = {
    "passthrough": passthrough,
    "stream": stream,
    "live": live,
    "open": open_streams,
    "bodies": bodies,
    "history": history,
}
README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- report -->\n", "<!-- end of report -->\n"


def show(findings: Iterable[Finding]) -> None:
    for finding in findings:
        met = {True: "met", False: "NOT MET", None: ""}[finding.met]
        print(f"  {finding.name:64} {finding.figure:>10}  {finding.target:10} {met}".rstrip())


def write() -> None:
    """Rewrite the generated part of the README."""
    before, _, rest = README.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    plot.draw()
    README.write_text(before + BEGIN + "\n".join(_lines()) + "\n" + END + after)


def _lines() -> Iterator[str]:
    yield f"\n![{plot.ALT}](results/{plot.FILE.name})\n"
    for name, benchmark in BENCHMARKS.items():
        rows = results.read(name)
        if not rows:
            continue
        yield f"### `{name}`\n\n{(benchmark.__doc__ or '').strip()}\n"
        yield "| | | target | met |\n|---|---:|---:|:---:|"
        for finding in benchmark.findings(rows):
            yield f"| {finding.name} | {finding.figure} | {finding.target} | {_met(finding)} |"
        yield f"\n{results.where(name)}\n"


def _met(finding: Finding) -> str:
    return {True: "yes", False: "**no**", None: ""}[finding.met]
