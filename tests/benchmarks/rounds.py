"""Load, in processes of its own on the core that is not measured."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tests.benchmarks.load import Job
from tests.benchmarks.processes import BESIDE, module, prepare

Came = dict[str, Any]


def ask(*jobs: Job, meanwhile: Callable[[], None] | None = None) -> list[Came]:
    """What came of each job, all at once; `meanwhile` is called ten times a second until then."""
    running = [_start(job) for job in jobs]
    try:
        while meanwhile is not None and any(process.poll() is None for process in running):
            meanwhile()
            time.sleep(0.1)
        return [_result(process) for process in running]
    finally:
        for process in running:
            process.kill()


def _start(job: Job) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        module("tests.benchmarks.load"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: prepare(BESIDE),
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(job)).encode())
    process.stdin.close()
    process.stdin = None  # or it is flushed once more
    return process


def _result(process: subprocess.Popen[bytes]) -> Came:
    said, _ = process.communicate()
    came: Came = json.loads(said)
    if came["failure"]:
        raise RuntimeError(came["failure"])
    return came
