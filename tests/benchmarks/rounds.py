"""Run load generators in processes of their own on the core that is not measured."""

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

Result = dict[str, Any]
QUIET = 0.02
"""The share of a round for which the measured process may have waited for its core."""


def run_jobs(*jobs: Job, meanwhile: Callable[[], None] | None = None) -> list[Result]:
    """Run jobs concurrently; return their results. Call `meanwhile` ten times a second."""
    with ExitStack() as stack:
        running = [stack.enter_context(_started(job)) for job in jobs]
        while any(load.process.poll() is None for load in running):
            if meanwhile is not None:
                meanwhile()
            time.sleep(0.1)
        return [load.result() for load in running]


def run_undisturbed(job: Job, tries: int) -> Result:
    """Run a job that leaves the measured process idle at times; return its least disturbed round.

    A process that waits for its core reads several events at a time and looks cheaper than it is,
    so a disturbed round is repeated, at most until there were so many `tries`."""
    rounds: list[Result] = []
    while len(rounds) < tries and not (rounds and _disturbed(rounds[-1]) < QUIET):
        rounds += run_jobs(job)
    return min(rounds, key=_disturbed)


def _disturbed(result: Result) -> float:
    return float(result["waited"] / result["seconds"])


@dataclass(frozen=True)
class Load:
    process: subprocess.Popen[bytes]
    output: IO[bytes]

    def result(self) -> Result:
        if self.process.returncode:
            raise RuntimeError("the load generator failed")
        self.output.seek(0)
        result: Result = json.load(self.output)
        if result["failure"]:
            raise RuntimeError(result["failure"])
        return result


@contextmanager
def _started(job: Job) -> Iterator[Load]:
    """Start a load generator; its stdin and stdout are files, since a pipe would need reading."""
    with tempfile.TemporaryFile() as job_file, tempfile.TemporaryFile() as output:
        job_file.write(json.dumps(asdict(job)).encode())
        job_file.seek(0)
        process = subprocess.Popen(
            module("tests.benchmarks.load"),
            stdin=job_file,
            stdout=output,
            preexec_fn=lambda: prepare(BESIDE),
        )
        try:
            yield Load(process, output)
        finally:
            process.kill()
            process.wait()
