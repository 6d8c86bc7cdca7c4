"""Find what a stretch is about by what it says again and again: words that recur side by side.

This needs no patterns, so it serves many languages. A phrase is a row of words, or in a script
without spaces of characters, of which each pair of neighbours recurs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

MAX_WORDS, MAX_WIDE_CHARS = 3, 8  # of a phrase
MIN_WORD_CHARS = 3
MIN_COUNT = 2

_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['’-])*+(?!\w)|\w+|[^\w\s]")

_WIDE_ROW = re.compile(r"[\u3400-\u9fff\u30a0-\u30ff]{2,}")

_WIDE_STOPS = re.compile(
    r"[的了是在和与及就都也还不没有要会能可以把被让对从到给但而且或如果因为所这那其它他她我你们个些么吗呢吧上下中里"
    r"很更最每只再又并将为后前时看先得去来出用]|用户|问题|需要|首先"
)

Row = Sequence[str]


@dataclass(frozen=True)
class Theme:
    """A phrase that recurs, as a title names it, and how often it was said."""

    text: str
    count: int
    is_phrase: bool  # more than a word


def find_wide_themes(texts: Iterable[str]) -> list[Theme]:
    """Return what recurs in texts of a script without spaces, the weightiest first."""
    rows = [row for text in texts for found in _WIDE_ROW.findall(text) for row in _split(found)]
    found = _recurring(rows, MAX_WIDE_CHARS)
    return [
        Theme("".join(row), count, len(row) > 2)
        for row, count in found
        if len(row) > 3 or (len(row) > 1 and count > MIN_COUNT)  # else it may begin within a word
    ]


def find_themes(
    texts: Iterable[str], stops: frozenset[str], articles: frozenset[str]
) -> list[Theme]:
    """Return what recurs in texts of words, the weightiest first: phrases, and single nouns."""
    words = _Words(stops, articles)
    rows = [row for text in texts for row in words.rows(text)]
    said = Counter(chain.from_iterable(rows))
    themes = []
    for row, count in _recurring(rows, MAX_WORDS):
        if len(row) > 1 and words.is_phrase(row):
            themes.append(Theme(words.write(row), count, is_phrase=True))
        elif len(row) == 1 and words.is_noun(row[0], said[row[0]]):
            themes.append(Theme(words.write(row), said[row[0]], is_phrase=False))
    return themes


class _Words:
    """How the words of some texts are written, and which of them are nouns."""

    def __init__(self, stops: frozenset[str], articles: frozenset[str]) -> None:
        self._stops = stops
        self._articles = articles
        self._forms: dict[str, str] = {}  # a word in small letters, and as it is written
        self._led: dict[str, str] = {}  # a word, and the article before it
        self._nouns: set[str] = set()  # words between an article and a stop word

    def rows(self, text: str) -> Iterator[Row]:
        """Yield the rows of words between stop words and punctuation, in small letters."""
        row: list[str] = []
        before = "."
        for word in [*_WORD.findall(text), "."]:
            lower = word.lower()
            if len(lower) < MIN_WORD_CHARS or lower in self._stops:
                if len(row) == 1 and row[0] in self._led:
                    self._nouns.add(row[0])
                yield row
                row = []
            else:
                if before in self._articles:
                    self._led[lower] = "the" if before in {"a", "an"} else before
                if before == ".":  # every sentence begins with a capital
                    self._forms.setdefault(lower, lower)
                elif word == lower or self._forms.get(lower, lower) == lower:
                    self._forms[lower] = word
                row.append(lower)
            before = lower

    def is_noun(self, word: str, count: int) -> bool:
        """Return whether a word seems to be a noun: a plural may be a verb, if said only twice."""
        is_plural = "the" in self._articles and _ends_in_s(word) and count > MIN_COUNT
        return word in self._nouns or self._forms[word] != word or is_plural

    def is_phrase(self, row: Row) -> bool:
        """Return false for words of which one seems to be a verb, or an adverb."""
        verbs = any(map(_ends_in_s, row[:-1]))
        return not verbs and not any(word.endswith(("ed", "ly")) for word in row)

    def write(self, row: Row) -> str:
        return " ".join([self._led.get(row[0], ""), *(self._forms[word] for word in row)]).strip()


def _ends_in_s(word: str) -> bool:
    return word.endswith("s") and not word.endswith(("ss", "us", "is", "'s", "’s"))


def _split(text: str) -> Iterator[Row]:
    yield from map(tuple, _WIDE_STOPS.split(text))


def _recurring(rows: Sequence[Row], longest: int) -> list[tuple[Row, int]]:
    """Return the longest parts of rows in which each pair recurs, and how often they are said."""
    pairs = Counter(pair for row in rows for pair in pairwise(row))
    counts: Counter[Row] = Counter()
    for row in rows:
        start = 0
        for end in range(1, len(row) + 1):
            if end == len(row) or pairs[row[end - 1], row[end]] < MIN_COUNT:
                counts[tuple(row[start:end])] += 1
                start = end
    found = [
        (row, count) for row, count in counts.items() if count >= MIN_COUNT and len(row) <= longest
    ]
    return sorted(found, key=lambda one: -one[1] * len(one[0]) ** 0.7)
