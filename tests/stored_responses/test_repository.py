"""Stored responses: their tenants, keys and expiry."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.openai import is_minted
from abridge.errors import RequestError
from abridge.memory.keys import Key, Keyring
from abridge.memory.stores.memory import (
    KEY_OVERHEAD,
    VALUE_OVERHEAD,
    MemoryBackend,
    MemoryStore,
)
from abridge.memory.stores.store import Store
from abridge.stored_responses.repository import (
    ConversationRecord,
    InputItems,
    LocalRecord,
    ResponseRepository,
    UpstreamRecord,
    lookup_error,
)
from tests.memory.stores.cases import TTL, Case, in_memory
from tests.stored_responses.conversations import fail, fail_once

OLD, NEW = (replace(Key.random(), id=name) for name in ("old", "new"))
ANNA, BERT = b"anna", b"bert"
WHOLE = LocalRecord("default", {"id": "resp_1", "output": []}, ["msg_1"], ["rs_2", "msg_2"])
TALK = ConversationRecord(0, {}, [])
ITEMS = {"msg_1": b'{"a":1}', "rs_2": b'{"b":2}', "msg_2": b'{"c":3}'}
NAMES = list(ITEMS)
GONE = RequestError("It is not there.", status=404)
NOTE = UpstreamRecord("other", raw=False, fields={"usage": None}, made={"rs_9": {"summary": []}})


def responses(store: Store, *keys: Key, tenant: bytes = ANNA) -> ResponseRepository:
    ring = Keyring(keys or (OLD,))
    return ResponseRepository(store, ring, {key.id: tenant + key.tenant for key in ring.keys})


@pytest.fixture
def case() -> Case:
    return in_memory()


async def test_a_response_is_found_with_its_items(case: Case) -> None:
    known = responses(case.store)
    await known.save_local("resp_1", WHOLE, ITEMS)
    assert await known.find("resp_1", "resp_2") == [WHOLE, None]
    assert await known.get_items(["msg_2", "msg_3", "msg_1"]) == [b'{"c":3}', None, b'{"a":1}']
    assert await known.get_items([]) == []


async def test_what_it_missed_while_the_store_was_down_may_be_there_whoever_reads_since(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = responses(case.store), responses(case.store)
    with monkeypatch.context() as down:
        down.setattr(MemoryBackend, "get", fail)
        assert await one.find("resp_1") == [None]
    assert await other.find("resp_1") == [None]
    assert lookup_error(GONE, one).code == "store_unavailable"
    assert lookup_error(GONE, other, None) is GONE


async def test_local_and_upstream_responses_are_distinguished(case: Case) -> None:
    known = responses(case.store)
    await known.save_upstream("resp_1", NOTE)
    assert await known.find("resp_1") == [NOTE]
    assert await known.find_showing(["rs_9", "rs_8"]) == ["resp_1", ""]
    assert await known.get_items(["rs_9"]) == [None]


async def test_an_item_of_two_responses_shows_neither(case: Case) -> None:
    """Upstream reused an id: one item's summary may not be shown for the other."""
    known = responses(case.store)
    await known.save_upstream("resp_1", NOTE)
    await known.save_upstream("resp_1", NOTE)
    assert await known.find_showing(["rs_9"]) == ["resp_1"]
    for identity in ("resp_2", "resp_2", "resp_1"):
        await known.save_upstream(identity, NOTE)
        assert await known.find_showing(["rs_9"]) == [""]


async def test_tenants_are_isolated(case: Case) -> None:
    await responses(case.store).save_local("resp_1", WHOLE, ITEMS)
    await responses(case.store).save_upstream("resp_2", NOTE)
    other = responses(case.store, tenant=BERT)
    assert await other.find("resp_1", "resp_2") == [None, None]
    assert await other.get_items(NAMES) == [None] * 3
    assert await other.find_showing(["rs_9"]) == [""]
    await other.delete("resp_1")
    assert await responses(case.store).find("resp_1") == [WHOLE]


async def test_no_client_chosen_id_reaches_another_record(case: Case) -> None:
    """An item is never found as a response."""
    known = responses(case.store)
    await known.save_local("resp_1", WHOLE, {"resp_2": b"{}"})
    assert await known.find("resp_2") == [None]
    assert await known.get_items(["resp_1"]) == [None]


async def test_keys_are_rotated_without_losing_any(case: Case) -> None:
    await responses(case.store, OLD).save_local("resp_1", WHOLE, ITEMS)
    both = responses(case.store, NEW, OLD)
    assert await both.find("resp_1") == [WHOLE]
    await both.save_local("resp_2", WHOLE, {})
    await both.refresh({"msg_1": b'{"a":1}'})
    new = responses(case.store, NEW)
    assert await new.find("resp_1", "resp_2") == [None, WHOLE]
    assert await new.get_items(NAMES) == [b'{"a":1}', None, None]


async def test_replicas_with_the_keys_in_another_order_see_what_either_writes(case: Case) -> None:
    one, other = responses(case.store, OLD, NEW), responses(case.store, NEW, OLD)
    await one.save_conversation("conv_1", TALK, {})
    for number, writer in enumerate((one, other, one, other)):
        extended = await writer.extend_conversation("conv_1", [f"msg_{number}"], {})
        assert extended is not None
        assert len(extended.items) == number + 1
    for reader in (one, other):
        assert await reader.find_conversation("conv_1") == extended


