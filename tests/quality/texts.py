"""Take a part, and a text, to pieces: title, sentences, words that carry meaning, negations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.quality.lexicon import NEGATION, STOP_WORDS, WIDE_RUN

_TITLE = re.compile(r"\A\s*\*\*(.+?)\*\*\s*")

_SENTENCE_END = re.compile(
    r"(?<=[.!?…])([\"'”’»)\]]*)\s+(?=[\"'“„«(\[¿¡`*$]*[^\W_a-zà-ÿ])|(?<=[。！？])(?![”’」』）)])\s*"
)

_NO_END = re.compile(r"(?:\b(?:e\.g|i\.e|z\.\s?B|d\.\s?h|vs|Mr|Mrs|Dr|No|St|ca)|^\W*\d{1,2})\.$")

_WORD = re.compile(r"[^\W_](?:[\w'’./%,-]*[\w%])?")

_LIST_MARK = re.compile(r"^\s*(?:[-*+•]|\d{1,2}[.)]|#{1,6})\s+")

Words = frozenset[str]


@dataclass(frozen=True)
class Part:
    """A part of a summary, as a client was shown it."""

    text: str

    @property
    def title(self) -> str | None:
        found = _TITLE.match(self.text)
        return found[1].strip() if found else None

    @property
    def body(self) -> str:
        found = _TITLE.match(self.text)
        return (self.text[found.end() :] if found else self.text).strip()

    @property
    def sentences(self) -> list[str]:
        return list(sentences_of(self.body))


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences of each line, a heading or an item of a list being lines of their own."""
    for line in text.splitlines():
        start = 0
        for gap in _SENTENCE_END.finditer(line):
            end = gap.start() if gap[1] is None else gap.end(1)
            if not _NO_END.search(line[start:end]) and not _is_quote_open(line[start:end]):
                yield from _nonblank(line[start:end])
                start = gap.end()
        yield from _nonblank(line[start:])


def _is_quote_open(text: str) -> bool:
    return text.count('"') % 2 == 1 or (text.count("“") > text.count("”") and "„" not in text)


def _nonblank(text: str) -> Iterator[str]:
    if text.strip():
        yield text.strip()


def without_mark(sentence: str) -> str:
    """Return a sentence of a list's item without the item's mark."""
    return _LIST_MARK.sub("", sentence)


def content_words(text: str) -> Words:
    """Return the words that carry meaning, and pairs of wide characters; no negations."""
    plain = NEGATION.sub(" ", text.casefold())
    words = {word for word in _WORD.findall(WIDE_RUN.sub(" ", plain)) if _carries_meaning(word)}
    runs = WIDE_RUN.findall(plain)
    return frozenset(words | {run[at : at + 2] for run in runs for at in range(len(run) - 1)})


def _carries_meaning(word: str) -> bool:
    return word not in STOP_WORDS and (len(word) > 3 or any(map(str.isdigit, word)))


def is_negative(text: str) -> bool:
    """Return whether an odd number of negations is in a text."""
    return len(NEGATION.findall(text)) % 2 == 1


def letters(text: str) -> str:
    """Return a text's letters and digits alone, by which a copy is recognised."""
    return "".join(filter(str.isalnum, text.casefold()))
