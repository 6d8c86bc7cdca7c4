"""Soak: `python -m tests.campaigns.soak [--seconds N] [--rate R] [--seed S]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import sqrt
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import httpx

from tests.campaigns.cores import Starvation
from tests.campaigns.stage import GAUGES, Stage, stage
from tests.campaigns.traffic import PATIENCE, Job, Outcome, Tally, draw, send
from tests.campaigns.verdict import tell
from tests.support.sidecar import environment

FAULTS = 0.2
"""The share of requests with which something is wrong."""

WARM_UP = 0.4
"""The share of a run that is left out of its slopes: meanwhile caches and pools fill."""

LONG_ENOUGH = 600.0
"""Seconds from which on slopes are judged."""

MEASURES = ("MiB", "objects", "descriptors", "threads", "tasks")
"""What is held by the sidecar's process; `objects` are those that the garbage collector knows."""

STEEP = 0.1
"""The share of its mean by which a measure may grow in an hour."""

CERTAIN = 3.0
"""Standard errors by which a slope must exceed that."""

SAMPLES = 120

GRACE = 30.0
"""Seconds after the last request in which everything must be back to what it was."""

LEFT_BEHIND = {"descriptors": 8, "threads": 8, "tasks": 4}
"""How many more there may be by then."""

FAULTLESS = ("none", "drip", "stall")
"""With these, an answer must be whole: a stall is shorter than any limit."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return how many things were wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--rate", type=float, default=20.0, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    parsed = parser.parse_args(arguments)
    return asyncio.run(soak(parsed.seconds, parsed.rate, parsed.seed))


Sample = dict[str, float]


async def soak(seconds: float, rate: float, seed: int) -> int:
    async with (
        counted_stage() as (on, counts),
        httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as session,
    ):
        first, starvation = await sample(on, counts), Starvation(on.pids)
        run = Run(on, counts, session, Random(seed))
        sampling = asyncio.create_task(run.sample_each(max(1.0, seconds / SAMPLES)))
        await run.send_for(seconds, rate)
        sampling.cancel()
        await asyncio.wait([sampling])
        wrong = [*run.tally.wrong, *await left_behind(on, counts, first), *on.log.faults]
        if not starvation.starved():
            wrong += run.lost
        print(f"{sum(run.tally.kinds.values())} requests: {dict(run.tally.kinds.most_common())}")
        print(starvation.report())
        wrong += judge(run.samples, seconds)
    return tell(wrong)


class Run:
    """Sends traffic and takes samples. `lost` are good answers that did not come whole."""

    def __init__(self, on: Stage, counts: Path, session: httpx.AsyncClient, random: Random) -> None:
        self._on = on
        self._counts = counts
        self._session = session
        self._random = random
        self._tasks: set[asyncio.Task[None]] = set()
        self.tally = Tally()
        self.lost: list[str] = []
        self.samples: list[Sample] = []

    async def send_for(self, seconds: float, rate: float) -> None:
        """Start requests at this rate, however long they take; return once all are over."""
        began, number = time.monotonic(), 0
        while (passed := time.monotonic() - began) < seconds:
            while number < passed * rate:
                number += 1
                task = asyncio.create_task(self._send(draw(self._random, number, faults=FAULTS)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            await asyncio.sleep(0.01)
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _send(self, job: Job) -> None:
        outcome = await send(self._session, self._on.running.url, job)
        self.tally.add(outcome)
        if is_lost(outcome):
            self.lost.append(f"a good answer ended {outcome.kind} -- {job}")

    async def sample_each(self, seconds: float) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(seconds)
            hours = (time.monotonic() - began) / 3600
            self.samples.append({"hours": hours, **await sample(self._on, self._counts)})


def is_lost(outcome: Outcome) -> bool:
    return outcome.job.script.wrong in FAULTLESS and outcome.kind not in ("ok", "left")


COUNTING = """
import asyncio, gc, json, os, sys, threading, time
def count():
    while True:
        time.sleep({seconds})
        objects = len(gc.get_objects())
        tasks = sum(type(one) is asyncio.Task for one in gc.get_objects())
        with open({file!r} + ".new", "w") as file:
            json.dump({{"objects": objects, "tasks": tasks}}, file)
        os.replace({file!r} + ".new", {file!r})
