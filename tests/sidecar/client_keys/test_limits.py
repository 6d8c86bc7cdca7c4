"""The page on which processes count what is used of a limit, by a clock that is passed in."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.config.client_key import Limits
from abridge.sidecar.client_keys.limits import (
    DAY,
    LEASE,
    LIMIT_KINDS,
    MINUTE,
    NANO,
    Claim,
    LimitKind,
    Page,
    Reply,
    Sender,
    Wish,
    seconds_until_room,
    settle,
)

KINDS = {kind.name: kind for kind in LIMIT_KINDS}
NOON = 20_000 * DAY + DAY // 2


class SharedPage:
    """A page, and the claims of some processes on it."""

    def __init__(self, name: str, limit: int, replicas: int = 1) -> None:
        self.kind, self.limit, self.replicas = KINDS[name], limit, replicas
        self.page: Page = {}
        self.numbers = count(1)

    def write(
        self, used: int = 0, wanted: int = 0, now: int = NOON, process: str = "a", **more: Any
    ) -> Reply:
        wish = Wish(self.kind.name, self.kind.window, self.limit, used, wanted, 0, 0)
        wish = wish._replace(**{name: more[name] for name in more if name != "number"})
        number = more.get("number") or next(self.numbers)
        return settle(
            self.page, Claim("key:a", Sender(process, number, now, self.replicas), (wish,)), now
        )

    def reserve(self, now: int = NOON, process: str = "a") -> int:
        """Reserve one; return 0, or the seconds until that can be had."""
        reply = self.write(wanted=1, now=now, process=process)
        ((amount, used),) = reply.granted
        return 0 if amount else seconds_until_room(self.kind, self.limit, used, reply.at)


class TestMinute:
    def test_a_minutes_requests_may_come_at_once(self) -> None:
        page = SharedPage("requests_per_minute", 3)
        assert [page.reserve() for _ in range(5)] == [0, 0, 0, 20, 20]

    def test_they_leak_out_evenly(self) -> None:
        page = SharedPage("requests_per_minute", 3)
        for _ in range(3):
            page.reserve()
        later = (5_000, 19_000, 20_000, 20_100, 40_100)
        assert [page.reserve(NOON + after) for after in later] == [15, 1, 0, 20, 0]

    def test_there_is_never_room_for_more_than_a_minutes(self) -> None:
        page = SharedPage("requests_per_minute", 2)
        page.reserve()
        assert [page.reserve(NOON + DAY) for _ in range(3)] == [0, 0, 30]

    @pytest.mark.parametrize("limit", [1, 7, 59, 61, 977])
    def test_a_client_that_waits_as_it_was_told_is_admitted(self, limit: int) -> None:
        page, now = SharedPage("requests_per_minute", limit), NOON
        for _ in range(3 * limit):
            if seconds := page.reserve(now):
                now += 1000 * seconds
                assert page.reserve(now) == 0

    def test_tokens_beyond_it_are_waited_for(self) -> None:
        page = SharedPage("tokens_per_minute", 600)
        page.write(used=1200)
        assert page.reserve() == 61
        assert page.reserve(NOON + 61_000) == 0

    def test_a_clock_that_goes_back_adds_nothing(self) -> None:
        page = SharedPage("requests_per_minute", 2)
        assert [page.reserve(NOON - step * MINUTE) for step in range(3)] == [0, 0, 30]


class TestBudget:
    def test_it_is_used_up_until_midnight(self) -> None:
        page = SharedPage("tokens_per_day", 100)
        page.write(used=99)
        assert page.reserve() == 0
        assert page.reserve() == DAY // 2000
        assert page.reserve(NOON + DAY // 2 - 500) == 1
        assert page.reserve(NOON + DAY // 2) == 0

    def test_or_until_the_next_month(self) -> None:
        page = SharedPage("money_per_month", 5 * NANO)
        moments = [(2026, 12, 31, 23), (2027, 1, 1, 0), (2028, 2, 29, 23), (2028, 3, 1, 0)]
        waits = []
        for moment in moments:
            now = int(datetime(*moment, tzinfo=UTC).timestamp() * 1000)
            waits.append(page.reserve(now))
            page.write(used=5 * NANO, now=now)
            waits.append(page.reserve(now))
        days = 31 * 24 * 3600
        assert waits == [0, 3600, 0, days, 0, 3600, 0, days]

    def test_what_is_given_back_is_there_for_others(self) -> None:
        page = SharedPage("tokens_per_day", 100)
        page.write(used=100)
        assert page.reserve(process="b") > 0
        page.write(used=-1)
        assert page.reserve(process="b") == 0

    def test_a_page_that_was_lost_goes_on_with_what_was_known(self) -> None:
        page = SharedPage("tokens_per_day", 100)
        known = {"known": 100.0, "known_at": NOON - 1}
        assert page.write(wanted=1, **known).granted == ((0, 100.0),)
        lost = SharedPage("tokens_per_day", 100)
        yesterdays = {"known": 100.0, "known_at": NOON - DAY}
        assert lost.write(wanted=1, **yesterdays).granted == ((1, 1.0),)


class TestStreams:
    def test_a_process_holds_what_it_says(self) -> None:
        page = SharedPage("streams", 3)
        assert [page.reserve(process="a") for _ in range(2)] == [0, 0]
        page.write(used=2, process="a")
        assert [page.write(used, 1, process="b").granted[0] for used in (0, 1)] == [(1, 3), (0, 3)]
        page.write(used=0, process="a")
        assert page.write(1, 5, process="b").granted == ((1, 2.0),)

    def test_a_process_that_is_not_heard_of_gives_them_back(self) -> None:
        page = SharedPage("streams", 2)
        page.write(used=2, process="killed")
        assert page.reserve(NOON + LEASE - 1, process="b") == 1
        assert page.reserve(NOON + LEASE, process="b") == 0
        page.write(used=2, process="killed", now=NOON + LEASE)  # it was only paused
        assert page.reserve(NOON + LEASE, process="c") == 1


class TestBlocks:
    def test_they_become_smaller_as_the_limit_comes_near(self) -> None:
        page, blocks = SharedPage("tokens_per_day", 1000, replicas=4), []
        while block := page.write(wanted=100).granted[0].amount:
            blocks.append(block)
        assert blocks[:3] == [100, 100, 100]
        assert blocks[3:] == sorted(blocks[3:], reverse=True)
        assert blocks[-8:] == [1] * 8
        assert sum(blocks) == 1000

    def test_a_claim_that_is_sent_again_is_answered_again(self) -> None:
        page = SharedPage("tokens_per_day", 100)
        first = page.write(used=30, wanted=5, number=1)
        assert page.write(used=30, wanted=5, number=1, now=NOON + 9) == first
        assert page.write(used=1, number=2).granted == ((0, 36.0),)
        assert page.write(used=30, wanted=5, number=1).granted == ((0, 36.0),)  # too late

    def test_processes_that_are_gone_are_forgotten(self) -> None:
        page = SharedPage("streams", 2)
        for number in range(50):
            page.write(process=str(number), now=NOON + number * MINUTE)
        assert len(page.page["processes"]) <= 11


def test_money_is_counted_exactly() -> None:
    limits = Limits(money_per_day=0.1, money_per_month=1e6)
    values = [KINDS[name].value(limits) for name in ("money_per_day", "money_per_month")]
    assert values == [100_000_000, 10**15]
    page = SharedPage("money_per_month", 10**15)
    page.write(used=10**15 - 1)
    assert page.write(wanted=5).granted == ((1, float(10**15)),)


moves = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 9), st.integers(0, 5000)), max_size=60
)


@given(moves=moves, limit=st.integers(1, 20), gives_back=st.booleans())
def test_no_minute_has_more_than_is_allowed(
    *, moves: list[tuple[str, int, int]], limit: int, gives_back: bool
) -> None:
    """A bucket that leaks lets a minute's requests through at once, and as many in each minute."""
    page, now, reserved = SharedPage("requests_per_minute", limit, replicas=3), NOON, 0
    for process, wanted, passed in moves:
        now += passed
        amount = page.write(wanted=wanted, now=now, process=process).granted[0].amount
        if gives_back and amount > 1:
            page.write(used=-1, now=now, process=process)
            amount -= 1
        reserved += amount
        assert reserved <= limit + (now - NOON) * limit / MINUTE + 1e-3


def test_each_kind_of_limit_is_a_field() -> None:
    assert [kind.name for kind in LIMIT_KINDS] == list(Limits.model_fields)
    assert isinstance(LIMIT_KINDS[0], LimitKind)
