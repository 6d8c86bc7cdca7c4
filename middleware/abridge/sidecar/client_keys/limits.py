"""The limits of keys and teams, and the page on which all processes count what is used of one.

Theory of operation. A process may use what it has reserved on the page. It reserves a block at a
time, and gives back what it does not need. So it writes on the page when a block is used up, and
about once a second, not twice for each request. A block is 1/64 of the limit at most, and shrinks
down to 1 as the limit comes near. Of a limit that is used up, nothing can be reserved.

What an answer uses is known at its end. Until then its request takes what requests used on average
lately. No request is admitted while nothing is left of what is reserved.

Replies may be lost on their way. So claims are numbered: one that is sent again gets the same
reply, and counts once. The time is that of the page, not of a process.

What was used in a minute leaks out of the page evenly; what was used in a day or a month is dropped
when the next begins. What is open, such as streams, is held by its process while that renews its
lease.
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
"""For how long a process holds what is open, after it last wrote."""

REMEMBERED = 600_000
"""For how long a claim may be sent again."""

KEPT = 40 * DAY
"""For how long a page is kept that nobody writes: longer than a month."""

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
    """What a process says of one limit.

    `used` is what it used and had not reserved; below 0, what it gives back. Of what is open it is
    all that the process holds. `wanted` is what it would like to reserve. `known` is what was used
    in all at a time, as far as it knows: that counts if the page was lost.
    """

    name: str
    window: Window
    limit: int
    used: int
    wanted: int
    known: float
    known_at: int


class Sender(NamedTuple):
    """The process that sends a claim, the claim's number, the time by that process's clock, and the
    number of processes."""

    process: str
    number: int
    sent_at: int
    processes: int


class Claim(NamedTuple):
    """What a process says of one key or team; `account` names its page."""

    account: str
    sender: Sender
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
    """Write a claim on a page. `SETTLE` in `redis_book.py` is the same in Lua."""
    used, processes = page.setdefault("used", {}), page.setdefault("processes", {})
    process, number, _, count = claim.sender
    mine = processes.get(process)
    if mine is not None and mine[2] >= number:
        at, granted = mine[3]
        return Reply(at, tuple(Granted(*each) for each in granted))
    for name, (expires, *_) in list(processes.items()):
        if expires + REMEMBERED <= now:
            del processes[name]
    others = [each for name, each in processes.items() if name != process]
    elsewhere, held = sum(each[1] for each in others if each[0] > now), 0
    granted = []
    for wish in claim.wishes:
        if wish.window == "open":
            amount = float(elsewhere + wish.used)
        else:
            before, at = used.get(wish.name, (wish.known, wish.known_at))
            amount = max(0.0, _still_used(before, at, wish, now) + wish.used)
        room = floor(wish.limit - amount + ROUNDING)
        block = min(wish.wanted, max(1, room // (2 * count))) if room > 0 else 0
        granted.append(Granted(block, amount + block))
        if wish.window == "open":
            held = wish.used + block
        else:
            used[wish.name] = [amount + block, now]
    processes[process] = [now + LEASE, held, number, [now, granted]]
    return Reply(now, tuple(granted))


def _still_used(amount: float, at: int, wish: Wish, now: int) -> float:
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
