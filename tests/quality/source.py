"""The reasoning that a summary is of: where a sentence was copied from, and what it contradicts."""

from __future__ import annotations

import re
from functools import cached_property

from tests.quality.texts import (
    Words,
    content_words,
    is_negative,
    letters,
    sentences_of,
    without_mark,
)

SAME = 0.8
"""The share of words in common (Dice) from which two clauses say the same, or the opposite."""

COPIED_LETTERS = 12
"""The least letters by which a copied sentence is found."""

TAIL_LETTERS = 40
"""Letters of a sentence's end by which it is found where its beginning was changed."""

AFTER_CHARS = 160
"""Characters after a copied sentence in which it may be taken back."""

FEW_WORDS = 2
"""Clauses with fewer words that carry meaning contradict nothing."""

_CLAUSE_END = re.compile(
    r"[:;](?=\s)|[：；，]|,(?=\s(?:and|but|because|so|since|und|aber|weil|denn|et|mais|car|y|pero)\b)"
)


class Source:
    """A text in which copied sentences are found by their letters, whatever their marks."""

    def __init__(self, text: str) -> None:
        self._text = text
        folded = [(letter, place) for place, char in enumerate(text) for letter in letters(char)]
        self._letters = "".join(letter for letter, _ in folded)
        self._places = [place for _, place in folded]

    @cached_property
    def _clauses(self) -> list[tuple[Words, bool]]:
        """The words of each clause, and whether it is negative."""
        sentences = map(without_mark, sentences_of(self._text))
        return [clause for sentence in sentences for clause in _clauses_of(sentence)]

    def _find(self, sentence: str) -> tuple[int, int] | None:
        """Return where a copied sentence begins and ends, counted in letters."""
        wanted = letters(sentence)
        if len(wanted) < COPIED_LETTERS:
            return None
        for searched in (wanted, wanted[-TAIL_LETTERS:]):
            start = self._letters.find(searched)
            if start >= 0:
                return start, start + len(searched)
        return None

    def after(self, sentence: str) -> str | None:
        """Return what the text says right after a copied sentence; None if it is no copy."""
        found = self._find(sentence)
        if found is None:
            return None
        end = self._places[found[1] - 1] + 1
        return self._text[end : end + AFTER_CHARS]

    def follows(self, first: str, second: str) -> bool:
        """Return whether both are copied, the second from right after the first."""
        before, after = self._find(first), self._find(second)
        return before is not None and after is not None and before[1] == after[0]

    def contradicts(self, sentence: str) -> bool:
        """Return whether what is most like a clause of it in the text says the opposite."""
        return any(self._negates(*clause) for clause in _clauses_of(sentence))

    def _negates(self, words: Words, negative: bool) -> bool:  # noqa: FBT001 -- as in the pairs
        if len(words) < FEW_WORDS:
            return False
        alike = [(_alike(words, others), other) for others, other in self._clauses]
        most = max((share for share, _ in alike), default=0.0)
        nearest = {other for share, other in alike if share == most}
        return most >= SAME and negative not in nearest


def _clauses_of(sentence: str) -> list[tuple[Words, bool]]:
    return [(content_words(one), is_negative(one)) for one in _CLAUSE_END.split(sentence)]


def _alike(words: Words, others: Words) -> float:
    """Return the share of words in common (Dice), from 0 to 1."""
    return 2 * len(words & others) / (len(words) + len(others)) if words or others else 0.0
