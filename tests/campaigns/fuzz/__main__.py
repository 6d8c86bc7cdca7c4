"""Fuzz: `python -m tests.campaigns.fuzz [--cases N] [--kind KIND] [--seed S] [--replay FILE]`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.campaigns.cores import Starvation
from tests.campaigns.fuzz import blobs, bodies, conversations, http, streams
from tests.campaigns.fuzz import run as asgi
from tests.campaigns.fuzz.case import Case, Json, known_findings
from tests.campaigns.fuzz.run import Watch, watching
from tests.campaigns.fuzz.shrink import shrink, signature
from tests.campaigns.fuzz.world import WORLDS, Worlds, random_spec

Make = Callable[[Random], Case]


async def makes_blobs(seed: int) -> Make:
    conversations = await blobs.prepare(seed)
    return lambda random: blobs.make(random, conversations)


async def makes_streams(seed: int) -> Make:
    specs = draw_specs(seed)
    return lambda random: streams.make(random, specs)


async def makes_bodies(seed: int) -> Make:
    specs = draw_specs(seed)
    return lambda random: bodies.make(random, specs)


async def makes_conversations(seed: int) -> Make:
    return conversations.make


async def makes_http(seed: int) -> Make:
    return http.make


async def run(case: Case, worlds: Worlds, watch: Watch) -> list[str]:
    """Run a case of any kind."""
    runs = http.run if case.kind == "http" else asgi.run
    return await runs(case, worlds, watch)


def draw_specs(seed: int) -> list[Json]:
    return [random_spec(Random(f"{seed}/{number}")) for number in range(WORLDS)]


KINDS: dict[str, Callable[[int], Awaitable[Make]]] = {
    "streams": makes_streams,
    "bodies": makes_bodies,
    "blobs": makes_blobs,
    "conversations": makes_conversations,
    "http": makes_http,
}
CASES = 20_000
SECONDS = 600.0
SAVED = 40
"""How many findings are saved; later ones are only counted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return how many different findings there are."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=CASES, help="of each kind")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each kind, at most")
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1000 % 10**9)
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one saved case")
    default = Path(tempfile.gettempdir()) / "abridge-findings"
    parser.add_argument("--findings", type=Path, default=default, metavar="FOLDER")
    parsed = parser.parse_args(arguments)
    if parsed.replay:
        return asyncio.run(replay(parsed.replay))
    return sum(
        asyncio.run(Campaign(kind, parsed.seed, parsed.findings).run(parsed.cases, parsed.seconds))
        for kind in parsed.kind or KINDS
    )


async def replay(path: Path) -> int:
    with watching() as watch:
        wrong = await run(Case.load(path), Worlds(), watch)
    print("\n".join(wrong) or "nothing is wrong")
    return len(wrong)


class Campaign:
    """Runs the cases of one kind. Case number n of a seed is always the same."""

    def __init__(self, kind: str, seed: int, folder: Path) -> None:
        self._kind = kind
        self._seed = seed
        self._folder = folder
        self._worlds = Worlds()
        self._found: Counter[str] = Counter()
        self._known = known_findings()

    async def run(self, cases: int, limit: float) -> int:
        """Run so many cases, or as many as fit into `limit` seconds."""
        print(f"{self._kind}: {cases} cases of seed {self._seed}", flush=True)
        make = await KINDS[self._kind](self._seed)
        starvation, began, number = Starvation(), time.monotonic(), 0
        with watching() as watch:
            while number < cases and time.monotonic() - began < limit:
                number += 1
                case = make(Random(f"{self._seed}/{self._kind}/{number}"))
                if wrong := await run(case, self._worlds, watch):
                    await self._note(number, case, wrong, watch)
        rate = number / (time.monotonic() - began)
        print(f"  {number} run, {rate:.0f} a second; {starvation.report()}")
        new = [name for name in self._found if name not in self._known]
        print(f"  {len(new)} findings, and {len(self._found) - len(new)} known ones")
        for text, count in self._found.most_common():
            print(f"    {count:6} {text}{'' if text in new else ' (known)'}")
        return len(new)

    async def _note(self, number: int, case: Case, wrong: list[str], watch: Watch) -> None:
        """Save the first case of each finding, made as small as it gets."""
        name = signature(wrong[0])
        self._found[name] += 1
        if self._found[name] > 1 or len(self._found) > SAVED or name in self._known:
            return
        small = await shrink(case, name, lambda one: run(one, Worlds(), watch))
        file = self._folder / f"{self._kind}-{self._seed}-{number}.json"
        replace(small, finding=name, note=wrong[0][-2000:]).save(file)
        print(f"  {wrong[0][:600]}\n    {case.changes}", flush=True)
        print(f"    python -m tests.campaigns.fuzz --replay {file}", flush=True)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
