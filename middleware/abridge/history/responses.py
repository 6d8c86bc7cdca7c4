"""Stored responses of one tenant, and the items they are made of.

An item is stored once, under its id, whichever responses it belongs to; a response is stored as its
fields other than items, and the ids of those. Of a response that upstream stores itself, only what
Abridge added to it is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from abridge.history.keys import Key, Keyring
from abridge.history.past import Past
from abridge.history.stores.store import Store
from abridge.history.tenant import keyed
from abridge.wire.codec import Json, dumps, loads_exactly
from abridge.wire.mint import named

Kind: TypeAlias = Literal["response", "item", "made"]
_Name: TypeAlias = tuple[Kind, str]

REASONING = "rs_"
"""Prefix of the ids of reasoning items, whose lifetime is not extended by use."""


@dataclass(slots=True, frozen=True)
class Stored:
    """A response stored locally, as shown to its client. Field names are the stored JSON keys."""

    upstream: str
    response: Json  # without its output
    basis: list[str]  # ids of all input items
    output: list[str]  # ids of the output items


@dataclass(slots=True, frozen=True)
class Elsewhere:
    """Abridge's additions to a response stored upstream. Field names are the stored JSON keys."""

    upstream: str
    raw: bool  # its reasoning was shown
    fields: Json = field(default_factory=dict)  # top-level fields as the client was shown them
    made: Json = field(default_factory=dict)  # what its reasoning items show, by item id


class Basis:
    """The input items that an answer is made from, by id, without duplicates."""

    def __init__(self, key: bytes) -> None:
        """`key` is what ids of new items are derived with."""
        self.ids: list[str] = []
        self.new: dict[str, bytes] = {}
        self._key = key
        self._seen: set[str] = set()
        self._times: Counter[bytes] = Counter()

    def know(self, identity: str) -> bool:
        """Append an item stored under this id. Return False if it is already in the list."""
        if identity in self._seen:
            return False
        self._seen.add(identity)
        self.ids.append(identity)
        return True

    def add(self, prefix: str, item: bytes) -> None:
        """Append an item that may be new, under a derived id. The same item gets the same id each
        time its conversation is sent, so a client that resends everything adds only what is new."""
        while not self.know(identity := self._name(prefix, item)):
            pass
        self.new[identity] = item

    def _name(self, prefix: str, item: bytes) -> str:
        time = self._times[item].to_bytes(8, "big")
        self._times[item] += 1
        return named(prefix, keyed(self._key, time, item))


class Responses:
    """The stored responses of one tenant, identified by its tag under each key."""

    def __init__(self, store: Store, keyring: Keyring, tags: Mapping[str, bytes]) -> None:
        self._store = store
        self._keyring = keyring
        self._tags = tags

    @classmethod
    def of(cls, past: Past, tags: Mapping[str, bytes] | None) -> Responses | None:
        """Return None if there is no store or no tenant."""
        if past.store is None or tags is None:
            return None
        return cls(past.store, past.keyring, tags)

    def basis(self) -> Basis:
        key = self._keyring.first
        return Basis(keyed(key.store, b"basis", self._tags[key.id]))

    async def find(self, *identities: str) -> list[Stored | Elsewhere | None]:
        return [_unpack(value) for value in await self._get("response", identities)]

    async def items(self, identities: Sequence[str]) -> list[bytes | None]:
        return await self._get("item", identities)

    async def refresh(self, items: Mapping[str, bytes]) -> None:
        """Restart the lifetime of these items, as their conversation continues. Reasoning items are
        left to expire."""
        kept = {name: item for name, item in items.items() if not is_reasoning(name)}
        await self._put(_items(kept))

    async def shown_in(self, items: Sequence[str]) -> list[str]:
        """Return, for each upstream item, the id of the response in which it was shown with
        something that Abridge made; empty if there is none, or more than one: some upstreams reuse
        ids."""
        return [value.decode() if value else "" for value in await self._get("made", items)]

    async def keep(self, identity: str, stored: Stored, items: Mapping[str, bytes]) -> None:
        await self._put({**_items(items), ("response", identity): dumps(asdict(stored))})

    async def note(self, identity: str, elsewhere: Elsewhere) -> None:
        names = list(elsewhere.made)
        known = zip(names, await self._get("made", names), strict=True)
        shown = identity.encode()
        values: dict[_Name, bytes] = {
            ("made", name): shown if before in (None, shown) else b"" for name, before in known
        }
        await self._put({**values, ("response", identity): dumps(asdict(elsewhere))})

    async def forget(self, identity: str) -> None:
        """Delete the response, not its items: they may belong to others too, and expire by
        themselves."""
        keys = self._keyring.keys
        await self._store.delete([self._place(("response", identity), key) for key in keys])

    async def _get(self, kind: Kind, identities: Sequence[str]) -> list[bytes | None]:
        """Look up values written under any key."""
        keys = self._keyring.keys
        places = [self._place((kind, name), key) for name in identities for key in keys]
        found = await self._store.get(places) if places else []
        each = (found[n : n + len(keys)] for n in range(0, len(found), len(keys)))
        return [next((value for value in values if value is not None), None) for values in each]

    async def _put(self, values: Mapping[_Name, bytes]) -> None:
        key = self._keyring.first
        if values:
            await self._store.put({self._place(name, key): value for name, value in values.items()})

    def _place(self, name: _Name, key: Key) -> bytes:
        kind, identity = (part.encode(errors="surrogatepass") for part in name)
        return keyed(key.store, b"responses", kind, self._tags[key.id], identity)


def is_reasoning(identity: str) -> bool:
    return identity.startswith(REASONING)


def _items(items: Mapping[str, bytes]) -> dict[_Name, bytes]:
    return {("item", name): item for name, item in items.items()}


def _unpack(value: bytes | None) -> Stored | Elsewhere | None:
    if value is None:
        return None
    fields = loads_exactly(value)
    return Stored(**fields) if "response" in fields else Elsewhere(**fields)
