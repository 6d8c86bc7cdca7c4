"""Split reasoning into passages, each of which becomes a summary part.

A cut depends on the text alone, never on how it was split into deltas, so that a streamed and an
unstreamed answer get the same parts. A cut is due at a size of `part_chars`, the first one at a
share of it, and is made at the first end of a paragraph after that. If none comes within the slack,
it is made at the best boundary in the second half of the text: paragraph, then sentence or line,
then word. Blanks before the first word of a passage are left out, so none is of blanks alone.

Sizes are in characters, of which wide ones count `WIDE_CHAR_SIZE`: so a part takes about as many
tokens in any script, and parts come at a steady pace.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil, inf

WIDE_CHAR_SIZE = 2.5
"""Size of a Chinese, Japanese or Korean character: a model needs 0.6 tokens for one, and a quarter
of a token for a character of an alphabet."""

GAP = "…"
"""A line of its own that stands where reasoning was left out."""

MAX_CONTEXT = 500
"""The most characters of earlier reasoning that go along with a part."""

MAX_CONTEXT_RATIO = 0.1
"""The most of it as a share of the part's own text, to keep the two in proportion."""

SLICE_CHARS = 64 << 10
"""Characters that are taken at once, so that little is copied for a cut in a long text."""

NEAR_CHARS = 4000
"""Characters before the end of a passage in which a boundary is looked for first."""

WIDE_LETTERS = r"\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff"
"""Chinese, Japanese and Korean letters, as a range of a regular expression."""

WIDE_CHARS = rf"{WIDE_LETTERS}\uff00-\uffef"
"""The same with full-width forms, such as their punctuation."""

WIDE_RUN = re.compile(f"[{WIDE_CHARS}]+")

_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")

_BOUNDARIES = (
    _PARAGRAPH,
    re.compile(r"[.!?…][\"')\]*_]*\s|[。！？][”’」』）]*|\n"),
    re.compile(r"\s|[，、；]"),
)


@dataclass(slots=True, frozen=True)
class Cut:
    text: str  # the reasoning for one part
    before: str  # the end of the reasoning before it


