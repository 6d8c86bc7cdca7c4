"""Find inline `<think>` blocks and the like in text that arrives in pieces.

Only blocks at the very beginning of an answer are reasoning, one after the other. Whatever comes
after anything else is the answer's text, including quoted tags and code fences. A block that is
never closed is reasoning that was cut short.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Literal, NamedTuple, TypeAlias

from abridge.providers.profile import Tag

MAX_LEADING_BLANKS = 256
"""Leading white space, in characters, after which no block is expected any more."""

BLANK_LINES = re.compile(r"\A\s*\n")

_BLANKS = re.compile(r"\s*+")


Kind: TypeAlias = Literal["raw", "text"]


class TagPiece(NamedTuple):
    kind: Kind
    text: str


def join_alike(pieces: Iterable[TagPiece]) -> list[TagPiece]:
    """Join the pieces of one kind that follow each other, and leave out those without text: a text
    may hold blocks without number, each of which would be an event."""
    groups = groupby((piece for piece in pieces if piece.text), lambda piece: piece.kind)
    return [TagPiece(kind, "".join(piece.text for piece in group)) for kind, group in groups]


class TagSplitter:
    """Separate reasoning from the answer.

    With `prefilled` the prompt's template contains the opening tag, so that the answer begins
    inside reasoning.
    """

    def __init__(self, tags: tuple[Tag, ...], *, prefilled: bool = False) -> None:
        self._tags = tags
        self._prefilled = prefilled
        self._buffer = ""
        self._position = 0  # in the buffer: what is before it was read
        self._open_tag: Tag | None = None
        self._block_count = 0
        self._block_has_text = False
        self._has_reasoning = False
        self.is_answering = not tags  # no more reasoning can come

    @property
    def is_inside(self) -> bool:
        """A block is open."""
        return self._open_tag is not None

    @property
    def has_held_text(self) -> bool:
        """Text is held back that may yet become a block."""
        return bool(self._buffer) and not self._open_tag

    def ignore_tags(self) -> None:
        """Look for no more tags: reasoning has come in a field of its own."""
        self._tags, self._prefilled = (), False

    def note_reasoning(self) -> list[TagPiece]:
        """Note that the reasoning has come elsewhere. What is held back is text, and waits for
        more."""
        self.ignore_tags()
        return []

    def passes(self, _text: str) -> bool:
        """Return whether `feed` would return just this text."""
        return self.is_answering

    def feed(self, text: str) -> list[TagPiece]:
        if self.is_answering:
            return [TagPiece("text", text)]
        pieces = join_alike(self._split(text))
        self._buffer, self._position = self._buffer[self._position :], 0
        return pieces

    def has_reasoning(self, text: str) -> bool:
        """Return whether a whole text begins with reasoning; it is read no further than that."""
        return any(map(_is_reasoning, self._split(text))) or any(map(_is_reasoning, self.end()))

    def _split(self, text: str) -> Iterator[TagPiece]:
        self._buffer += text
        while (piece := self._next_piece()) is not None:
            yield piece

    def interrupt(self) -> list[TagPiece]:
        """Return the text that was held back, unless a block is open: another part of the answer
        follows.
        """
        held = [] if self._open_tag else self.end()
        self.is_answering = self.is_answering or any(piece.text.strip() for piece in held)
        return held

    def end(self, _undecided: Kind = "text") -> list[TagPiece]:
        """End the text; return what was held back: reasoning if a block is open, else text."""
        rest, self._buffer, self._position = self._buffer[self._position :], "", 0
        if not rest or (self._block_count and not rest.strip()):
            return []
        return [TagPiece("raw" if self._open_tag else "text", rest)]

    def _next_piece(self) -> TagPiece | None:
        if self.is_answering or self._position == len(self._buffer):
            return None
        return self._read_block(self._open_tag) if self._open_tag else self._read_start()

    def _read_start(self) -> TagPiece | None:
        """Read the beginning of a block, or of the answer; None while it might become either."""
        start = self._after_blanks()
        if start - self._position <= MAX_LEADING_BLANKS:
            for tag in self._tags:
                if self._buffer.startswith(tag.opening, start):
                    return self._open_block(tag, start + len(tag.opening))
            if any(self._may_become(tag.opening, start) for tag in self._tags):
                return None
        if self._prefilled and not self._block_count:
            return self._open_block(self._tags[0], start)
        return self._start_answer()

    def _after_blanks(self) -> int:
        """Return where the white space ends that comes next."""
        blanks = _BLANKS.match(self._buffer, self._position)
        return self._position if blanks is None else blanks.end()

    def _may_become(self, tag: str, start: int) -> bool:
        """Return whether the rest of the buffer is the beginning of a tag."""
        return len(self._buffer) - start < len(tag) and tag.startswith(self._buffer[start:])

    def _start_answer(self) -> TagPiece:
        """Begin the answer; blank lines after a block belong to the block."""
        head_end = self._position + MAX_LEADING_BLANKS + 1
        head, rest = self._buffer[self._position : head_end], self._buffer[head_end:]
        self._position, self.is_answering = len(self._buffer), True
        return TagPiece("text", (BLANK_LINES.sub("", head) if self._block_count else head) + rest)

    def _open_block(self, tag: Tag, start: int) -> TagPiece:
        self._open_tag, self._position, self._block_has_text = tag, start, False
        self._block_count += 1
        return TagPiece("raw", "")

    def _read_block(self, tag: Tag) -> TagPiece | None:
        if not self._block_has_text:
            self._position = self._after_blanks()  # an empty block is no reasoning
        start, end = self._position, self._buffer.find(tag.closing, self._position)
        if end >= 0:
            self._open_tag, self._position = None, end + len(tag.closing)
        else:
            end = len(self._buffer) - _partial_tag_length(self._buffer, tag.closing, start)
            self._position = end
            if start == end:
                return None
        text = self._buffer[start:end]
        if text and not self._block_has_text:
            text = tag.separator + text if self._has_reasoning else text
            self._block_has_text = self._has_reasoning = True
        return TagPiece("raw", text)


def _is_reasoning(piece: TagPiece) -> bool:
    return piece.kind == "raw" and bool(piece.text.strip())


def may_have_tags(text: str) -> bool:
    """Return whether a text may hold a tag: every tag begins with one of these."""
    return "<" in text or "◁" in text


def _partial_tag_length(text: str, tag: str, start: int) -> int:
    """Return how many characters at the end of `text`, from `start` on, may begin `tag`."""
    for size in range(min(len(tag) - 1, len(text) - start), 0, -1):
        if text.endswith(tag[:size]):
            return size
    return 0
