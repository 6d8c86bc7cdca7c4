"""The memory of one route: whether a request needs it, and whose reasoning it remembers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from time import time
from typing import TYPE_CHECKING, NamedTuple

from starlette.types import Scope

from abridge.apis.json import contains
from abridge.apis.openai import MINT_MARK
from abridge.config.settings import Route
from abridge.config.tables import HistorySettings
from abridge.core.conversation import PrefixDigest, Turn, is_counted_id
from abridge.core.envelope import ENVELOPE_PREFIX
from abridge.memory.keys import Keyring
from abridge.memory.opened_blobs import OpenedBlobs
from abridge.memory.originals import NO_ORIGINAL, Original, is_unique
from abridge.memory.policy import TurnQuery
from abridge.memory.stores.store import Store, StoreQuery
from abridge.memory.summaries import SummaryRegistry
from abridge.memory.tenants import TenantCallable, digester, keyed_digest, tenant_tags
from abridge.providers.catalog import PROFILES, TEXT_FIELDS
from abridge.work import in_turns

if TYPE_CHECKING:
    from abridge.memory.client_envelopes import Sealer

ABRIDGE_PATTERN = re.compile(
    b'"(?:'
    + b"|".join(
        (
            rb'summary_error"',
            rb'reasoning_ref"',
            rb'reasoning"\s{0,20}:\s{0,20}\[',  # only calls that were attributed have such a list
            rb'signature":\s{0,20}""',
            rb'encrypted_index"\s{0,20}:\s{0,20}""',
            rb'hosted_calls"',
            re.escape(ENVELOPE_PREFIX.encode()),
        )
    )
    + b")"
)
"""Every body that holds something Abridge added, other than summaries and ids, contains this."""

MINT_NEEDLE = MINT_MARK.encode()
"""Every body with an id that Abridge made contains this."""

ASSISTANT_NEEDLES = (b'"assistant"', b'"reasoning"', b'_call"')
"""Every body that holds assistant output contains one of these."""

REASONING_NEEDLES = (
    b'"reasoning',
    b'"thinking',
    *(f'"{name}"'.encode() for name in TEXT_FIELDS if not name.startswith("reasoning")),
)
"""Every body with reasoning in a separate field also contains one of these."""

MAX_OPENED_BYTES = 32 << 20

TURN_KEY_BYTES = 32
"""Length of a turn key, in bytes."""

NOWHERE = b"?"
"""Stands in the place of a turn's key where several turns are meant."""

TOOL_CALLS_NEEDLES = (b'"tool_calls"', b'"tool_use"')
"""Every body with a call of one of the client's tools in a message contains one of these."""

TOOLS_NEEDLE = b'"tools"'


def contains_any(body: bytes, needles: Sequence[bytes]) -> bool:
    """Return whether a body contains any of these. Runs for every request."""
    for needle in needles:  # noqa: SIM110 -- half the time of `any`
        if body.find(needle) >= 0:  # `in` raises an exception within, to see if this is a number
            return True
    return False


class TurnPlace(NamedTuple):
    """Where a turn is remembered."""

    keys: list[bytes]  # of its originals, as `turn_keys` returns them
    prefix: bytes  # the digest of what precedes it
    numbered: list[bytes]  # by which it is found whose calls have other ids by now, if it has any


@dataclass(frozen=True)
class ConversationOwner:
    """The owner of a conversation: a tenant, at one upstream and model."""

    keyring: Keyring
    tags: dict[str, bytes]  # the tenant's tag under each key, by key id
    upstream: str
    model: str

    def turn_keys(self, turn: Turn) -> list[bytes]:
        """Return the store keys of the turn's originals, one for each key of the ring."""
        identity = turn.encode_identity()
        return [digest(identity) for digest in self._digesters]

    def numbered_keys(self, numbered: bytes) -> list[bytes]:
        """Return the store keys by which a turn is found whose calls have other ids by now."""
        return [digest(b"numbered" + numbered) for digest in self._digesters]

    def place_of(self, turn: Turn, before: PrefixDigest) -> TurnPlace:
        """Return the place of a turn; `before` is the digest of what precedes it."""
        numbered = before.extended_by([turn]).numbered_digest() if turn.calls else b""
        names = self.numbered_keys(numbered) if numbered else []
        return TurnPlace(self.turn_keys(turn), before.digest(), names)

    @cached_property
    def _digesters(self) -> list[Callable[[bytes], bytes]]:
        """What makes this owner's store keys, one for each key of the ring."""
        names = self.upstream.encode(), self.model.encode(errors="surrogatepass")
        return [
            digester(keyed_digest(key.store, b"place", self.tags[key.id], *names), TURN_KEY_BYTES)
            for key in self.keyring.keys
        ]


