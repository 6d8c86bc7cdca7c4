"""What processes reserve of shared limits, use, give back, and do while the book is away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from abridge.config.client_key import Limits
from abridge.memory.stores.redis_client import RedisConnection
from abridge.memory.stores.store import BackendError
from abridge.observability.metrics import metrics_for
from abridge.sidecar.client_keys.accounts import (
    ALONE_SECONDS,
    IDLE_SECONDS,
    REFUSAL_SECONDS,
    Accounts,
    Admission,
    LimitReached,
)
from abridge.sidecar.client_keys.limits import BLOCKS, LEASE, Claim, Page, Reply, settle
from abridge.sidecar.client_keys.redis_book import RedisBook
from tests.support.matrix import some
from tests.support.redis_server import Server, relay

DAY = 86400


class MemoryBook:
    """A book in memory, which processes share. It is `away`, or `loses` replies."""

    name = "memory"
    counts_processes = True

    def __init__(self) -> None:
        self.seconds = 20_000.5 * DAY
        self.pages: dict[str, Page] = {}
        self.away = self.loses = False
        self.rounds = 0

    async def settle(self, claims: Sequence[Claim]) -> Sequence[Reply]:
        if self.away:
            raise BackendError("gone")
        self.rounds += 1
        now = round(self.seconds * 1000)
        replies = [settle(self.pages.setdefault(each.account, {}), each, now) for each in claims]
        await asyncio.sleep(0)
        if self.loses:
            raise BackendError
        return replies

    async def aclose(self) -> None:
        pass

    def used(self, account: str, limit: str) -> float:
        used: float = self.pages[account]["used"][limit][0]
        return used


class Process:
    """One process, and the limits that its requests count against."""

    def __init__(
        self, book: MemoryBook, line: Line | None = None, *, processes: int = 1, **limits: Any
    ) -> None:
        self.book, self.registry = book, CollectorRegistry()
        self.limits = {"key:alice": Limits(**limits)}
        self.accounts = Accounts(
            line or book,
            metrics_for(self.registry),
            processes=processes,
            now=lambda: book.seconds,
            monotonic=lambda: book.seconds,
        )

    async def admit(self) -> Admission:
        return await self.accounts.admit(self.limits)

    async def admits(self, running: list[Admission] | None = None) -> bool:
        try:
            taken = await self.admit()
        except LimitReached:
            return False
        if running is not None:
            running.append(taken)
        return True

    async def use(self, tokens: int, money: int = 0) -> None:
        (await self.admit()).end(tokens, money)

    async def refusal(self) -> tuple[str, int]:
        with pytest.raises(LimitReached) as caught:
            await self.admit()
        return caught.value.kind.name, caught.value.seconds

    async def write(self) -> None:
        """Do what is done each second."""
        await self.accounts._write_due()

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"abridge_{name}", labels)


class Line:
    """The way of one process to a book, `away` or `losing` replies for this process alone."""

    name = "line"
    counts_processes = True

    def __init__(self, book: MemoryBook) -> None:
        self._book = book
        self.state = "well"

    async def settle(self, claims: Sequence[Claim]) -> Sequence[Reply]:
        if self.state == "away":
            raise BackendError("gone")
        replies = await self._book.settle(claims)
        if self.state == "losing":
            raise BackendError
        return replies

    async def aclose(self) -> None:
        pass


def two(book: MemoryBook, **limits: Any) -> tuple[Process, Process]:
    return Process(book, **limits), Process(book, **limits)


async def test_processes_let_exactly_as_many_through_as_one_would() -> None:
    one, other = two(MemoryBook(), requests_per_minute=6)
    admitted = [await each.admits() for _ in range(9) for each in (one, other)]
    assert sum(admitted) == 6
    assert await one.refusal() == ("requests_per_minute", 10)


async def test_also_at_once() -> None:
    both = two(MemoryBook(), requests_per_minute=50)
    admitted = await asyncio.gather(*(each.admits() for _ in range(60) for each in both))
    assert sum(admitted) == 50


async def test_what_was_reserved_is_not_given_back_before_who_waits_for_it_has_it() -> None:
    process = Process(MemoryBook(), streams=50)

    async def stream() -> bool:
        running: list[Admission] = []
        is_admitted = await process.admits(running)
        await asyncio.sleep(0)
        for taken in running:
            taken.end(0, 0)
        return is_admitted

    streams = []
    for _ in range(300):  # some come in each round
        streams.append(asyncio.create_task(stream()))
        await asyncio.sleep(0)
    assert sum(await asyncio.gather(*streams)) == 300


async def test_a_key_and_its_team_both_count() -> None:
    book = MemoryBook()
    alice, bob = two(book, requests_per_minute=4)
    bob.limits = {"key:bob": Limits(requests_per_minute=4)}
    for each in (alice, bob):
        each.limits["team:red"] = Limits(requests_per_minute=6)
    assert sum([await alice.admits() for _ in range(9)]) == 4
    book.seconds += 1
    await alice.write()  # what was reserved of the team is given back
    assert sum([await bob.admits() for _ in range(9)]) == 2


async def test_tokens_and_money_are_known_when_an_answer_ends() -> None:
    for limits in ({"tokens_per_day": 100}, {"money_per_month": 1e-7}, {"tokens_per_minute": 100}):
        one, other = two(MemoryBook(), **limits)
        await one.use(50, 50)
        await other.use(50, 50)
        await one.write()
        await other.write()
        name, _ = await one.refusal()
        assert name in limits


async def test_no_more_requests_run_than_the_rest_of_a_budget_is_likely_to_pay_for() -> None:
    process = Process(MemoryBook(), tokens_per_day=1000)
    for _ in range(4):
        await process.use(100)  # what one uses
    assert sum([await process.admits() for _ in range(50)]) <= 10


async def test_what_nobody_needs_is_given_back() -> None:
    one, other = two(MemoryBook(), tokens_per_day=64_000, streams=640)
    await one.use(10)
    assert one.book.used("key:alice", "tokens_per_day") == 1000
    one.book.seconds += 1
    await one.write()
    assert one.book.used("key:alice", "tokens_per_day") == 10
    await other.use(10)
    await other.accounts.aclose()
    assert one.book.used("key:alice", "tokens_per_day") == 20
    assert [each[1] for each in one.book.pages["key:alice"]["processes"].values()] == [0, 0]


async def test_more_than_a_block_is_given_back_by_those_that_are_busy() -> None:
    process = Process(MemoryBook(), streams=640)
    for taken in [await process.admit() for _ in range(300)]:
        taken.end(0, 0)
    await process.write()
    ((_, held, *_),) = process.book.pages["key:alice"]["processes"].values()
    assert held == 640 // BLOCKS


class TestStreams:
    async def test_processes_share_them(self) -> None:
        one, other = two(MemoryBook(), streams=3)
        open_now = [await each.admit() for each in (one, other, one)]
        assert await other.refusal() == ("streams", 1)
        open_now[0].end(0, 0)
        assert await one.admits()
        assert not await other.admits()

    async def test_a_process_that_was_killed_gives_them_back(self) -> None:
        killed, other = two(MemoryBook(), streams=3)
        for _ in range(3):
            await killed.admit()
        assert not await other.admits()
        other.book.seconds += LEASE / 1000
        assert sum([await other.admits() for _ in range(5)]) == 3

    async def test_those_that_last_are_kept(self) -> None:
        one, other = two(MemoryBook(), streams=3)
        for _ in range(3):
            await one.admit()
        for _ in range(60):
            one.book.seconds += 1
            await one.write()
        assert not await other.admits()
        assert one.book.rounds < 20


class TestStreamsWhileTheBookIsAway:
    """What a process held, or its share: so a limit is exceeded by no more than the shares of all
    processes but one."""

    async def test_what_others_held_a_moment_ago_counts(self) -> None:
        book = MemoryBook()
        one, other = (Process(book, processes=2, streams=2) for _ in range(2))
        assert [await one.admits() for _ in range(2)] == [True, True]
        assert not await other.admits()
        book.away = True
        book.seconds += 2
        assert not await other.admits()

    async def test_until_it_would_be_free_again(self) -> None:
        book = MemoryBook()
        one, other = (Process(book, processes=2, streams=2) for _ in range(2))
        assert [await one.admits() for _ in range(2)] == [True, True]
        assert not await other.admits()
        book.away = True
        book.seconds += LEASE / 1000
        assert [await other.admits() for _ in range(2)] == [True, False]

    async def test_a_late_reply_gives_nothing_beside_what_was_taken_meanwhile(self) -> None:
        book = MemoryBook()
        process = Process(book, processes=2, streams=1)
        book.loses = True
        assert await process.admits()  # of its share: the reply that gives it one is lost
        book.loses = False
        book.seconds += 1
        assert not await process.admits()


async def test_a_redis_that_answers_too_late_lets_no_more_streams_through(
    redis_server: Server,
) -> None:
    limits, gate = {"key:alice": Limits(streams=2)}, asyncio.Event()
    gate.set()
    async with relay(redis_server, gate) as late:
        one, other = (
            Accounts(
                RedisBook(RedisConnection(url), "late"),
                metrics_for(CollectorRegistry()),
                processes=2,
                now=time.time,
                monotonic=time.monotonic,
            )
            for url in (redis_server.url, late.url.replace("http", "redis"))
        )
        running = [await one.admit(limits) for _ in range(2)]
        with pytest.raises(LimitReached):
            await other.admit(limits)
        gate.clear()
        await asyncio.sleep(REFUSAL_SECONDS)
        with pytest.raises(LimitReached):
            await other.admit(limits)
        for each in running:
            each.end(0, 0)
        gate.set()
        await one.aclose()
        await other.aclose()


class TestTheBookIsAway:
    async def test_each_process_goes_on_with_its_share(self) -> None:
        book = MemoryBook()
        one, other = two(book, requests_per_minute=20)
        for each in (one, other, one):
            book.seconds += 1
            await each.accounts._run_round([])  # says that it is there
        book.away = True
        admitted = [sum([await each.admits() for _ in range(30)]) for each in (one, other)]
        assert admitted == [10, 10]

    async def test_of_what_was_left_when_it_was_last_seen(self) -> None:
        book = MemoryBook()
        one, other = two(book, requests_per_minute=20)
        for _ in range(4):
            for each in (one, other):
                await each.admits()
        for each in (one, other):
            book.seconds += 1
            await each.accounts._run_round([])
        book.away = True
        admitted = [sum([await each.admits() for _ in range(30)]) for each in (one, other)]
        assert 12 <= sum(admitted) <= 14
        assert all(admitted)

    async def test_who_has_used_up_a_share_comes_again_soon(self) -> None:
        """More may be left than that, when the book is back."""
        book = MemoryBook()
        book.away = True
        process = Process(book, processes=2, tokens_per_day=100)
        await process.use(50)
        assert await process.refusal() == ("tokens_per_day", ALONE_SECONDS)
        book.away = False
        book.seconds += 1
        assert await process.admits()

    async def test_nobody_is_locked_out_of_a_small_limit(self) -> None:
        book = MemoryBook()
        one, other = (Process(book, processes=9, requests_per_minute=1) for _ in range(2))
        book.away = True
        assert [await each.admits() for each in (one, other)] == [True, True]
        assert [await each.admits() for each in (one, other)] == [False, False]

    async def test_a_process_that_never_saw_it_knows_of_the_other_workers(self) -> None:
        book = MemoryBook()
        book.away = True
        process = Process(book, processes=4, requests_per_minute=20)
        assert sum([await process.admits() for _ in range(30)]) == 5

    async def test_what_was_used_meanwhile_is_written_when_it_is_back(self) -> None:
        book = MemoryBook()
        one, other = two(book, requests_per_minute=600, tokens_per_day=1000)
        await one.use(100)
        book.away = True
        for _ in range(3):
            await one.use(200)
            await one.write()
        book.away = False
        for _ in range(2):
            await one.write()
        book.seconds += 1
        await one.write()
        assert book.used("key:alice", "tokens_per_day") == 700
        await other.use(300)
        await other.write()
        assert not await other.admits()

    async def test_a_book_that_forgot_all_is_told_what_was_used(self) -> None:
        book = MemoryBook()
        one, other = two(book, tokens_per_day=1000)
        await one.use(600)
        await one.write()
        book.pages.clear()
        await one.use(300)
        await one.write()
        assert book.used("key:alice", "tokens_per_day") >= 900
        await other.use(100)
        await other.write()
        assert not await other.admits()

    async def test_it_is_said_once(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO, "abridge")
        book = MemoryBook()
        process = Process(book, processes=4, requests_per_minute=60)
        await process.admits()
        assert process.sample("limits_alone") == 0
        book.away = True
        for _ in range(3):
            await process.accounts._run_round([])
        assert process.sample("limits_alone") == 1
        book.away = False
        await process.accounts._run_round([])
        assert process.sample("limits_alone") == 0
        assert process.sample("limit_rounds_total", result="failed") == 3
        away, back = (entry.getMessage() for entry in caplog.records)
        assert away.startswith("limits of keys at memory: unreachable (gone); each process goes on")
        assert back == "limits of keys at memory: reachable again"

    async def test_a_claim_whose_reply_was_lost_counts_once(self) -> None:
        book = MemoryBook()
        process = Process(book, tokens_per_day=6400)
        await process.use(1000)
        book.loses = True
        for _ in range(3):
            await process.write()
        book.loses = False
        book.seconds += 1
        for _ in range(2):
            await process.write()
        assert book.used("key:alice", "tokens_per_day") == 1000


async def test_a_new_day_has_nothing_left_of_the_old_ones_blocks() -> None:
    process = Process(MemoryBook(), tokens_per_day=6400)
    await process.use(10)
    process.book.seconds += DAY / 2
    await process.write()
    await process.use(10)
    await process.accounts.aclose()
    assert process.book.used("key:alice", "tokens_per_day") == 10


async def test_a_client_that_leaves_takes_nothing() -> None:
    process = Process(MemoryBook(), requests_per_minute=2)
    leaving = asyncio.create_task(process.admit())
    await asyncio.sleep(0)
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert [await process.admits() for _ in range(3)] == [True, True, False]


async def test_accounts_that_nobody_uses_are_forgotten() -> None:
    process = Process(MemoryBook(), tokens_per_day=6400)
    await process.use(10)
    for _ in range(2):
        process.book.seconds += IDLE_SECONDS
        await process.write()
    assert process.accounts._accounts == {}


async def test_an_account_is_kept_for_as_long_as_a_request_runs() -> None:
    process = Process(MemoryBook(), tokens_per_day=6400)
    long = await process.admit()
    for _ in range(3):
        process.book.seconds += IDLE_SECONDS
        await process.write()
    long.end(5000, 0)
    await process.write()
    assert process.book.used("key:alice", "tokens_per_day") == 5000


async def test_one_that_was_forgotten_and_comes_back_is_counted_on() -> None:
    process = Process(MemoryBook(), tokens_per_day=6400)
    for used in (100, 200, 300):
        await process.use(100)
        process.book.seconds += IDLE_SECONDS
        for _ in range(2):
            await process.write()
        assert process.book.used("key:alice", "tokens_per_day") == used


async def test_a_limit_of_streams_counts_those_that_run_already() -> None:
    process = Process(MemoryBook(), requests_per_minute=100)
    running = [await process.admit() for _ in range(3)]
    process.limits = {"key:alice": Limits(streams=4)}
    running.append(await process.admit())
    assert not await process.admits()
    for each in running:
        each.end(0, 0)
    process.book.seconds += 1
    assert sum([await process.admits() for _ in range(9)]) == 4


async def test_limits_that_change_hold_at_once() -> None:
    process = Process(MemoryBook(), requests_per_minute=100)
    await process.use(1)
    process.limits = {"key:alice": Limits(requests_per_minute=3, streams=1)}
    assert [await process.admits() for _ in range(2)] == [True, False]


async def test_a_thousand_streams_cost_a_few_round_trips() -> None:
    """Without blocks each would cost two."""
    process = Process(
        MemoryBook(), requests_per_minute=60_000, tokens_per_minute=60_000_000, streams=2000
    )
    for _ in range(1000):
        await process.use(1000)
    await process.write()
    assert process.book.rounds < 100


steps = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["admit", "admit", "end", "write", "second"])),
    max_size=80,
)


@given(steps=steps, limit=st.integers(1, 200))
@settings(deadline=None, max_examples=some(60), suppress_health_check=list(HealthCheck))
def test_no_interleaving_lets_more_through(steps: list[tuple[int, str]], limit: int) -> None:
    """Requests stay within the limit, those at once too. Tokens do but for a block of each process
    and what requests that ran used in the end."""
    tokens = 10 * limit

    async def run() -> None:
        book = MemoryBook()
        limits = {"requests_per_minute": limit, "tokens_per_day": tokens, "streams": limit}
        processes = [Process(book, **limits) for _ in range(3)]
        running: list[list[Admission]] = [[], [], []]
        began, admitted, unwritten, ended = book.seconds, 0, 0, 0
        for number, step in steps:
            process, mine = processes[number], running[number]
            if step == "admit" and await process.admits(mine):
                admitted += 1
                assert ended - unwritten < tokens + 3 * (tokens // BLOCKS + 1)
            elif step == "end" and mine:
                mine.pop().end(20, 0)
                ended, unwritten = ended + 20, unwritten + 20
            elif step == "write":
                for each in processes:
                    await each.write()
                unwritten = 0
            elif step == "second":
                book.seconds += 1
            assert admitted <= limit + (book.seconds - began) * limit / 60 + 1e-6
            assert sum(map(len, running)) <= limit

    asyncio.run(run())


moves = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from(["admit", "admit", "admit", "end", "write", "well", "away", "losing"]),
    ),
    max_size=60,
)


@given(moves=moves, limit=st.integers(1, 8))
@settings(deadline=None, max_examples=some(300), suppress_health_check=list(HealthCheck))
def test_a_book_that_fails_some_lets_a_bounded_number_of_streams_through(
    moves: list[tuple[int, str]], limit: int
) -> None:
    async def run() -> None:
        book = MemoryBook()
        lines = [Line(book) for _ in range(3)]
        processes = [Process(book, line, processes=3, streams=limit) for line in lines]
        running: list[list[Admission]] = [[], [], []]
        for _ in range(2):
            for each in processes:
                book.seconds += 1
                await each.accounts._run_round([])  # says that it is there
        for number, move in moves:
            if move == "admit":
                await processes[number].admits(running[number])
            elif move == "end" and running[number]:
                running[number].pop().end(0, 0)
            elif move == "write":
                await processes[number].write()
            else:
                lines[number].state = move
            assert sum(map(len, running)) <= limit + 2 * max(1, limit // 3)
            book.seconds += 0.05

    asyncio.run(run())