class Segmenter:
    """Gather one item's reasoning and cut it into passages.

    A cut is due at a size of `part_chars`, the first one at `first_share` of it. After `max_parts`
    cuts each is due at twice the size of the one before, so that their number stays small however
    long the model reasons. A cut after the first waits until `rest_chars` follow it: so what is
    left at the end is either so much, or goes with the part before it. With `live` false nothing is
    cut before the end. If more than `max_chars` are gathered for one part, only their head and tail
    are kept.
    """

    def __init__(
        self,
        *,
        part_chars: int,
        max_parts: int,
        tail_chars: int,
        min_chars: int,
        max_chars: int,
        live: bool,
        first_share: float = 1.0,
        rest_chars: int = 0,
    ) -> None:
        self._part_size = float(part_chars)
        self._cut_size = first_share * part_chars
        self._max_parts = max_parts
        self._tail_chars = tail_chars
        self._min_chars = min_chars
        self._max_chars = max_chars
        self._live = live
        self._rest_chars = rest_chars
        self._rest_size = 0  # of what must follow the next cut
        self._pieces: list[str] = []
        self._length = 0
        self._size = 0.0
        self._nonblank_chars = 0
        self._before = ""
        self.cut_count = 0

    @property
    def room(self) -> float:
        """The size of a text for which nothing is done but that it is kept."""
        until_cut = self._cut_size + self._rest_size - self._size if self._live else inf
        return min(until_cut, self._max_chars - self._length)

    def feed(self, text: str) -> list[Cut]:
        """Add reasoning and return the cuts that are complete."""
        text = text if self._length else text.lstrip()
        if not text:
            return []
        if len(text) > SLICE_CHARS:
            starts = range(0, len(text), SLICE_CHARS)
            slices = (text[start : start + SLICE_CHARS] for start in starts)
            return [cut for piece in slices for cut in self.feed(piece)]
        if self._nonblank_chars < self._min_chars:
            self._nonblank_chars += sum(map(len, text.split()))
        self._pieces.append(text)
        self._length += len(text)
        self._size += len(text) if text.isascii() else text_size(text)
        if self._length > self._max_chars:
            gathered, keep = self._join(), self._max_chars // 4
            self._keep(f"{gathered[:keep]}\n{GAP}\n{gathered[-keep:]}")
        return self._make_cuts() if self._size >= self._cut_size + self._rest_size else []

    def _make_cuts(self) -> list[Cut]:
        cuts: list[Cut] = []
        while (
            self._live and self._size >= self._cut_size and self._nonblank_chars >= self._min_chars
        ):
            gathered = self._join()
            position = _find_cut(gathered, self._cut_size)
            if position is None or text_size(gathered[position:]) < self._rest_size:
                break
            cuts.append(self._make_cut(gathered[:position]))
            self._keep(gathered[position:].lstrip())
        return cuts

    def end_stretch(self) -> Cut | None:
        """End the stretch and return its rest as a cut, or None if the rest is too short.

        A rest smaller than `tail_chars` after a cut stays, and goes with the next stretch.
        """
        rest = self._join()
        size = text_size(rest.strip())
        if (
            not size
            or self._nonblank_chars < self._min_chars
            or (self.cut_count and size < self._tail_chars)
        ):
            return None
        self._keep("")
        return self._make_cut(rest)

    def begin_stretch(self) -> None:
        """Begin another stretch of the same item."""
        if self._length:
            self._keep(f"{self._join()}\n\n")

    def _keep(self, text: str) -> None:
        """Replace what is gathered."""
        self._pieces, self._length, self._size = [text], len(text), text_size(text)

    def _join(self) -> str:
        if len(self._pieces) != 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def _make_cut(self, text: str) -> Cut:
        context = min(MAX_CONTEXT, int(len(text) * MAX_CONTEXT_RATIO))
        cut = Cut(text, self._before[len(self._before) - context :])
        self._before = (self._before + text)[-MAX_CONTEXT:]
        self.cut_count += 1
        if self.cut_count >= self._max_parts:
            self._part_size *= 2
        self._cut_size, self._rest_size = self._part_size, self._rest_chars
        return cut


def text_size(text: str) -> float:
    """Return the size of a text, by which parts are cut."""
    if text.isascii():
        return len(text)
    return len(text) + (WIDE_CHAR_SIZE - 1) * sum(map(len, WIDE_RUN.findall(text)))


def _position_at(text: str, size: float) -> int | None:
    """Return the position up to which `text` has `size`, or None if it is smaller."""
    position = 0
    for wide in () if text.isascii() else WIDE_RUN.finditer(text):
        if position + size <= wide.start():
            break
        size -= wide.start() - position
        if size <= len(wide[0]) * WIDE_CHAR_SIZE:
            return wide.start() + ceil(size / WIDE_CHAR_SIZE)
        size -= len(wide[0]) * WIDE_CHAR_SIZE
        position = wide.end()
    end = position + ceil(size)
    return end if end <= len(text) else None


def _find_cut(text: str, size: float) -> int | None:
    """Return the position at which to cut `text`, or None while a better one may still come."""
    due = _position_at(text, size)
    if due is None:
        return None
    limit = _position_at(text, size + min(size // 4, 1000))
    paragraph = _PARAGRAPH.search(text, max(0, due - 2), len(text) if limit is None else limit)
    if paragraph is not None and paragraph.end() >= due:
        return paragraph.end()
    if limit is None:
        return None
    for boundary in _BOUNDARIES:
        for start in (max(due // 2, limit - NEAR_CHARS), due // 2):
            ends = [found.end() for found in boundary.finditer(text, start, limit)]
            if ends:
                return ends[-1]
    return limit
