"""Stored responses and conversations of one tenant, and the items they are made of.

An item is stored once, under its id, whichever responses and conversations it belongs to; each of
these is stored as its fields other than items, and the ids of those. Of a response that upstream
stores itself, only what Abridge added to it is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeAlias

from starlette.types import Scope

from abridge.apis.json import dumps, loads_exact, string
from abridge.apis.openai import derived_id, is_minted
from abridge.core.conversation import Json
from abridge.errors import RequestError
from abridge.memory.keys import Key, Keyring
from abridge.memory.route_memory import RouteMemory
from abridge.memory.stores.store import Store
from abridge.memory.tenants import keyed_digest
from abridge.work import LIGHT_WORK, Work, in_turns

RecordKind: TypeAlias = Literal[
    "response",
    "conversation",
    "item",
    "made",
    "owner",
    "compaction",
    "events",
    "lease",
    "stop",
]

RecordName: TypeAlias = tuple[RecordKind, str]

UNFINISHED = ("queued", "in_progress")
"""Statuses of a background response that still runs."""

NOT_STORED = "The store cannot be reached, so it may not have been stored."

REASONING_ID_PREFIX = "rs_"
"""Prefix of the ids of reasoning items, whose lifetime is not extended by use."""


@dataclass(slots=True, frozen=True)
class LocalRecord:
    """A response stored locally, as shown to its client. Field names are the stored JSON keys."""

    upstream: str
    response: Json  # without its output
    basis: list[str]  # ids of all input items
    output: list[str]  # ids of the output items

    @property
    def continues_upstream(self) -> str:
        """The id of a response of upstream's own that it continues; empty if there is none."""
        previous = string(self.response.get("previous_response_id"))
        return "" if is_minted(previous) else previous


@dataclass(slots=True, frozen=True)
class UpstreamRecord:
    """Abridge's additions to a response stored upstream. Field names are the stored JSON keys."""

    upstream: str
    raw: bool  # its reasoning was shown
    fields: Json = field(default_factory=dict)  # top-level fields as the client was shown them
    made: Json = field(default_factory=dict)  # what its reasoning items show, by item id


@dataclass(slots=True, frozen=True)
class ConversationRecord:
    """A conversation. Field names are the stored JSON keys."""

    created_at: int
    metadata: Json
    items: list[str]  # their ids


class InputItems:
    """The input items that an answer is made from, by id, without duplicates."""

    def __init__(self, key: bytes) -> None:
        """`key` is what ids of new items are derived with."""
        self.ids: list[str] = []
        self.new: dict[str, bytes] = {}
        self._key = key
        self._seen: set[str] = set()
        self._occurrences: Counter[bytes] = Counter()

    def stored(self) -> InputItems:
        """Return the same items as such that are stored."""
        items = InputItems(self._key)
        items.ids = self.ids
        return items

    def add_known(self, item_id: str) -> bool:
        """Append an item stored under this id. Return False if it is already in the list."""
        if item_id in self._seen:
            return False
        self._seen.add(item_id)
        self.ids.append(item_id)
        return True

    def add(self, prefix: str, item: bytes) -> None:
        """Append an item that may be new, under a derived id. The same item gets the same id each
        time its conversation is sent, so a client that resends everything adds only what is new."""
        while not self.add_known(item_id := self._derive_id(prefix, item)):
            pass
        self.new[item_id] = item

    def _derive_id(self, prefix: str, item: bytes) -> str:
        occurrence = self._occurrences[item].to_bytes(8, "big")
        self._occurrences[item] += 1
        return derived_id(prefix, keyed_digest(self._key, occurrence, item))


