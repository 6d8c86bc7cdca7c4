"""The memory of all routes, and its keys."""

from __future__ import annotations

from abridge.configure import secret
from abridge.errors import SettingsError
from abridge.extras import needed
from abridge.history.keys import Keyring
from abridge.history.past import Past
from abridge.history.shown import Shown
from abridge.history.stores.memory import Memory
from abridge.history.stores.opening import shared
from abridge.history.stores.store import LONGER, Store, Watch
from abridge.history.tenant import Named
from abridge.settings import History, Route, Settings

ASKING = (b"reasoning.encrypted_content", b'"store"')
"""Every body that asks for opaque state contains one of these."""

SEAL_KEYS = "history.seal_keys_env"


class Pasts:
    """One `RouteMemory` per route. Raise SettingsError for invalid keys."""

    def __init__(self, settings: Settings, observe: Watch, named: Named | None) -> None:
        self._observe = observe
        self._stores: dict[tuple[str, int, float], Store] = {}
        self.keyring = _keyring(settings.history)
        shown = self._shown(settings)
        self._pasts = {
            route.upstream.name: Past(
                route,
                self.keyring,
                self._store(route.history),
                shown,
                named=named,
                limit=int(settings.limits.body),
            )
            for route in settings.routes
        }

    def of(self, route: Route) -> Past:
        return self._pasts[route.upstream.name]

    def concerns(self, body: bytes) -> bool:
        """See `RouteMemory.may_need_rewrite`."""
        return any(past.concerns(body) for past in self._pasts.values())

    def demands(self, body: bytes) -> bool:
        """See `RouteMemory.may_need_memory`."""
        return any(past.demands(body) for past in self._pasts.values())

    def may_seal(self, body: bytes) -> bool:
        """Return whether a request may ask for sealed reasoning in its answer, by a byte search
        alone."""
        return self.keyring.lasting and any(needle in body for needle in ASKING)

    @property
    def size(self) -> int:
        """Bytes in use, summed over the stores that know theirs."""
        return sum(store.size or 0 for store in self._stores.values())

    async def aclose(self) -> None:
        for store in self._stores.values():
            await store.aclose()

    def _shown(self, settings: Settings) -> Shown:
        longest = max(settings.routes, key=lambda route: route.history.ttl).history
        shared = (self._store(route.history) for route in settings.routes if route.history.shared)
        return Shown(self.keyring, LONGER * longest.ttl, next(shared, None))

    def _store(self, history: History) -> Store | None:
        if history.store == "none":
            return None
        which = history.store, int(history.bytes), history.ttl
        if which not in self._stores:
            self._stores[which] = self._open(history)
        return self._stores[which]

    def _open(self, history: History) -> Store:
        if history.shared:
            return shared(history.store, self.keyring, ttl=history.ttl, observe=self._observe)
        return Memory(int(history.bytes), history.ttl, observe=self._observe)


def _keyring(history: History) -> Keyring:
    name = history.seal_keys_env
    if name is None:
        return Keyring.random()
    with needed("seal", SEAL_KEYS):
        try:
            return Keyring.parse(secret(name, SEAL_KEYS))
        except ValueError as error:
            raise SettingsError(f"{SEAL_KEYS}: {error}") from None
