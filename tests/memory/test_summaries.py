"""Summaries that were shown."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Sequence

import pytest

from abridge.memory.keys import Keyring
from abridge.memory.stores.memory import MemoryStore
from abridge.memory.summaries import SHARE_BATCH, OwnerTags, SummaryRegistry


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def keyring(*names: str) -> Keyring:
    keys = (f"{name}:{b64encode(name.encode() * 32)[:44].decode()}" for name in names)
    return Keyring.parse(",".join(keys))


KEYS = keyring("a")


def owner(name: bytes, keys: Keyring = KEYS) -> OwnerTags:
    return {key.id: name + key.id.encode() for key in keys.keys}


ANNA, BERT = owner(b"anna"), owner(b"bert")


async def knows(shown: SummaryRegistry, text: str, who: OwnerTags = BERT) -> bool:
    return shown.is_known(text, who) or text in await shown.find_shared([text], who)


async def test_summaries_are_known_by_their_text() -> None:
    shown = SummaryRegistry(KEYS, 60)
    assert not shown
    shown.add(["I add.\n", "\ud83d lone surrogate", " "])
    assert shown
    assert await knows(shown, "I add.")
    assert await knows(shown, " I add.\n", ANNA)
    assert await knows(shown, "\ud83d lone surrogate")
    assert not await knows(shown, "I added.")
    assert not await knows(shown, "")


async def test_what_was_copied_out_of_reasoning_is_known_with_its_owner_only() -> None:
    shown = SummaryRegistry(KEYS, 60)
    shown.add(["I should greet them."], ANNA)
    assert await knows(shown, "I should greet them.", ANNA)
    assert not await knows(shown, "I should greet them.", BERT)


async def test_for_a_time_and_so_many() -> None:
    time = Time()
    shown = SummaryRegistry(KEYS, 60, time=time, max_marks=10)
    shown.add(str(number) for number in range(20))
    assert await knows(shown, "19")
    assert not await knows(shown, "5")
    time.now = 61
    assert not await knows(shown, "19")


async def test_what_one_process_showed_others_know_by_any_of_their_keys() -> None:
    store = MemoryStore(10_000, 60)
    one, other = SummaryRegistry(KEYS, 60, store), SummaryRegistry(keyring("b", "a"), 60, store)
    one.add(["I add."])
    one.add(["I copy."], ANNA)
    assert not await knows(other, "I add.", owner(b"anna", keyring("b", "a")))
    await one.share()
    assert await knows(other, "I add.", owner(b"bert", keyring("b", "a")))
    assert await knows(other, "I copy.", owner(b"anna", keyring("b", "a")))
    assert not await knows(other, "I copy.", owner(b"bert", keyring("b", "a")))


class Away(MemoryStore):
    """A store that is out of reach until it is `back`; it notes how much it is told at once."""

    def __init__(self) -> None:
        super().__init__(10_000, 60)
        self.back = asyncio.Event()
        self.told: list[int] = []

    async def add_marks(self, marks: Sequence[bytes]) -> bool:
        self.told.append(len(marks))
        return self.back.is_set() and await super().add_marks(marks)


async def test_what_gathered_in_an_outage_is_told_bit_by_bit_the_latest_first() -> None:
    store = Away()
    one, other = SummaryRegistry(KEYS, 60, store), SummaryRegistry(KEYS, 60, store)
    one.add(f"Part {number}" for number in range(3 * SHARE_BATCH))
    await one.share()
    store.back.set()
    one.add(["The latest"])
    await one.share()
    assert await knows(other, "The latest")
    assert not await knows(other, "Part 0")
    while not await knows(other, "Part 0"):
        assert len(store.told) < 10
        await one.share()
    assert max(store.told) == SHARE_BATCH


async def test_what_nobody_could_wait_for_is_told_later() -> None:
    class Stuck(MemoryStore):
        async def add_marks(self, marks: Sequence[bytes]) -> bool:
            return await asyncio.Event().wait()

    shown, store = SummaryRegistry(KEYS, 60, Stuck(10_000, 60)), MemoryStore(10_000, 60)
    shown.add(["I add."])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(shown.share(), 0.01)
    shown._store = store
    await shown.share()
    assert await knows(SummaryRegistry(KEYS, 60, store), "I add.")
