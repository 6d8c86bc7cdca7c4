"""What every store does, whatever its backend; a new backend is added to `BACKENDS`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
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

from abridge.memory.cipher import Cipher
from abridge.memory.stores.key_names import KeyNames
from abridge.memory.stores.sealing import ValueSealer
from abridge.memory.stores.store import (
    MARK_TTL_FACTOR,
    MAX_ORIGINALS,
    BackendError,
    FoundOriginal,
    Store,
    StoreQuery,
)
from tests.memory.stores.cases import RING, TTL, Case, Observed, Time, in_memory, in_redis
from tests.support.matrix import some
from tests.support.redis_server import Server

pytestmark = pytest.mark.usefixtures("patient")

TURN_KEY = b"turn"


class DictBackend:
    """All that a backend needs: what is here is sealed, and expires on a test's clock."""

    name = "a dictionary"
    in_process = False
    size = None

    def __init__(self, ttl: float, time: Callable[[], float], batch_size: int = 100) -> None:
        self.batch_size = batch_size
        self.values: dict[bytes, tuple[bytes, float]] = {}
        self.prefixes: dict[bytes, list[bytes]] = {}
        self.failing = False
        self._ttl = ttl
        self._time = time
        self._names = KeyNames()

    def may_hold(self, _turn_key: bytes) -> bool:
        return True

    async def find_originals(self, queries: Sequence[StoreQuery]) -> list[FoundOriginal | None]:
        return [self._find_original(*query) for query in queries]

    async def add_original(self, turn_key: bytes, prefix: bytes, value: bytes) -> None:
        others = [other for other in self._live_prefixes(turn_key) if other != prefix]
        self.prefixes[turn_key] = [*others, prefix][-MAX_ORIGINALS:]
        self._set(self._names.original(turn_key, prefix), value)

    async def get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self._get(self._names.value(key)) for key in keys]

    async def put(self, values: Mapping[bytes, bytes], ttl: float | None = None) -> None:
        for key, value in values.items():
            self._set(self._names.value(key), value, min(1, (ttl or self._ttl) / self._ttl))

    async def delete(self, keys: Sequence[bytes]) -> None:
        for key in keys:
            self.values.pop(self._names.value(key), None)

    async def has_marks(self, marks: Sequence[bytes]) -> list[bool]:
        return [self._get(self._names.mark(mark)) is not None for mark in marks]

    async def add_marks(self, marks: Sequence[bytes]) -> None:
        for mark in marks:
            self._set(self._names.mark(mark), b"", MARK_TTL_FACTOR)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _find_original(self, turn_key: bytes, prefix: bytes, unique: bool) -> FoundOriginal | None:  # noqa: FBT001
        live = self._live_prefixes(turn_key)
        if prefix not in live and unique and len(live) == 1:
            (prefix,) = live
        value = self._get(self._names.original(turn_key, prefix)) if prefix in live else None
        return (prefix, value) if value is not None else None

    def _live_prefixes(self, turn_key: bytes) -> list[bytes]:
        prefixes = self.prefixes.get(turn_key, [])
        return [one for one in prefixes if self._get(self._names.original(turn_key, one))]

    def _get(self, name: bytes) -> bytes | None:
        if self.failing:
            raise BackendError
        value, expires = self.values.get(name, (None, 0.0))
        return value if self._time() < expires else None

    def _set(self, name: bytes, value: bytes, factor: float = 1) -> None:
        if self.failing:
            raise BackendError
        self.values[name] = value, self._time() + factor * self._ttl


def in_dict(cipher: Cipher | None = None, batch_size: int = 100) -> Case:
    time, observed = Time(), Observed()
    backend, sealer = (
        DictBackend(TTL, time, batch_size),
        ValueSealer(cipher or Cipher(RING), KeyNames()),
    )
    return Case(Store(backend, sealer=sealer, observe=observed), time.advance, observed)


def dict_backend(case: Case) -> DictBackend:
    assert isinstance(case.store._backend, DictBackend)
    return case.store._backend


BACKENDS: dict[str, Callable[[pytest.FixtureRequest], Case]] = {
    "memory": lambda _: in_memory(),
    "redis": lambda request: in_redis(request.getfixturevalue("redis_server")),
    "cluster": lambda request: in_redis(request.getfixturevalue("redis_cluster")),
    "dict": lambda _: in_dict(),
}


@pytest.fixture(params=BACKENDS)
async def case(request: pytest.FixtureRequest) -> AsyncIterator[Case]:
    case = BACKENDS[request.param](request)
    yield case
    await case.store.aclose()


