"""Simulate a large fleet: `python -m tests.campaigns.scale`.

Limits are counted by Abridge's own code, on pages in memory and by a simulated clock. What the rest
asks of Redis, and what all of it costs, are the constants that `fleet --write` measured. Prints
docs/scaling.md's table and draws its plot.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import ceil, log10
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

from abridge.config.client_key import Limits
from abridge.observability.ledger import ledger
from abridge.sidecar.client_keys import accounts
from abridge.sidecar.client_keys.accounts import Account, Admission
from abridge.sidecar.client_keys.limits import Page, Sender, settle
from tests.campaigns.constants import Constants

FILE = Path(__file__).with_name("scaling.json")
PLOT = Path(__file__).parents[2] / "docs" / "scaling.svg"

STREAMS_EACH = 1000
"""Streams at once in each replica."""

SIZES = (4, 10, 25, 50, 100)
"""Numbers of replicas that are simulated."""

SECONDS = 5.0
"""Simulated seconds that are counted: leases are renewed every five."""

SETTLING = 6.0
"""Simulated seconds that are not counted: what was reserved at once at the start is given back."""


@dataclass(frozen=True)
class Plan:
    """A fleet and its load. `lasts` is the seconds of a stream. If `hashed`, a key's requests go to
    one replica."""

    replicas: int
    streams: int
    lasts: float = 30.0
    keys: int = 1000
    teams: int = 50
    limits_streams: bool = True
    hashed: bool = False

    def limits(self, holders: int) -> Limits:
        """Return limits of one of so many keys or teams, which the load does not reach."""
        a_minute = ceil(60 * self.streams / self.lasts / holders)
        return Limits(
            requests_per_minute=20 * a_minute,
            tokens_per_day=1440 * 20 * a_minute * TOKENS,
            streams=20 * ceil(self.streams / holders) if self.limits_streams else None,
        )


TOKENS = 2000
"""Tokens of a stream."""


@dataclass
class Asked:
    """What was asked of Redis, in all."""

    rounds: int = 0  # that settle claims
    claims: int = 0
    claim_replicas: int = 0  # other replicas on the pages of those claims
    batches: int = 0  # of the ledger
    answers: int = 0

    def a_second(self, seconds: float, of: Constants) -> Rates:
        store = self.answers * of.store_trips
        trips = self.rounds + self.batches + store
        parts = {
            "limits": self.claims * of.claim + self.claim_replicas * of.claim_replica,
            "store": store * of.store_trip,
            "ledger": self.answers * of.entry,
            "round trips": trips * of.round_trip,
        }
        return Rates(
            self.rounds / seconds,
            self.claims / seconds,
            self.batches / seconds,
            store / seconds,
            {name: spent / 1e6 / seconds for name, spent in parts.items()},
        )


class Rates(NamedTuple):
    """What is asked of Redis a second; `busy` are shares of its one processor."""

    rounds: float
    claims: float
    batches: float
    store: float
    busy: Mapping[str, float]

    @property
    def trips(self) -> float:
        return self.rounds + self.batches + self.store

    @property
    def share(self) -> float:
        return sum(self.busy.values())


@dataclass
class Replica:
    """A process: its accounts, and its entries of the ledger that wait."""

    name: str
    accounts: dict[str, Account] = field(default_factory=dict)
    entries: int = 0
    number: int = 0


class Simulation:
    """Runs a plan; `asked` is what it asked of Redis so far."""

    def __init__(self, plan: Plan, seed: int = 1) -> None:
        self._plan, self._random = plan, Random(seed)
        self._of_key, self._of_team = plan.limits(plan.keys), plan.limits(plan.teams)
        self._replicas = [Replica(f"r{place}") for place in range(plan.replicas)]
        self._pages: dict[str, Page] = {}
        self._ends: list[tuple[float, int, Replica, Admission]] = []
        self._now, self._number = 0.0, 0
        self.asked = Asked()

    def run(self, seconds: float) -> Asked:
        """Return what is asked in so many seconds, once all is under way."""
        for _ in range(self._plan.streams):
            self._begin(self._random.uniform(0, self._plan.lasts))
        self._pass(SETTLING)
        self.asked = Asked()
        self._pass(seconds)
        return self.asked

    def _pass(self, seconds: float) -> None:
        """Let time pass. A stream that ends is followed by another; each replica writes what is due
        once in a round, and its ledger more often."""
        until, step = self._now + seconds, ledger.WRITE_SECONDS
        while self._now < until:
            self._now += step
            while self._ends[0][0] <= self._now:
                self._end()
            for replica in self._replicas:
                self._write_ledger(replica)
                if self._now % accounts.ROUND_SECONDS < step:
                    self._write_due(replica)

    def _begin(self, lasts: float) -> None:
        key = self._random.randrange(self._plan.keys)
        place = key if self._plan.hashed else self._random.randrange(1 << 30)
        replica = self._replicas[place % len(self._replicas)]
        limits = {f"key:{key}": self._of_key, f"team:{key % self._plan.teams}": self._of_team}
        taken = Admission(list(self._admit(replica, limits)))
        self._number += 1
        heapq.heappush(self._ends, (self._now + lasts, self._number, replica, taken))

    def _end(self) -> None:
        _, _, replica, taken = heapq.heappop(self._ends)
        taken.end(TOKENS, 0)
        replica.entries += 1
        self.asked.answers += 1
        self._begin(self._plan.lasts * self._random.uniform(0.5, 1.5))

    def _admit(self, replica: Replica, limits: Mapping[str, Limits]) -> Iterator[Account]:
        for name, each in limits.items():
            if (account := replica.accounts.get(name)) is None:
                account = replica.accounts[name] = Account(name)
                account.take_over(each)
            account.used_at = self._now
            for _ in range(accounts.MAX_ROUNDS):
                if not account.used_up:
                    break
                account.waiting = 1
                self._settle(replica, [account])
                account.waiting = 0
            else:
                raise ValueError(f"the limits of {name} are too low for the plan's load")
            yield account

    def _write_due(self, replica: Replica) -> None:
        due = [each for each in replica.accounts.values() if each.is_due(self._now)]
        for start in range(0, len(due), accounts.ROUND_ACCOUNTS):
            self._settle(replica, due[start : start + accounts.ROUND_ACCOUNTS])

    def _write_ledger(self, replica: Replica) -> None:
        self.asked.batches += ceil(replica.entries / ledger.BATCH_SIZE)
        replica.entries = 0

    def _settle(self, replica: Replica, due: Sequence[Account]) -> None:
        """Write claims in one round trip."""
        at = round(self._now * 1000) + EPOCH
        self.asked.rounds += 1
        for account in due:
            replica.number += 1
            sender = Sender(replica.name, replica.number, at, len(self._replicas))
            page = self._pages.setdefault(account.name, {})
            account.pending = account.claim(sender, self._now)
            account.take_reply(settle(page, account.pending, at), self._now)
            self.asked.claims += 1
            if self._plan.limits_streams:
                self.asked.claim_replicas += len(page["processes"]) - 1


EPOCH = 1_800_000_000_000
"""The simulated time at the beginning, in milliseconds."""

LINES = {
    "spread over all replicas": Plan(1, 1),
    "no limit of streams": Plan(1, 1, limits_streams=False),
    "hashed by key": Plan(1, 1, hashed=True),
}
"""The lines of the plot."""


Asking: TypeAlias = dict[str, dict[int, Asked]]
"""What each line asks in `SECONDS`, by the number of replicas."""


def simulate() -> Asking:
    return {
        name: {
            size: Simulation(replace(base, replicas=size, streams=size * STREAMS_EACH)).run(SECONDS)
            for size in SIZES
        }
        for name, base in LINES.items()
    }


def read() -> Asking:
    """Return what the last simulation found."""
    kept = json.loads(FILE.read_text())
    return {
        name: {int(size): Asked(**asked) for size, asked in line.items()}
        for name, line in kept.items()
    }


def costs(asking: Asking, of: Constants) -> dict[str, dict[int, Rates]]:
    return {
        name: {size: asked.a_second(SECONDS, of) for size, asked in line.items()}
        for name, line in asking.items()
    }


def table(lines: Mapping[str, Mapping[int, Rates]]) -> str:
    """Return the table of docs/scaling.md."""
    spread, *others = lines.values()
    names = " | ".join(lines)
    head = f"| replicas | streams | round trips | claims | {names} |"
    rows = [head, "|---" * (4 + len(lines)) + "|"]
    for size, found in spread.items():
        shares = " | ".join(percent(each[size].share) for each in (spread, *others))
        rows.append(
            f"| {size} | {size * STREAMS_EACH:,} | {found.trips:,.0f} | {found.claims:,.0f}"
            f" | {shares} |"
        )
    return "\n".join(rows) + "\n"


def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def plot(lines: Mapping[str, Mapping[int, Rates]]) -> str:
    """Draw how busy Redis is, by the number of replicas."""
    dashes = ("", "6 4", "2 4")
    most = max(each.share for line in lines.values() for each in line.values())
    parts = [
        (
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 360" font-family="sans-serif"'
            ' font-size="13" fill="#57606a">'
        ),
        '<rect width="640" height="360" fill="#ffffff"/>',
        (
            '<text x="60" y="24" fill="#24292f">Processor of one Redis, by replicas of'
            f" {STREAMS_EACH:,} streams each</text>"
        ),
    ]
    scale = max(1.0, most)
    x0, x1 = log10(SIZES[0]), log10(SIZES[-1])

    def x(size: float) -> float:
        return round(60 + 420 * (log10(size) - x0) / (x1 - x0), 1)

    def y(share: float) -> float:
        return round(310 - 260 * share / scale, 1)

    for step in range(ceil(scale * 4) + 1):
        if (share := step / 4) <= scale:
            color = "#cf222e" if share == 1 else "#d0d7de"
            parts.append(f'<path d="M60 {y(share)}H480" stroke="{color}"/>')
            parts.append(f'<text x="52" y="{y(share) + 4}" text-anchor="end">{share:.0%}</text>')
    parts += [f'<text x="{x(size)}" y="330" text-anchor="middle">{size}</text>' for size in SIZES]
    for dash, (name, line) in zip(dashes, lines.items(), strict=True):
        points = " ".join(f"{x(size)},{y(each.share)}" for size, each in line.items())
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="#0969da" stroke-width="2"'
            f' stroke-dasharray="{dash}"/>'
        )
        parts.append(f'<text x="488" y="{y(line[SIZES[-1]].share) + 4}">{name}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def main() -> None:
    asking = simulate()
    FILE.write_text(json.dumps(asking, default=asdict, indent=1) + "\n")
    found = costs(asking, Constants.load())
    PLOT.write_text(plot(found))
    print(table(found))


if __name__ == "__main__":
    main()
