"""One request's dealings with the past: what is put back into it, what is kept of its answer."""

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
"""Who owns what is shown to somebody without a credential."""


@dataclass(slots=True)
class Visit:
    """`whose` is None for a request that belongs to nobody: for it nothing is remembered. `sealer`
    is None where there are no keys that last.
    `crossed`: upstream speaks another API than the client, who never sees its own spelling;
    `carries`: there may be blobs of ours in the request."""

    past: Past
    route: Route
    model: str
    whose: Whose | None
    sealer: Sealer | None = None
    crossed: bool = False
    carries: bool = True
    prefix: Prefix = field(default_factory=Prefix)

    @classmethod
    def begin(cls, past: Past, route: Route, api: str, model: str, scope: Scope) -> Visit:
        told = tags(scope, past.keyring, past.tenant, anonymous=past.settings.anonymous)
        whose = Whose(told, route.upstream.name, model) if told else None
        return cls(past, route, model, whose, past.sealer(told or {}, api, model))

    @property
    def keeps(self) -> bool:
        """Whether anything of this request's answer can be remembered."""
        return self.whose is not None and self.past.store is not None

    @property
    def seals(self) -> bool:
        """Whether anything of this request's answer can be sealed."""
        return self.whose is not None and self.sealer is not None

    async def mend(self, conversation: Conversation, profile: Profile) -> Mended:
        """Make the history whole that upstream is to receive."""
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
        """Take out what Abridge put into a client's conversation, before upstream's is made; what
        it returned sealed is put in its place."""
        mending = self._mending(conversation, profile)
        self._unseal(mending)
        await self._strip(mending)
        return mending.lose()

    def showing(self, *, copied: bool) -> Showing:
        """Follows the answer; `copied`: its summary is copied out of the reasoning."""
        return Showing(self.past.shown, self._owner(), copied=copied, crossed=self.crossed)

    async def keep(self, heard: Sequence[Heard], ended: Ended, display: Display) -> None:
        """Remember what was hidden or replaced in an answer, and all of it where it is wanted back
        whatever its client does."""
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
        """Whether a turn's reasoning is to be remembered."""
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
    """Nobody here has the key."""
    raise damaged(param)
