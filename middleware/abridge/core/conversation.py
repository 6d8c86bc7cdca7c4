"""The turns of a conversation, in a form that is independent of any API.

A conversation is read from a request, and a response is remembered as a turn of one. Texts and
calls are comparable however either side writes them. Reasoning is left out of every comparison,
since clients drop, keep and replace it as they like.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias

from abridge.caches import CALL_ARGUMENTS, CALL_IDS, MAX_ARGUMENTS_CHARS, cached

Json: TypeAlias = dict[str, Any]

ItemKey: TypeAlias = tuple[int, int]
"""A reasoning item's address within a response: its lane and its item number."""

_ALPHANUMERIC = re.compile(r"[A-Za-z0-9]+")

_COUNT = re.compile(r"0*[0-9a-f]{1,4}")
"""A small number, decimal or hexadecimal, perhaps filled up with zeros."""

encode_sorted: Callable[[Any], str] = json.JSONEncoder(sort_keys=True).encode
"""Encodes JSON with its keys in order. `json.dumps` makes an encoder for each value."""


_ASCII_BLANKS = b" \t\n\r\v\f"


def without_blanks(text: str) -> bytes:
    """Encode a text without its blanks, by which clients change what they return: between pieces
    that are shown in one field, or that they join, as the Agents SDK does, there are others."""
    return text.strip().encode(errors="surrogatepass").translate(None, _ASCII_BLANKS)


@dataclass(slots=True, frozen=True)
class ToolCall:
    id: str
    name: str
    arguments: str  # JSON as the model wrote it

    def canonicalize(self) -> list[str]:
        """Return the call in one form for all equivalent ways to write its arguments.

        No arguments are the same as an empty object.
        """
        return [self.id, self.name, _canonicalize(self.arguments)]


@cached(CALL_ARGUMENTS, longest=MAX_ARGUMENTS_CHARS)
def _canonicalize(arguments: str) -> str:
    try:
        return encode_sorted(json.loads(arguments.strip() or "{}"))
    except (ValueError, RecursionError):
        return arguments


@cached(CALL_IDS)
def is_random_id(identifier: str) -> bool:
    """Return whether an id is random, unlike `call_0`, which other conversations have too: one of
    its runs of letters and digits has both in at least 9 characters, or at least 20 in all, and is
    no number filled up with zeros."""
    longest = max(_ALPHANUMERIC.findall(identifier), key=len, default="")
    mixed = not (longest.isdigit() or longest.isalpha())
    long_enough = (len(longest) >= 9 and mixed) or len(longest) >= 20
    return long_enough and _COUNT.fullmatch(longest) is None


@cached(CALL_IDS)
def is_counted_id(identifier: str) -> bool:
    """Return whether an id only counts: it ends with a small number and has nothing random. Ids
    that are neither random nor counted are those of short words, and of longer numbers."""
    last = _ALPHANUMERIC.findall(identifier)[-1:]
    ends = bool(last) and identifier.endswith(last[0]) and _COUNT.fullmatch(last[0]) is not None
    return ends and not is_random_id(identifier)