class ResponseRepository:
    """The stored responses of one tenant, identified by its tag under each key.

    What could not be saved raises RequestError: a client would be told of what is not there. Notes
    and lifetimes are written as far as the store can be reached.
    """

    def __init__(self, store: Store, keyring: Keyring, tags: Mapping[str, bytes]) -> None:
        self._store = store
        self._keyring = keyring
        self._tags = tags
        self._was_down = False

    @classmethod
    def for_tenant(
        cls, memory: RouteMemory, tags: Mapping[str, bytes] | None
    ) -> ResponseRepository | None:
        """Return None if there is no store or no tenant."""
        if memory.store is None or tags is None:
            return None
        return cls(memory.store, memory.keyring, tags)

    def create_input_items(self) -> InputItems:
        key = self._keyring.primary
        return InputItems(keyed_digest(key.store, b"basis", self._tags[key.id]))

    async def find(self, *response_ids: str) -> list[LocalRecord | UpstreamRecord | None]:
        values = await self._get("response", response_ids)
        return [await parse_response(value) for value in values]

    async def get_items(self, item_ids: Sequence[str]) -> list[bytes | None]:
        return await self._get("item", item_ids)

    async def find_items(self, item_ids: Sequence[str]) -> dict[str, bytes]:
        """Return those of the items that are stored, by id."""
        found = zip(item_ids, await self.get_items(item_ids), strict=True)
        return {name: item for name, item in found if item is not None}

    async def load_items(
        self, item_ids: Sequence[str], error: RequestError
    ) -> list[tuple[str, Json]]:
        """Return items, each with its id, without reasoning that has expired. Raises `error` if
        another one is gone."""
        found = await self.find_items(item_ids)
        if any(name not in found and not is_reasoning_id(name) for name in item_ids):
            raise lookup_error(error, self)
        names = [name for name in item_ids if name in found]
        whole = b"[%b]" % b",".join([found[name] for name in names])
        items = await Work.on(whole).run(loads_exact, whole)
        return list(zip(names, items, strict=True))

    async def refresh(self, items: Mapping[str, bytes]) -> None:
        """Restart the lifetime of these items, as their conversation continues. Reasoning items are
        left to expire."""
        lasting = {name: item for name, item in items.items() if not is_reasoning_id(name)}
        await self._put(_item_records(lasting))

    async def find_showing(self, items: Sequence[str]) -> list[str]:
        """Return, for each upstream item, the id of the response in which it was shown with
        something that Abridge made; empty if there is none, or more than one: some upstreams reuse
        ids."""
        return [value.decode() if value else "" for value in await self._get("made", items)]

    async def find_owners(self, ids: Sequence[str]) -> list[str]:
        """Return, for each id of a response or an item, the upstream that made it for the tenant;
        empty if that is not known."""
        return [value.decode() if value else "" for value in await self._get("owner", ids)]

    async def note_owner(self, ids: Iterable[str], upstream: str) -> None:
        """Note that an upstream made these responses and items for the tenant, or start the
        lifetime of that note again."""
        await self._put({("owner", name): upstream.encode() for name in ids})

    async def save_items(self, items: Mapping[str, bytes]) -> None:
        await self._save(_item_records(items))

    async def save_local(
        self,
        response_id: str,
        response: LocalRecord,
        items: Mapping[str, bytes],
        work: Work = LIGHT_WORK,
    ) -> None:
        """Store a response; `work` is that on the request, much of which it repeats."""
        packed = await work.run(_packed, response)
        await self._save({**_item_records(items), ("response", response_id): packed})

    async def save_upstream(self, response_id: str, response: UpstreamRecord) -> None:
        item_ids = list(response.made)
        shown_before = zip(item_ids, await self._get("made", item_ids), strict=True)
        encoded_id = response_id.encode()
        values: dict[RecordName, bytes] = {
            ("made", name): encoded_id if before in (None, encoded_id) else b""
            for name, before in shown_before
        }
        await self._save({**values, ("response", response_id): _packed(response)})

    async def save_compaction(self, name: str, content: bytes) -> None:
        await self._save({("compaction", name): content})

    async def find_compaction(self, name: str) -> bytes | None:
        """Return a compaction, and restart its lifetime, as its conversation continues."""
        (content,) = await self._get("compaction", [name])
        if content is not None:
            await self.put_values({("compaction", name): content})
        return content

    @property
    def is_down(self) -> bool:
        """Whether the store was out of reach when it was read, here or for whoever read it last."""
        return self._was_down or self._store.is_down

    @property
    def tenant(self) -> str:
        """A name of the tenant that tells nothing of it."""
        return self._tags[self._keyring.primary.id].hex()

    async def get_values(self, *names: RecordName) -> list[bytes | None]:
        """Look up values of several kinds at once: all of them, or none if the store is down."""
        keys = self._keyring.keys
        found = await self._store.get(
            [self._store_key(name, key) for name in names for key in keys]
        )
        self._was_down |= self._store.is_down
        return self._keyring.first_of_each(found)

    async def put_values(
        self, values: Mapping[RecordName, bytes], ttl: float | None = None
    ) -> bool:
        """Store values, for `ttl` seconds where that is less than the store's own time. Return
        whether the store could be reached.

        They are written under every key: replicas may have these in another order, and each finds
        first what stands under its own first.
        """
        return await self._store.put(
            {
                self._store_key(name, key): value
                for name, value in values.items()
                for key in self._keyring.keys
            },
            ttl,
        )

    async def find_conversation(self, conversation_id: str) -> ConversationRecord | None:
        (value,) = await self._get("conversation", [conversation_id])
        return None if value is None else ConversationRecord(**loads_exact(value))

    async def save_conversation(
        self, conversation_id: str, record: ConversationRecord, items: Mapping[str, bytes]
    ) -> None:
        """Store a conversation, with those of its items that are new."""
        packed = _packed(record)
        await self._save({**_item_records(items), ("conversation", conversation_id): packed})

    async def extend_conversation(
        self, conversation_id: str, item_ids: Sequence[str], items: Mapping[str, bytes]
    ) -> ConversationRecord | None:
        """Append items to a conversation as it is now, which may have grown since it was read.
        Return None if it is gone."""
        record = await self.find_conversation(conversation_id)
        if record is None and self.is_down:
            raise store_unavailable(NOT_STORED)
        if record is not None:
            record = replace(record, items=list(dict.fromkeys([*record.items, *item_ids])))
            await self.save_conversation(conversation_id, record, items)
        return record

    async def delete(self, record_id: str, kind: RecordKind = "response") -> None:
        """Delete a response or a conversation, not its items: they may belong to others too, and
        expire by themselves. Raises RequestError if the store cannot be reached."""
        keys = [self._store_key((kind, record_id), key) for key in self._keyring.keys]
        if not await self._store.delete(keys):
            raise store_unavailable("The store cannot be reached, so it may not have been deleted.")

    async def _get(self, kind: RecordKind, ids: Sequence[str]) -> list[bytes | None]:
        """Look up values written under any key."""
        values: list[bytes | None] = []
        async for batch in in_turns(ids):
            values += await self.get_values(*[(kind, name) for name in batch])
        return values

    async def _save(self, values: Mapping[RecordName, bytes]) -> None:
        if not await self._put(values):
            raise store_unavailable(NOT_STORED)

    async def _put(self, values: Mapping[RecordName, bytes]) -> bool:
        async for batch in in_turns(values.items()):
            if not await self.put_values(dict(batch)):
                return False
        return True

    def _store_key(self, name: RecordName, key: Key) -> bytes:
        kind, record_id = (part.encode(errors="surrogatepass") for part in name)
        return keyed_digest(key.store, b"responses", kind, self._tags[key.id], record_id)


