"""What of earlier reasoning upstream receives.

A conversation is mended in steps, so that whatever has to be looked up elsewhere can be, between
them: `unseal` puts in place what the client returned sealed; `strip` takes out what Abridge put
into a turn, `strip_also` what only others know of; `sought` are the turns whose reasoning is
missing; `restore` puts it back. What is not to be sent is dropped, and the rest is said where
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
    """What settings say, and what upstream demands. `crossed`: what the client returned was spelled
    anew, and is never all that upstream said."""

    keep: Keep
    restore: Restore
    profile: Profile
    crossed: bool = False

    def wants(self, *, current: bool) -> bool:
        """Whether a turn's reasoning is sent at all; `current`: no user has spoken since."""
        return self.keep != "none" and (self.keep != "tool_rounds" or current)

    def restores(self, *, altered: bool) -> bool:
        """Whether what is missing of a turn's is put back."""
        if self.restore == "never":
            return False
        return altered or self.restore == "always" or self.keep in ("tool_rounds", "all")


@dataclass(slots=True)
class Mended:
    """What was done. `removed` counts what Abridge had put in, `missed` the turns whose original
    was not found, `dropped` by its reason what was left out, `respelled` turns that say their
    reasoning, or its absence, in another place than the client did."""

    removed: int = 0
    missed: int = 0
    respelled: int = 0
    restored: Counter[Source] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    @property
    def changed(self) -> bool:
        put_back = self.restored["sealed"] or self.restored["store"]
        return bool(self.removed or self.respelled or put_back or self.dropped)


class Sought(NamedTuple):
    """A turn to be looked up, by itself and by what preceded it."""

    turn: Turn
    prefix: bytes


@dataclass(slots=True)
class _Spoken:
    """A turn of the assistant's.

    `wanted`: its reasoning is sent; `demanded`: upstream refuses it without. `removed` counts what
    was taken out of it; `raw`: it has reasoning of the model's own, `sealed`: out of a blob.
    """

    turn: Turn
    wanted: bool
    demanded: bool
    sealed: bool = False
    removed: int = 0
    raw: bool = False
    prefix: bytes = b""


class Mending:
    """Makes one history what upstream is to receive."""

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
        """Put in place what the client returned sealed."""
        spoken = {id(spoken.turn): spoken for spoken in self._spoken}
        for turn in self._conversation.turns:
            if self._conversation.unseal(turn, opened) and id(turn) in spoken:
                spoken[id(turn)].sealed = True

    def strip(self, ours: Callable[[str], bool]) -> set[str]:
        """Take out what Abridge put into any turn; `ours` knows a summary that was shown. Returns
        the texts that it does not know, and somebody else may."""
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
        """Take out these as well."""
        for spoken in self._spoken if ours else ():
            self._strip(spoken, ours.__contains__)

    def _strip(self, spoken: _Spoken, ours: Callable[[str], bool]) -> None:
        removed, spoken.raw = self._conversation.strip(spoken.turn, ours)
        spoken.removed += removed
        self.mended.removed += removed

    def sought(self) -> list[Sought]:
        """The turns whose originals may be wanted, in order."""
        spoken = iter(self._spoken)
        for turn in self._conversation.turns:
            if turn.role == "assistant":
                next(spoken).prefix = self.prefix.digest()
            self.prefix.add(turn)
        self._sought = list(self._missing())
        return [Sought(spoken.turn, spoken.prefix) for spoken in self._sought]

    def restore(self, originals: Sequence[Original | None]) -> Mended:
        """Put back what is wanted of the originals, one for each turn sought; drop what is not to
        be sent; say the rest where upstream reads it."""
        for spoken, original in zip(self._sought, originals, strict=True):
            self._put_back(spoken, original)
        for spoken in self._spoken:
            self._settle(spoken)
        return self.mended

    def lose(self) -> Mended:
        """Put nothing back: each turn that has nothing left is missed, for now."""
        self.mended.missed += sum(
            bool(spoken.removed) and not spoken.raw for spoken in self._spoken
        )
        return self.mended

    def _missing(self) -> Iterator[_Spoken]:
        """Those that can be known by what they say, and in which something is amiss."""
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
        if spoken.raw:  # it was shown, perhaps in another field; if it was edited, the edit stays
            wanted = original.raw in map(digest, turn.shown)
        else:  # where there is state, the client returned all that it was shown
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
