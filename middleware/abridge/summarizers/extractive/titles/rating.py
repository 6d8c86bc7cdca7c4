"""Rate a title by what it says, where its sentence stands, and how much of the passage it names.

The weights were fitted to how readers marked 7,400 titles of 400 stretches of reasoning, from 0 for
a wrong one to 3 for one that tells exactly what its stretch is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from abridge.summarizers.extractive.titles.phrases import CLAUSES, ROOM, Draft
from abridge.summarizers.extractive.words import topic_words

KINDS: Mapping[str, float] = MappingProxyType({
    "task": -0.05,  # what the user wants
    "intent": 0.1,  # what the reasoning is going to do
    "doing": -0.3,  # an order, or what begins with a gerund
    "asked": 0.25,  # what the user asks
    "question": 0.1,  # what the reasoning asks
    "topic": 0.1,  # what is named as one
    "place": 0.25,  # a file or function that is looked at
    "concluded": -0.05,
    "stated": -0.3,
    "supposed": -0.1,
    "result": 0.0,
    "noun": -0.6,  # in a language that is not read word by word
    "again": 0.15,  # what an earlier title is about
})  # fmt: skip
LAST = 0.3  # for a conclusion in the last part of all, which tells the result

TOLD, CONCLUDING, CLAUSE_WORD = 0.15, 0.35, 0.03
"""For a clause: of a sentence that is told, of one that concludes, for each word up to `ROOM`."""

POINTING = -0.2  # for a word that stands for what a title does not show
BEGINNING, TASK = 0.15, 0.2  # for a phrase of the first sentence, and if that is the first of all
HEADING = 1.3  # for the only heading, half for each of two

SPREAD, SPREAD_FAR = 0.5, 0.45
"""For the share of all sentences that have one of its topic words, and two of them."""


class TitleSource(NamedTuple):
    """A sentence of a passage, or a heading."""

    text: str
    is_told: bool = True  # the summary tells it, and nothing takes it back
    concludes: bool = False  # see `scoring.Candidate`
    begins: bool = False  # it is the first
    words: frozenset[str] | None = None  # its topic words, if they are known
    headings: int = 0  # it is one of so many


class Rating:
    """Rates the titles of one passage."""

    def __init__(self, sources: Sequence[TitleSource], *, is_first: bool, is_last: bool) -> None:
        self._beginning = BEGINNING + TASK * is_first
        self._kinds = {**KINDS, "concluded": KINDS["concluded"] + LAST * is_last}
        self._count = len(sources) or 1
        self._holding: dict[str, int] = {}  # a bit for each source that has a topic word
        known, bit = self._holding.get, 1
        for source in sources:
            for word in source.words or topic_words(source.text.lower()):
                self._holding[word] = known(word, 0) | bit
            bit <<= 1

    def rate(self, draft: Draft, source: TitleSource | None) -> float:
        """Rate a title of a sentence, or of what an earlier title says."""
        kind = draft.kind
        rate = self._kinds[kind] + self._spread(topic_words(draft.thing.lower()))
        rate += POINTING * draft.points
        if kind in CLAUSES:
            rate += CLAUSE_WORD * min(0, f"{draft.form} {draft.thing}".count(" ") - ROOM)
        return rate + (self._rate_source(source, kind) if source else 0.0)

    def _rate_source(self, source: TitleSource, kind: str) -> float:
        if source.headings:
            return HEADING / source.headings
        if kind in CLAUSES:
            return TOLD * source.is_told + CONCLUDING * source.concludes
        return self._beginning * source.begins

    def _spread(self, words: Iterable[str]) -> float:
        once = twice = 0
        for word in words:
            holding = self._holding.get(word, 0)
            twice |= once & holding
            once |= holding
        return (SPREAD * once.bit_count() + SPREAD_FAR * twice.bit_count()) / self._count
