"""What this process has reserved for each key and team, and has used of it.

What is due of all accounts goes to the book in rounds, one at a time. While the book is out of
reach, each process goes on with its share of every limit, and what it uses meanwhile is written
when the book is back.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from uuid import uuid4

from abridge.config.client_key import Limits
from abridge.memory.stores.store import BackendError, OutageLog
from abridge.observability.metrics import Metrics
from abridge.sidecar.client_keys.books import Book
from abridge.sidecar.client_keys.limits import (
    BLOCKS,
    LEASE,
    LIMIT_KINDS,
    Claim,
    LimitKind,
    Page,
    Reply,
    Sender,
    Wish,
    seconds_until_room,
    settle,
    window_start,
)

ROUND_SECONDS = 1.0
"""Seconds between two rounds that write what was used and renew leases."""

PRESENCE_SECONDS = 5.0
"""Seconds after which a process says that it is there, if it has nothing to write."""

REFUSAL_SECONDS = 1.0
"""Seconds for which nothing is asked of an account that had no room."""

ALONE_SECONDS = 30
"""Seconds after which a client comes again at the latest, while the book is away: when it is back,
more may be left than this process's share."""

IDLE_SECONDS = 600.0
"""Seconds after which an account that nobody uses is forgotten."""

ROUND_ACCOUNTS = 100
"""Accounts in one round: a server answers them all before it answers anybody else."""

MAX_ROUNDS = 20
"""Rounds that a request waits for, should others take what was reserved each time."""

