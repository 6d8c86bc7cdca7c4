"""Stores to test, and time that passes for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from secrets import token_hex

from abridge.memory.cipher import Cipher
from abridge.memory.keys import Key, Keyring
from abridge.memory.registry import open_shared_store
from abridge.memory.stores.key_names import KeyNames
from abridge.memory.stores.memory import MemoryStore
from abridge.memory.stores.redis import RedisBackend
from abridge.memory.stores.redis_client import RedisConnection
from abridge.memory.stores.sealing import ValueSealer
from abridge.memory.stores.store import Store, StoreObserver, StoreQuery, observe_nothing
from tests.support.redis_server import Cluster, Server

TTL = 3600.0
RING = Keyring((Key.derive("one", bytes(32)),))


@dataclass
class Observed:
    """The operations of a store that were observed."""

    operations: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, operation: str, result: str, seconds: float) -> None:
        assert seconds >= 0
        self.operations.append((operation, result))

    @property
    def last(self) -> tuple[str, str]:
        return self.operations[-1]


@dataclass
class Case:
    """A store; `later` lets that many seconds pass."""

    store: Store
    later: Callable[[float], None]
    observed: Observed

    async def recall(self, turn_key: bytes, prefix: bytes, *, unique: bool = False) -> bytes | None:
        (found,) = await self.store.recall([StoreQuery(turn_key, prefix, unique)])
        return found

    async def get(self, key: bytes) -> bytes | None:
        (found,) = await self.store.get([key])
        return found


class Time:
    """A clock that a test advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def in_memory(size: int = 1 << 20) -> Case:
    time, observed = Time(), Observed()
    return Case(MemoryStore(size, TTL, time, observe=observed), time.advance, observed)


def in_redis(server: Server | Cluster, ring: Keyring = RING) -> Case:
    """In a namespace of its own."""
    namespace, observed = token_hex(8), Observed()
    store = open_shared_store(server.url, ring, ttl=TTL, namespace=namespace, observe=observed)
    return Case(store, lambda seconds: server.pass_time(seconds, namespace), observed)


def redis_store(
    connection: RedisConnection,
    cipher: Cipher | None = None,
    observe: StoreObserver = observe_nothing,
) -> Store:
    """A store over a connection that a test has made, or with a cipher of its own."""
    names = KeyNames()
    sealer = ValueSealer(cipher or Cipher(RING), names)
    return Store(RedisBackend(connection, names, TTL), sealer=sealer, observe=observe)