async def test_an_exact_prefix_wins(case: Case) -> None:
    for prefix in (b"one", b"two"):
        await case.store.remember(TURN_KEY, prefix, b"after " + prefix)
    assert await case.recall(TURN_KEY, b"two", unique=True) == b"after two"
    assert await case.recall(TURN_KEY, b"one") == b"after one"


async def test_a_turn_that_is_not_unique_needs_its_prefix(case: Case) -> None:
    await case.store.remember(TURN_KEY, b"one", b"x")
    assert await case.recall(TURN_KEY, b"other") is None


async def test_a_unique_turn_with_one_original_needs_no_prefix(case: Case) -> None:
    await case.store.remember(TURN_KEY, b"one", b"x")
    assert await case.recall(TURN_KEY, b"other", unique=True) == b"x"
    await case.store.remember(TURN_KEY, b"two", b"y")
    assert await case.recall(TURN_KEY, b"other", unique=True) is None


async def test_an_original_replaces_the_one_after_the_same_prefix(case: Case) -> None:
    await case.store.remember(TURN_KEY, b"one", b"first")
    await case.store.remember(TURN_KEY, b"one", b"second")
    assert await case.recall(TURN_KEY, b"one") == b"second"
    assert await case.recall(TURN_KEY, b"other", unique=True) == b"second"


async def test_the_oldest_originals_of_a_turn_are_forgotten(case: Case) -> None:
    for number in range(MAX_ORIGINALS):
        await case.store.remember(TURN_KEY, bytes([number]), b"x")
    await case.store.remember(TURN_KEY, bytes([0]), b"written again, and so the newest")
    for number in range(MAX_ORIGINALS, MAX_ORIGINALS + 2):
        await case.store.remember(TURN_KEY, bytes([number]), b"x")
    found = [await case.recall(TURN_KEY, bytes([number])) for number in range(MAX_ORIGINALS + 2)]
    assert [one is not None for one in found] == [True, False, False, True, True, True]


async def test_results_are_in_the_order_of_the_queries(case: Case) -> None:
    await case.store.remember(TURN_KEY, b"one", b"x")
    await case.store.remember(b"other turn", b"one", b"y")
    await case.store.remember(b"other turn", b"two", b"z")
    queries = [
        StoreQuery(b"other turn", b"two", unique=True),
        StoreQuery(b"unknown turn", b"one", unique=True),
        StoreQuery(TURN_KEY, b"other", unique=True),
        StoreQuery(TURN_KEY, b"one", unique=False),
        StoreQuery(TURN_KEY, b"other", unique=False),
        StoreQuery(b"other turn", b"other", unique=True),
        StoreQuery(b"other turn", b"one", unique=True),
        StoreQuery(b"other turn", b"two", unique=True),
    ]
    assert await case.store.recall(queries) == [b"z", None, b"x", b"x", None, None, b"y", b"z"]


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
        await case.store.remember(TURN_KEY, key, value)
        assert await case.recall(TURN_KEY, key) == value
        assert await case.get(key) == value


async def test_values_are_stored_replaced_and_deleted_by_key(case: Case) -> None:
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


async def test_marks_values_and_originals_never_collide(case: Case) -> None:
    await case.store.add_marks([b"mark"])
    await case.store.put({b"value": b"x"})
    await case.store.remember(b"original", b"original", b"y")
    names = [b"mark", b"value", b"original"]
    assert await case.store.has_marks(names) == [True, False, False]
    assert await case.store.get(names) == [None, b"x", None]
    for turn_key in names[:2]:
        assert await case.recall(turn_key, turn_key, unique=True) is None


async def test_empty_operations_do_not_reach_the_backend(case: Case) -> None:
    assert await case.store.recall([]) == []
    assert await case.store.has_marks([]) == []
    assert await case.store.get([]) == []
    await case.store.add_marks([])
    await case.store.put({})
    await case.store.delete([])
    assert case.observed.operations == []


async def test_a_value_may_live_for_less_than_the_others(case: Case) -> None:
    await case.store.put({b"short": b"x"}, 0.5 * TTL)
    await case.store.put({b"long": b"x"}, 2 * TTL)
    case.later(0.6 * TTL)
    assert (await case.get(b"short"), await case.get(b"long")) == (None, b"x")
    case.later(0.6 * TTL)
    assert await case.get(b"long") is None


async def test_everything_expires_and_marks_last(case: Case) -> None:
    await case.store.remember(TURN_KEY, b"one", b"x")
    await case.store.put({b"key": b"x"})
    await case.store.add_marks([b"mark"])
    case.later(0.9 * TTL)
    assert await case.recall(TURN_KEY, b"one") == b"x"
    assert await case.get(b"key") == b"x"
    case.later(0.2 * TTL)
    assert await case.recall(TURN_KEY, b"one") is None
    assert await case.recall(TURN_KEY, b"other", unique=True) is None
    assert await case.get(b"key") is None
    case.later((MARK_TTL_FACTOR - 1.2) * TTL)
    assert await case.store.has_marks([b"mark"]) == [True]
    case.later(0.2 * TTL)
    assert await case.store.has_marks([b"mark"]) == [False]