PRESENT = Wish("streams", "open", 1 << 50, 1, 0, 0, 0)
"""Each process holds one of these on a page for that, so the book counts those that are there."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Reserve:
    """What this process has reserved of one limit."""

    kind: LimitKind
    limit: int
    balance: int = 0  # reserved and not used; below 0: used and not reserved
    owed: int = 0  # used while the book was away
    typical: int = 0  # what a request used lately
    used: float = 0.0  # of the limit in all, as the book last said; of streams, elsewhere
    used_at: int = 0  # when that was, in its time

    def take(self) -> int:
        """Take what a request is likely to use, and return it."""
        amount = 1 if self.kind.unit in ("requests", "streams") else self.typical
        self.balance -= amount
        return amount

    def end(self, taken: int, used: int) -> None:
        """Put right what a request took, once it is known."""
        self.balance += taken - used
        if used:
            self.typical = (3 * self.typical + used) // 4 or 1

    def needed(self, waiting: int) -> int:
        """Return what so many requests are likely to use."""
        return waiting * max(1, self.typical)

    def spare(self, waiting: int, *, is_idle: bool) -> int:
        """Return how much is to be given back: what exceeds both a block, or nothing if idle, and
        what those who wait are likely to use."""
        kept = max(0 if is_idle else self.limit // BLOCKS, self.needed(waiting))
        return max(0, self.balance - kept)

    def wish(self, account: Account, *, is_idle: bool, share: int = 0) -> Wish:
        """Return what is to be written, and count it as written. With a `share` of 1/n it is for a
        page of the process's own, and stays owed to the book."""
        limit = max(1, self.limit // share) if share else self.limit
        wanted = max(self.needed(account.waiting), limit // BLOCKS)
        wanted = wanted if account.waiting and self.balance <= 0 else 0
        spare = 0 if share else self.spare(account.waiting, is_idle=is_idle)
        used, self.balance = max(0, -self.balance), max(0, self.balance) - spare
        if self.kind.window == "open":
            used = account.running + self.balance
        elif share:
            self.owed += used
        else:
            used, self.owed = used + self.owed - spare, 0
        return Wish(*self.kind[:2], limit, used, wanted, self.used, self.used_at)


@dataclass(eq=False, slots=True)
class Account:
    """A key or a team; `name` is its page. Of its requests some are `waiting` for a round, some
    `running`."""

    name: str
    limits: Limits | None = None
    reserves: dict[str, Reserve] = field(default_factory=dict)
    waiting: int = 0
    running: int = 0
    pending: Claim | None = None  # a claim without a reply
    own_page: Page | None = None  # of its share, while the book is away
    round: asyncio.Future[None] | None = None  # the next one
    refusal: tuple[LimitKind, int] | None = None  # the limit that is used up, for so many seconds
    refused_until: float = -inf
    used_at: float = -inf
    written_at: float = -inf

    def take_over(self, limits: Limits) -> None:
        """Take over the limits as they are now."""
        before, self.limits, self.reserves = self.reserves, limits, {}
        for kind in LIMIT_KINDS:
            if (value := kind.value(limits)) is not None:
                self.reserves[kind.name] = before.get(kind.name) or Reserve(kind, value)
                self.reserves[kind.name].limit = value

    @property
    def used_up(self) -> list[Reserve]:
        """What nothing is left of."""
        return [each for each in self.reserves.values() if each.balance <= 0]

    def is_idle(self, now: float) -> bool:
        return not self.waiting and now - self.used_at >= ROUND_SECONDS

    def is_due(self, now: float) -> bool:
        """Return whether there is something to write: what was used or given back, or a lease."""
        holds_lease = "streams" in self.reserves and self.running > 0
        third = LEASE / 3000  # in seconds
        if self.pending is not None or (holds_lease and now - self.written_at >= third):
            return True
        idle = self.is_idle(now)
        return any(
            each.owed
            or (each.balance and (each.balance < 0 or each.spare(self.waiting, is_idle=idle)))
            for each in self.reserves.values()
        )

    def claim(self, sender: Sender, now: float, share: int = 0) -> Claim:
        """Return what is due now, for the book or for a page of the process's own."""
        idle = self.is_idle(now)
        wishes = [each.wish(self, is_idle=idle, share=share) for each in self.reserves.values()]
        return Claim(self.name, sender, tuple(wishes))

    def go_alone(self, sender: Sender, now: float) -> None:
        """Reserve from this process's share of what was left when the book was last seen."""
        count = sender.processes
        if self.own_page is None:
            used = {name: [each.used / count, each.used_at] for name, each in self.reserves.items()}
            open_elsewhere, _ = used.get("streams", (0, 0))
            until = sender.sent_at + LEASE - (now - self.written_at) * 1000
            self.own_page = {"used": used, "processes": {"others": [until, open_elsewhere]}}
        claim = self.claim(sender._replace(processes=1), now, share=count)
        self._take(claim, settle(self.own_page, claim, sender.sent_at), now, is_own=True)

    def take_reply(self, reply: Reply, now: float) -> None:
        """Take what the book has reserved in reply to what was pending."""
        claim, self.pending, self.own_page, self.written_at = self.pending, None, None, now
        if claim is not None:
            self._take(claim, reply, now, is_own=False)

    def _take(self, claim: Claim, reply: Reply, now: float, *, is_own: bool) -> None:
        waits: list[tuple[int, LimitKind]] = []
        for wish, granted in zip(claim.wishes, reply.granted, strict=True):
            if (reserve := self.reserves.get(wish.name)) is None:
                continue
            if reserve.used_at < window_start(wish.window, reply.at):
                reserve.balance = min(0, reserve.balance)  # the rest was of the last day or month
            held = 0
            if wish.window == "open":  # a late reply gives nothing beside what was taken meanwhile
                held = wish.used + granted.amount
                reserve.balance = held - self.running
            else:
                reserve.balance += granted.amount
                reserve.owed += granted.amount if is_own else 0
            if not is_own:
                reserve.used, reserve.used_at = granted.used - held, reply.at
            if wish.wanted and not granted.amount:
                wait = seconds_until_room(reserve.kind, wish.limit, granted.used, reply.at)
                waits.append((min(wait, ALONE_SECONDS) if is_own else wait, reserve.kind))
        if waits:
            seconds, kind = max(waits)
            self.refusal, self.refused_until = (kind, seconds), now + REFUSAL_SECONDS


class Admission:
    """What a request that was admitted has taken; it is ended once."""

    def __init__(self, accounts: Sequence[Account]) -> None:
        self._accounts = accounts
        for account in accounts:
            account.running += 1
        reserves = [each for account in accounts for each in account.reserves.values()]
        self._taken = [(each, each.take()) for each in reserves]

    def end(self, tokens: int, money: int) -> None:
        """Put right what was taken: so much was used."""
        used = {"requests": 1, "streams": 0, "tokens": tokens, "money": money}
        for account in self._accounts:
            account.running -= 1
        for reserve, amount in self._taken:
            reserve.end(amount, used[reserve.kind.unit])


class LimitReached(Exception):
    """A limit of a key or team (`holder`) is used up for some seconds."""

    def __init__(self, account: Account, kind: LimitKind, seconds: int) -> None:
        super().__init__(account.name)
        self.holder, self.kind, self.seconds = account.name.partition(":")[0], kind, seconds


class Accounts:
    """The accounts of one process. `now` is the time in seconds since the epoch, `monotonic` a
    clock that never goes back."""

    def __init__(
        self,
        book: Book,
        metrics: Metrics,
        *,
        processes: int,
        now: Callable[[], float],
        monotonic: Callable[[], float],
    ) -> None:
        self._book, self._metrics, self._processes = book, metrics, processes
        self._now, self._monotonic = now, monotonic
        self._process = uuid4().hex
        self._accounts: dict[str, Account] = {}
        self._due: dict[Account, None] = {}
        self._rounds: asyncio.Task[None] | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._present_at, self._numbers = -inf, count(1)
        self._outage = OutageLog(_log, f"limits of keys at {book.name}")

    async def admit(self, limits: Mapping[str, Limits]) -> Admission:
        """Admit a request that counts against limits, by the names of their accounts. Raises
        LimitReached."""
        accounts = list(self._limited(limits))
        for account in accounts:  # one that is refused knows that its limit is used up
            account.used_at = self._monotonic()
        if not _runs(self._keeper) and (accounts or self._book.counts_processes):
            self._keeper = asyncio.create_task(self._keep())
        rounds = 0
        while exhausted := [account for account in accounts if account.used_up]:
            if rounds == MAX_ROUNDS:
                raise LimitReached(exhausted[0], exhausted[0].used_up[0].kind, 1)
            self._check(exhausted)
            await self._write(exhausted, waits=True)
            rounds += 1
        return Admission(accounts)

    def charge(self, limits: Mapping[str, Limits], tokens: int, money: int) -> None:
        """Count what was used by a request that was admitted as another one."""
        for account in self._limited(limits):
            for each in account.reserves.values():
                each.balance -= {"tokens": tokens, "money": money}.get(each.kind.unit, 0)

    async def aclose(self) -> None:
        """Write what was used and give back the rest."""
        if self._keeper is not None:
            self._keeper.cancel()
            self._keeper = None
        for account in self._accounts.values():
            account.used_at = -inf
        for _ in range(2):  # what had no reply goes first
            await self._write_due()
        await self._book.aclose()

    def _limited(self, limits: Mapping[str, Limits]) -> Iterator[Account]:
        """Yield the accounts that have limits."""
        for name, each in limits.items():
            account = self._accounts.get(name)
            if account is None:
                account = self._accounts[name] = Account(name)
            if account.limits is not each:
                account.take_over(each)
            if account.reserves:
                yield account

    def _check(self, exhausted: Iterable[Account]) -> None:
        now = self._monotonic()
        for account in exhausted:
            if account.refusal is not None and now < account.refused_until:
                raise LimitReached(account, *account.refusal)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(ROUND_SECONDS)
            await self._write_due()

    async def _write_due(self) -> None:
        now = self._monotonic()
        for name, account in list(self._accounts.items()):
            if account.is_due(now):
                self._due.setdefault(account)
            elif now - account.used_at >= IDLE_SECONDS and not (account.round or account.running):
                del self._accounts[name]
        is_silent = now - self._present_at >= PRESENCE_SECONDS
        if self._due or (self._book.counts_processes and is_silent):
            await self._write(list(self._due))

    async def _write(self, accounts: Sequence[Account], *, waits: bool = False) -> None:
        """Wait for the next round of some accounts. It goes on if the client leaves."""
        loop = asyncio.get_running_loop()
        for account in accounts:
            account.waiting += waits
            account.round = account.round or loop.create_future()
            self._due.setdefault(account)
        if self._rounds is None or not _runs(self._rounds):
            self._rounds = asyncio.create_task(self._run_rounds())
        rounds = [account.round for account in accounts if account.round]
        try:
            await asyncio.wait(rounds or (self._rounds,))
        finally:
            for account in accounts:
                account.waiting -= waits

    async def _run_rounds(self) -> None:
        while True:
            accounts = list(self._due)[:ROUND_ACCOUNTS]
            rounds = [account.round for account in accounts]
            for account in accounts:
                del self._due[account]
                account.round = None
            try:
                await self._run_round(accounts)
            finally:
                for each in rounds:
                    if each is not None and not each.done():
                        each.set_result(None)
            if not self._due:
                return

    async def _run_round(self, accounts: Sequence[Account]) -> None:
        now, at = self._monotonic(), round(self._now() * 1000)
        claims = []
        for each in accounts:  # what had no reply is sent once more
            each.pending = each.pending or each.claim(self._sender(at), now)
            claims.append(each.pending)
        if says_present := now - self._present_at >= ROUND_SECONDS:
            claims.append(Claim("processes", self._sender(at), (PRESENT,)))
        try:
            replies = await self._book.settle(claims)
        except BackendError as error:
            self._metrics.limit_rounds.labels("failed").inc()
            self._metrics.limits_alone.set(1)
            share = f"1/{self._processes} of each limit" if self._processes > 1 else "the limits"
            reason = f" ({error})" if str(error) else ""
            self._outage.begin(f"unreachable{reason}; each process goes on with {share}, by itself")
            for each in accounts:
                each.go_alone(self._sender(at), now)
        else:
            self._metrics.limit_rounds.labels("ok").inc()
            self._metrics.limits_alone.set(0)
            self._outage.end()
            for each, reply in zip(accounts, replies, strict=False):
                each.take_reply(reply, now)
            if says_present:
                self._present_at, self._processes = now, max(1, round(replies[-1].granted[0].used))

    def _sender(self, at: int) -> Sender:
        return Sender(self._process, next(self._numbers), at, self._processes)


def _runs(task: asyncio.Task[None] | None) -> bool:
    """Return whether a task runs, on the running loop."""
    return task is not None and not task.done() and task.get_loop() is asyncio.get_running_loop()
