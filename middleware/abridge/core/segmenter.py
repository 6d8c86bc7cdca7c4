"""Split reasoning into passages, each of which becomes a summary part.

A cut depends on the text alone, never on how it was split into deltas, so that a streamed and an
unstreamed answer get the same parts. A cut is due at `part_chars` characters and is made at the
first end of a paragraph after that. If none comes within the slack, it is made at the best boundary
in the second half of the text: paragraph, then sentence or line, then word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SIZE_GROWTH = 1.25
"""Factor by which each part's size exceeds the one before."""

MAX_CONTEXT = 500
"""The most characters of earlier reasoning that go along with a part."""

MAX_CONTEXT_RATIO = 0.1
"""The most of it as a share of the part's own text, to keep the two in proportion."""

SLICE_CHARS = 64 << 10
"""Characters that are taken at once, so that little is copied for a cut in a long text."""

NEAR_CHARS = 4000
"""Characters before the end of a passage in which a boundary is looked for first."""

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

    The first cut is due at `part_chars` characters, each next one at `SIZE_GROWTH` times the last
    size, and after `max_parts` cuts at twice the last size, so that their number stays small
    however long the model reasons. With `live` false nothing is cut before the end. If more than
    `max_chars` are gathered for one part, only their head and tail are kept.
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
    ) -> None:
        self._cut_size = float(part_chars)
        self._max_parts = max_parts
        self._tail_chars = tail_chars
        self._min_chars = min_chars
        self._max_chars = max_chars
        self._live = live
        self._pieces: list[str] = []
        self._length = 0
        self._nonblank_chars = 0
        self._before = ""
        self.cut_count = 0

    def feed(self, text: str) -> list[Cut]:
        """Add reasoning and return the cuts that are complete."""
        if len(text) <= SLICE_CHARS:
            return self._feed(text)
        slices = (text[start : start + SLICE_CHARS] for start in range(0, len(text), SLICE_CHARS))
        return [cut for piece in slices for cut in self._feed(piece)]

    def _feed(self, text: str) -> list[Cut]:
        self._append(text)
        cuts: list[Cut] = []
        while (
            self._live
            and self._length >= self._cut_size
            and self._nonblank_chars >= self._min_chars
        ):
            gathered = self._join()
            position = _find_cut(gathered, int(self._cut_size))
            if position is None:
                break
            cuts.append(self._make_cut(gathered[:position]))
            self._pieces, self._length = [gathered[position:]], len(gathered) - position
        return cuts

    def end_stretch(self) -> Cut | None:
        """End the stretch and return its rest as a cut, or None if the rest is too short.

        A rest of fewer than `tail_chars` after a cut stays, and goes with the next stretch.
        """
        rest = self._join()
        size = len(rest.strip())
        if (
            not size
            or self._nonblank_chars < self._min_chars
            or (self.cut_count and size < self._tail_chars)
        ):
            return None
        self._pieces, self._length = [], 0
        return self._make_cut(rest)

    def begin_stretch(self) -> None:
        """Begin another stretch of the same item."""
        if self._join().strip():
            self._append("\n\n")

    def _append(self, text: str) -> None:
        if self._nonblank_chars < self._min_chars:
            self._nonblank_chars += sum(map(len, text.split()))
        self._pieces.append(text)
        self._length += len(text)
        if self._length > self._max_chars:
            gathered, keep = self._join(), self._max_chars // 4
            self._pieces = [f"{gathered[:keep]}\n…\n{gathered[-keep:]}"]
            self._length = len(self._pieces[0])

    def _join(self) -> str:
        if len(self._pieces) != 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def _make_cut(self, text: str) -> Cut:
        context = min(MAX_CONTEXT, int(len(text) * MAX_CONTEXT_RATIO))
        cut = Cut(text, self._before[len(self._before) - context :])
        self._before = (self._before + text)[-MAX_CONTEXT:]
        self.cut_count += 1
        self._cut_size *= SIZE_GROWTH if self.cut_count < self._max_parts else 2
        return cut


def _find_cut(text: str, size: int) -> int | None:
    """Return the position at which to cut `text`, or None while a better one may still come."""
    limit = size + min(size // 4, 1000)
    paragraph = _PARAGRAPH.search(text, max(0, size - 2), limit)
    if paragraph is not None and paragraph.end() >= size:
        return paragraph.end()
    if len(text) < limit:
        return None
    for boundary in _BOUNDARIES:
        for start in (max(size // 2, limit - NEAR_CHARS), size // 2):
            ends = [found.end() for found in boundary.finditer(text, start, limit)]
            if ends:
                return ends[-1]
    return limit
