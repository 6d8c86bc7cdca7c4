"""What every store promises, whatever it keeps things in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from abridge.memory.stores.store import MARK_TTL_FACTOR, MAX_ORIGINALS, StoreQuery
from tests.memory.stores.cases import TTL, Case, in_memory, in_redis
from tests.redis import Server

pytestmark = pytest.mark.usefixtures("patient")

PLACE = b"place"


@pytest.fixture(params=["memory", "redis"])
async def case(request: pytest.FixtureRequest) -> AsyncIterator[Case]:
    if request.param == "memory":
        case = in_memory()
    else:
        case = in_redis(request.getfixturevalue("redis_server"))
    yield case
    await case.store.aclose()


async def test_an_exact_prefix_wins(case: Case) -> None:
    for prefix in (b"one", b"two"):
        await case.store.remember(PLACE, prefix, b"after " + prefix)
    assert await case.recall(PLACE, b"two", unique=True) == b"after two"
    assert await case.recall(PLACE, b"one") == b"after one"


async def test_what_is_not_unique_needs_its_prefix(case: Case) -> None:
    await case.store.remember(PLACE, b"one", b"x")
    assert await case.recall(PLACE, b"other") is None


async def test_a_single_candidate_that_is_unique_needs_none(case: Case) -> None:
    await case.store.remember(PLACE, b"one", b"x")
    assert await case.recall(PLACE, b"other", unique=True) == b"x"
    await case.store.remember(PLACE, b"two", b"y")
    assert await case.recall(PLACE, b"other", unique=True) is None


async def test_the_same_conversation_said_twice_is_kept_once(case: Case) -> None:
    await case.store.remember(PLACE, b"one", b"first")
    await case.store.remember(PLACE, b"one", b"second")
    assert await case.recall(PLACE, b"one") == b"second"
    assert await case.recall(PLACE, b"other", unique=True) == b"second"


async def test_at_most_so_many_conversations_share_a_turn(case: Case) -> None:
    for number in range(MAX_ORIGINALS):
        await case.store.remember(PLACE, bytes([number]), b"x")
    await case.store.remember(PLACE, bytes([0]), b"said again, and so the newest")
    for number in range(MAX_ORIGINALS, MAX_ORIGINALS + 2):
        await case.store.remember(PLACE, bytes([number]), b"x")
    kept = [await case.recall(PLACE, bytes([number])) for number in range(MAX_ORIGINALS + 2)]
    assert [one is not None for one in kept] == [True, False, False, True, True, True]


async def test_answers_come_in_the_order_of_the_questions(case: Case) -> None:
    await case.store.remember(PLACE, b"one", b"x")
    await case.store.remember(b"elsewhere", b"one", b"y")
    await case.store.remember(b"elsewhere", b"two", b"z")
    wanted = [
        StoreQuery(b"elsewhere", b"two", unique=True),
        StoreQuery(b"nowhere", b"one", unique=True),
        StoreQuery(PLACE, b"other", unique=True),
        StoreQuery(PLACE, b"one", unique=False),
        StoreQuery(PLACE, b"other", unique=False),
        StoreQuery(b"elsewhere", b"other", unique=True),
        StoreQuery(b"elsewhere", b"one", unique=True),
        StoreQuery(b"elsewhere", b"two", unique=True),
    ]
    assert await case.store.recall(wanted) == [b"z", None, b"x", b"x", None, None, b"y", b"z"]


async def test_digests_are_any_bytes_and_never_run_together(case: Case) -> None:
    await case.store.remember(b"abcdef", b"ghi", b"x")
    await case.store.remember(b"\x00:\xff\n", b"\xfe*", b"y")
    assert await case.recall(b"abc", b"defghi") is None
    assert await case.recall(b"abc", b"defghi", unique=True) is None
    assert await case.recall(b"\x00:\xff\n", b"", unique=True) == b"y"


async def test_values_are_any_bytes_of_any_length(case: Case) -> None:
    values = {b"none": b"", b"odd": b"\r\n\x00\xff", b"much": bytes(range(256)) * 1000}
    await case.store.put(values)
    for key, value in values.items():
        await case.store.remember(PLACE, key, value)
        assert await case.recall(PLACE, key) == value
        assert await case.get(key) == value


async def test_values_are_kept_by_key_replaced_and_deleted(case: Case) -> None:
    await case.store.put({b"a": b"1", b"b": b"2"})
    await case.store.put({b"b": b"3"})
    assert await case.store.get([b"b", b"c", b"a", b"b"]) == [b"3", None, b"1", b"3"]
    await case.store.delete([b"b", b"c"])
    assert await case.store.get([b"a", b"b"]) == [b"1", None]


async def test_marks_are_known(case: Case) -> None:
    await case.store.add_marks([b"one", b"two", b"one"])
    assert await case.store.has_marks([b"two", b"three", b"one", b"two"]) == [
        True,
        False,
        True,
        True,
    ]


async def test_marks_values_and_originals_are_never_one_another(case: Case) -> None:
    await case.store.add_marks([b"mark"])
    await case.store.put({b"value": b"x"})
    await case.store.remember(b"original", b"original", b"y")
    names = [b"mark", b"value", b"original"]
    assert await case.store.has_marks(names) == [True, False, False]
    assert await case.store.get(names) == [None, b"x", None]
    for place in names[:2]:
        assert await case.recall(place, place, unique=True) is None


async def test_nothing_is_asked_of_a_store_for_nothing(case: Case) -> None:
    assert await case.store.recall([]) == []
    assert await case.store.has_marks([]) == []
    assert await case.store.get([]) == []
    await case.store.add_marks([])
    await case.store.put({})
    await case.store.delete([])
    assert case.seen.told == []


async def test_all_is_forgotten_in_time_and_marks_the_last(case: Case) -> None:
    await case.store.remember(PLACE, b"one", b"x")
    await case.store.put({b"key": b"x"})
    await case.store.add_marks([b"mark"])
    case.later(0.9 * TTL)
    assert await case.recall(PLACE, b"one") == b"x"
    assert await case.get(b"key") == b"x"
    case.later(0.2 * TTL)
    assert await case.recall(PLACE, b"one") is None
    assert await case.recall(PLACE, b"other", unique=True) is None
    assert await case.get(b"key") is None
    case.later((MARK_TTL_FACTOR - 1.2) * TTL)
    assert await case.store.has_marks([b"mark"]) == [True]
    case.later(0.2 * TTL)
    assert await case.store.has_marks([b"mark"]) == [False]


async def test_what_comes_later_lengthens_no_others_time(case: Case) -> None:
    await case.store.remember(PLACE, b"one", b"x")
    case.later(0.6 * TTL)
    await case.store.remember(PLACE, b"two", b"y")
    assert await case.recall(PLACE, b"other", unique=True) is None
    case.later(0.6 * TTL)
    assert await case.recall(PLACE, b"one") is None
    assert await case.recall(PLACE, b"other", unique=True) == b"y"


async def test_who_watches_is_told_of_each_operation(case: Case) -> None:
    store, seen = case.store, case.seen
    await store.remember(PLACE, b"one", b"x")
    assert seen.last == ("remember", "ok")
    await store.recall(
        [StoreQuery(PLACE, b"none", unique=False), StoreQuery(PLACE, b"one", unique=False)]
    )
    assert seen.last == ("recall", "hit")
    await case.recall(PLACE, b"none")
    assert seen.last == ("recall", "miss")
    await store.add_marks([b"mark"])
    assert seen.last == ("mark", "ok")
    await store.has_marks([b"none", b"mark"])
    assert seen.last == ("known", "hit")
    await store.has_marks([b"none"])
    assert seen.last == ("known", "miss")
    await store.put({b"key": b""})
    assert seen.last == ("put", "ok")
    await store.get([b"key"])
    assert seen.last == ("get", "hit")
    await store.delete([b"key"])
    assert seen.last == ("delete", "ok")
    await store.get([b"key"])
    assert seen.last == ("get", "miss")
    assert len(seen.told) == 10


async def test_a_store_that_was_closed_opens_again(case: Case) -> None:
    await case.store.put({b"key": b"x"})
    await case.store.aclose()
    await case.store.aclose()
    assert await case.get(b"key") == b"x"


DIGESTS = st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"])
FEW = st.sampled_from([b"a", b"b"])
VALUES = st.binary(max_size=3)


class Both(RuleBasedStateMachine):
    """The same operations on both stores, which have to answer the same."""

    server: Server

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.memory, self.redis = in_memory(), in_redis(self.server)

    def teardown(self) -> None:
        self.run(self.redis.store.aclose())
        self.runner.close()

    def run(self, operation: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(operation)

    def ask(self, operation: str, *given: Any) -> None:
        answers = [
            self.run(getattr(case.store, operation)(*given)) for case in (self.memory, self.redis)
        ]
        assert answers[0] == answers[1]

    @rule(place=FEW, prefix=DIGESTS, value=VALUES)
    def remember(self, place: bytes, prefix: bytes, value: bytes) -> None:
        self.ask("remember", place, prefix, value)

    @rule(wanted=st.lists(st.builds(StoreQuery, FEW, DIGESTS, st.booleans()), max_size=5))
    def recall(self, wanted: list[StoreQuery]) -> None:
        self.ask("recall", wanted)

    @rule(marks=st.lists(DIGESTS, max_size=3))
    def mark(self, marks: list[bytes]) -> None:
        self.ask("add_marks", marks)

    @rule(values=st.dictionaries(DIGESTS, VALUES, max_size=3))
    def put(self, values: dict[bytes, bytes]) -> None:
        self.ask("put", values)

    @rule(keys=st.lists(DIGESTS, max_size=3))
    def delete(self, keys: list[bytes]) -> None:
        self.ask("delete", keys)

    @rule(parts=st.sampled_from([0.35, 0.35, 0.7, 7.35]))
    def later(self, parts: float) -> None:
        for case in (self.memory, self.redis):
            case.later(parts * TTL)

    @invariant()
    def all_is_the_same(self) -> None:
        digests = [bytes([letter]) for letter in b"abcdef"]
        places = (b"a", b"b")
        self.ask("has_marks", digests)
        self.ask("get", digests)
        self.ask(
            "recall", [StoreQuery(place, digest, False) for place in places for digest in digests]
        )
        self.ask("recall", [StoreQuery(place, b"none", True) for place in places])
        assert self.memory.seen.told == self.redis.seen.told


def test_both_stores_answer_alike(redis_server: Server) -> None:
    machine = type("BothHere", (Both,), {"server": redis_server})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine, settings=settings(max_examples=30, stateful_step_count=25, deadline=None)
    )
