"""Where a paced stream's time goes: `python -m tests.benchmarks.profile [API [WAY [CHECKOUT]]]`.

py-spy samples the sidecar from outside, so that nothing is slowed; what C does counts for the
function that called it. It needs the right to trace: root, or `kernel.yama.ptrace_scope=0`.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks import contenders
from tests.benchmarks.rounds import run_jobs
from tests.benchmarks.scripts import events
from tests.benchmarks.stream import HIDING, OTHER, Case

SETTINGS = {"hidden": HIDING}
RATE = 1000  # samples a second
MOST = 30
IDLE = "_worker (concurrent/futures/thread.py"
"""Where a thread waits for work, which py-spy takes for running."""

FRAME = re.compile(r" \((?P<file>[^:]+)")


def main(api: str = "responses", way: str = "rewritten", checkout: str = "") -> None:
    flags = ("--api", OTHER[api]) if way == "bridged" else ()
    tree = Path(checkout).resolve() if checkout else None
    warming, case = Case(api, "burst", way, each=5), Case(api, "paced", way, each=5)
    with (
        contenders.upstream() as upstream,
        contenders.abridge(upstream.port, SETTINGS.get(way), *flags, tree=tree) as sidecar,
        tempfile.NamedTemporaryFile() as samples,
    ):
        run_jobs(warming.job(sidecar))
        with _sampled(sidecar.pid, samples.name):
            [result] = run_jobs(case.job(sidecar))
        spent = 1e6 * result["cpu"] / (events(case.script) * result["requests"])
        _show(list(_leaves(Path(samples.name).read_text())), spent)


@contextmanager
def _sampled(pid: int, file: str) -> Iterator[None]:
    where = ("--pid", str(pid), "--output", file)
    options = ("--format", "raw", "--function", "--rate", str(RATE), "--duration", "unlimited")
    sampler = subprocess.Popen(["py-spy", "record", *where, *options])  # noqa: S607 -- on the path
    try:
        yield
    finally:
        sampler.send_signal(signal.SIGINT)
        sampler.wait()


def _leaves(samples: str) -> Iterator[tuple[str, int]]:
    """Return the innermost frame of each stack and how often it was seen."""
    for line in samples.splitlines():
        stack, _, count = line.rpartition(" ")
        leaf = stack.rpartition(";")[2]
        if not leaf.startswith(IDLE):
            yield leaf, int(count)


def _show(leaves: list[tuple[str, int]], spent: float) -> None:
    total = sum(count for _, count in leaves)
    print(f"{spent:.1f} µs an event, from {total:,} samples")
    for title, name in (("package", _package), ("module", _module), ("function", str)):
        seen: Counter[str] = Counter()
        for frame, count in leaves:
            seen[name(frame)] += count
        print(f"\n   µs  share  by {title}")
        for place, count in seen.most_common(MOST):
            share = count / total
            print(f"{spent * share:5.2f} {share:6.1%}  {place}")


def _module(frame: str) -> str:
    found = FRAME.search(frame)
    return found["file"] if found else frame


def _package(frame: str) -> str:
    return "/".join(Path(_module(frame)).parts[:-1][:2]) or _module(frame)


if __name__ == "__main__":
    main(*sys.argv[1:])
