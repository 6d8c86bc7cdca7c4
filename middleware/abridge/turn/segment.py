"""When a stretch of reasoning becomes a part.

Where a cut falls depends on the text alone, never on how it was split into deltas, so that a
streamed and a whole answer are summarized alike. A cut is due at `size` characters and made at the
first paragraph that ends from there on; when none has come within the slack, at the best boundary
that the second half of the text offers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

GROWTH = 1.25
CONTEXT = 500
CONTEXT_SHARE = 0.1
"""The most of what came before a part that goes along with it: in characters, and as a share of
the part's own, so that what is sent stays in proportion to what is said."""

_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_BOUNDARIES = (
    _PARAGRAPH,
    re.compile(r"[.!?…][\"')\]*_]*\s|[。！？][”’」』）]*|\n"),
    re.compile(r"\s|[，、；]"),
)


@dataclass(slots=True, frozen=True)
class Cut:
    """Reasoning worth a part, and the end of what came before it."""

    text: str
    before: str


class Segmenter:
    """Gathers one item's reasoning.

    `size` is the first part's, in characters; each next is `GROWTH` times as large, and past
    `parts` of them twice as large, so that their number stays small however long the thinking is.
    `live` false cuts nothing before the end. Of more than `ceiling` characters gathered for one
    part, head and tail are kept.
    """

    def __init__(
        self, *, size: int, parts: int, tail: int, least: int, ceiling: int, live: bool
    ) -> None:
        self._size = float(size)
        self._parts = parts
        self._tail = tail
        self._least = least
        self._ceiling = ceiling
        self._live = live
        self._pieces: list[str] = []
        self._length = 0
        self._weight = 0
        self._before = ""
        self.cuts = 0

    def feed(self, text: str) -> list[Cut]:
        """Take more reasoning; return the parts it fills."""
        self._gather(text)
        made: list[Cut] = []
        while self._live and self._length >= self._size and self._weight >= self._least:
            gathered = self._joined()
            place = _place(gathered, int(self._size))
            if place is None:
                break
            made.append(self._cut(gathered[:place]))
            self._pieces, self._length = [gathered[place:]], len(gathered) - place
        return made

    def close(self) -> Cut | None:
        """The stretch has ended: return the rest if it is worth a part.

        A short rest after a cut is not; it stays, for a next stretch to take along.
        """
        rest = self._joined()
        size = len(rest.strip())
        if not size or self._weight < self._least or (self.cuts and size < self._tail):
            return None
        self._pieces, self._length = [], 0
        return self._cut(rest)

    def reopen(self) -> None:
        """Another stretch of the same item begins."""
        if self._joined().strip():
            self._gather("\n\n")

    def _gather(self, text: str) -> None:
        if self._weight < self._least:
            self._weight += sum(map(len, text.split()))
        self._pieces.append(text)
        self._length += len(text)
        if self._length > self._ceiling:
            gathered, keep = self._joined(), self._ceiling // 4
            self._pieces = [f"{gathered[:keep]}\n…\n{gathered[-keep:]}"]
            self._length = len(self._pieces[0])

    def _joined(self) -> str:
        if len(self._pieces) != 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def _cut(self, text: str) -> Cut:
        context = min(CONTEXT, int(len(text) * CONTEXT_SHARE))
        cut = Cut(text, self._before[len(self._before) - context :])
        self._before = (self._before + text)[-CONTEXT:]
        self.cuts += 1
        self._size *= GROWTH if self.cuts < self._parts else 2
        return cut


def _place(text: str, size: int) -> int | None:
    """Where to cut `text`, or None while a better place may still come."""
    limit = size + min(size // 4, 1000)
    paragraph = _PARAGRAPH.search(text, max(0, size - 2), limit)
    if paragraph is not None and paragraph.end() >= size:
        return paragraph.end()
    if len(text) < limit:
        return None
    for boundary in _BOUNDARIES:
        ends = [found.end() for found in boundary.finditer(text, size // 2, limit)]
        if ends:
            return ends[-1]
    return limit
