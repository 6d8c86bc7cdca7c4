"""The turns of a conversation, in a form that is independent of any API.

A conversation is read from a request, and a response is remembered as a turn of one. Texts and
calls are comparable however either side writes them. Reasoning is left out of every comparison,
since clients drop, keep and replace it as they like.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeAlias

ItemKey: TypeAlias = tuple[int, int]
"""A reasoning item's address within a response: its lane and its item number."""


SHORT = 500
"""The longest arguments, in characters, that are cached: a conversation is sent again and again."""

_SORTED = json.JSONEncoder(sort_keys=True)


@dataclass(slots=True, frozen=True)
class Call:
    id: str
    name: str
    arguments: str  # JSON as the model wrote it

    def canonical(self) -> list[str]:
        """Return the call in one form for all equivalent ways to write its arguments.

        No arguments are the same as an empty object.
        """
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
    """One speaker's turn."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: str = ""  # id of the call that a tool's output is for
    shown: tuple[str, ...] = ()
    """Texts in the place of reasoning: reasoning or summaries."""
    opaque: bool = False  # has opaque state of upstream's beside the texts
    items: list[dict[str, Any]] = field(default_factory=list)
    """The request's own JSON objects, to be changed in place: a message, or items."""
    _called: list[list[str]] | None = field(default=None, compare=False, repr=False)

    @property
    def called(self) -> list[list[str]]:
        """The turn's calls in canonical form, computed once."""
        if self._called is None:
            self._called = [call.canonical() for call in self.calls]
        return self._called

    def identity(self) -> bytes:
        """Return the bytes that identify the turn: its calls if it has any, else its text."""
        if not self.calls:
            return b"said " + self.text.encode(errors="surrogatepass")
        return b"called " + _framed([part for call in self.called for part in call])

    def canonical(self) -> bytes:
        """Return everything in the turn except reasoning, as bytes."""
        said = self.role, self.text, self.answers
        return _framed([*said, *(part for call in self.called for part in call)])


def _framed(parts: Sequence[str]) -> bytes:
    """Join the parts with their lengths, so that no two lists give the same bytes."""
    lengths = ",".join([str(len(part)) for part in parts])
    return f"{lengths}:{''.join(parts)}".encode(errors="surrogatepass")


@dataclass(slots=True)
class Heard:
    """An assistant turn with reasoning, as upstream sent it."""

    turn: Turn
    raw: str  # text of the reasoning
    original: list[dict[str, Any]]
    """The reasoning as upstream wrote it: keys of a message on Chat Completions, items on
    Responses.
    """
    keys: tuple[ItemKey, ...]  # its reasoning items
    before: tuple[Turn, ...] = ()  # turns that precede it in the same response


class Prefix:
    """A running digest over turns: the same for the same turns, however a client writes them."""

    def __init__(self) -> None:
        self._running = blake2b(digest_size=16)

    def add(self, turn: Turn) -> None:
        said = turn.canonical()
        self._running.update(len(said).to_bytes(8, "big") + said)

    def digest(self) -> bytes:
        return self._running.digest()

    def after(self, turns: Iterable[Turn]) -> Prefix:
        """Return a copy of the prefix, extended by these turns."""
        later = Prefix()
        later._running = self._running.copy()
        for turn in turns:
            later.add(turn)
        return later