async def test_a_later_original_does_not_extend_the_life_of_others(case: Case) -> None:
    await case.store.remember(TURN_KEY, b"one", b"x")
    case.later(0.6 * TTL)
    await case.store.remember(TURN_KEY, b"two", b"y")
    assert await case.recall(TURN_KEY, b"other", unique=True) is None
    case.later(0.6 * TTL)
    assert await case.recall(TURN_KEY, b"one") is None
    assert await case.recall(TURN_KEY, b"other", unique=True) == b"y"


async def test_each_operation_is_observed(case: Case) -> None:
    store, observed = case.store, case.observed
    await store.remember(TURN_KEY, b"one", b"x")
    assert observed.last == ("remember", "ok")
    await store.recall(
        [StoreQuery(TURN_KEY, b"none", unique=False), StoreQuery(TURN_KEY, b"one", unique=False)]
    )
    assert observed.last == ("recall", "hit")
    await case.recall(TURN_KEY, b"none")
    assert observed.last == ("recall", "miss")
    await store.add_marks([b"mark"])
    assert observed.last == ("mark", "ok")
    await store.has_marks([b"none", b"mark"])
    assert observed.last == ("known", "hit")
    await store.has_marks([b"none"])
    assert observed.last == ("known", "miss")
    await store.put({b"key": b""})
    assert observed.last == ("put", "ok")
    await store.get([b"key"])
    assert observed.last == ("get", "hit")
    await store.delete([b"key"])
    assert observed.last == ("delete", "ok")
    await store.get([b"key"])
    assert observed.last == ("get", "miss")
    assert len(observed.operations) == 10


async def test_a_closed_store_opens_again(case: Case) -> None:
    await case.store.put({b"key": b"x"})
    await case.store.aclose()
    await case.store.aclose()
    assert await case.get(b"key") == b"x"


DIGESTS = st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"])
FEW = st.sampled_from([b"a", b"b"])
VALUES = st.binary(max_size=3)


