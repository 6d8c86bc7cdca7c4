"""Summaries that were shown are recognised."""

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


async def knows(registry: SummaryRegistry, text: str, who: OwnerTags = BERT) -> bool:
    return registry.recogniser(who)(text) or text in await registry.find_shared([text], who)


async def test_summaries_are_recognised_by_their_text() -> None:
    registry = SummaryRegistry(KEYS, 60)
    assert not registry
    registry.add(["I add.\n", "\ud83d lone surrogate", " "], BERT)
    assert registry
    assert await knows(registry, "I add.")
    assert await knows(registry, " I add.\n")
    assert await knows(registry, "\ud83d lone surrogate")
    assert not await knows(registry, "I added.")
    assert not await knows(registry, "")


async def test_a_summary_is_recognised_for_its_owner_only() -> None:
    registry = SummaryRegistry(KEYS, 60)
    registry.add(["I should greet them."], ANNA)
    assert await knows(registry, "I should greet them.", ANNA)
    assert not await knows(registry, "I should greet them.", BERT)


async def test_marks_expire_and_are_limited_in_number() -> None:
    time = Time()
    registry = SummaryRegistry(KEYS, 60, time=time, max_marks=10)
    registry.add(map(str, range(20)), BERT)
    assert await knows(registry, "19")
    assert not await knows(registry, "5")
    time.now = 61
    assert not await knows(registry, "19")


async def test_other_processes_recognise_a_summary_by_any_of_their_keys() -> None:
    store = MemoryStore(10_000, 60)
    one, other = SummaryRegistry(KEYS, 60, store), SummaryRegistry(keyring("b", "a"), 60, store)
    one.add(["I add."], ANNA)
    assert not await knows(other, "I add.", owner(b"anna", keyring("b", "a")))
    await one.share()
    assert await knows(other, "I add.", owner(b"anna", keyring("b", "a")))
    assert not await knows(other, "I add.", owner(b"bert", keyring("b", "a")))


class Away(MemoryStore):
    """A store that is out of reach until it is `back`; it notes the sizes of batches."""

    def __init__(self) -> None:
        super().__init__(10_000, 60)
        self.back = asyncio.Event()
        self.batch_sizes: list[int] = []

    async def add_marks(self, marks: Sequence[bytes]) -> bool:
        self.batch_sizes.append(len(marks))
        return self.back.is_set() and await super().add_marks(marks)


async def test_after_an_outage_marks_are_shared_in_batches_latest_first() -> None:
    store = Away()
    one, other = SummaryRegistry(KEYS, 60, store), SummaryRegistry(KEYS, 60, store)
    one.add((f"Part {number}" for number in range(3 * SHARE_BATCH)), BERT)
    await one.share()
    store.back.set()
    one.add(["The latest"], BERT)
    await one.share()
    assert await knows(other, "The latest")
    assert not await knows(other, "Part 0")
    while not await knows(other, "Part 0"):
        assert len(store.batch_sizes) < 10
        await one.share()
    assert max(store.batch_sizes) == SHARE_BATCH


async def test_marks_that_were_not_written_are_shared_later() -> None:
    class Stuck(MemoryStore):
        async def add_marks(self, marks: Sequence[bytes]) -> bool:
            return await asyncio.Event().wait()

    registry, store = SummaryRegistry(KEYS, 60, Stuck(10_000, 60)), MemoryStore(10_000, 60)
    registry.add(["I add."], BERT)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(registry.share(), 0.01)
    registry._store = store
    await registry.share()
    assert await knows(SummaryRegistry(KEYS, 60, store), "I add.")
