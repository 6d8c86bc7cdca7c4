"""The policy for earlier reasoning: which of it upstream receives.

A history is rewritten in steps, so that lookups elsewhere can happen between them: `open_envelopes`
replaces envelopes by their content; `strip` removes what Abridge added to a turn, `strip_texts`
also the summaries that only a shared store knows; `find_missing` returns the turns whose reasoning
is missing; `restore` restores it, drops what is not to be sent, and moves the rest to where
upstream reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from abridge.history.original import Original, digest
from abridge.turn.conversation import Prefix, Turn
from abridge.wire.api import Conversation
from abridge.wire.envelope import Open
from abridge.wire.profile import Profile

Keep: TypeAlias = Literal["client", "none", "tool_rounds", "all"]
Restore: TypeAlias = Literal["never", "altered", "always"]
Source: TypeAlias = Literal["sealed", "store", "client"]


@dataclass(slots=True, frozen=True)
class Rule:
    """The policy in effect: the settings, and what upstream requires."""

    keep: Keep
    restore: Restore
    profile: Profile
    crossed: bool = False
    """True if the client speaks another API than upstream: what it returned was translated, and is
    never everything that upstream sent."""

    def wants(self, *, current: bool) -> bool:
        """Return whether a turn's reasoning is sent at all. `current`: no user message follows the
        turn."""
        return self.keep != "none" and (self.keep != "tool_rounds" or current)

    def restores(self, *, altered: bool) -> bool:
        """Return whether a turn's missing reasoning is restored."""
        if self.restore == "never":
            return False
        return altered or self.restore == "always" or self.keep in ("tool_rounds", "all")


@dataclass(slots=True)
class Mended:
    """The changes made to a history."""

    removed: int = 0  # marks, summaries and attributions that Abridge had added
    missed: int = 0  # turns whose original was not found
    respelled: int = 0
    """Turns whose reasoning, or its absence, moved to another field than the client's."""
    restored: Counter[Source] = field(default_factory=Counter)  # turns, by source
    dropped: Counter[str] = field(default_factory=Counter)  # what was left out, by reason

    @property
    def changed(self) -> bool:
        put_back = self.restored["sealed"] or self.restored["store"]
        return bool(self.removed or self.respelled or put_back or self.dropped)


class Sought(NamedTuple):
    """A turn to look up, by itself and by the digest of what preceded it."""

    turn: Turn
    prefix: bytes


@dataclass(slots=True)
class _Spoken:
    """An assistant turn, and what was done to it."""

    turn: Turn
    wanted: bool  # its reasoning is sent
    demanded: bool  # upstream refuses it without reasoning
    sealed: bool = False  # its reasoning came from an envelope
    removed: int = 0  # count of what was stripped from it
    raw: bool = False  # it has reasoning of the model's own
    prefix: bytes = b""


