"""Run benchmarks (`python -m tests.benchmarks [--quick] [name ...]`) or write the `report`."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.benchmarks import report, results
from tests.benchmarks.options import Options
from tests.benchmarks.results import Finding


def main(arguments: Sequence[str] | None = None) -> None:
    names = ", ".join(report.BENCHMARKS)
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"{names}; or report, to rewrite the README"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer and shorter rounds; results are not saved"
    )
    parser.add_argument("--litellm", metavar="PYTHON", help="a Python with litellm[proxy]")
    parser.add_argument(
        "--against",
        metavar="PATH",
        type=Path,
        help=f"another checkout, whose sidecar runs in turns with this one's: "
        f"{', '.join(report.AGAINST)}; results are not saved",
    )
    parsed = parser.parse_args(arguments)
    known = report.AGAINST if parsed.against else [*report.BENCHMARKS, "report"]
    if unknown := set(parsed.names).difference(known):
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are stopped
    options = Options(parsed.quick, parsed.litellm)
    if parsed.against:
        compare(parsed.names or report.AGAINST, options, parsed.against.resolve())
        return
    run([name for name in parsed.names or report.BENCHMARKS if name != "report"], options)
    if "report" in parsed.names:
        report.write()


def run(names: Sequence[str], options: Options) -> None:
    found: list[Finding] = []
    for name in names:
        print(f"{name} …", flush=True)
        began = time.monotonic()
        rows = list(report.BENCHMARKS[name].run(options))
        options.say(f"{time.monotonic() - began:.0f} s")
        if not options.quick:
            results.write(name, rows)
        findings = list(report.BENCHMARKS[name].findings(rows))
        report.show(findings)
        found += findings
    if found:
        report.show_targets(found)


def compare(names: Sequence[str], options: Options, tree: Path) -> None:
    """Run two checkouts in turns, round by round: each row of a benchmark is one round."""
    here = replace(options, beside=False)
    there = replace(here, tree=tree)
    for name in names:
        print(f"{name} …", flush=True)
        benchmark = report.BENCHMARKS[name]
        turns = zip(benchmark.run(here), benchmark.run(there), strict=True)
        rows, others = map(list, zip(*turns, strict=True))
        report.show_beside(name, tree.name, rows, others)


if __name__ == "__main__":
    main()
