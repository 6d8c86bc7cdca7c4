"""How much the store of a single process holds, and for how long."""

from __future__ import annotations

import tracemalloc
from secrets import token_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.memory.stores.memory import KEY_OVERHEAD, VALUE_OVERHEAD, MemoryStore
from abridge.memory.stores.store import StoreQuery
from tests.memory.stores.cases import TTL, Time, in_memory

TURN_KEY = b"turn"


async def test_an_entry_counts_more_than_its_bytes() -> None:
    case = in_memory()
    await case.store.remember(TURN_KEY, b"one", b"x" * 10)
    await case.store.remember(TURN_KEY, b"one", b"x" * 20)
    assert case.store.size == 20 + KEY_OVERHEAD + VALUE_OVERHEAD
    await case.store.remember(TURN_KEY, b"two", b"x" * 5)
    assert case.store.size == 25 + KEY_OVERHEAD + 2 * VALUE_OVERHEAD
    await case.store.put({b"key": b"x" * 30})
    assert case.store.size == 55 + 2 * KEY_OVERHEAD + 3 * VALUE_OVERHEAD
    await case.store.delete([b"key"])
    assert case.store.size == 25 + KEY_OVERHEAD + 2 * VALUE_OVERHEAD


@pytest.mark.parametrize("originals", [0, 1, 4])
@pytest.mark.parametrize("length", [0, 1, 100, 1000])
async def test_the_size_is_that_of_the_memory_in_use(originals: int, length: int) -> None:
    """However small the values are: their keys and objects count."""
    size = 2 << 20
    store = MemoryStore(size, TTL, Time())

    async def fill() -> None:
        while (store.size or 0) < 0.97 * size:
            key = token_bytes(32)
            for _ in range(originals):
                await store.remember(key, token_bytes(16), token_bytes(length))
            if not originals:
                await store.put({key: token_bytes(length)})

    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    await fill()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0.6 * size < after - before < 1.2 * size


async def test_values_expire() -> None:
    case = in_memory()
    await case.store.remember(TURN_KEY, b"p", b"x")
    case.later(TTL + 1)
    assert await case.recall(TURN_KEY, b"p") is None
    assert case.store.size == 0


async def test_values_stay_within_the_size() -> None:
    case = in_memory(4500)
    for number in range(100):
        await case.store.remember(bytes([number]), b"p", b"x" * 800)
        assert (case.store.size or 0) <= 4500
    assert await case.recall(bytes([99]), b"p") is not None
    assert await case.recall(bytes([0]), b"p") is None


async def test_the_least_recently_read_is_evicted_first() -> None:
    case = in_memory(3200)
    for turn_key in (b"one", b"two"):
        await case.store.remember(turn_key, b"p", b"x" * 800)
    await case.recall(b"one", b"p")
    await case.store.put({b"key": b"x" * 800})
    assert await case.recall(b"one", b"p") is not None
    assert await case.recall(b"two", b"p") is None


async def test_originals_and_other_values_share_the_size() -> None:
    case = in_memory(4500)
    await case.store.remember(TURN_KEY, b"p", b"x" * 800)
    await case.store.put({bytes([number]): b"x" * 800 for number in range(3)})
    assert await case.recall(TURN_KEY, b"p") is None
    assert (case.store.size or 0) <= 4500


async def test_a_value_larger_than_the_store_is_not_stored() -> None:
    case = in_memory(1500)
    await case.store.remember(b"small", b"p", b"x" * 10)
    await case.store.remember(b"large", b"p", b"x" * 2000)
    assert await case.recall(b"small", b"p") is not None
    assert await case.recall(b"large", b"p") is None


async def test_a_value_that_does_not_fit_removes_its_predecessor() -> None:
    case = in_memory(1500)
    await case.store.put({b"key": b"old"})
    await case.store.put({b"key": b"x" * 2000})
    assert await case.get(b"key") is None
    await case.store.remember(TURN_KEY, b"one", b"old")
    await case.store.remember(TURN_KEY, b"two", b"other")
    await case.store.remember(TURN_KEY, b"one", b"x" * 2000)
    assert await case.recall(TURN_KEY, b"one") is None
    assert await case.recall(TURN_KEY, b"two") == b"other"


async def test_originals_of_one_turn_share_the_size() -> None:
    case = in_memory(1500)
    await case.store.remember(TURN_KEY, b"one", b"x" * 500)
    await case.store.remember(TURN_KEY, b"two", b"y" * 500)
    assert await case.recall(TURN_KEY, b"one") is None
    assert await case.recall(TURN_KEY, b"two") == b"y" * 500


async def test_a_store_of_size_zero_stores_marks_only() -> None:
    case = in_memory(0)
    await case.store.remember(TURN_KEY, b"p", b"x")
    await case.store.put({b"key": b""})
    assert await case.recall(TURN_KEY, b"p") is None
    assert await case.get(b"key") is None
    assert case.store.size == 0
    await case.store.add_marks([b"mark"])
    assert await case.store.has_marks([b"mark"]) == [True]


async def test_marks_have_their_own_limit() -> None:
    memory = MemoryStore(1000, TTL, Time(), max_marks=10)
    await memory.add_marks([bytes([number]) for number in range(20)])
    assert await memory.has_marks([bytes([5]), bytes([19])]) == [False, True]
    assert memory.size == 0


KEYS = st.sampled_from([b"a", b"b", b"c"])
PUTS = st.tuples(KEYS, KEYS, st.integers(0, 1200), st.sampled_from([0, 0, TTL / 2]))


@given(st.lists(PUTS, max_size=30))
async def test_what_is_stored_fits_and_is_the_newest(
    puts: list[tuple[bytes, bytes, int, float]],
) -> None:
    case, latest = in_memory(2500), {}
    for number, (turn_key, prefix, size, pause) in enumerate(puts):
        latest[turn_key, prefix] = value = bytes([number]) * size
        await case.store.remember(turn_key, prefix, value)
        case.later(pause)
        assert (case.store.size or 0) <= 2500
        found = await case.store.recall([StoreQuery(*one, False) for one in latest])
        assert all(one in (None, last) for one, last in zip(found, latest.values(), strict=True))
