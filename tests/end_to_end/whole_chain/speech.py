"""What an upstream says of several parts, and in which order; independent of any API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from typing import Literal

from hypothesis import strategies as st

from tests.support.nothing_lost import decode, spelled

Kind = Literal["reasoning", "text", "call"]

WORDS = ("It", " is", " ", "one\n", "hundred.", "é💡", ' "so" ', "a < b, ", "*c*", "&lt;")
ARGUMENTS = (
    *('""', '"é💡"', '"a \\"b\\" {c}"', '[1, {"d": null}]'),
    *("12345678901234567890123", "0.1000000000000000000001", "1e3"),
)
THOUGHTS = ("First", " I", " add", " the\n", "numbers", ". ", "Then", " so")


@dataclass(frozen=True)
class Part:
    """One part of an answer. `pieces` are the texts of its deltas; a call's make up its JSON."""

    kind: Kind
    pieces: tuple[str, ...]
    name: str = ""
    id: str = ""

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True)
class Piece:
    """A delta: the text of a part, by number. `first` and `last` open and close it."""

    part: int
    text: str
    first: bool
    last: bool


@dataclass(frozen=True)
class Speech:
    """Parts, and the order in which their pieces are said.

    `finishes` is False where upstream never says why the answer ends, `ends` where its last word
    is missing, too. `repeats` says whether ends repeat the text, where an API has that; `stops`
    whether it is told where parts end that follow each other; `together` joins pieces in one chunk
    where an API can.
    """

    parts: tuple[Part, ...]
    pieces: tuple[Piece, ...]
    finishes: bool = True
    ends: bool = True
    repeats: bool = True
    stops: bool = True
    together: bool = False
    cut: int | None = field(default=None)
    """After so many pieces the connection breaks."""

    @property
    def is_in_order(self) -> bool:
        """Return whether one part is said after the other."""
        return all(before.part <= after.part for before, after in pairwise(self.pieces))

    @property
    def tells_stops(self) -> bool:
        return self.stops or not self.is_in_order

    @property
    def calls(self) -> list[tuple[str, str]]:
        called = [part for part in self.parts if part.kind == "call"]
        return [(part.name, spelled(decode(part.text))) for part in called]

    def begins_with(self, upstream: str) -> Kind | None:
        """Return what the answer after the reasoning begins with; Gemini says a call at its end."""
        kinds = (
            (self.parts[piece.part].kind, piece.text, piece.last or upstream != "gemini")
            for piece in self.pieces
        )
        told = (
            kind
            for kind, text, is_told in kinds
            if (kind == "call" and is_told) or (kind == "text" and text.strip())
        )
        return next(told, None)

    def as_far_as_it_came(self) -> Speech:
        """Return what was said before the cut, as if it were all: calls only if they are whole."""
        pieces = self.pieces[: self.cut]
        whole = {piece.part for piece in pieces if piece.last}
        heard = [
            number
            for number, part in enumerate(self.parts)
            if part.kind != "call" or number in whole
        ]
        said = [piece for piece in pieces if piece.part in heard]
        texts = {number: [each.text for each in said if each.part == number] for number in heard}
        parts = (replace(self.parts[number], pieces=tuple(texts[number])) for number in heard)
        kept = (replace(piece, part=heard.index(piece.part)) for piece in said)
        return replace(self, parts=tuple(parts), pieces=tuple(kept), cut=None)

    def returns_to(self, kind: Kind) -> bool:
        """Return whether a part of this kind goes on after another part was heard.

        Of reasoning it is then whole in the ends alone on Responses, where its item was done when
        the next began; a text goes on in an item of its own.
        """
        runs = [number for number, _ in groupby(piece.part for piece in self.pieces)]
        return any(runs.count(number) > 1 for number in runs if self.parts[number].kind == kind)

    def said_first(self, kind: Kind) -> str:
        """Return the texts of a kind in the order of their pieces."""
        found = [piece.text for piece in self.pieces if self.parts[piece.part].kind == kind]
        return "".join(found)

    def joined(self, kind: Kind) -> str:
        """Return the texts of a kind in the order of their parts."""
        return "".join(part.text for part in self.parts if part.kind == kind)


def interleave(parts: Sequence[Part], order: Iterable[int]) -> tuple[Piece, ...]:
    """Say a piece of the part whose turn it is; what the order leaves, part after part."""
    waiting = [list(part.pieces) for part in parts]
    sizes = [len(part.pieces) for part in parts]
    pieces: list[Piece] = []
    rest = (number for number, size in enumerate(sizes) for _ in range(size))
    for number in (*order, *rest):
        if waiting[number]:
            first = len(waiting[number]) == sizes[number]
            text = waiting[number].pop(0)
            pieces.append(Piece(number, text, first, last=not waiting[number]))
    return tuple(pieces)


def _texts(words: Sequence[str]) -> st.SearchStrategy[tuple[str, ...]]:
    more = st.lists(st.sampled_from(words), min_size=0, max_size=5)
    return more.map(lambda found: (words[0], *found))


@st.composite
def _calls(draw: st.DrawFn) -> Part:
    arguments = f'{{"q": {draw(st.sampled_from(ARGUMENTS))}}}'
    cuts = sorted(draw(st.sets(st.integers(1, len(arguments) - 1), max_size=3)))
    edges = [0, *cuts, len(arguments)]
    pieces = [arguments[start:end] for start, end in pairwise(edges)]
    name = draw(st.sampled_from(["look", "add"]))
    return Part("call", tuple(["", *pieces] if draw(st.booleans()) else pieces), name)


_KINDS = st.one_of(
    _texts(THOUGHTS).map(lambda pieces: Part("reasoning", pieces)),
    _texts(WORDS).map(lambda pieces: Part("text", pieces)),
    _calls(),
    _calls(),
)


@st.composite
def speeches(draw: st.DrawFn, *, whole: bool = True) -> Speech:
    """Draw what upstream says, in any interleaving; `whole` or with its end or more missing."""
    parts = tuple(
        replace(part, id=f"call_{number}Kq8ZpXw3TzV5bN") if part.kind == "call" else part
        for number, part in enumerate(draw(st.lists(_KINDS, min_size=1, max_size=5)))
    )
    order = draw(st.lists(st.integers(0, len(parts) - 1), max_size=20))
    begun = list(dict.fromkeys([*order, *range(len(parts))]))  # a part's number is when it begins
    parts = tuple(parts[number] for number in begun)
    pieces = interleave(parts, map(begun.index, order))
    flags = {name: draw(st.booleans()) for name in ("repeats", "together")}
    if whole:
        return Speech(parts, pieces, stops=draw(st.booleans()), **flags)
    cut = draw(st.none() | st.integers(0, len(pieces)))
    ends = draw(st.booleans()) and cut is None
    return Speech(parts, pieces, finishes=False, ends=ends, cut=cut, **flags)
