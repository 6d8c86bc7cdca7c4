"""What is remembered for every route, and by which keys."""

from __future__ import annotations

from collections.abc import Callable

from abridge.configure import secret
from abridge.errors import SettingsError
from abridge.history.keys import Keyring
from abridge.history.memory import Memory
from abridge.history.past import Past
from abridge.history.shown import Shown
from abridge.history.store import Store
from abridge.history.tenant import Named
from abridge.settings import History, Route, Settings

LONGER = 24
"""A summary is known for so many times as long as an original is kept."""

Observe = Callable[[str, str, float], None]
"""Is told of an operation of a store's, its result, and the seconds it took."""


class Pasts:
    """One for each route. Raises SettingsError for keys that are none."""

    def __init__(self, settings: Settings, observe: Observe, named: Named | None) -> None:
        self._observe = observe
        self._stores: dict[tuple[str, int, float], Store] = {}
        self.keyring = _keyring(settings.history)
        shown = self._shown(settings)
        self._pasts = {
            route.upstream.name: Past(route, self.keyring, self._store(route.history), shown, named)
            for route in settings.routes
        }

    def of(self, route: Route) -> Past:
        return self._pasts[route.upstream.name]

    def concerns(self, body: bytes) -> bool:
        """See `Past.concerns`."""
        return any(past.concerns(body) for past in self._pasts.values())

    def demands(self, body: bytes) -> bool:
        """See `Past.demands`."""
        return any(past.demands(body) for past in self._pasts.values())

    @property
    def size(self) -> int:
        """Bytes in use, of those that are known."""
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
        return Memory(int(history.bytes), history.ttl)


def _keyring(history: History) -> Keyring:
    name = history.seal_keys_env
    if name is None:
        return Keyring.random()
    try:
        return Keyring.parse(secret(name, "history.seal_keys_env"))
    except ImportError:
        raise SettingsError(
            "history.seal_keys_env: needs the extra 'seal': pip install 'asgi-abridge[seal]'"
        ) from None
    except ValueError as error:
        raise SettingsError(f"history.seal_keys_env: {error}") from None