async def test_replicas_that_write_at_once_with_the_keys_in_another_order_lose_nothing(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = MemoryBackend.put

    async def put_later(self: MemoryBackend, *what: Any) -> None:
        await asyncio.sleep(0)
        await put(self, *what)

    monkeypatch.setattr(MemoryBackend, "put", put_later)
    both = responses(case.store, OLD, NEW), responses(case.store, NEW, OLD)
    await asyncio.gather(*(one.save_compaction("cmp_1", b"{}") for one in both))
    assert [await one.find_compaction("cmp_1") for one in both] == [b"{}", b"{}"]


SAVES: dict[str, Callable[[ResponseRepository], Awaitable[None]]] = {
    "a response": lambda known: known.save_local("resp_1", WHOLE, ITEMS),
    "a note": lambda known: known.save_upstream("resp_1", NOTE),
    "items": lambda known: known.save_items(ITEMS),
    "a conversation": lambda known: known.save_conversation("conv_1", TALK, {}),
    "a compaction": lambda known: known.save_compaction("cmp_1", b"{}"),
}


@pytest.mark.parametrize("kind", SAVES)
async def test_what_could_not_be_saved_is_told(
    case: Case, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_once(monkeypatch, "put")
    with pytest.raises(RequestError) as raised:
        await SAVES[kind](responses(case.store))
    assert raised.value.code == "store_unavailable"


async def test_a_lifetime_that_cannot_be_renewed_stops_nobody(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = responses(case.store)
    await known.save_compaction("cmp_1", b"{}")
    monkeypatch.setattr(MemoryBackend, "put", fail)
    await known.refresh(ITEMS)
    await known.note_owner(["resp_1"], "default")
    assert await known.find_compaction("cmp_1") == b"{}"


async def test_a_conversation_that_cannot_be_read_is_not_gone(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = responses(case.store)
    assert await known.extend_conversation("conv_1", ["msg_1"], {}) is None
    fail_once(monkeypatch, "get")
    with pytest.raises(RequestError):
        await known.extend_conversation("conv_1", ["msg_1"], {})


async def test_a_deleted_response_is_gone_under_every_key(case: Case) -> None:
    await responses(case.store, OLD).save_local("resp_1", WHOLE, ITEMS)
    both = responses(case.store, NEW, OLD)
    await both.delete("resp_1")
    assert await both.find("resp_1") == [None]


async def test_deleting_a_response_leaves_its_items(case: Case) -> None:
    known = responses(case.store)
    await known.save_local("resp_1", WHOLE, ITEMS)
    await known.delete("resp_1")
    assert await known.get_items(["msg_1"]) == [b'{"a":1}']


async def test_continuing_extends_the_life_of_items_but_not_of_reasoning(
    case: Case,
) -> None:
    known = responses(case.store)
    await known.save_local("resp_1", WHOLE, ITEMS)
    case.later(TTL * 0.75)
    await known.refresh(ITEMS)
    case.later(TTL * 0.75)
    assert await known.get_items(NAMES) == [b'{"a":1}', None, b'{"c":3}']
    assert await known.find("resp_1") == [None]
    case.later(TTL * 0.75)
    assert await known.get_items(NAMES) == [None] * 3
    assert not case.store.size


async def test_an_item_is_stored_once(case: Case) -> None:
    known = responses(case.store)
    for number in range(50):
        await known.save_local(f"resp_{number}", WHOLE, {"msg_1": b"x" * 1000})
    assert (case.store.size or 0) < 2000 + 50 * (KEY_OVERHEAD + VALUE_OVERHEAD + 200)


async def test_stored_responses_are_bounded() -> None:
    store = MemoryStore(10_000, TTL)
    known = responses(store)
    for number in range(50):
        await known.save_local(f"resp_{number}", WHOLE, {f"msg_{number}": b"x" * 1000})
        assert store.size <= 10_000
    assert await known.find("resp_49", "resp_0") == [WHOLE, None]


TEXTS = st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=8)


def base(*items: bytes, known: tuple[str, ...] = ()) -> InputItems:
    basis = responses(MemoryStore(1, TTL)).create_input_items()
    for name in known:
        basis.add_known(name)
    for item in items:
        basis.add("msg_", item)
    return basis


class TestItemIds:
    @given(TEXTS)
    def test_no_two_items_have_the_same_id(self, items: list[bytes]) -> None:
        basis = base(*items)
        assert len(set(basis.ids)) == len(basis.ids) == len(items)
        assert [basis.new[name] for name in basis.ids] == items
        assert all(map(is_minted, basis.ids))

    @given(TEXTS, TEXTS)
    def test_resending_all_items_adds_only_new_ones(
        self, first: list[bytes], more: list[bytes]
    ) -> None:
        before = base(*first)
        assert base(*first, *more).ids[: len(first)] == before.ids

    @given(TEXTS, TEXTS)
    def test_sending_only_new_items_gives_the_same_ids(
        self, first: list[bytes], more: list[bytes]
    ) -> None:
        """A client that changes from one to the other adds nothing either."""
        before = base(*first)
        after = base(*more, known=tuple(before.ids))
        assert after.ids == base(*first, *more).ids
        assert list(after.new.values()) == more

    def test_a_known_id_is_not_given_to_another_item(self) -> None:
        basis = base(known=("msg_1",))
        assert not basis.add_known("msg_1")
        assert basis.ids == ["msg_1"]

    def test_another_tenant_has_other_ids(self) -> None:
        store = MemoryStore(1, TTL)
        names = []
        for tenant in (ANNA, BERT):
            basis = responses(store, tenant=tenant).create_input_items()
            basis.add("msg_", b"a")
            names += basis.ids
        assert len(set(names)) == 2
