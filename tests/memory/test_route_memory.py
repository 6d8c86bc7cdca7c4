"""What the memory of a route holds: originals and summaries, and what earlier versions marked."""

from __future__ import annotations

import asyncio
import sys
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import pytest

from abridge.config.loading import require_extra
from abridge.config.tables import HistorySettings
from abridge.core.conversation import PrefixDigest, ToolCall, Turn, is_counted_id, is_random_id
from abridge.errors import SettingsError
from abridge.memory.keys import Keyring
from abridge.memory.originals import Original, digest_text, is_unique
from abridge.memory.registry import BACKENDS, MemoryRegistry, open_shared_store
from abridge.memory.route_memory import ConversationOwner, RouteMemory
from abridge.memory.stores.memory import MemoryStore
from abridge.memory.stores.store import StoreObserver, observe_nothing
from abridge.memory.summaries import SHARE_BATCH, OwnerTags, SummaryRegistry
from tests.apis.gemini.scripts import signed, text, thought
from tests.memory.stores.cases import RING, TTL
from tests.support.deployments import ORIGIN, settings_for

Json = dict[str, Any]
LATER = [thought("So."), signed(text("It is there."), "c2ln")]


def make(observe: StoreObserver = observe_nothing) -> tuple[RouteMemory, ConversationOwner]:
    settings = settings_for(upstreams=[{"base_url": f"{ORIGIN}/v1"}])
    memory = MemoryRegistry(settings, observe, None).for_route(settings.routes[0])
    tags = {memory.keyring.primary.id: b"anna"}
    return memory, ConversationOwner(memory.keyring, tags, "default", "m")


async def test_only_turns_that_the_store_may_hold_are_looked_up() -> None:
    observed: list[tuple[str, str]] = []
    memory, owner = make(lambda operation, result, _: observed.append((operation, result)))
    held, other = Turn("assistant", "It is there."), Turn("assistant", "It is here.")
    random, counted = (
        Turn("assistant", calls=(ToolCall(identity, "look", "{}"),))
        for identity in ("call_9f149c74c42f265b", "call_0")
    )
    original = Original.from_reasoning(LATER, "Hm.", altered=True)
    await memory.remember(owner.place_of(held, PrefixDigest()), original)
    turns = [other, held, random, counted]
    assert [turn for turn in turns if memory.held_keys(owner, turn)] == [held, counted]
    assert not any(memory.held_keys(None, turn) for turn in turns)
    assert await memory.recall(owner, []) == []
    assert observed[-1:] == [("recall", "miss")]


@pytest.mark.parametrize("altered", [True, False])
def test_a_packed_original_unpacks(*, altered: bool) -> None:
    original = Original.from_reasoning(
        [{"reasoning": "Hm, \u00fc."}], "Hm, \u00fc.", altered=altered
    )
    assert Original.unpack(original.pack()) == original
    assert original.decode() == [{"reasoning": "Hm, \u00fc."}]
    assert original.raw_digest == digest_text(" Hm, \u00fc.\n")


def test_texts_that_differ_in_their_blanks_alone_are_the_same() -> None:
    assert digest_text("One.Two\n.") == digest_text("One.\n\nTwo .\t")
    assert digest_text("One.") != digest_text("One")


def test_a_turn_is_unique_by_the_random_ids_of_its_calls() -> None:
    random, counted = ToolCall("call_9f149c74c42f265b", "f", "{}"), ToolCall("call_0", "f", "{}")
    assert is_unique(Turn("assistant", calls=(random,)))
    assert not is_unique(Turn("assistant", calls=(random, counted)))
    assert not is_unique(Turn("assistant", "Hello."))
    named = ToolCall("functions.getCurrentWeatherForecast:0", "getCurrentWeatherForecast", "{}")
    assert not is_unique(Turn("assistant", calls=(named,)))


@pytest.mark.parametrize(
    ("identifier", "random"),
    [
        ("call_eee11723464a4b9eb8cee71d", True),
        ("chatcmpl-tool-9f149c74c42f265b", True),
        ("D681PevKs", True),
        ("call_00_sXqYgMESDht75NCLLZtt9804", True),
        ("fc_bfb39741-3748-4def-9886-a93fc9c64a90", True),
        ("call_0", False),
        (f"call_{1:035x}", False),
        ("functions.get_weather:0", False),
        ("toolcallnumber", False),
        ("1", False),
        ("", False),
        ("123456789", False),
    ],
)
def test_random_ids_are_recognised(identifier: str, *, random: bool) -> None:
    assert is_random_id(identifier) == random


@pytest.mark.parametrize(
    ("identifier", "counted"),
    [
        ("call_0", True),
        ("functions.get_weather:12", True),
        ("1", True),
        ("0000000a", True),
        (f"call_{31:035x}", True),
        ("chatcmpl-tool-9f149c74c42f265b-0", False),
        ("fc_bfb39741-3748-4def-9886-a93fc9c64a90", False),
        ("QhrTFbfPc", False),
        ("call_79382389", False),
        ("toolcallnumber", False),
        ("", False),
    ],
)
def test_ids_that_only_count_are_recognised(identifier: str, *, counted: bool) -> None:
    assert is_counted_id(identifier) == counted


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


