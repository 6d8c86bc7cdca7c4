"""Soak: `python -m tests.campaigns.soak [--seconds N] [--rate R] [--seed S]`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

import httpx

from tests.campaigns.cores import Starvation
from tests.campaigns.stage import GAUGES, Stage, stage
from tests.campaigns.traffic import PATIENCE, Job, Outcome, Tally, draw, send

FAULTS = 0.2
"""The share of requests with which something is wrong."""

LONG_ENOUGH = 600.0
"""Seconds from which on slopes are judged: before, caches and pools still fill."""

CEILINGS = {"MiB": 32.0, "descriptors": 20.0, "threads": 2.0}
"""What may be added in an hour."""

SAMPLES = 120

GRACE = 30.0
"""Seconds after the last request in which everything must be back to what it was."""

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
    async with stage() as on, httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as session:
        first, starvation = await sample(on), Starvation(on.pids)
        run = Run(on, session, Random(seed))
        sampling = asyncio.create_task(run.sample_each(max(1.0, seconds / SAMPLES)))
        await run.send_for(seconds, rate)
        sampling.cancel()
        await asyncio.wait([sampling])
        wrong = [*run.tally.wrong, *await left_behind(on, first), *on.log.faults]
        if not starvation.starved():
            wrong += run.lost
        print(f"{sum(run.tally.kinds.values())} requests: {dict(run.tally.kinds.most_common())}")
        print(starvation.report())
        wrong += judge(run.samples, seconds)
    for text in wrong[:20]:
        print(f"WRONG: {text}")
    print(f"{len(wrong)} things were wrong")
    return len(wrong)


class Run:
    """Sends traffic and takes samples. `lost` are good answers that did not come whole."""

    def __init__(self, on: Stage, session: httpx.AsyncClient, random: Random) -> None:
        self._on = on
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
            self.samples.append(
                {"hours": (time.monotonic() - began) / 3600, **await sample(self._on)}
            )


def is_lost(outcome: Outcome) -> bool:
    return outcome.job.script.wrong in FAULTLESS and outcome.kind not in ("ok", "left")


async def sample(on: Stage) -> Sample:
    """Return what a process holds, and its gauges."""
    process, metrics = Path(f"/proc/{on.running.process.pid}"), await on.metrics()
    return {
        "MiB": int((process / "statm").read_text().split()[1]) * 4096 / (1 << 20),
        "descriptors": len(list((process / "fd").iterdir())),
        "threads": len(list((process / "task").iterdir())),
        **{name: metrics.total(name) for name in GAUGES},
    }


async def left_behind(on: Stage, first: Sample) -> list[str]:
    """Return what is still there a while after the last request."""
    until = time.monotonic() + GRACE
    while True:
        now = await sample(on)
        more = [name for name in ("descriptors", "threads") if now[name] > first[name] + 8]
        busy = [name for name in GAUGES if now[name]]
        if not (more or busy):
            return []
        if time.monotonic() > until:
            return [f"left behind: {name} {first[name]:g} -> {now[name]:g}" for name in more + busy]
        await asyncio.sleep(0.2)


def judge(samples: list[Sample], seconds: float) -> list[str]:
    """Print the slopes, from the second quarter on; return those that are too steep."""
    later, wrong = samples[len(samples) // 4 :], []
    for name, ceiling in CEILINGS.items():
        slope = slope_of([(one["hours"], one[name]) for one in later])
        verdict = "steep" if slope > ceiling else "level"
        verdict = verdict if seconds >= LONG_ENOUGH else "too short to judge"
        end = samples[-1][name] if samples else 0.0
        print(f"  {name:12} {end:8.1f} at the end, {slope:+8.1f} an hour: {verdict}")
        if verdict == "steep":
            wrong.append(f"{name} grow by {slope:.1f} an hour")
    for name in GAUGES:
        print(f"  {name:21} {max((one[name] for one in samples), default=0):.0f} at most")
    return wrong


def slope_of(points: list[tuple[float, float]]) -> float:
    """Return the slope of the line of least squares."""
    if len(points) < 2:
        return 0.0
    x = sum(point[0] for point in points) / len(points)
    y = sum(point[1] for point in points) / len(points)
    spread = sum((point[0] - x) ** 2 for point in points)
    return sum((point[0] - x) * (point[1] - y) for point in points) / spread


if __name__ == "__main__":
    sys.exit(min(main(), 1))
