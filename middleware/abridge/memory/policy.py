"""The policy for earlier reasoning: which of it upstream receives.

A history is rewritten in steps, so that lookups elsewhere can happen between them: `open_envelopes`
replaces envelopes by their content; `strip` removes what Abridge added to a turn; `find_missing`
removes also the summaries that only a shared store knows, and returns the turns whose reasoning is
missing; `restore` restores it, drops what is not to be sent, and moves the rest to where upstream
reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from abridge.apis.history import History
from abridge.apis.json import string
from abridge.apis.opaque_state import find_states
from abridge.core.conversation import Json, PrefixDigest, Turn
from abridge.core.envelope import OpenEnvelope
from abridge.memory.originals import Original, digest_text
from abridge.providers.profile import Profile

KeepPolicy: TypeAlias = Literal["client", "none", "tool_rounds", "all"]

RestorePolicy: TypeAlias = Literal["never", "altered", "always"]

ReasoningSource: TypeAlias = Literal["sealed", "store", "client"]


@dataclass(slots=True, frozen=True)
class HistoryPolicy:
    """The policy in effect: the settings, and what upstream requires."""

    keep: KeepPolicy
    restore: RestorePolicy
    profile: Profile
    translated: bool = False
    """True if the client speaks another API than upstream: what it returned was translated, and is
    never everything that upstream sent."""
    requires_reasoning: bool = False
    """True if upstream's API itself refuses calls, while they are answered, without the reasoning
    before them."""
    native: bool = False
    """True if clients are shown all of upstream's reasoning, which is a summary, but it may have
    moved."""

    def sends(self, *, current: bool) -> bool:
        """Return whether a turn's reasoning is sent at all. `current`: no user message follows the
        turn."""
        return self.keep != "none" and (self.keep != "tool_rounds" or current)

    def restores(self, *, altered: bool) -> bool:
        """Return whether a turn's missing reasoning is restored."""
        if self.restore == "never":
            return False
        return altered or self.restore == "always" or self.keep in ("tool_rounds", "all")


@dataclass(slots=True)
class HistoryChanges:
    """The changes made to a history."""

    removed: int = 0  # marks, summaries and attributions that Abridge had added
    missed: int = 0  # turns whose original was not found
    moved: int = 0
    """Turns whose reasoning, or its absence, moved to another field than the client's."""
    restored: Counter[ReasoningSource] = field(default_factory=Counter)  # turns, by source
    dropped: Counter[str] = field(default_factory=Counter)  # what was left out, by reason
    bare_turns: set[str] = field(default_factory=set)
    """Call ids and texts of the turns that were left without reasoning, before a translation."""

    @property
    def changed(self) -> bool:
        restored = self.restored["sealed"] or self.restored["store"]
        return bool(self.removed or self.moved or restored or self.dropped)

    def add_stripped(self, stripped: HistoryChanges) -> None:
        """Add the changes made to the same history before it was translated. What that missed is
        counted here: see `HistoryRewriter.expect`."""
        self.removed += stripped.removed
        self.restored.update(stripped.restored)
        self.dropped.update(stripped.dropped)


class TurnQuery(NamedTuple):
    """A turn to look up, by itself and by the digest of what preceded it."""

    turn: Turn
    keys: Sequence[bytes]  # in the store
    prefix: bytes
    numbered: bytes
    """The digest of both, whatever ids the calls have, where the client has visibly renamed all of
    them, as agno does: each only counts. Else empty."""


@dataclass(slots=True)
class _AssistantTurn:
    """An assistant turn, and what was done to it."""

    turn: Turn
    is_sent: bool  # its reasoning is sent
    is_required: bool  # upstream refuses it without reasoning
    follows: bool
    """It follows another of the same answer, whose reasoning may be all that there was."""
    removed: int = 0  # count of what was stripped from it
    is_expected: bool = False  # it had reasoning before it was translated
    has_raw: bool = False  # it has the model's reasoning, rather than a summary