async def test_it_is_recognised_with_other_blanks_between_its_parts() -> None:
    """The Agents SDK joins the parts of a streamed answer so."""
    registry = SummaryRegistry(KEYS, 60)
    registry.add(["**Adding**\n\nI add.\n\n**Ending**\n\nI end."], BERT)
    assert await knows(registry, "**Adding**\n\nI add.\n\n\n**Ending**\n\nI end.")
    assert not await knows(registry, "**Adding**\n\nI add.\n\n\n**Ending**\n\nI ended.")


async def test_what_an_earlier_version_shared_is_recognised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore(10_000, 60)
    one, other = SummaryRegistry(KEYS, 60, store), SummaryRegistry(KEYS, 60, store)
    with monkeypatch.context() as earlier:
        earlier.setattr("abridge.memory.summaries.without_blanks", str.encode)
        one.add(["I add."], BERT)
    await one.share()
    assert await knows(other, "I add.")


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


ADDRESSES = [
    "redis://localhost",
    "redis://anna:sesame@[::1]:6380/3",
    "redis://localhost/",
    "redis://localhost/?db=1",
    "rediss://cache.example:6380?ssl_ca_certs=/etc/ca.pem",
    "valkey://cache.example",
    "valkeys://cache.example/1?ssl_cert_reqs=required",
    "unix:///run/redis.sock?db=2",
    "redis-sentinel://one,two:26380/service",
    "redis-sentinel://anna:sesame@10.0.0.1:26379/service/3?sentinel_password=sesame",
    "redis-sentinel://[::1]:26379/service",
    "redis+cluster://one,two:6380",
    "redis+cluster://one,[::1]:6380",
    "redis+cluster://anna:sesame@10.0.0.1/",
]

NO_ADDRESSES = [
    "",
    "memory",
    "http://localhost:6379",
    "valkeyss://localhost",
    "localhost:6379",
    "redis://localhost:many",
    "redis://localhost:sesame:6379",
    "redis://anna:123/sesame@localhost",
    "redis://localhost/sesame",
    "redis://localhost?sesame=1",
    "redis://localhost?decode_responses=sesame",
    "redis://localhost?socket_timeout=100",
    "redis://localhost?connection_class=sesame",
    "redis://localhost?ssl_ca_certs=sesame",
    "redis://localhost?db=sesame",
    "rediss://localhost?ssl_cert_reqs=sesame",
    "redis-sentinel://localhost",
    "redis-sentinel:///service",
    "redis-sentinel://localhost,/service",
    "redis-sentinel://localhost:sesame/service",
    "redis-sentinel://localhost/service/sesame",
    "redis-sentinel://localhost/service?db=sesame",
    "redis-sentinel://anna:123/sesame@localhost",
    "redis-sentinel://[sesame/service",
    "redis+cluster://localhost/sesame",
    "redis+cluster://localhost,",
    "redis+cluster://localhost?db=1",
    "redis+cluster://anna:123/sesame@localhost",
]


@pytest.mark.parametrize("url", ADDRESSES)
async def test_valid_addresses_open(url: str) -> None:
    store = open_shared_store(url, RING, ttl=TTL)
    assert store.size is None
    await store.aclose()


@pytest.mark.parametrize("scheme", BACKENDS)
def test_the_settings_take_the_address_of_each_backend(scheme: str) -> None:
    store = f"{scheme}://localhost"
    assert HistorySettings(store=store).store == store


@pytest.mark.parametrize(
    "url", ["memcached://anna:sesame@localhost", "sesame", "REDIS://localhost"]
)
def test_an_unknown_scheme_is_refused_with_those_that_are_known(url: str) -> None:
    with pytest.raises(
        SettingsError,
        match=r"redis, rediss, redis-sentinel, redis\+cluster, valkey, valkeys, unix$",
    ) as raised:
        open_shared_store(url, RING, ttl=TTL)
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize("url", NO_ADDRESSES)
def test_invalid_addresses_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(
        SettingsError, match=r"^history\.store: must be an address such as"
    ) as raised:
        open_shared_store(url, RING, ttl=TTL)
    assert "sesame" not in str(raised.value)
    assert "sesame" not in repr(raised.value.__cause__)


@pytest.mark.parametrize(
    ("package", "who"),
    [("redis.asyncio", "stores.redis_client"), ("cryptography.exceptions", "cipher")],
)
def test_a_missing_package_is_named(
    package: str, who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, f"abridge.memory.{who}", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SettingsError) as raised:
        open_shared_store("redis://localhost", RING, ttl=TTL)
    name = package.partition(".")[0]
    assert str(raised.value) == (
        f"history.store: needs the package {name}; pip install '.[redis]' in Abridge's repository"
    )


def test_an_installed_package_is_not_missed() -> None:
    with require_extra("redis", "history.store"):
        import redis
    assert redis
