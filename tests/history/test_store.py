"""What is remembered, for how long, and how much of it."""

from __future__ import annotations

import pytest

from abridge.history.shown import Shown
from abridge.history.store import ENTRY, Memory, Original, is_random
from abridge.turn.conversation import Call, Turn

TEXT = Turn("assistant", "Hello.")
CALLS = Turn("assistant", calls=(Call("call_9f149c74c42f265b", "f", "{}"),))


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def original(prefix: bytes = b"p", size: int = 10, *, altered: bool = True) -> Original:
    return Original(prefix, b"x" * size, b"raw", altered)


def test_an_exact_prefix_wins() -> None:
    memory = Memory(10_000, 60)
    for prefix in (b"one", b"two"):
        memory.remember(b"place", original(prefix))
    found = memory.recall(b"place", b"two", CALLS)
    assert found is not None
    assert found.prefix == b"two"


def test_a_turn_known_by_text_alone_needs_its_prefix() -> None:
    memory = Memory(10_000, 60)
    memory.remember(b"place", original(b"one"))
    assert memory.recall(b"place", b"other", TEXT) is None


def test_a_single_candidate_with_random_call_ids_needs_none() -> None:
    memory = Memory(10_000, 60)
    memory.remember(b"place", original(b"one"))
    assert memory.recall(b"place", b"other", CALLS) is not None
    memory.remember(b"place", original(b"two"))
    assert memory.recall(b"place", b"other", CALLS) is None


def test_call_ids_that_others_would_have_too_need_their_prefix() -> None:
    memory = Memory(10_000, 60)
    memory.remember(b"place", original(b"one"))
    counted = Turn("assistant", calls=(Call("call_0", "f", "{}"),))
    assert memory.recall(b"place", b"other", counted) is None


@pytest.mark.parametrize(
    ("identifier", "random"),
    [
        ("call_eee11723464a4b9eb8cee71d", True),
        ("chatcmpl-tool-9f149c74c42f265b", True),
        ("D681PevKs", True),
        ("call_0", False),
        ("functions.get_weather:0", False),
        ("toolcallnumber", False),
        ("1", False),
        ("", False),
        ("123456789", False),
    ],
)
def test_ids_that_are_random(identifier: str, random: bool) -> None:  # noqa: FBT001 -- a table
    assert is_random(identifier) == random


def test_the_same_conversation_said_twice_is_kept_once() -> None:
    memory = Memory(10_000, 60)
    memory.remember(b"place", original(b"one", 10))
    memory.remember(b"place", original(b"one", 20))
    assert memory.size == 20 + ENTRY


def test_at_most_four_conversations_share_a_turn() -> None:
    memory = Memory(10_000, 60)
    for number in range(6):
        memory.remember(b"place", original(bytes([number])))
    assert memory.recall(b"place", bytes([1]), TEXT) is None
    assert memory.recall(b"place", bytes([2]), TEXT) is not None


def test_mlx_10_time_bounds_hold() -> None:
    time = Time()
    memory = Memory(10_000, 60, time)
    memory.remember(b"place", original())
    time.now = 61
    assert memory.recall(b"place", b"p", TEXT) is None
    assert not memory


def test_mlx_10_size_bounds_hold() -> None:
    memory = Memory(3000, 60)
    for number in range(100):
        memory.remember(bytes([number]), original(size=800))
        assert memory.size <= 3000
    assert memory.recall(bytes([99]), b"p", TEXT) is not None
    assert memory.recall(bytes([0]), b"p", TEXT) is None


def test_what_is_larger_than_all_of_the_store_is_not_kept() -> None:
    memory = Memory(1000, 60)
    memory.remember(b"small", original(size=10))
    memory.remember(b"large", original(size=2000))
    assert memory.recall(b"small", b"p", TEXT) is not None
    assert memory.recall(b"large", b"p", TEXT) is None


def test_a_store_of_no_size_keeps_nothing() -> None:
    memory = Memory(0, 60)
    memory.remember(b"place", original())
    assert memory.recall(b"place", b"p", TEXT) is None


class TestShown:
    def test_summaries_are_known_by_their_text(self) -> None:
        shown = Shown(b"key", 60)
        assert not shown
        shown.add(["I add.\n", "\ud83d lone surrogate", " "])
        assert shown
        assert shown.knows("I add.")
        assert shown.knows(" I add.\n", b"anna")
        assert shown.knows("\ud83d lone surrogate")
        assert not shown.knows("I added.")
        assert not shown.knows("")

    def test_what_was_copied_out_of_reasoning_is_known_with_its_owner_only(self) -> None:
        shown = Shown(b"key", 60)
        shown.add(["I should greet them."], b"anna")
        assert shown.knows("I should greet them.", b"anna")
        assert not shown.knows("I should greet them.", b"bert")
        assert not shown.knows("I should greet them.")

    def test_for_a_time_and_so_many(self) -> None:
        time = Time()
        shown = Shown(b"key", 60, time, most=10)
        shown.add(str(number) for number in range(20))
        assert shown.knows("19")
        assert not shown.knows("5")
        time.now = 61
        assert not shown.knows("19")
