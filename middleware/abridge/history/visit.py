"""The memory of one request: restore reasoning in it, remember its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from starlette.types import Scope

from abridge.history.original import Original
from abridge.history.past import Past, Whose
from abridge.history.policy import Mended, Mending, Rule
from abridge.history.showing import Showing
from abridge.history.shown import Owner
from abridge.history.tenant import tags
from abridge.settings import Route
from abridge.turn.conversation import Heard, Prefix, Turn
from abridge.turn.events import NO_SUMMARY, Ended
from abridge.wire.api import Conversation
from abridge.wire.display import Display
from abridge.wire.envelope import Envelope, damaged
from abridge.wire.profile import Profile

if TYPE_CHECKING:
    from abridge.history.seal import Sealer

ANYONE = b"anyone"
"""Owner tag of what is shown to a request without a tenant."""


@dataclass(slots=True)
class Visit:
    """One request's use of its route's memory."""

    past: Past
    route: Route
    model: str
    whose: Whose | None
    """None for a request that belongs to nobody: nothing is remembered for it."""
    sealer: Sealer | None = None  # None if no keys are configured
    crossed: bool = False
    """Upstream speaks another API than the client, which never sees upstream's format."""
    carries: bool = True  # the request may hold Abridge's blobs
    prefix: Prefix = field(default_factory=Prefix)

    @classmethod
    def begin(cls, past: Past, route: Route, api: str, model: str, scope: Scope) -> Visit:
        told = tags(scope, past.keyring, past.tenant, anonymous=past.settings.anonymous)
        whose = Whose(told, route.upstream.name, model) if told else None
        return cls(past, route, model, whose, past.sealer(told or {}, api, model))

    @property
    def keeps(self) -> bool:
        """True if anything of this request's answer can be remembered."""
        return self.whose is not None and self.past.store is not None

    @property
    def seals(self) -> bool:
        """True if anything of this request's answer can be sealed."""
        return self.whose is not None and self.sealer is not None

    async def mend(self, conversation: Conversation, profile: Profile) -> Mended:
        """Rewrite the history into what upstream receives."""
        mending = self._mending(conversation, profile)
        if not self.crossed:
            self._unseal(mending)
        await self._strip(mending)
        sought = mending.sought()
        self.prefix = mending.prefix
        if self.whose is None or not self.past.restores:
            return mending.restore([None] * len(sought))
        return mending.restore(await self.past.recall(self.whose, sought))

    async def strip(self, conversation: Conversation, profile: Profile) -> Mended:
        """Remove what Abridge added to a client's history, before it is translated for upstream,
        and replace envelopes by their content."""
        mending = self._mending(conversation, profile)
        self._unseal(mending)
        await self._strip(mending)
        return mending.lose()

    def showing(self, *, copied: bool) -> Showing:
        """Create a tracker for the answer. `copied`: its summary is copied from the reasoning."""
        return Showing(self.past.shown, self._owner(), copied=copied, crossed=self.crossed)

    async def keep(self, heard: Sequence[Heard], ended: Ended, display: Display) -> None:
        """Remember the reasoning that was hidden or replaced in an answer, and all reasoning that
        has to come back whatever the client does."""
        await self.past.shown.share()
        if self.whose is None:
            return
        altered = self.crossed or not display.raw
        remembering = [
            self.past.remember(
                self.whose,
                said.turn,
                self.prefix.after(said.before).digest(),
                Original.of(said.original, said.raw, altered=altered),
            )
            for said in heard
            if self._is_due(said, ended, altered=altered)
        ]
        await asyncio.gather(*remembering)

    def _is_due(self, said: Heard, ended: Ended, *, altered: bool) -> bool:
        """Return whether a turn's reasoning has to be remembered."""
        parts = any(ended.summaries.get(key, NO_SUMMARY).parts for key in said.keys)
        replaced = (parts or altered) and (self.crossed or bool(said.raw.strip()))
        return replaced or self.past.wants(said.turn)

    def _unseal(self, mending: Mending) -> None:
        sealer = self.sealer
        if not self.carries:
            return
        if sealer is None:
            mending.unseal(_refuse)
            return
        mending.unseal(sealer.open)
        if sealer.opened:
            mending.mended.restored["sealed"] += sealer.opened
        mending.mended.dropped.update(sealer.dropped)
        sealer.let_go()

    async def _strip(self, mending: Mending) -> None:
        shown, owner = self.past.shown, self._owner()
        unknown = mending.strip(lambda text: shown.knows(text, owner))
        mending.strip_also(await shown.known_to_others(unknown, owner))

    def _mending(self, conversation: Conversation, profile: Profile) -> Mending:
        settings = self.past.settings
        rule = Rule(settings.keep, settings.restore, profile, crossed=self.crossed)
        return Mending(conversation, rule)

    def _owner(self) -> Owner:
        if self.whose is not None:
            return self.whose.tags
        return dict.fromkeys((key.id for key in self.past.keyring.keys), ANYONE)


def _refuse(_blob: str, param: str, _turn: Turn, _item: str) -> Envelope | None:
    """Refuse every blob: there is no key to open it with."""
    raise damaged(param)
