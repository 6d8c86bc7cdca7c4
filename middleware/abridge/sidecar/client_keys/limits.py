"""The limits of keys and teams, and the page on which all processes count what is used of them.

Theory of operation. A process may use what it has *reserved*. It reserves a block, in which a
request mostly finds what it needs, and gives back what it leaves. So a page is written when a block
is used up, and about once a second: not twice for each request. A block is a 64th of the limit at
most, and less as the limit comes near, down to 1: beyond a limit on requests there is nothing to
reserve. What an answer uses is known at its end, so a request takes what the last ones used on
average, which is put right then; and no request is admitted while what is reserved is used up.

A page may be shared over a network that loses replies. So claims are numbered: one that is sent
again is answered again, and counts once. The time is the page's, not the process's own.

Requests and tokens of a minute leak out of the page evenly; those of a day or a month are gone
when the next begins. What is open, such as streams, belongs to its process for as long as that
renews its lease.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from math import ceil, floor
from typing import Any, Literal, NamedTuple, TypeAlias

from abridge.config.client_key import Limits

MINUTE, DAY = 60_000, 86_400_000
"""In milliseconds, as all times here. Days and months begin at midnight UTC."""

LEASE = 15_000
"""For how long what is open belongs to a process that is not heard of."""

REMEMBERED = 600_000
"""For how long a process that was is not heard of any more can send a claim again."""

BLOCKS = 64
"""The number of blocks that make a limit."""

NANO = 10**9
"""Money is counted in these parts of the currency."""

ROUNDING = 1e-6
"""By how much an amount may be off, so that nobody waits as long as told and is refused again."""

Window: TypeAlias = Literal["minute", "day", "month", "open"]

Page: TypeAlias = dict[str, Any]
"""What is used by one key or team: `used`, by limit, as an amount and when it was that; and
`processes`, by id: until when its lease is, how much it has open, its last claim, the reply."""


class LimitKind(NamedTuple):
    """A kind of limit; `name` is its field in the file of keys."""

    name: str
    window: Window
    unit: Literal["requests", "tokens", "money", "streams"]

    def value(self, limits: Limits) -> int | None:
        value: float | None = getattr(limits, self.name)
        return value if value is None else round(value * (NANO if self.unit == "money" else 1))


LIMIT_KINDS = (
    LimitKind("requests_per_minute", "minute", "requests"),
    LimitKind("tokens_per_minute", "minute", "tokens"),
    LimitKind("tokens_per_day", "day", "tokens"),
    LimitKind("tokens_per_month", "month", "tokens"),
    LimitKind("money_per_day", "day", "money"),
    LimitKind("money_per_month", "month", "money"),
    LimitKind("streams", "open", "streams"),
)


class Wish(NamedTuple):
    """What a process says of one limit: what it has used beyond what it had reserved, or, below 0,
    gives back (of what is open: all that it holds), and how much more it would like to reserve.
    The amount that it last knew counts where a page was lost."""

    name: str
    window: Window
    limit: int
    used: int
    wanted: int
    known: float
    known_at: int


class By(NamedTuple):
    """The process that asks, the number of its claim, when that is by its own clock, and how many
    processes there are."""

    process: str
    number: int
    asked_at: int
    replicas: int


class Claim(NamedTuple):
    """What a process says of one key or team."""

    account: str
    process: str
    number: int
    asked_at: int
    replicas: int
    wishes: tuple[Wish, ...]


class Granted(NamedTuple):
    """What was reserved of one limit, and what is used of it in all."""

    amount: int
    used: float


class Reply(NamedTuple):
    """The answer to a claim: when it was given, and what was reserved of each limit."""

    at: int
    granted: tuple[Granted, ...]


def settle(page: Page, claim: Claim, now: int) -> Reply:
    """Write a claim on a page. The same in Lua is `SETTLE` of `books.py`."""
    used, processes = page.setdefault("used", {}), page.setdefault("processes", {})
    mine = processes.get(claim.process)
    if mine is not None and mine[2] >= claim.number:
        at, granted = mine[3]
        return Reply(at, tuple(Granted(*each) for each in granted))
    for name, (expires, *_) in list(processes.items()):
        if expires + REMEMBERED <= now:
            del processes[name]
    others = [each for name, each in processes.items() if name != claim.process]
    elsewhere, held = sum(each[1] for each in others if each[0] > now), 0
    granted = []
    for wish in claim.wishes:
        if wish.window == "open":
            amount = float(elsewhere + wish.used)
        else:
            before, at = used.get(wish.name, (wish.known, wish.known_at))
            amount = max(0.0, _left_of(before, at, wish, now) + wish.used)
        room = floor(wish.limit - amount + ROUNDING)
        block = min(wish.wanted, max(1, room // (2 * claim.replicas))) if room > 0 else 0
        granted.append(Granted(block, amount + block))
        if wish.window == "open":
            held = wish.used + block
        else:
            used[wish.name] = [amount + block, now]
    processes[claim.process] = [now + LEASE, held, claim.number, [now, granted]]
    return Reply(now, tuple(granted))


def _left_of(amount: float, at: int, wish: Wish, now: int) -> float:
    """Return what still counts of an amount that was used at a time."""
    if wish.window == "minute":
        return max(0.0, amount - max(0, now - at) * wish.limit / MINUTE)
    return amount if at >= window_start(wish.window, now) else 0.0


def window_start(window: Window, now: int) -> int:
    """Return when the day or month began; 0 for what knows neither."""
    if window == "day":
        return now - now % DAY
    return next(start for start in month_starts(now) if start <= now) if window == "month" else 0


def month_starts(now: int) -> Iterator[int]:
    """Yield when the next month, this one and the last begin: clocks differ."""
    today = datetime.fromtimestamp(now / 1000, UTC)
    months = today.year * 12 + today.month
    for month in (months, months - 1, months - 2):
        yield int(datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp() * 1000)


def seconds_until_room(kind: LimitKind, limit: int, used: float, now: int) -> int:
    """Return the seconds after which more of a limit can be reserved."""
    if kind.window == "open":
        return 1
    if kind.window == "minute":
        wait = (used + 1 - limit) * MINUTE / limit
    elif kind.window == "day":
        wait = DAY - now % DAY
    else:
        wait = next(month_starts(now)) - now
    return max(1, ceil(wait / 1000 - ROUNDING))
