"""Measure a summary against its reasoning: what it says, what it must not, and how it reads.

No model judges here: it is a gate against getting worse, not a judgement of taste.
`test_measure.py` damages good summaries and shows that each damage is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.quality.corpus import Patterns, Reasoning
from tests.quality.lexicon import (
    BAD_TITLE_END,
    BAD_TITLE_START,
    DEBRIS,
    LEANS,
    SENTENCE_CLOSES,
    TAKES_BACK,
    WIDE_RUN,
)
from tests.quality.source import Source
from tests.quality.texts import Part, Words, content_words, letters

REPEATS = 0.7
"""The share of a sentence's words that one before it had, from which it is told again."""

FEW_WORDS = 3
"""Sentences with fewer words that carry meaning are told again only word for word."""

MAX_TITLE_WORDS = 14

KEPT, CLEAN, TITLED = 60, 30, 10
"""Points for what is said, for sentences without a fault, and for good titles."""

NEVER_POINTS = 20
"""Points off for each thing that must not be shown; a secret costs all of them."""


@dataclass(frozen=True)
class Measure:
    """What was counted in the summary of one reasoning."""

    parts: int
    sentences: int
    key: float  # the share of what a reader must learn
    final: float  # the share of what the last part must say
    secrets: int
    never: int
    taken_back: int  # sentences that the reasoning withdraws right after them
    dangling: int  # that lean on one that is not shown
    debris: int  # that are no prose, or a half
    again: int  # that tell something again
    contradicts: int  # that say the opposite of what the reasoning says
    faulty: int  # sentences with any of these faults
    titled: int
    bad_titles: int

    @property
    def score(self) -> float:
        """From 0 to 100."""
        if not self.parts or self.secrets:
            return 0.0
        kept = (self.key + self.final) / 2
        clean = 1 - self.faulty / self.sentences if self.sentences else 0.0
        titled = (self.titled - self.bad_titles) / self.parts
        points = KEPT * kept + CLEAN * clean + TITLED * titled - NEVER_POINTS * self.never
        return max(0.0, points)


FAULTS = ("taken_back", "dangling", "debris", "again", "contradicts")
"""The faults of a sentence."""


def measure(reasoning: Reasoning, texts: Sequence[str]) -> Measure:
    """Measure the parts of a summary, as a client was shown them."""
    parts = [Part(text) for text in texts]
    told = "\n\n".join(texts)
    faults = list(_find_faults(Source(reasoning.prose), parts))
    titles = [part.title for part in parts if part.title is not None]
    keys = [letters(title) for title in titles]
    bad = [
        is_bad_title(title) or keys.index(key) < place
        for place, (title, key) in enumerate(zip(titles, keys, strict=True))
    ]
    return Measure(
        parts=len(parts),
        sentences=len(faults),
        key=_share(reasoning.key, told),
        final=_share(reasoning.final, texts[-1] if texts else ""),
        secrets=_count(reasoning.secret, told),
        never=_count(reasoning.never, told),
        **{name: sum(name in found for found in faults) for name in FAULTS},
        faulty=sum(map(bool, faults)),
        titled=len(titles),
        bad_titles=sum(bad),
    )


def _share(patterns: Patterns, text: str) -> float:
    return _count(patterns, text) / len(patterns) if patterns else 1.0


def _count(patterns: Patterns, text: str) -> int:
    return sum(bool(pattern.search(text)) for pattern in patterns)


def _find_faults(source: Source, parts: Sequence[Part]) -> Iterator[set[str]]:
    """Yield the faults of each sentence of the parts."""
    told: list[tuple[Words, str]] = []
    for part in parts:
        before = ""
        for sentence in part.sentences:
            words, key = content_words(sentence), letters(sentence)
            checks = {
                "taken_back": bool(TAKES_BACK.match(source.after(sentence) or "")),
                "dangling": _dangles(source, sentence, before),
                "debris": is_debris(sentence),
                "again": any(_repeats(words, key, *other) for other in told),
                "contradicts": source.contradicts(sentence),
            }
            yield {name for name, found in checks.items() if found}
            told.append((words, key))
            before = sentence


def _dangles(source: Source, sentence: str, before: str) -> bool:
    """Return whether a sentence leans on another that is not shown.

    What a model wrote itself may lean on the sentence before it; what was copied, only if that was
    copied too, from just before it.
    """
    if not (LEANS.match(sentence) or TAKES_BACK.match(sentence)):
        return False
    return not before or (
        source.after(sentence) is not None and not source.follows(before, sentence)
    )


def is_debris(sentence: str) -> bool:
    """Return whether a sentence is no prose, or only half of one."""
    pairs = ("()", "[]", "“”", "「」", "《》")
    unbalanced = any(sentence.count(pair[0]) != sentence.count(pair[1]) for pair in pairs)
    unpaired = any(sentence.count(quote) % 2 for quote in '`"')
    return bool(
        unbalanced or unpaired or DEBRIS.search(sentence) or not SENTENCE_CLOSES.search(sentence)
    )


def _repeats(words: Words, key: str, other_words: Words, other_key: str) -> bool:
    if len(words) < FEW_WORDS:
        return bool(key) and key == other_key
    return len(words & other_words) / len(words) >= REPEATS


def is_bad_title(title: str) -> bool:
    """Return whether a title is a piece of a sentence, too short, too long, or no prose."""
    wide, words = bool(WIDE_RUN.search(title)), len(title.split())
    return bool(
        BAD_TITLE_START.match(title)
        or BAD_TITLE_END.search(title)
        or DEBRIS.search(title)
        or not letters(title)
        or words > MAX_TITLE_WORDS
        or (words < 2 and not wide)
    )
