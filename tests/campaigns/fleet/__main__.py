"""A fleet: `python -m tests.campaigns.fleet [--streams N] [--seconds S] [--pieces N] [--write]`.

nginx spreads conversations over four replicas of `abridge serve`, which share a Redis with a
sentinel. One replica is killed, one paused, one rolled, and Redis fails over. A client sends its
second turn with the first answer, so the model must get its reasoning back. Three more keys send
more than their limits allow: what reaches the model is compared with the limits.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import signal
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.campaigns.constants import constants_of
from tests.campaigns.cores import Starvation
from tests.campaigns.fleet.clients import Clients
from tests.campaigns.fleet.model import SUMMARY_TOKENS, TOKENS, Model
from tests.campaigns.fleet.processes import (
    CONFIG,
    KEYS,
    REPLICAS,
    Fleet,
    Redis,
    nginx,
    redis,
    write_keys,
)
from tests.campaigns.fleet.work import Work
from tests.campaigns.paced import Shape
from tests.campaigns.verdict import tell
from tests.support.servers import serve

PATIENCE = 4
"""How often the time of an answer it may take, before its client gives up or its replica ends."""

IDLE_SECONDS = 4.0
"""Seconds without a request in which the idle fleet is measured."""

PAUSE_SECONDS = 5.0
"""Seconds for which a replica is paused."""

FILES = 16_384
"""Files that this process may open: a stream takes one of its client and one of the model, and the
replicas and nginx, which inherit the limit, take two for each."""

CLIENTS = 4
"""Clients of each key that is kept at its limit, for each replica."""


@dataclass
class Report:
    """What a run measured. `wrong` is what must not be."""

    idle: dict[str, float] = field(default_factory=dict)
    load: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    starved: bool = False

    def print(self) -> None:
        for name, value in self.notes.items():
            print(f"{name:34} {value}")
        for name in self.load:
            print(f"{name:34} {self.idle[name]:10.2f} idle {self.load[name]:10.2f} under load")


async def campaign(streams: int, seconds: float, shape: Shape) -> Report:
    report, model = Report(), Model(shape)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        redises = await stack.enter_async_context(redis(folder))
        url = await stack.enter_async_context(serve(model, log_level="critical", backlog=4096))
        write_keys(folder)
        store = f"redis-sentinel://127.0.0.1:{redises.sentinel}/main/0"
        patience = max(60.0, PATIENCE * shape.seconds)
        config = CONFIG.format(folder=folder, store=store, upstream=url, drain=patience)
        (folder / "abridge.toml").write_text(config)
        fleet = Fleet(folder, stack)
        await asyncio.gather(*(fleet.start(place) for place in range(REPLICAS)))
        front = stack.enter_context(nginx(folder, fleet.ports))
        clients = Clients(front, shape.pieces, patience)
        run = Run(clients, fleet, redises, model, report)
        await run.play(streams, seconds, shape.seconds)
        judge(run)
    return report


@dataclass
class Run:
    clients: Clients
    fleet: Fleet
    redises: Redis
    model: Model
    report: Report

    async def play(self, streams: int, seconds: float, lasts: float) -> None:
        """Measure the idle fleet, then under load, then make trouble."""
        before = self._work()
        await asyncio.sleep(IDLE_SECONDS)
        self.report.idle = self._work().since(before)
        last = self.fleet.running[REPLICAS - 1].process.pid
        starvation = Starvation({"a replica": last, "load": os.getpid()})
        clients, start = self.clients, asyncio.create_task
        tasks = [start(clients.converse(lasts)) for _ in range(streams)]
        await asyncio.sleep(max(lasts, seconds / 6))
        before = self._work()
        await asyncio.sleep(seconds / 6)
        self.report.load = self._work().since(before)
        self.report.notes["before the trouble"] = self._seen()
        pressed = [name for name in KEYS if name != "conversations"] * (CLIENTS * REPLICAS)
        tasks += [start(clients.press(name)) for name in pressed]
        await self._trouble(seconds / 6)
        await asyncio.sleep(seconds / 6)
        self.clients.stop()
        await asyncio.gather(*tasks)
        self.report.notes["at the end"] = self._seen()
        self.report.notes["CPU"] = starvation.report()
        self.report.starved = starvation.starved()

    def _seen(self) -> str:
        tally, model = self.clients.tally, self.model
        return (
            f"{tally.whole} answers whole, {tally.without_summary} without a summary; of"
            f" {model.second_turns} second turns {model.remembered} with their reasoning"
        )

    def _work(self) -> Work:
        return Work.of(self.redises.primary, self.clients.tally.whole)

    async def _trouble(self, pause: float) -> None:
        fleet = self.fleet
        self.clients.killed = {fleet.address(0)}
        await fleet.end(0, signal.SIGKILL)
        await asyncio.sleep(pause)
        self.clients.killed = set()
        await fleet.start(0)
        fleet.running[1].signal(signal.SIGSTOP)
        await asyncio.sleep(PAUSE_SECONDS)
        fleet.running[1].signal(signal.SIGCONT)
        await asyncio.sleep(pause)
        await fleet.start(REPLICAS)
        code = await fleet.end(2, signal.SIGTERM)
        self.report.notes["exit code of the rolled replica"] = f"{code}"
        alone = await self.fleet.rounds_alone()
        self.report.notes["rounds without Redis"] = f"{alone:g} before the failover"
        judge_limits(self.model, self.report, "before the failover", alone=alone > 0)
        took = await self.redises.fail_over()
        self.report.notes["seconds of the failover"] = f"{took:.1f}"
        await asyncio.sleep(pause)


def judge(run: Run) -> None:
    """Note what clients and the model saw, and what of it is wrong."""
    tally, model, report = run.clients.tally, run.model, run.report
    with run.redises.replica.client() as inspector:
        entries = inspector.xlen("abridge:{ledger}")
    report.notes |= {
        "attempts that failed": f"{dict(tally.retried)}",
        "ledger": f"{entries} entries of {sum(model.taken.values())} requests",
        "statuses of limited keys": f"{dict(run.clients.statuses)}",
    }
    report.wrong += tally.lost
    if tally.without_summary and not report.starved:
        report.wrong.append(f"{tally.without_summary} answers had no summary")
    for log in run.fleet.logs:
        report.wrong += list(log.faults)
    judge_limits(model, report, "at the end", alone=True)


def judge_limits(model: Model, report: Report, when: str, *, alone: bool) -> None:
    """Compare what reached the model with the limits, and with what may exceed them: where replicas
    had to do without Redis, `alone`, their shares, as `docs/keys.md` says."""
    minutes = (model.last.get("rate", 0) - model.first.get("rate", 0)) / 60
    rate, most_open = KEYS["rate"]["requests_per_minute"], KEYS["open"]["streams"]
    used = {
        "rate": (model.taken["rate"], int(rate * (1 + minutes)) + 1),
        "day": (model.tokens["day"], KEYS["day"]["tokens_per_day"]),
        "open": (model.most_open["open"], most_open),
    }
    counts = (REPLICAS, REPLICAS + 1) if alone else ()
    excess = {
        "rate": max(counts, default=0),
        "day": CLIENTS * REPLICAS * (TOKENS + SUMMARY_TOKENS),
        "open": max(((count - 1) * max(1, most_open // count) for count in counts), default=0),
    }
    for name, (amount, limit) in used.items():
        report.notes[f"limit of {name} {when}"] = f"{amount} of {limit}"
        if amount > limit + excess[name]:
            report.wrong.append(f"limit of {name} {when}: {amount} of {limit}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return how many things were wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.fleet", description=__doc__)
    parser.add_argument("--streams", type=int, default=2000, help="open at once")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pieces", type=int, default=10, help="of the reasoning and of the text")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two pieces")
    parser.add_argument("--write", action="store_true", help="keep the constants of this run")
    parsed = parser.parse_args(arguments)
    shape = Shape(parsed.pieces, parsed.pause)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    report = asyncio.run(campaign(parsed.streams, parsed.seconds, shape))
    report.print()
    if parsed.write and not report.wrong:
        asyncio.run(constants_of(report.idle, report.load)).save()
    return tell(report.wrong)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
