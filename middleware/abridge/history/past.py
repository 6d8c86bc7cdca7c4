"""The memory of one route."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from time import time
from typing import TYPE_CHECKING

from abridge.history.keys import Key, Keyring
from abridge.history.original import Original, is_unique
from abridge.history.policy import Sought
from abridge.history.shown import Shown
from abridge.history.stores.store import Store, Wanted
from abridge.history.tenant import Named, keyed
from abridge.settings import History, Route
from abridge.turn.conversation import Turn
from abridge.wire.envelope import PREFIX
from abridge.wire.mint import OURS
from abridge.wire.profiles import PROFILES

if TYPE_CHECKING:
    from abridge.history.seal import Sealer

LED = re.compile(rb'"reasoning"\s*:\s*\[')
"""A list named "reasoning", as only attributed calls have it: under this name requests have an
object, messages a text and items their type."""

MARKS = (b'"summary_error"', b'"reasoning_ref"', PREFIX.encode(), OURS.encode())
"""Every body that holds something Abridge added, other than summaries, contains one of these."""

ASSISTANT = (b'"assistant"', b'"reasoning"', b'_call"')
"""Every body that holds assistant output contains one of these."""

THOUGHT = (b'"reasoning', b'"thinking')
"""Every body with reasoning in a field of its own also contains one of these."""

MOST_SEALED = 32 << 20

DIGEST = 32
"""Length of a turn key, in bytes."""

CALLS = b'"tool_calls"'
TOOLS = b'"tools"'


@dataclass(slots=True, frozen=True)
class Whose:
    """The owner of a conversation: a tenant, at one upstream and model."""

    tags: dict[str, bytes]  # the tenant's tag under each key, by key id
    upstream: str
    model: str
    _roots: dict[str, bytes] = field(default_factory=dict, compare=False, repr=False)

    def place(self, key: Key, turn: Turn) -> bytes:
        """Return the store key of the turn's originals."""
        root = self._roots.get(key.id) or self._roots.setdefault(key.id, self._root(key))
        return blake2b(turn.identity(), key=root, digest_size=DIGEST).digest()

    def _root(self, key: Key) -> bytes:
        """Derive the key that all of this owner's turn keys are made with."""
        upstream, model = self.upstream.encode(), self.model.encode(errors="surrogatepass")
        return keyed(key.store, b"place", self.tags[key.id], upstream, model)


class Past:
    """Remembers and restores reasoning for one route.

    `store` is None if nothing is remembered. `tenant` identifies the caller where the application
    that Abridge is mounted in does so. `limit` bounds the bytes opened from one request's
    envelopes.
    """

    def __init__(
        self,
        route: Route,
        keyring: Keyring,
        store: Store | None,
        shown: Shown,
        *,
        named: Named | None = None,
        limit: int = MOST_SEALED,
    ) -> None:
        self.settings: History = route.history
        self._upstream = route.upstream.name
        self._limit = limit
        self.keyring = keyring
        self.store = store
        self.shown = shown
        self.tenant: str | Named = named or route.history.tenant
        self._profile = PROFILES[route.upstream.profile]

    def concerns(self, body: bytes) -> bool:
        """Return whether a request body may need changes, by a byte search alone."""
        if any(mark in body for mark in MARKS):
            return True
        if not any(needle in body for needle in ASSISTANT):
            return False
        size = self.store.size if self.store is not None else 0
        if self.shown or size is None or size or self.settings.keep != "client":
            return True
        demands = self._profile.returns.on_calls and CALLS in body
        moves = not self._profile.learns and any(needle in body for needle in THOUGHT)
        return demands or moves or LED.search(body) is not None

    def demands(self, body: bytes) -> bool:
        """Return whether the answer to a request may have to be remembered because upstream
        requires its reasoning back, by a byte search alone."""
        demands = self.restores and self._profile.returns.on_calls
        return self.insists or (demands and TOOLS in body)

    @property
    def insists(self) -> bool:
        """True if every answer is remembered, whatever its client may keep of it."""
        return self.restores and (
            self.settings.restore == "always" or self.settings.keep in ("tool_rounds", "all")
        )

    def wants(self, turn: Turn) -> bool:
        """Return whether the turn's reasoning is remembered even if its client saw all of it."""
        return self.insists or (
            self.restores and self._profile.returns.on_calls and bool(turn.calls)
        )

    @property
    def restores(self) -> bool:
        return self.store is not None and self.settings.restore != "never"

    def sealer(self, tenants: Mapping[str, bytes], api: str, model: str) -> Sealer | None:
        """Create the sealer of one request from a client that speaks `api`. Return None if no keys
        are configured."""
        if not self.keyring.lasting:
            return None
        from abridge.history.seal import Sealer  # noqa: PLC0415 -- an extra

        return Sealer(
            self.keyring,
            tenants,
            api=api,
            upstream=self._upstream,
            model=model,
            now=time(),
            limit=self._limit,
            ttl=self.settings.seal_ttl,
        )

    async def recall(self, whose: Whose, sought: Sequence[Sought]) -> list[Original | None]:
        """Look up the originals of turns, written under any key, in order."""
        if self.store is None or not sought:
            return [None] * len(sought)
        keys = self.keyring.keys
        found = await self.store.recall(
            [
                Wanted(whose.place(key, turn), prefix, is_unique(turn))
                for turn, prefix in sought
                for key in keys
            ]
        )
        each = (found[n : n + len(keys)] for n in range(0, len(found), len(keys)))
        packed = (next((value for value in values if value is not None), None) for values in each)
        return [Original.unpack(value) if value is not None else None for value in packed]

    async def remember(self, whose: Whose, turn: Turn, prefix: bytes, original: Original) -> None:
        if self.store is not None:
            place = whose.place(self.keyring.first, turn)
            await self.store.remember(place, prefix, original.pack())
