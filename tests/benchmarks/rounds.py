"""Load, in processes of its own on the core that is not measured."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import IO, Any

from tests.benchmarks.load import Job
from tests.benchmarks.processes import BESIDE, module, prepare

Came = dict[str, Any]
QUIET = 0.02
"""The share of a round for which others may have had the measured process's core."""
TRIES = 5


def ask(*jobs: Job, meanwhile: Callable[[], None] | None = None) -> list[Came]:
    """What came of each job, all at once; `meanwhile` is called ten times a second until then."""
    with ExitStack() as stack:
        running = [stack.enter_context(_started(job)) for job in jobs]
        while any(load.process.poll() is None for load in running):
            if meanwhile is not None:
                meanwhile()
            time.sleep(0.1)
        return [load.result() for load in running]


def ask_in_quiet(job: Job) -> Came:
    """What came of a job that leaves the measured process idle now and then, while it had its core
    to itself: one that has to wait reads several events at a time, and looks cheaper than it is. So
    it is asked again, a few times at most, and the least disturbed round counts."""
    rounds: list[Came] = []
    while len(rounds) < TRIES and not (rounds and _disturbed(rounds[-1]) < QUIET):
        rounds += ask(job)
    return min(rounds, key=_disturbed)


def _disturbed(came: Came) -> float:
    return float(came["waited"] / came["seconds"])


@dataclass(frozen=True)
class Load:
    process: subprocess.Popen[bytes]
    said: IO[bytes]

    def result(self) -> Came:
        if self.process.returncode:
            raise RuntimeError("the load generator failed")
        self.said.seek(0)
        came: Came = json.load(self.said)
        if came["failure"]:
            raise RuntimeError(came["failure"])
        return came


@contextmanager
def _started(job: Job) -> Iterator[Load]:
    """Both ends of the talk are files: a pipe would have to be emptied meanwhile."""
    with tempfile.TemporaryFile() as asked, tempfile.TemporaryFile() as said:
        asked.write(json.dumps(asdict(job)).encode())
        asked.seek(0)
        process = subprocess.Popen(
            module("tests.benchmarks.load"),
            stdin=asked,
            stdout=said,
            preexec_fn=lambda: prepare(BESIDE),
        )
        try:
            yield Load(process, said)
        finally:
            process.kill()
            process.wait()