def tenant_repositories(
    memories: Iterable[RouteMemory], scope: Scope
) -> Iterator[ResponseRepository]:
    """Yield a tenant's repositories, one for every distinct store and tenant rule."""
    distinct = {
        (memory.store, memory.tenant_rule, memory.settings.anonymous): memory for memory in memories
    }
    for memory in distinct.values():
        repository = ResponseRepository.for_tenant(memory, memory.tenant_tags(scope))
        if repository is not None:
            yield repository


def lookup_error(error: RequestError, *repositories: ResponseRepository | None) -> RequestError:
    """Return the error for what these were just searched for in vain: while a store is down nobody
    knows what it holds, and the client is to try again."""
    if any(one is not None and one.is_down for one in repositories):
        return store_unavailable("The store cannot be reached.")
    return error


def store_unavailable(message: str) -> RequestError:
    return RequestError(message, status=503, code="store_unavailable")


def is_reasoning_id(item_id: str) -> bool:
    return item_id.startswith(REASONING_ID_PREFIX)


def _packed(record: LocalRecord | UpstreamRecord | ConversationRecord) -> bytes:
    return dumps({entry.name: getattr(record, entry.name) for entry in fields(record)})


def _item_records(items: Mapping[str, bytes]) -> dict[RecordName, bytes]:
    return {("item", name): item for name, item in items.items()}


async def parse_response(value: bytes | None) -> LocalRecord | UpstreamRecord | None:
    if value is None:
        return None
    fields = await Work.on(value).run(loads_exact, value)
    return LocalRecord(**fields) if "response" in fields else UpstreamRecord(**fields)
