"""The turns already said.

A conversation is read out of a request, and a response is remembered as a turn of one. The texts
and calls here are what both sides agree on however they spell it; what stands only for reasoning is
left out of every comparison, since clients drop, keep and replace it as they like.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeAlias

ItemKey: TypeAlias = tuple[int, int]
"""A reasoning item's address within a response: its lane, its item."""


SHORT = 500
"""Characters of arguments that are kept in mind: a conversation is sent again and again."""

_SORTED = json.JSONEncoder(sort_keys=True)


@dataclass(slots=True, frozen=True)
class Call:
    """A tool call; `arguments` is JSON as the model wrote it."""

    id: str
    name: str
    arguments: str

    def canonical(self) -> list[str]:
        """The same for every way to write the same arguments, no arguments included."""
        canonical = _canonical if len(self.arguments) > SHORT else _canonical_again
        return [self.id, self.name, canonical(self.arguments)]


def _canonical(arguments: str) -> str:
    try:
        return _SORTED.encode(json.loads(arguments.strip() or "{}"))
    except (ValueError, RecursionError):
        return arguments


_canonical_again = lru_cache(4096)(_canonical)


@dataclass(slots=True)
class Turn:
    """One speaker's turn.

    `answers` is the id of the call that a tool's output is for. `shown` are the texts that stand
    where reasoning stands: reasoning itself, or a summary of it; `opaque`: there is state of
    upstream's beside what is said. `items` is the JSON it came from, in place: a message, or the
    items of a turn.
    """

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: str = ""
    shown: tuple[str, ...] = ()
    opaque: bool = False
    items: list[dict[str, Any]] = field(default_factory=list)
    _called: list[list[str]] | None = field(default=None, compare=False, repr=False)

    @property
    def called(self) -> list[list[str]]:
        """Its calls, canonical; worked out once."""
        if self._called is None:
            self._called = [call.canonical() for call in self.calls]
        return self._called

    def identity(self) -> bytes:
        """What the turn is known by: its calls, else its text."""
        if not self.calls:
            return b"said " + self.text.encode(errors="surrogatepass")
        return b"called " + _framed([part for call in self.called for part in call])

    def canonical(self) -> bytes:
        """Everything in it that is no reasoning."""
        said = self.role, self.text, self.answers
        return _framed([*said, *(part for call in self.called for part in call)])


def _framed(parts: Sequence[str]) -> bytes:
    """The parts, none of which can pass for another split of the same text."""
    lengths = ",".join([str(len(part)) for part in parts])
    return f"{lengths}:{''.join(parts)}".encode(errors="surrogatepass")


@dataclass(slots=True)
class Heard:
    """An assistant turn as upstream said it, with reasoning of the model's own.

    `raw` is the reasoning's text, `original` the reasoning in upstream's spelling: keys of a
    message on Chat Completions, items on Responses. `keys` are its items'. `before` are the turns
    that the same response said first.
    """

    turn: Turn
    raw: str
    original: list[dict[str, Any]]
    keys: tuple[ItemKey, ...]
    before: tuple[Turn, ...] = ()


class Prefix:
    """A running digest of turns: the same for the same turns, however a client spells them."""

    def __init__(self) -> None:
        self._running = blake2b(digest_size=16)

    def add(self, turn: Turn) -> None:
        said = turn.canonical()
        self._running.update(len(said).to_bytes(8, "big") + said)

    def digest(self) -> bytes:
        return self._running.digest()

    def after(self, turns: Iterable[Turn]) -> Prefix:
        """The prefix that these turns would make of it."""
        later = Prefix()
        later._running = self._running.copy()
        for turn in turns:
            later.add(turn)
        return later