class Mending:
    """Rewrites one history into what upstream receives."""

    def __init__(self, conversation: Conversation, rule: Rule) -> None:
        self._conversation = conversation
        self._rule = rule
        self.mended = Mended()
        self.prefix = Prefix()
        self._sought: list[_Spoken] = []
        turns = conversation.turns
        spoke = max((n for n, turn in enumerate(turns) if turn.role == "user"), default=-1)
        self._spoken = [
            self._spoke(turn, current=place > spoke)
            for place, turn in enumerate(turns)
            if turn.role == "assistant"
        ]

    def _spoke(self, turn: Turn, *, current: bool) -> _Spoken:
        insists = self._rule.profile.returns.on_calls or (self._conversation.insists and current)
        demanded = insists and bool(turn.calls)
        return _Spoken(turn, demanded or self._rule.wants(current=current), demanded)

    def unseal(self, opened: Open) -> None:
        """Replace the envelopes that the client returned by their content."""
        spoken = {id(spoken.turn): spoken for spoken in self._spoken}
        for turn in self._conversation.turns:
            if self._conversation.unseal(turn, opened) and id(turn) in spoken:
                spoken[id(turn)].sealed = True

    def strip(self, ours: Callable[[str], bool]) -> set[str]:
        """Remove what Abridge added to any turn. `is_summary` recognises the text of a summary that
        was shown. Return the texts it did not recognise; a shared store may."""
        unknown: set[str] = set()

        def ask(text: str) -> bool:
            known = bool(text) and ours(text)
            if text and not known:
                unknown.add(text)
            return known

        for spoken in self._spoken:
            self._strip(spoken, ask)
            self.mended.removed += self._conversation.unmark(spoken.turn)
        return unknown

    def strip_also(self, ours: Collection[str]) -> None:
        """Remove these summaries as well."""
        for spoken in self._spoken if ours else ():
            self._strip(spoken, ours.__contains__)

    def _strip(self, spoken: _Spoken, ours: Callable[[str], bool]) -> None:
        removed, spoken.raw = self._conversation.strip(spoken.turn, ours)
        spoken.removed += removed
        self.mended.removed += removed

    def sought(self) -> list[Sought]:
        """Return queries for the turns whose originals may be needed, in order."""
        spoken = iter(self._spoken)
        for turn in self._conversation.turns:
            if turn.role == "assistant":
                next(spoken).prefix = self.prefix.digest()
            self.prefix.add(turn)
        self._sought = list(self._missing())
        return [Sought(spoken.turn, spoken.prefix) for spoken in self._sought]

    def restore(self, originals: Sequence[Original | None]) -> Mended:
        """Restore reasoning from the originals, one for each query of `find_missing`; drop what is
        not to be sent; move the rest to where upstream reads it."""
        for spoken, original in zip(self._sought, originals, strict=True):
            self._put_back(spoken, original)
        for spoken in self._spoken:
            self._settle(spoken)
        return self.mended

    def lose(self) -> Mended:
        """Restore nothing: count each turn left without reasoning as missed, for now."""
        self.mended.missed += sum(
            bool(spoken.removed) and not spoken.raw for spoken in self._spoken
        )
        return self.mended

    def _missing(self) -> Iterator[_Spoken]:
        """Yield the turns that can be identified by their content and whose reasoning is missing,
        changed or translated."""
        for spoken in self._spoken:
            turn, amiss = spoken.turn, spoken.removed or self._rule.crossed or not spoken.raw
            known = turn.text or turn.calls
            if spoken.wanted and not spoken.sealed and known and amiss:
                yield spoken

    def _put_back(self, spoken: _Spoken, original: Original | None) -> None:
        turn, rule = spoken.turn, self._rule
        unmet = spoken.demanded and not turn.opaque
        if original is None:
            lost = bool(spoken.removed) or (unmet and not rule.profile.returns.even_empty)
            self.mended.missed += lost and not spoken.raw
            return
        altered = original.altered or bool(spoken.removed)
        if spoken.raw:  # shown, perhaps in another field; an edit by the client wins
            wanted = original.raw in map(digest, turn.shown)
        else:  # with opaque state, the client returned everything it was shown
            wanted = (altered or not turn.opaque) and rule.restores(altered=altered or unmet)
        if wanted:
            self._conversation.put_back(turn, original.reasoning)
            self.mended.restored["store"] += 1
            spoken.raw = False

    def _settle(self, spoken: _Spoken) -> None:
        turn, profile = spoken.turn, self._rule.profile
        if not spoken.wanted and self._conversation.drop(turn):
            self.mended.dropped["policy"] += 1
        if spoken.wanted and spoken.raw and not spoken.sealed:
            self.mended.restored["client"] += 1
        spelt = "as it was" if self._rule.crossed else self._conversation.spell(turn, profile)
        self.mended.respelled += spelt == "moved"
        if spelt == "dropped":
            self.mended.dropped["spelling"] += 1
