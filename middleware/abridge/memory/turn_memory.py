"""The memory of one request: restore reasoning in it, remember its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

from starlette.types import Scope

from abridge.apis.display import Display
from abridge.apis.history import History
from abridge.apis.opaque_state import find_states
from abridge.apis.params import damaged_error
from abridge.apis.shapes import is_withheld
from abridge.config.exposure import reasons_in_summaries
from abridge.config.settings import Route
from abridge.core.conversation import Json, PrefixDigest, RecordedTurn
from abridge.core.envelope import Envelope
from abridge.core.events import NO_SUMMARY, ResponseEnded
from abridge.memory.originals import Original
from abridge.memory.policy import HistoryChanges, HistoryPolicy, HistoryRewriter
from abridge.memory.route_memory import ConversationOwner, RouteMemory, TurnPlace
from abridge.memory.summaries import OwnerTags, SummaryTracker
from abridge.providers.profile import Profile
from abridge.work import LIGHT_WORK, Work, in_turns

NO_TENANT_TAG = b"anyone"
"""Owner tag of what is shown to any request without a tenant."""


ReadHistory: TypeAlias = Callable[[], History]


RewrittenHistory: TypeAlias = tuple[HistoryChanges, Json | None]
"""The changes made to a history, and the request body with it; None if it is the same as before."""


class TurnMemory:
    """One request's use of its route's memory. `is_read` says whether its answer is, so that it can
    be remembered; `work` is that on the request's history."""

    def __init__(
        self,
        route_memory: RouteMemory,
        route: Route,
        api: str,
        model: str,
        scope: Scope,
        *,
        translated: bool,
        requires_reasoning: bool,
        is_read: bool,
        work: Work = LIGHT_WORK,
    ) -> None:
        self.route_memory, self.route, self.model = route_memory, route, model
        tags = route_memory.tenant_tags(scope)
        ring, upstream = route_memory.keyring, route.upstream.name
        self.owner = ConversationOwner(ring, tags, upstream, model) if tags else None
        """None for a request that belongs to nobody: nothing is remembered for it."""
        self.sealer = route_memory.create_sealer(tags or {}, api, model)  # None without keys
        self.translated = translated
        """Upstream speaks another API than the client, which never sees upstream's format."""
        self.requires_reasoning = requires_reasoning
        """Upstream's API refuses calls, while they are answered, without the reasoning before
        them."""
        self.can_remember = is_read and bool(tags) and route_memory.store is not None
        self.can_seal = bool(tags) and self.sealer is not None
        """Anything of this request's answer can be remembered, or sealed."""
        self.prefix = PrefixDigest()
        self.work = work

    def note_history(self, history: History) -> None:
        """Note what precedes the answer, of a history that is not rewritten."""
        self._note_place(history)
        if self.can_remember:
            self.prefix = PrefixDigest().extended_by(history.turns)

    async def rewrite(
        self,
        read_history: ReadHistory,
        profile: Profile,
        *,
        may_have_envelopes: Callable[[], bool] = lambda: False,
        stripped: HistoryChanges | None = None,
    ) -> RewrittenHistory:
        """Rewrite the history into what upstream receives. `stripped` are the changes made to it
        before it was translated."""
        rewriter, shared = await self._strip_history(
            read_history, profile, may_have_envelopes, is_clients=not self.translated
        )
        if stripped is not None:
            rewriter.expect(stripped.bare_turns)
            rewriter.changes.add_stripped(stripped)
        owner = self.owner if self.route_memory.restores else None
        held_keys = partial(self.route_memory.held_keys, owner)
        queries = await self.work.run(
            rewriter.find_missing, shared, held_keys, to_end=self.can_remember
        )
        self.prefix = rewriter.prefix
        originals: list[Original | None] = []
        if owner is not None and rewriter.incomplete:
            originals = await self.route_memory.recall(owner, queries)
        return await self.work.run(self._restore, rewriter, originals)

    async def strip(
        self, read_history: ReadHistory, profile: Profile, *, may_have_envelopes: Callable[[], bool]
    ) -> RewrittenHistory:
        """Remove what Abridge added to a client's history, before it is translated for upstream,
        and replace envelopes by their content."""
        rewriter, shared = await self._strip_history(
            read_history, profile, may_have_envelopes, is_clients=True
        )
        return await self.work.run(
            lambda: (rewriter.restore_nothing(shared), rewriter.history.body())
        )

    def track_summaries(self, *, copied: bool, native: bool = False) -> SummaryTracker:
        """Create a tracker for the answer. `copied`: its summary is copied from the reasoning;
        `native`: it is the reasoning."""
        return SummaryTracker(
            self.route_memory.summaries,
            self._owner_tags(),
            copied=copied,
            native=native,
            translated=self.translated,
        )

    async def remember(
        self,
        recorded_turns: Sequence[RecordedTurn],
        ended: ResponseEnded,
        display: Display,
        work: Work,
    ) -> None:
        """Remember the reasoning that was hidden or replaced in an answer, all reasoning that has
        to come back whatever the client does, and which turns had none. The work is that on the
        answer."""
        await self.route_memory.summaries.share()
        if self.owner is None or self.route_memory.store is None:
            return
        find = partial(self._find_originals, self.owner, recorded_turns, ended, display)
        async for batch in in_turns(await work.run(lambda: list(find()))):
            await asyncio.gather(*(self.route_memory.remember(*found) for found in batch))

    def _find_originals(
        self,
        owner: ConversationOwner,
        recorded_turns: Iterable[RecordedTurn],
        ended: ResponseEnded,
        display: Display,
    ) -> Iterator[tuple[TurnPlace, Original | None]]:
        """Yield what is to be remembered of an answer; None for a turn that had no reasoning."""
        altered = self.translated or display.restores or not display.show_raw
        prefix = self.prefix
        for recorded in recorded_turns:
            prefix = prefix.extended_by(recorded.turns_before)
            copied = altered or display.native
            if recorded.is_bare:
                if self.route_memory.restores:
                    yield owner.place_of(recorded.turn, prefix), None
            elif self._has_to_remember(recorded, ended, display, altered=copied):
                original = Original.from_reasoning(recorded.original, recorded.raw, altered=altered)
                yield owner.place_of(recorded.turn, prefix), original

    def _has_to_remember(
        self, recorded: RecordedTurn, ended: ResponseEnded, display: Display, *, altered: bool
    ) -> bool:
        """Return whether a turn's reasoning has to be remembered."""
        parts = any(ended.summaries.get(key, NO_SUMMARY).parts for key in recorded.item_keys)
        is_replaced = (parts or altered) and (self.translated or bool(recorded.raw.strip()))
        is_required = self.requires_reasoning and bool(recorded.turn.calls)
        return (
            is_replaced
            or any(is_withheld(state, display) for state in find_states(recorded.original))
            or (is_required and self.route_memory.restores)
            or self.route_memory.always_remembers(recorded.turn)
        )

    def _note_place(self, history: History) -> None:
        """Note what the answer's envelopes are bound to, from the client's own history."""
        if self.sealer is not None and self.can_seal:
            self.sealer.next_place = history.next_place()

    async def _strip_history(
        self,
        read_history: ReadHistory,
        profile: Profile,
        may_have_envelopes: Callable[[], bool],
        *,
        is_clients: bool,
    ) -> tuple[HistoryRewriter, set[str]]:
        """Open the envelopes in a history, and take the summaries out of it. Return also those that
        only a shared store knows."""
        summaries, owner = self.route_memory.summaries, self._owner_tags()

        def strip() -> tuple[HistoryRewriter, set[str]]:
            history = read_history()
            if is_clients:
                self._note_place(history)
            rewriter = self._create_rewriter(history, profile)
            if may_have_envelopes():
                self._open_envelopes(rewriter)
            return rewriter, rewriter.strip(summaries.recogniser(owner))

        rewriter, unknown = await self.work.run(strip)
        return rewriter, await summaries.find_shared(unknown, owner)

    def _restore(
        self, rewriter: HistoryRewriter, originals: Sequence[Original | None]
    ) -> RewrittenHistory:
        changes = rewriter.restore(originals)
        written = changes.changed or self.translated
        return changes, rewriter.history.sent_body() if written else None

    def _open_envelopes(self, rewriter: HistoryRewriter) -> None:
        sealer = self.sealer
        if sealer is None:
            rewriter.open_envelopes(_refuse_blob)
            return
        rewriter.open_envelopes(sealer.open)
        if sealer.opened:
            rewriter.changes.restored["sealed"] += sealer.opened
        rewriter.changes.dropped.update(sealer.dropped)
        sealer.release()

    def _create_rewriter(self, history: History, profile: Profile) -> HistoryRewriter:
        settings = self.route_memory.settings
        policy = HistoryPolicy(
            settings.keep,
            settings.restore,
            profile,
            translated=self.translated,
            requires_reasoning=self.requires_reasoning,
            native=reasons_in_summaries(self.route, profile, [self.model]),
        )
        return HistoryRewriter(history, policy)

    def _owner_tags(self) -> OwnerTags:
        if self.owner is not None:
            return self.owner.tags
        return dict.fromkeys((key.id for key in self.route_memory.keyring.keys), NO_TENANT_TAG)


def _refuse_blob(_blob: str, param: str, *_where: object) -> Envelope | None:
    """Refuse every blob: there is no key to open it with."""
    raise damaged_error(param)
