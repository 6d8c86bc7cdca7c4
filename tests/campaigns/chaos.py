"""Chaos: `python -m tests.campaigns.chaos [--only NAME] [--seconds N] [--rate R]`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import httpx

from tests.campaigns.cores import Starvation
from tests.campaigns.scenes import SCENES, Scene, Skipped
from tests.campaigns.script import Script
from tests.campaigns.traffic import Job, Tally, draw, send
from tests.campaigns.verdict import tell
from tests.support.sidecar import client

WELL_AGAIN = 30.0
"""Seconds after which it must be well again."""

SLOWEST = 20.0
"""Seconds that no request may take, whatever is broken: more than all limits together."""

BATCH = 6
"""It is well if so many requests at once are answered, and no circuit breaker is open."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return how many things were wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.chaos", description=__doc__)
    parser.add_argument("--only", choices=SCENES, action="append")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each scene's trouble")
    parser.add_argument("--rate", type=float, default=10.0, help="requests a second")
    parser.add_argument("--seed", type=int, default=1)
    parsed = parser.parse_args(arguments)
    print(HEAD, flush=True)
    wrong: list[str] = []
    for name in parsed.only or SCENES:
        result = asyncio.run(play(name, parsed.seconds, parsed.rate, parsed.seed))
        print(result.row(), flush=True)
        wrong += [f"{name}: {text}" for text in result.wrong]
    return tell(wrong)


HEAD = (
    f"{'scene':18} {'p50':>6} {'p95':>6} {'worst':>6}  {'well again':>10}  what users saw meanwhile"
)


@dataclass
class Result:
    """A scene, played. `recovery` is in seconds, None if it did not become well again."""

    name: str
    tally: Tally = field(default_factory=Tally)
    recovery: float | None = None
    skipped: str = ""
    starvation: str = ""
    wrong: list[str] = field(default_factory=list)

    def row(self) -> str:
        if self.skipped:
            return f"{self.name:18} skipped: {self.skipped}"
        times = sorted(self.tally.seconds) or [0.0]
        picked = (times[len(times) // 2], times[len(times) * 95 // 100], times[-1])
        shown = " ".join(f"{each:6.2f}" for each in picked)
        again = "never" if self.recovery is None else f"{self.recovery:.1f} s"
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.tally.kinds.most_common())
        return f"{self.name:18} {shown}  {again:>10}  {kinds}{self.starvation}"


async def play(name: str, seconds: float, rate: float, seed: int) -> Result:
    """Play a scene under traffic."""
    result = Result(name)
    try:
        async with SCENES[name]() as scene, client() as session:
            await _play(scene, session, result, Traffic(Random(seed), seconds, rate))
            result.wrong += scene.on.log.faults
    except Skipped as reason:
        result.skipped = str(reason)
    return result


@dataclass
class Traffic:
    """How long the trouble lasts, and how many requests a second are sent meanwhile."""

    random: Random
    seconds: float
    rate: float


async def _play(scene: Scene, session: httpx.AsyncClient, result: Result, traffic: Traffic) -> None:
    random = traffic.random
    if not await is_well(scene, session, random):
        result.wrong.append("it was not well to begin with")
    starvation = Starvation({"load": scene.on.pids["load"], "abridge": scene.on.pids["abridge"]})
    await scene.hurt()
    load = asyncio.create_task(send_all(scene, session, traffic))
    await asyncio.sleep(traffic.seconds)
    await scene.heal()
    result.recovery = await recovery(scene, session, random)
    result.tally = await load
    result.wrong += result.tally.wrong
    if starvation.starved():
        result.starvation = " (STARVED)"
    else:
        result.wrong += judge(scene, result)


def judge(scene: Scene, result: Result) -> list[str]:
    """Return what was wrong about times, and about what users saw."""
    wrong, kinds = [], result.tally.kinds
    if result.recovery is None:
        wrong.append(f"it was not well again within {WELL_AGAIN:.0f} s")
    if max(result.tally.seconds, default=0) > SLOWEST:
        wrong.append(f"a request took {max(result.tally.seconds):.1f} s")
    if scene.bears and set(kinds) - {"ok"} - scene.excused:
        wrong.append(f"users noticed: {dict(kinds)}")
    return wrong


async def send_all(scene: Scene, session: httpx.AsyncClient, traffic: Traffic) -> Tally:
    """Send the requests, and wait for all answers."""
    tally, tasks, url = Tally(), [], scene.on.running.url
    for _ in range(round(traffic.seconds * traffic.rate)):
        tasks.append(asyncio.create_task(send(session, url, job(scene, traffic.random))))
        await asyncio.sleep(1 / traffic.rate)
    for task in tasks:
        tally.add(await task)
    return tally


def job(scene: Scene, random: Random) -> Job:
    drawn = draw(random, random.randrange(1 << 30), faults=0)
    script = Script(drawn.script.number, scene.fault)
    return Job(script, drawn.api, drawn.model, stream=drawn.stream)


async def recovery(scene: Scene, session: httpx.AsyncClient, random: Random) -> float | None:
    """Return the seconds from now until it is well."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < WELL_AGAIN:
        if await is_well(scene, session, random):
            return passed
        await asyncio.sleep(0.1)
    return None


async def is_well(scene: Scene, session: httpx.AsyncClient, random: Random) -> bool:
    """Return whether several requests at once are answered, and no breaker is open."""
    jobs = [draw(random, random.randrange(1 << 30), faults=0) for _ in range(BATCH)]
    url = scene.on.running.url
    outcomes = await asyncio.gather(*(send(session, url, each) for each in jobs))
    try:
        broken = (await scene.on.metrics()).total("breaker_open")
    except (httpx.HTTPError, AssertionError, ValueError):
        return False
    return not broken and all(outcome.kind == "ok" for outcome in outcomes)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
