"""Split a summary that upstream made into parts, where nothing but its titles divides it.

Upstream streams such a summary as one text, in which Gemini begins each section with a bold title
on a line of its own. Each of these titles begins a part, as each of OpenAI's parts begins with one.
A text without titles is one part: no title is made up. Blanks between parts, and around them, are
left out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_TITLE = 120
"""The most characters of a title: a longer bold line is text."""

MAX_HELD = 256
"""Characters held back of a text that may yet turn out to be the gap before a title, and its line.
More are no gap."""

_TITLE_START = rf" {{0,3}}\*\*[^\s*][^*\n]{{0,{MAX_TITLE - 1}}}"

_BEFORE_TITLE = re.compile(rf"\n(?={_TITLE_START}\*\*[ \t]{{0,8}}\r?\n)")

_TITLE_LINE = re.compile(rf"{_TITLE_START}\*\*[ \t]*\r?")

_MAY_BECOME_TITLE = re.compile(rf" {{0,3}}\*{{0,2}}|{_TITLE_START}\*{{0,2}}[ \t]{{0,8}}\r?")


class NativePiece(NamedTuple):
    """A piece of a part's text."""

    text: str
    begins: bool  # it is the first of its part


class TitleSplitter:
    """Split one text as it streams, into at most `max_parts` parts of `max_chars` characters in
    all. What comes after that many characters is left out, and `is_full` is set."""

    def __init__(self, max_parts: int, max_chars: int) -> None:
        self.is_full = False
        self._parts_left = max_parts
        self._chars_left = max_chars
        self._held = ""
        self._is_begun = False  # the part has text

    def feed(self, text: str) -> list[NativePiece]:
        """Take the next piece of the text; return what is known to belong to a part."""
        self.is_full = self.is_full or len(text) > self._chars_left
        text = text[: self._chars_left]
        self._chars_left -= len(text)
        buffer = self._held + text
        pieces: list[NativePiece] = []
        if not self._is_begun:
            buffer = buffer.lstrip()
        start = 0
        if self._is_begun or buffer:
            for gap in _BEFORE_TITLE.finditer(buffer):
                if self._parts_left > 1 - self._is_begun:
                    self._add(pieces, buffer[start : gap.start()].rstrip())
                    self._is_begun, start = False, gap.end()
        end = self._end_of_settled(buffer, start)
        self._add(pieces, buffer[start:end])
        self._held = buffer[end:]
        return pieces

    def end(self) -> list[NativePiece]:
        """Return what was held back, as the text ends. What follows begins another part."""
        pieces, held = list[NativePiece](), self._held
        gap, _, line = held.rpartition("\n")
        if self._parts_left > 0 and not gap.strip() and _TITLE_LINE.fullmatch(line):
            self._is_begun, held = False, line
        self._add(pieces, held.rstrip())
        self._held, self._is_begun = "", False
        return pieces

    def _add(self, pieces: list[NativePiece], text: str) -> None:
        if text:
            pieces.append(NativePiece(text, begins=not self._is_begun))
            self._parts_left -= not self._is_begun
            self._is_begun = True

    def _end_of_settled(self, buffer: str, start: int) -> int:
        """Return the end of what is text of the part, whatever comes next."""
        end = len(buffer.rstrip())
        line = buffer.rfind("\n") + 1
        if line > start and self._parts_left > 0 and _MAY_BECOME_TITLE.fullmatch(buffer, line):
            end = len(buffer[:line].rstrip())
        return max(end, start) if len(buffer) - end <= MAX_HELD else len(buffer)


def is_one_part(text: str) -> bool:
    """Return whether a text is one part, with nothing left out."""
    splitter = TitleSplitter(2, len(text))
    return "".join(piece.text for piece in [*splitter.feed(text), *splitter.end()]) == text
