"""The memory of all routes: their stores and keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from abridge.config.loading import read_secret, require_extra
from abridge.config.setting_types import REDIS_SCHEMES
from abridge.config.settings import Route, Settings
from abridge.config.tables import HistorySettings
from abridge.errors import SettingsError
from abridge.lasting import Lasting
from abridge.memory.keys import Keyring
from abridge.memory.opened_blobs import OpenedBlobs
from abridge.memory.route_memory import RouteMemory, contains_any
from abridge.memory.stores.key_names import KeyNames
from abridge.memory.stores.memory import MemoryStore
from abridge.memory.stores.store import (
    MARK_TTL_FACTOR,
    Backend,
    Store,
    StoreObserver,
    observe_nothing,
)
from abridge.memory.summaries import SummaryRegistry
from abridge.memory.tenants import TenantCallable

SEALING_NEEDLES = (b"reasoning.encrypted_content", b'"store"')
"""Every body that asks for opaque state contains one of these."""

STORE_SETTING = "history.store"

SEAL_KEYS_SETTING = "history.seal_keys_env"


class OpenStores:
    """What the memories of all routes share: the keys, the stores that were opened, the marks of
    summaries, and the opened blobs. It outlasts a change of settings, which cannot change the store
    or the keys of a route. Raises SettingsError for invalid keys."""

    def __init__(self, settings: Settings, observe: StoreObserver) -> None:
        self._observe = observe
        self._stores: dict[tuple[str, int, float], Store] = {}
        self.keyring = _load_keyring(settings.history)
        shared = (route.history for route in settings.routes if route.history.is_shared)
        self.shared = next(map(self.get, shared), None)
        """The first that replicas share, if any."""
        self.summaries = self._create_summaries(settings)
        self.opened = OpenedBlobs()

    def get(self, history: HistorySettings) -> Store | None:
        if history.store == "none":
            return None
        key = history.store, int(history.bytes), history.ttl
        if key not in self._stores:
            self._stores[key] = self._open_store(history)
        return self._stores[key]

    @property
    def size(self) -> int:
        """Bytes in use, summed over the stores that know theirs."""
        return sum(store.size or 0 for store in self._stores.values())

    async def aclose(self) -> None:
        for store in self._stores.values():
            await store.aclose()

    def _create_summaries(self, settings: Settings) -> SummaryRegistry:
        longest = max(settings.routes, key=lambda route: route.history.ttl).history
        return SummaryRegistry(self.keyring, MARK_TTL_FACTOR * longest.ttl, self.shared)

    def _open_store(self, history: HistorySettings) -> Store:
        if history.is_shared:
            return open_shared_store(
                history.store, self.keyring, ttl=history.ttl, observe=self._observe
            )
        return MemoryStore(int(history.bytes), history.ttl, observe=self._observe)


class MemoryRegistry:
    """One `RouteMemory` per route. Raises SettingsError for invalid keys, or no function."""

    def __init__(
        self,
        settings: Settings,
        observe: StoreObserver,
        tenant: TenantCallable | None,
        lasting: Lasting | None = None,
    ) -> None:
        if not (tenant is None or callable(tenant)):
            raise SettingsError("tenant: must be a function of the ASGI scope")
        stores = (lasting or Lasting()).get("stores", partial(OpenStores, settings, observe))
        self.stores, self.keyring = stores, stores.keyring
        self._memories = {
            route.upstream.name: RouteMemory(
                route,
                stores.keyring,
                stores.get(route.history),
                stores.summaries,
                tenant=tenant,
                limit=int(settings.limits.body),
                opened=stores.opened,
            )
            for route in settings.routes
        }
        self._all = tuple(self._memories.values())

    def for_route(self, route: Route) -> RouteMemory:
        return self._memories[route.upstream.name]

    def holds_anything(self) -> bool:
        """See `RouteMemory.holds_anything`."""
        return any(memory.holds_anything() for memory in self._memories.values())

    def may_concern(self, body: bytes, holds_anything: Callable[[], bool]) -> bool:
        """Return whether a request may need changes, or its answer may have to be remembered or
        sealed, by a byte search alone. See `RouteMemory`."""
        for memory in self._all:  # there is mostly one; `any` takes as long again
            if memory.may_need_rewrite(body, holds_anything) or memory.may_need_memory(body):
                return True
        return self.keyring.configured and contains_any(body, SEALING_NEEDLES)


def open_shared_store(
    url: str,
    keys: Keyring,
    *,
    ttl: float,
    namespace: str = "abridge",
    observe: StoreObserver = observe_nothing,
) -> Store:
    """Open the store at the address of a server, sealed with a ring's keys. Raises SettingsError if
    a package is missing or the address is invalid."""
    with require_extra("redis", STORE_SETTING):
        from abridge.memory.cipher import Cipher  # noqa: PLC0415 -- an extra
        from abridge.memory.stores.sealing import ValueSealer  # noqa: PLC0415 -- likewise
    names = KeyNames(namespace)
    open_backend = BACKENDS.get(url.partition("://")[0])
    if open_backend is None:
        raise SettingsError(f"{STORE_SETTING}: {UNKNOWN_SCHEME}")
    try:
        backend = open_backend(url, names, ttl)
    except ValueError as error:
        raise SettingsError(f"{STORE_SETTING}: {error}") from None
    return Store(backend, sealer=ValueSealer(Cipher(keys, use=b"store"), names), observe=observe)


def _open_redis(url: str, names: KeyNames, ttl: float) -> Backend:
    with require_extra("redis", STORE_SETTING):
        from abridge.memory.stores.redis import ClusterBackend, RedisBackend  # noqa: PLC0415
        from abridge.memory.stores.redis_client import RedisConnection  # noqa: PLC0415 -- an extra
    backend = ClusterBackend if url.startswith("redis+cluster:") else RedisBackend
    return backend(RedisConnection(url), names, ttl)


BACKENDS: Mapping[str, Callable[[str, KeyNames, float], Backend]] = dict.fromkeys(
    REDIS_SCHEMES, _open_redis
)
"""Open the backend at an address, by its scheme. They raise ValueError for an invalid address."""

UNKNOWN_SCHEME = (
    f"must be an address such as redis://127.0.0.1:6379/0, with one of: {', '.join(BACKENDS)}"
)
"""The error for any other address, which it does not repeat: it may hold a password."""


def _load_keyring(history: HistorySettings) -> Keyring:
    name = history.seal_keys_env
    if name is None:
        return Keyring.random()
    with require_extra("seal", SEAL_KEYS_SETTING):
        try:
            return Keyring.parse(read_secret(name, SEAL_KEYS_SETTING))
        except ValueError as error:
            raise SettingsError(f"{SEAL_KEYS_SETTING}: {error}") from None