class TestAnyBackend:
    """What the store does for any backend, so that none does it by itself."""

    def test_what_leaves_the_process_in_the_clear_is_refused(self) -> None:
        with pytest.raises(ValueError, match="takes a sealer"):
            Store(DictBackend(TTL, Time()))

    async def test_a_backend_gets_nothing_in_the_clear(self) -> None:
        case = in_dict()
        await case.store.remember(TURN_KEY, b"one", b"secret" * 10)
        await case.store.put({b"key": b"secret" * 10})
        values = dict_backend(case).values
        assert len(values) == 2
        assert not any(b"secret" in value for value, _ in values.values())

    async def test_a_value_that_was_moved_does_not_open(self) -> None:
        case = in_dict()
        await case.store.put({b"one": b"1", b"two": b"2"})
        values, names = dict_backend(case).values, KeyNames()
        values[names.value(b"two")] = values[names.value(b"one")]
        assert await case.store.get([b"one", b"two"]) == [b"1", None]
        assert case.observed.last == ("get", "error")

    async def test_a_value_that_is_too_large_is_not_stored(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        case = in_dict(Cipher(RING, limit=10))
        await case.store.put({b"large": b"x" * 11, b"small": b"x" * 10})
        assert case.observed.operations == [("put", "error"), ("put", "ok")]
        assert await case.store.get([b"large", b"small"]) == [None, b"x" * 10]
        await case.store.remember(TURN_KEY, b"one", b"x" * 11)
        assert case.observed.last == ("remember", "error")
        assert caplog.text.count("too large") == 1

    async def test_a_failing_backend_is_a_miss(self) -> None:
        case = in_dict()
        await case.store.put({b"key": b"x"})
        dict_backend(case).failing = True
        await case.store.put({b"key": b"y"})
        assert not await case.store.add_marks([b"mark"])
        await case.store.remember(TURN_KEY, b"one", b"x")
        assert await case.store.get([b"key"]) == [None]
        assert await case.store.has_marks([b"mark", b"other"]) == [False, False]
        operations = ["put", "put", "mark", "remember", "get", "known"]
        assert [operation for operation, _ in case.observed.operations] == operations
        assert {result for _, result in case.observed.operations[1:]} == {"error"}

    async def test_it_is_down_if_any_batch_could_not_be_read(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        case = in_dict(batch_size=1)
        failing = iter([True, False, False, False])
        backend = dict_backend(case)
        read = backend.get

        async def get(keys: Sequence[bytes]) -> list[bytes | None]:
            backend.failing = next(failing)
            return await read(keys)

        monkeypatch.setattr(backend, "get", get)
        await case.store.get([b"one", b"two"])
        assert case.store.is_down
        await case.store.get([])
        assert case.store.is_down, "nothing was read"
        await case.store.get([b"one", b"two"])
        assert not case.store.is_down

    async def test_long_operations_are_split_into_batches(self) -> None:
        case = in_dict(batch_size=5)
        keys = [bytes([number]) for number in range(11)]
        await case.store.put(dict.fromkeys(keys, b"x"))
        assert await case.store.add_marks(keys)
        assert await case.store.get(keys) == [b"x"] * len(keys)
        assert all(await case.store.has_marks(keys))
        await case.store.delete(keys)
        counts = Counter(operation for operation, _ in case.observed.operations)
        assert counts == {"put": 3, "mark": 3, "get": 3, "known": 3, "delete": 3}

    async def test_after_a_batch_that_failed_no_more_is_written(self) -> None:
        case = in_dict(batch_size=5)
        dict_backend(case).failing = True
        keys = [bytes([number]) for number in range(15)]
        assert not await case.store.add_marks(keys)
        await case.store.put(dict.fromkeys(keys, b"x"))
        assert case.observed.operations == [("mark", "error"), ("put", "error")]


def test_names_of_keys_never_change() -> None:
    """What was stored by an earlier version is found, and opens: it is bound to its name."""
    names = KeyNames("replicas")
    assert names.original(b"\xff\x00:", b"p") == b"replicas:o:_wA6:cA"
    assert names.value(b"key") == b"replicas:v:a2V5"
    assert names.mark(b"mark") == b"replicas:m:bWFyaw"


class AllBackends(RuleBasedStateMachine):
    """The same operations on stores that have to answer the same."""

    others: Callable[[], list[Case]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.cases = [in_memory(), *self.others()]

    def teardown(self) -> None:
        for case in self.cases:
            self.run(case.store.aclose())
        self.runner.close()

    def run(self, operation: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(operation)

    def run_on_all(self, operation: str, *given: Any) -> None:
        first, *others = [self.run(getattr(case.store, operation)(*given)) for case in self.cases]
        assert all(other == first for other in others)

    @rule(turn_key=FEW, prefix=DIGESTS, value=VALUES)
    def remember(self, turn_key: bytes, prefix: bytes, value: bytes) -> None:
        self.run_on_all("remember", turn_key, prefix, value)

    @rule(queries=st.lists(st.builds(StoreQuery, FEW, DIGESTS, st.booleans()), max_size=5))
    def recall(self, queries: list[StoreQuery]) -> None:
        self.run_on_all("recall", queries)

    @rule(marks=st.lists(DIGESTS, max_size=3))
    def mark(self, marks: list[bytes]) -> None:
        self.run_on_all("add_marks", marks)

    @rule(values=st.dictionaries(DIGESTS, VALUES, max_size=3))
    def put(self, values: dict[bytes, bytes]) -> None:
        self.run_on_all("put", values)

    @rule(keys=st.lists(DIGESTS, max_size=3))
    def delete(self, keys: list[bytes]) -> None:
        self.run_on_all("delete", keys)

    @rule(parts=st.sampled_from([0.35, 0.35, 0.7, 7.35]))
    def later(self, parts: float) -> None:
        for case in self.cases:
            case.later(parts * TTL)

    @invariant()
    def results_are_the_same(self) -> None:
        digests = [bytes([letter]) for letter in b"abcdef"]
        turn_keys = (b"a", b"b")
        self.run_on_all("has_marks", digests)
        self.run_on_all("get", digests)
        self.run_on_all(
            "recall",
            [StoreQuery(turn_key, digest, False) for turn_key in turn_keys for digest in digests],
        )
        self.run_on_all("recall", [StoreQuery(turn_key, b"none", True) for turn_key in turn_keys])
        first, *others = [case.observed.operations for case in self.cases]
        assert all(other == first for other in others)


def check_that_backends_agree(others: Callable[[], list[Case]]) -> None:
    machine = type("TheseBackends", (AllBackends,), {"others": staticmethod(others)})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine, settings=settings(max_examples=some(30), stateful_step_count=25, deadline=None)
    )


def test_a_new_backend_behaves_like_memory() -> None:
    check_that_backends_agree(lambda: [in_dict()])


def test_redis_behaves_like_memory(redis_server: Server) -> None:
    check_that_backends_agree(lambda: [in_redis(redis_server)])