class HistoryRewriter:
    """Rewrites one history into what upstream receives."""

    def __init__(self, history: History, policy: HistoryPolicy) -> None:
        self.history = history
        self._policy = policy
        self.changes = HistoryChanges()
        self.prefix = PrefixDigest()
        self.incomplete: list[_AssistantTurn] = []  # those whose originals may be needed
        self._queries: list[TurnQuery] = []
        roles = [turn.role for turn in history.turns]
        last_user = next((n for n in reversed(range(len(roles))) if roles[n] == "user"), -1)
        self._assistant_turns = [
            self._read_turn(turn, current=number > last_user, follows=before == "assistant")
            for number, (before, turn) in enumerate(zip(["", *roles], history.turns, strict=False))
            if turn.role == "assistant"
        ]

    def _read_turn(self, turn: Turn, *, current: bool, follows: bool) -> _AssistantTurn:
        policy = self._policy
        requires = turn.calls and policy.profile.returns.required_on_calls
        is_required = bool(requires or (turn.calls and policy.requires_reasoning and current))
        is_sent = is_required or policy.sends(current=current)
        return _AssistantTurn(turn, is_sent, is_required, follows)

    def open_envelopes(self, open_envelope: OpenEnvelope) -> None:
        """Replace the envelopes that the client returned by their content."""
        for turn in self.history.turns:
            if not turn.is_plain:
                self.history.open_envelopes(turn, open_envelope)

    def strip(self, is_summary: Callable[[str], bool]) -> set[str]:
        """Remove what Abridge added to any turn. `is_summary` recognises the text of a summary that
        was shown. Return the texts it did not recognise; a shared store may."""
        unknown: set[str] = set()

        def recognise(text: str) -> bool:
            known = bool(text) and is_summary(text)
            if text and not known:
                unknown.add(text)
            return known

        for assistant in self._assistant_turns:
            if assistant.turn.is_plain:
                continue
            self._strip_turn(assistant, recognise)
            self.changes.removed += self.history.strip_attribution(assistant.turn)
        return unknown

    def _strip_texts(self, texts: Collection[str]) -> None:
        for assistant in self._assistant_turns if texts else ():
            self._strip_turn(assistant, texts.__contains__)

    def _strip_turn(self, assistant: _AssistantTurn, is_summary: Callable[[str], bool]) -> None:
        removed, assistant.has_raw = self.history.strip(assistant.turn, is_summary)
        assistant.removed += removed
        self.changes.removed += removed

    def find_missing(
        self,
        shared: Collection[str] = (),
        held_keys: Callable[[Turn], Sequence[bytes]] = lambda _: [b""],
        *,
        to_end: bool = True,
    ) -> list[TurnQuery]:
        """Return queries for the turns whose originals may be needed and that have `held_keys`, in
        order. `shared` are summaries that only a shared store knows; they are removed as well. All
        turns are digested `to_end`, which takes most of the time, if the answer is remembered."""
        self._strip_texts(shared)
        self.incomplete = list(self._incomplete_turns())
        following = iter(self.history.turns)
        for assistant in self.incomplete:
            if keys := held_keys(assistant.turn):
                self._queries.append(self._query(assistant.turn, keys, following))
        for turn in following if to_end else ():
            self.prefix.add(turn)
        return self._queries

    def _query(self, turn: Turn, keys: Sequence[bytes], following: Iterator[Turn]) -> TurnQuery:
        """Digest the following turns, up to this one; return a query for it."""
        for before in following:
            if before is turn:
                break
            self.prefix.add(before)
        prefix = self.prefix.digest()
        self.prefix.add(turn)
        is_renamed = turn.calls and self.prefix.may_be_renamed
        numbered = self.prefix.numbered_digest() if is_renamed else b""
        return TurnQuery(turn, keys, prefix, numbered)

    def restore(self, originals: Sequence[Original | None]) -> HistoryChanges:
        """Restore reasoning from the originals, one for each query of `find_missing`; drop what is
        not to be sent; move the rest to where upstream reads it."""
        found = {id(query.turn): each for query, each in zip(self._queries, originals, strict=True)}
        if any(each.follows for each in self.incomplete):
            self._put_back(found)
        for assistant in self.incomplete:
            self._restore_turn(assistant, found.get(id(assistant.turn)))
        for assistant in self._assistant_turns:
            if not assistant.turn.is_plain:
                self._finish_turn(assistant)
        return self.changes

    def _put_back(self, found: Mapping[int, Original | None]) -> None:
        """Put back what a client returned of these turns' reasoning with others, and look again at
        what each turn has."""

        def find_original(turn: Turn) -> Sequence[Json]:
            original = found.get(id(turn))
            return () if original is None else original.decode()

        if moved := self.history.put_back(find_original):
            self.changes.moved += moved
            for assistant in self._assistant_turns:
                self._strip_turn(assistant, lambda _: False)

    def restore_nothing(self, shared: Collection[str] = ()) -> HistoryChanges:
        """Restore nothing: note the turns left without reasoning, which may be restored later. See
        `find_missing` for `shared`."""
        self._strip_texts(shared)
        for assistant in self._assistant_turns:
            if assistant.removed and not assistant.has_raw:
                self.changes.bare_turns.update(_identifiers(assistant.turn))
        return self.changes

    def expect(self, bare_turns: AbstractSet[str]) -> None:
        """Take the turns that were left without reasoning before they were translated: one that is
        not restored counts as missed."""
        for assistant in self._assistant_turns if bare_turns else ():
            assistant.is_expected = not bare_turns.isdisjoint(_identifiers(assistant.turn))

    def _incomplete_turns(self) -> Iterator[_AssistantTurn]:
        """Yield the turns that are not empty and whose reasoning is missing, changed or
        translated."""
        may_have_moved = self._policy.translated or self._policy.native
        for assistant in self._assistant_turns:
            turn = assistant.turn
            is_incomplete = assistant.removed or not assistant.has_raw
            if (
                assistant.is_sent
                and not turn.from_envelope
                and turn.items
                and (is_incomplete or may_have_moved)
            ):
                yield assistant

    def _restore_turn(self, assistant: _AssistantTurn, original: Original | None) -> None:
        turn, policy = assistant.turn, self._policy
        lacks_required = assistant.is_required and not turn.has_opaque_state
        if original is None:
            may_be_empty = assistant.follows or policy.profile.returns.required_even_empty
            is_lost = assistant.is_expected or assistant.removed
            is_lost = is_lost or (lacks_required and not may_be_empty)
            self.changes.missed += bool(is_lost) and not assistant.has_raw
            return
        if original.is_trace:
            return
        altered = original.altered or bool(assistant.removed)
        if assistant.has_raw:  # shown, perhaps in another field; an edit by the client wins
            restores = original.raw_digest in map(digest_text, self.history.reasoning_texts(turn))
        else:  # with opaque state, the client returned everything it was shown
            restores = (altered or not turn.has_opaque_state) and policy.restores(
                altered=altered or lacks_required
            )
        if restores and self._is_clients_own(turn, reasoning := original.decode()):
            self.history.restore(turn, reasoning)
            self.changes.restored["store"] += 1
            assistant.has_raw = False

    def _is_clients_own(self, turn: Turn, reasoning: list[Json]) -> bool:
        """Return whether this is the reasoning of which the client itself returned state with a
        turn. Else it is another conversation's, with a turn like this one."""
        returned = self.history.reasoning_states(turn)
        if not returned:
            return True
        ids = {string(fields.get("id")) for fields in reasoning}
        return not (returned.isdisjoint(ids) and returned.isdisjoint(find_states(reasoning)))

    def _finish_turn(self, assistant: _AssistantTurn) -> None:
        turn, profile = assistant.turn, self._policy.profile
        if not assistant.is_sent and self.history.drop_reasoning(turn):
            self.changes.dropped["policy"] += 1
        if assistant.is_sent and assistant.has_raw and not turn.from_envelope:
            self.changes.restored["client"] += 1
        # a translation has placed it already, but for what was restored to items
        is_placed = self._policy.translated and not profile.inline_on_responses
        placement = "unchanged" if is_placed else self.history.place_reasoning(turn, profile)
        self.changes.moved += placement == "moved"
        if placement == "dropped":
            self.changes.dropped["spelling"] += 1


def _identifiers(turn: Turn) -> list[str]:
    """Return what is the same of a turn before and after a translation."""
    return [call.id for call in turn.calls] or [turn.text]
