"""Run benchmarks (`python -m tests.benchmarks [--quick] [name ...]`) or write the `report`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from tests.benchmarks import report, results
from tests.benchmarks.options import Options


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
    parsed = parser.parse_args(arguments)
    if unknown := set(parsed.names) - {*report.BENCHMARKS, "report"}:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {names} and report")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are stopped
    for name in parsed.names or report.BENCHMARKS:
        if name == "report":
            report.write()
        else:
            run(name, Options(quick=parsed.quick, litellm=parsed.litellm))


def run(name: str, options: Options) -> None:
    print(f"{name} …", flush=True)
    rows = list(report.BENCHMARKS[name].run(options))
    if not options.quick:
        results.write(name, rows)
    report.show(report.BENCHMARKS[name].findings(rows))


if __name__ == "__main__":
    main()
