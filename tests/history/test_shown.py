"""Summaries that were shown."""

from __future__ import annotations

from base64 import b64encode

from abridge.history.keys import Keyring
from abridge.history.memory import Memory
from abridge.history.shown import Owner, Shown


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def keyring(*names: str) -> Keyring:
    keys = (f"{name}:{b64encode(name.encode() * 32)[:44].decode()}" for name in names)
    return Keyring.parse(",".join(keys))


KEYS = keyring("a")


def owner(name: bytes, keys: Keyring = KEYS) -> Owner:
    return {key.id: name + key.id.encode() for key in keys.keys}


ANNA, BERT = owner(b"anna"), owner(b"bert")


async def knows(shown: Shown, text: str, who: Owner = BERT) -> bool:
    return text in await shown.known([text], who)


async def test_summaries_are_known_by_their_text() -> None:
    shown = Shown(KEYS, 60)
    assert not shown
    shown.add(["I add.\n", "\ud83d lone surrogate", " "])
    assert shown
    assert await knows(shown, "I add.")
    assert await knows(shown, " I add.\n", ANNA)
    assert await knows(shown, "\ud83d lone surrogate")
    assert not await knows(shown, "I added.")
    assert not await knows(shown, "")


async def test_what_was_copied_out_of_reasoning_is_known_with_its_owner_only() -> None:
    shown = Shown(KEYS, 60)
    shown.add(["I should greet them."], ANNA)
    assert await knows(shown, "I should greet them.", ANNA)
    assert not await knows(shown, "I should greet them.", BERT)


async def test_for_a_time_and_so_many() -> None:
    time = Time()
    shown = Shown(KEYS, 60, time=time, most=10)
    shown.add(str(number) for number in range(20))
    assert await knows(shown, "19")
    assert not await knows(shown, "5")
    time.now = 61
    assert not await knows(shown, "19")


async def test_what_one_process_showed_others_know_by_any_of_their_keys() -> None:
    store = Memory(10_000, 60)
    one, other = Shown(KEYS, 60, store), Shown(keyring("b", "a"), 60, store)
    one.add(["I add."])
    one.add(["I copy."], ANNA)
    assert not await knows(other, "I add.", owner(b"anna", keyring("b", "a")))
    await one.share()
    assert await knows(other, "I add.", owner(b"bert", keyring("b", "a")))
    assert await knows(other, "I copy.", owner(b"anna", keyring("b", "a")))
    assert not await knows(other, "I copy.", owner(b"bert", keyring("b", "a")))
