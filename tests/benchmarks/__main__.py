"""`python -m tests.benchmarks [--quick] [--litellm PYTHON] [name ...]`, and `report`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tests.benchmarks import bodies, live, passthrough, report, results, stream
from tests.benchmarks import open as open_streams
from tests.benchmarks.options import Options

BENCHMARKS = {
    "passthrough": passthrough,
    "stream": stream,
    "live": live,
    "open": open_streams,
    "bodies": bodies,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", choices=[*BENCHMARKS, "report", []])
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--litellm", metavar="PYTHON", help="one that has litellm[proxy]")
    said = parser.parse_args(arguments)
    if said.names == ["report"]:
        report.write()
        return
    options = Options(quick=said.quick, litellm=said.litellm)
    for name in said.names or BENCHMARKS:
        options.say(f"{name} …")
        rows = list(BENCHMARKS[name].run(options))
        results.write(name, rows)
        report.show(BENCHMARKS[name].findings(rows))


if __name__ == "__main__":
    main()
