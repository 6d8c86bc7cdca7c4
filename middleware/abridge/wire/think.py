"""Find inline `<think>` blocks and the like in text that arrives in pieces.

Only blocks at the very beginning of an answer are reasoning, one after the other. Whatever comes
after anything else is the answer's text, including quoted tags and code fences. A block that is
never closed is reasoning that was cut short.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

MOST_BLANKS = 256
"""Leading white space, in characters, after which no block is expected any more."""

_BLANK_LINES = re.compile(r"\A\s*\n")


@dataclass(slots=True, frozen=True)
class Tag:
    opening: str
    closing: str
    joint: str = "\n"  # goes between blocks that follow each other


class Piece(NamedTuple):
    kind: Literal["raw", "text"]
    text: str


class Splitter:
    """Separates reasoning from the answer.

    With `prefilled` the prompt's template contains the opening tag, so that the answer begins
    inside reasoning.
    """

    def __init__(self, tags: tuple[Tag, ...], *, prefilled: bool = False) -> None:
        self._tags = tags
        self._prefilled = prefilled
        self._buffer = ""
        self._inside: Tag | None = None
        self._blocks = 0
        self._spoken = False
        self._joined = False
        self.answering = not tags  # no more reasoning can come

    @property
    def inside(self) -> bool:
        """A block is open."""
        return self._inside is not None

    @property
    def holding(self) -> bool:
        """Text is held back that may yet become a block."""
        return bool(self._buffer) and not self._inside

    def narrow(self, tags: tuple[Tag, ...]) -> None:
        """From now on look for these tags only: reasoning has come in a field of its own."""
        self._tags, self._prefilled = tags, False

    def feed(self, text: str) -> list[Piece]:
        if self.answering:
            return [Piece("text", text)]
        self._buffer += text
        pieces: list[Piece] = []
        while (piece := self._next()) is not None:
            pieces.append(piece)
        return [piece for piece in pieces if piece.text]

    def interrupt(self) -> list[Piece]:
        """Return the text that was held back, unless a block is open: another part of the answer
        follows.
        """
        held = [] if self._inside else self.end()
        self.answering = self.answering or any(piece.text.strip() for piece in held)
        return held

    def end(self) -> list[Piece]:
        """End the text; return what was held back."""
        rest, self._buffer = self._buffer, ""
        if not rest or (self._blocks and not rest.strip()):
            return []
        return [Piece("raw" if self._inside else "text", rest)]

    def _next(self) -> Piece | None:
        if self.answering or not self._buffer:
            return None
        return self._reason(self._inside) if self._inside else self._begin()

    def _begin(self) -> Piece | None:
        """Read the beginning of a block, or of the answer; None while it might become either."""
        start = self._buffer.lstrip()
        if len(self._buffer) - len(start) <= MOST_BLANKS:
            for tag in self._tags:
                if start.startswith(tag.opening):
                    return self._enter(tag, start[len(tag.opening) :])
            if any(tag.opening.startswith(start) for tag in self._tags):
                return None
        if self._prefilled and not self._blocks:
            return self._enter(self._tags[0], start)
        return self._answer()

    def _answer(self) -> Piece:
        """Blank lines after a block belong to the block."""
        head, rest = self._buffer[: MOST_BLANKS + 1], self._buffer[MOST_BLANKS + 1 :]
        self._buffer, self.answering = "", True
        return Piece("text", (_BLANK_LINES.sub("", head) if self._blocks else head) + rest)

    def _enter(self, tag: Tag, rest: str) -> Piece:
        self._inside, self._buffer, self._spoken = tag, rest, False
        self._blocks += 1
        return Piece("raw", "")

    def _reason(self, tag: Tag) -> Piece | None:
        if not self._spoken:
            self._buffer = self._buffer.lstrip()  # an empty block is no reasoning
        text, closing, rest = self._buffer.partition(tag.closing)
        if closing:
            self._inside, self._buffer = None, rest
        else:
            keep = _prefix_at_end(text, tag.closing)
            text, self._buffer = text[: len(text) - keep], text[len(text) - keep :]
            if not text:
                return None
        if text and not self._spoken:
            text = tag.joint + text if self._joined else text
            self._spoken = self._joined = True
        return Piece("raw", text)


def _prefix_at_end(text: str, tag: str) -> int:
    """Return the number of characters at the end of `text` that may be the beginning of `tag`."""
    for size in range(min(len(tag) - 1, len(text)), 0, -1):
        if text.endswith(tag[:size]):
            return size
    return 0
