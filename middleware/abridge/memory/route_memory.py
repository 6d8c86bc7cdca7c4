"""The memory of one route: whether a request needs it, and whose reasoning it remembers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import time
from typing import TYPE_CHECKING

from starlette.types import Scope

from abridge.apis.json import contains
from abridge.apis.openai import MINT_MARK
from abridge.config.settings import Route
from abridge.config.tables import HistorySettings
from abridge.core.conversation import PrefixDigest, Turn
from abridge.core.envelope import ENVELOPE_PREFIX
from abridge.memory.keys import Key, Keyring
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


@dataclass(slots=True, frozen=True)
class ConversationOwner:
    """The owner of a conversation: a tenant, at one upstream and model."""

    tags: dict[str, bytes]  # the tenant's tag under each key, by key id
    upstream: str
    model: str
    _digesters: dict[str, Callable[[bytes], bytes]] = field(
        default_factory=dict, compare=False, repr=False
    )
    """What makes this owner's store keys, by key id."""

    def turn_key(self, key: Key, turn: Turn) -> bytes:
        """Return the store key of the turn's originals."""
        return self._digest(key, turn.encode_identity())

    def numbered_key(self, key: Key, numbered: bytes) -> bytes:
        """Return the store key by which a turn is found whose calls have other ids by now."""
        return self._digest(key, b"numbered" + numbered)

    def _digest(self, key: Key, name: bytes) -> bytes:
        digest = self._digesters.get(key.id)
        if digest is None:
            upstream, model = self.upstream.encode(), self.model.encode(errors="surrogatepass")
            owner_key = keyed_digest(key.store, b"place", self.tags[key.id], upstream, model)
            digest = self._digesters[key.id] = digester(owner_key, TURN_KEY_BYTES)
        return digest(name)


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

    async def recall(
        self, owner: ConversationOwner, queries: Sequence[TurnQuery]
    ) -> list[Original | None]:
        """Look up the originals of turns, written under any key, in order."""
        if self.store is None:
            return [None] * len(queries)
        originals: list[Original | None] = []
        async for batch in in_turns(queries):
            originals += await self._look_up(self.store, owner, batch)
        return originals

    async def _look_up(
        self, store: Store, owner: ConversationOwner, queries: Sequence[TurnQuery]
    ) -> list[Original | None]:
        turns = [(each.turn, each.prefix, is_unique(each.turn)) for each in queries]
        values = await self._recall_turns(store, owner, turns)
        for look_up, digests in (
            (self._look_up_renamed, [query.numbered for query in queries]),
            (self._look_up_former, [query.former for query in queries]),
        ):
            missing = [n for n, digest in enumerate(digests) if digest and values[n] is None]
            if missing:
                others = await look_up(store, owner, [queries[index] for index in missing])
                for index, value in zip(missing, others, strict=True):
                    values[index] = value
        return [Original.unpack(value) if value is not None else None for value in values]

    async def _recall_turns(
        self, store: Store, owner: ConversationOwner, turns: Sequence[tuple[Turn, bytes, bool]]
    ) -> list[bytes | None]:
        """Look up turns, each with the digest of what precedes it, and whether it is unique."""
        named = [(key, *turn) for turn in turns for key in self.keyring.keys]
        queries = [
            StoreQuery(owner.turn_key(key, turn), prefix, unique)
            for key, turn, prefix, unique in named
        ]
        return self.keyring.first_of_each(await store.recall(queries))

    async def _look_up_renamed(
        self, store: Store, owner: ConversationOwner, queries: Sequence[TurnQuery]
    ) -> list[bytes | None]:
        """Look up turns by the numbers of their calls: under these stands where to find them."""
        numbers = [query.numbered for query in queries]
        names = [owner.numbered_key(key, each) for each in numbers for key in self.keyring.keys]
        places = self.keyring.first_of_each(await store.get(names))
        known = list(dict.fromkeys(place for place in places if place and place != NOWHERE))
        halves = [(place[:TURN_KEY_BYTES], place[TURN_KEY_BYTES:]) for place in known]
        recalled = await store.recall([StoreQuery(*half, unique=False) for half in halves])
        found = dict(zip(known, recalled, strict=True))
        return [found.get(place or b"") for place in places]

    async def _look_up_former(
        self, store: Store, owner: ConversationOwner, queries: Sequence[TurnQuery]
    ) -> list[bytes | None]:
        """Look up turns as earlier versions told them: what those remembered."""
        turns = [(each.turn.former or each.turn, each.former, False) for each in queries]
        return await self._recall_turns(store, owner, turns)

    async def remember(
        self, owner: ConversationOwner, turn: Turn, before: PrefixDigest, original: Original
    ) -> None:
        """Remember a turn's original; `before` is the digest of what precedes the turn."""
        if self.store is None:
            return
        key, prefix = self.keyring.primary, before.digest()
        turn_key = owner.turn_key(key, turn)
        await self.store.remember(turn_key, prefix, original.pack())
        await self._note_place(self.store, owner, turn, before)

    async def leave_trace(self, owner: ConversationOwner, turn: Turn, before: PrefixDigest) -> None:
        """Remember that a turn had no reasoning, where that of one like it would be found for it,
        or its own for one like it."""
        if self.store is None or not self.restores:
            return
        prefix = before.digest()
        if any(await self._recall_turns(self.store, owner, [(turn, prefix, False)])):
            turn_key = owner.turn_key(self.keyring.primary, turn)
            await self.store.remember(turn_key, prefix, NO_ORIGINAL.pack())
        await self._note_place(self.store, owner, turn, before)

    async def _note_place(
        self, store: Store, owner: ConversationOwner, turn: Turn, before: PrefixDigest
    ) -> None:
        """Note where a turn is found whose calls have other ids by now; nowhere, if another turn
        differs from it in nothing but those."""
        if not turn.calls:
            return
        key, numbered = self.keyring.primary, before.extended_by([turn]).numbered_digest()
        numbered_key = owner.numbered_key(key, numbered)
        place = owner.turn_key(key, turn) + before.digest()
        (known,) = await store.get([numbered_key])
        await store.put({numbered_key: place if known in (None, place) else NOWHERE})