@dataclass(slots=True)
class Turn:
    """One speaker's turn."""

    role: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers_call: str = ""  # id of the call that a tool's output is for
    has_opaque_state: bool = False  # has opaque state of upstream's
    is_plain: bool = False
    """It is an assistant's, and known to be a text alone: nothing in it could be removed, dropped
    or moved, neither reasoning nor what Abridge added."""
    from_envelope: bool = False  # it has reasoning that came in an envelope
    items: list[dict[str, Any]] = field(default_factory=list)
    """The request's own JSON objects, to be changed in place: a message, or items."""
    _canonical_calls: list[str] | None = field(default=None, compare=False, repr=False)
    _without_blanks: str | None = field(default=None, compare=False, repr=False)

    @property
    def canonical_calls(self) -> list[str]:
        """The turn's calls in canonical form, three texts each, computed once."""
        if self._canonical_calls is None:
            self._canonical_calls = [part for call in self.calls for part in call.canonicalize()]
        return self._canonical_calls

    @property
    def _said(self) -> str:
        """The text, the assistant's without its blanks: the pieces into which reasoning divides an
        answer come back with others between them. No text changes after its first digest."""
        if self.role != "assistant":
            return self.text
        if self._without_blanks is None:
            self._without_blanks = without_blanks(self.text).decode(errors="surrogatepass")
        return self._without_blanks

    def encode_identity(self) -> bytes:
        """Return the bytes that identify the turn: its calls if it has any, else its text."""
        if not self.calls:
            return b"said " + self._said.encode("utf-8", "surrogatepass")
        return b"called " + _encode_fields(self.canonical_calls)

    def encode_canonical(self, number: Callable[[str], str] = str) -> bytes:
        """Return everything in the turn except reasoning, as bytes after their length. `number`
        returns what stands for the id of a call."""
        role, text = self.role, self._said
        answers = self.answers_call and number(self.answers_call)
        if self.calls:
            calls = self.canonical_calls.copy()
            if number is not str:
                calls[::3] = map(number, calls[::3])
            canonical = _encode_fields([role, text, answers, *calls])
        else:  # the same, in half the time
            fields = f"{len(role)},{len(text)},{len(answers)}:{role}{text}{answers}"
            canonical = fields.encode("utf-8", "surrogatepass")
        return len(canonical).to_bytes(8, "big") + canonical


def _encode_fields(fields: Sequence[str]) -> bytes:
    """Join the parts with their lengths, so that no two lists give the same bytes."""
    lengths = ",".join([str(len(part)) for part in fields])
    return f"{lengths}:{''.join(fields)}".encode("utf-8", "surrogatepass")


@dataclass(slots=True)
class RecordedTurn:
    """An assistant turn, as upstream sent it."""

    turn: Turn
    raw: str  # text of the reasoning
    original: list[dict[str, Any]]
    """The reasoning as upstream wrote it: keys of a message on Chat Completions, items on
    Responses. Empty for a turn without reasoning.
    """
    item_keys: tuple[ItemKey, ...]  # its reasoning items
    turns_before: tuple[Turn, ...] = ()
    """Turns that precede it in the same response, from the one recorded before it on."""

    @property
    def is_bare(self) -> bool:
        """True if it has neither reasoning nor opaque state."""
        return not self.original


class PrefixDigest:
    """A running digest over turns: the same for the same turns, however a client writes them.

    A second one is the same whatever ids a client gives the calls: they are numbered as they come.
    Without calls the two are one.
    """

    def __init__(self) -> None:
        self._running = blake2b(digest_size=16)
        self._numbered: blake2b | None = None  # the second one, from the first call on
        self._numbers: dict[str, str] = {}  # of calls, by id
        self.may_be_renamed = True
        """Every id of a call only counts: a client may have given them all."""

    def add(self, turn: Turn) -> None:
        canonical = turn.encode_canonical()
        if turn.calls or turn.answers_call:
            self._numbered = self._numbered or self._running.copy()
            self._numbered.update(turn.encode_canonical(self._number))
        elif self._numbered is not None:
            self._numbered.update(canonical)
        self._running.update(canonical)

    def digest(self) -> bytes:
        return self._running.digest()

    def numbered_digest(self) -> bytes:
        return (self._numbered or self._running).digest()

    def extended_by(self, turns: Iterable[Turn]) -> PrefixDigest:
        """Return a copy of the prefix, extended by these turns."""
        extended = PrefixDigest()
        extended._running = self._running.copy()
        extended._numbered = self._numbered and self._numbered.copy()
        extended._numbers = dict(self._numbers)
        extended.may_be_renamed = self.may_be_renamed
        for turn in turns:
            extended.add(turn)
        return extended

    def _number(self, call_id: str) -> str:
        number = self._numbers.get(call_id)
        if number is None:
            number = self._numbers[call_id] = str(len(self._numbers))
            self.may_be_renamed = self.may_be_renamed and is_counted_id(call_id)
        return number