class RouteMemory:
    """Remembers and restores reasoning for one route.

    `store` is None if nothing is remembered. `tenant` identifies the caller where the application
    that Abridge is mounted in does so. `limit` bounds the bytes opened from one request's
    envelopes; `opened` are those of all requests.
    """

    def __init__(
        self,
        route: Route,
        keyring: Keyring,
        store: Store | None,
        summaries: SummaryRegistry,
        *,
        tenant: TenantCallable | None = None,
        limit: int = MAX_OPENED_BYTES,
        opened: OpenedBlobs | None = None,
    ) -> None:
        self.settings: HistorySettings = route.history
        self._upstream = route.upstream.name
        self._limit = limit
        self._opened = OpenedBlobs() if opened is None else opened
        self.keyring = keyring
        self.store = store
        self.summaries = summaries
        self.tenant_rule: str | TenantCallable = tenant or route.history.tenant
        self._profile = PROFILES[route.upstream.profile]
        self.restores = store is not None and route.history.restore != "never"
        keeps = route.history.restore == "always" or route.history.keep in ("tool_rounds", "all")
        self.remembers_every_turn = self.restores and keeps
        """True if every answer is remembered, whatever its client may keep of it."""

    def tenant_tags(self, scope: Scope) -> dict[str, bytes] | None:
        """Return the tags of the tenant that sends a request; None if it belongs to nobody."""
        anonymous = self.settings.anonymous
        return tenant_tags(scope, self.keyring, self.tenant_rule, anonymous=anonymous)

    def holds_anything(self) -> bool:
        """True if there may be anything to find for a request: a summary, or an original."""
        size = self.store.size if self.store is not None else 0
        return bool(self.summaries) or size is None or size > 0

    def may_need_rewrite(self, body: bytes, holds_anything: Callable[[], bool]) -> bool:
        """Return whether a request body may need changes, by a byte search alone.

        `holds_anything` is that of this memory or of all; it must be called on the event loop.
        """
        has_answers = contains_any(body, ASSISTANT_NEEDLES)  # found at the beginning of most
        if has_answers and (self.settings.keep != "client" or holds_anything()):
            return True
        if contains(body, ABRIDGE_PATTERN) or body.find(MINT_NEEDLE) >= 0:
            return True
        if not has_answers:
            return False
        if self._profile.returns.required_on_calls and contains_any(body, TOOL_CALLS_NEEDLES):
            return True
        return not self._profile.learns and contains_any(body, REASONING_NEEDLES)

    def may_need_memory(self, body: bytes) -> bool:
        """Return whether the answer to a request may have to be remembered because upstream
        requires its reasoning back, by a byte search alone."""
        restores_calls = self.restores and self._profile.returns.required_on_calls
        return self.remembers_every_turn or (restores_calls and TOOLS_NEEDLE in body)

    def always_remembers(self, turn: Turn) -> bool:
        """Return whether the turn's reasoning is remembered even if its client saw all of it."""
        requires = self._profile.returns.required_on_calls and bool(turn.calls)
        return self.remembers_every_turn or (self.restores and requires)

    def create_sealer(
        self, tenant_tags: Mapping[str, bytes], api: str, model: str, upstream: str | None = None
    ) -> Sealer | None:
        """Create the sealer of one request from a client that speaks `api`, for what goes to this
        upstream, the route's own if it is None. Return None if no keys are configured."""
        if not self.keyring.configured:
            return None
        from abridge.memory.client_envelopes import Sealer  # noqa: PLC0415 -- an extra

        return Sealer(
            self.keyring,
            tenant_tags,
            api=api,
            upstream=self._upstream if upstream is None else upstream,
            model=model,
            now=time(),
            limit=self._limit,
            ttl=self.settings.seal_ttl,
            recent=self._opened,
        )

    def held_keys(self, owner: ConversationOwner | None, turn: Turn) -> Sequence[bytes]:
        """Return the store keys of a turn; none if the store holds nothing for it, not even under
        the numbers of its calls."""
        if owner is None or self.store is None:
            return ()
        keys = owner.turn_keys(turn)
        if any(map(self.store.may_hold, keys)):
            return keys
        return keys if turn.calls and all(is_counted_id(call.id) for call in turn.calls) else ()

    async def recall(
        self, owner: ConversationOwner, queries: Sequence[TurnQuery]
    ) -> list[Original | None]:
        """Look up the originals of turns, written under any key, in order."""
        if self.store is None:
            return [None] * len(queries)
        if not queries:
            self.store.note_miss()
        originals: list[Original | None] = []
        async for batch in in_turns(queries):
            originals += await self._look_up(self.store, owner, batch)
        return originals

    async def _look_up(
        self, store: Store, owner: ConversationOwner, queries: Sequence[TurnQuery]
    ) -> list[Original | None]:
        turns = [(each.keys, each.prefix, is_unique(each.turn)) for each in queries]
        values = await self._recall_turns(store, turns)
        missing = [n for n, each in enumerate(queries) if each.numbered and values[n] is None]
        if missing:
            others = await self._look_up_renamed(store, owner, [queries[n] for n in missing])
            for index, value in zip(missing, others, strict=True):
                values[index] = value
        return [Original.unpack(value) if value is not None else None for value in values]

    async def _recall_turns(
        self, store: Store, turns: Iterable[tuple[Sequence[bytes], bytes, bool]]
    ) -> list[bytes | None]:
        """Look up turns by their keys, each with the digest of what precedes it, and whether it is
        unique."""
        queries = [
            StoreQuery(key, prefix, unique) for keys, prefix, unique in turns for key in keys
        ]
        return self.keyring.first_of_each(await store.recall(queries))

    async def _look_up_renamed(
        self, store: Store, owner: ConversationOwner, queries: Sequence[TurnQuery]
    ) -> list[bytes | None]:
        """Look up turns by the numbers of their calls: under these stands where to find them."""
        names = [name for query in queries for name in owner.numbered_keys(query.numbered)]
        places = self.keyring.first_of_each(await store.get(names))
        known = list(dict.fromkeys(place for place in places if place and place != NOWHERE))
        halves = [(place[:TURN_KEY_BYTES], place[TURN_KEY_BYTES:]) for place in known]
        recalled = await store.recall([StoreQuery(*half, unique=False) for half in halves])
        found = dict(zip(known, recalled, strict=True))
        return [found.get(place or b"") for place in places]

    async def remember(self, place: TurnPlace, original: Original | None) -> None:
        """Remember a turn's original. None: that it had no reasoning, where that of one like it
        would be found for it, or its own for one like it."""
        if self.store is None:
            return
        if original is None:
            turns = [(place.keys, place.prefix, False)]
            original = NO_ORIGINAL if any(await self._recall_turns(self.store, turns)) else None
        if original is not None:
            await self.store.remember(place.keys[0], place.prefix, original.pack())
        await self._note_place(self.store, place)

    async def _note_place(self, store: Store, place: TurnPlace) -> None:
        """Note where a turn is found whose calls have other ids by now; nowhere, if another turn
        differs from it in nothing but those, or nobody can tell."""
        if not place.numbered:
            return
        own = {key + place.prefix for key in place.keys}
        known = await store.get(place.numbered)
        is_alone = not store.is_down and own.issuperset(filter(None, known))
        found_at = place.keys[0] + place.prefix if is_alone else NOWHERE
        await store.put(dict.fromkeys(place.numbered, found_at))