if "serve" in sys.orig_argv:
    threading.Thread(target=count, daemon=True).start()
"""
"""Runs in the sidecar, to count what only it can see; it keeps no references to what it counts."""

COUNT_SECONDS = 2.0


@asynccontextmanager
async def counted_stage() -> AsyncIterator[tuple[Stage, Path]]:
    """Start all processes; yield the stage, and the file in which the sidecar counts."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "counts"
        _write_counter(Path(folder), file)
        path = os.pathsep.join([folder, environment()["PYTHONPATH"]])
        async with stage(PYTHONPATH=path) as on:
            await asyncio.sleep(2 * COUNT_SECONDS)
            yield on, file


def _write_counter(folder: Path, file: Path) -> None:
    file.write_text('{"objects": 0, "tasks": 0}')
    code = COUNTING.format(file=str(file), seconds=COUNT_SECONDS)
    (folder / "sitecustomize.py").write_text(code)


def _read(counts: Path) -> Sample:
    return json.loads(counts.read_text())  # type: ignore[no-any-return]


async def sample(on: Stage, counts: Path) -> Sample:
    """Return what the sidecar's process holds, and its gauges."""
    process, metrics = Path(f"/proc/{on.running.process.pid}"), await on.metrics()
    return {
        "MiB": int((process / "statm").read_text().split()[1]) * 4096 / (1 << 20),
        "descriptors": len(list((process / "fd").iterdir())),
        "threads": len(list((process / "task").iterdir())),
        **_read(counts),
        **{name: metrics.total(name) for name in GAUGES},
    }


async def left_behind(on: Stage, counts: Path, first: Sample) -> list[str]:
    """Return what is still there a while after the last request."""
    until = time.monotonic() + GRACE
    while True:
        now = await sample(on, counts)
        more = [name for name in LEFT_BEHIND if now[name] > first[name] + LEFT_BEHIND[name]]
        busy = [name for name in GAUGES if now[name]]
        if not (more or busy):
            return []
        if time.monotonic() > until:
            return [f"left behind: {name} {first[name]:g} -> {now[name]:g}" for name in more + busy]
        await asyncio.sleep(0.2)


def judge(samples: list[Sample], seconds: float) -> list[str]:
    """Print the slopes after the warm-up; return those that are certainly too steep."""
    later, wrong = samples[int(len(samples) * WARM_UP) :], []
    for name in MEASURES:
        mean = sum(one[name] for one in later) / max(1, len(later))
        slope, error = slope_of([(one["hours"], one[name]) for one in later])
        growth, doubt = slope / max(mean, 1.0), error / max(mean, 1.0)
        verdict = "steep" if growth - CERTAIN * doubt > STEEP else "level"
        verdict = verdict if seconds >= LONG_ENOUGH else "too short to judge"
        print(f"  {name:12} {mean:9.1f}, {growth:+8.1%} ± {doubt:.1%} an hour: {verdict}")
        if verdict == "steep":
            wrong.append(f"{name} grow by {growth:.0%} an hour")
    for name in GAUGES:
        print(f"  {name:21} {max((one[name] for one in samples), default=0):.0f} at most")
    return wrong


def slope_of(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the slope of the line of least squares, and its standard error."""
    if len(points) < 3:
        return 0.0, 0.0
    x = sum(point[0] for point in points) / len(points)
    y = sum(point[1] for point in points) / len(points)
    spread = sum((point[0] - x) ** 2 for point in points)
    slope = sum((point[0] - x) * (point[1] - y) for point in points) / spread
    squares = sum((point[1] - y - slope * (point[0] - x)) ** 2 for point in points)
    return slope, sqrt(squares / (len(points) - 2) / spread)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
