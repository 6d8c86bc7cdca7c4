"""Measure a text: its words, its topic words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import add

from abridge.core.segmenter import WIDE_LETTERS, WIDE_RUN

_WIDE_LETTERS = re.compile(f"[{WIDE_LETTERS}]+")
WORD = re.compile(r"[^\W\d_]+")
_OTHER_LETTER = re.compile(r"[^\W\d_\x00-\x7f]")
_NUMBER = re.compile(r"\d(?:[\d.,]*\d)?")

_DIGIT = "\x1f"
_SPACES = bytes(
    code if chr(code).isalpha() else ord(_DIGIT if chr(code).isdigit() else " ")
    for code in range(128)
).ljust(256)
"""Turns digits into a kind of space, and all else but letters into another."""


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


def read_phrases(phrases: str) -> Iterator[tuple[str, str, str]]:
    """Yield what is before a word, the word, and what is after it, for each word of each phrase.

    Semicolons separate phrases, whose words are in angle brackets: `in <summary|short>`. One
    without words is all after an empty one.
    """
    for phrase in " ".join(phrases.split()).split("; "):
        before, words, after = re.split("[<>]", phrase) if "<" in phrase else ("", "", phrase)
        for word in words.split("|"):
            yield before, word, after


STOP_WORDS = words_of(
    "about also been could does first from have here just like make more need only other really"
    " should some something sure than that their them then there these they thing think this"
    " those user want wants what when where which will with would your"
)
"""Stop words of four and more letters."""


def split_words(text: str) -> tuple[list[str], frozenset[str], list[str], bool]:
    """Return the words of a text in small letters, without digits, and of them the topic words: the
    longer ones, numbers too; pairs of characters where the script has no spaces, at least in part;
    the numbers; and whether that is so."""
    wide = not text.isascii() and WIDE_RUN.search(text) is not None
    spaced = text.encode("ascii", "replace").translate(_SPACES).decode()
    words = spaced.split()
    numbers = _NUMBER.findall(text) if _DIGIT in spaced or not text.isascii() else []
    found = numbers + [word for word in words if len(word) > 3 and word not in STOP_WORDS]
    if wide and (runs := _WIDE_LETTERS.findall(text)):
        found += [pair for run in runs for pair in map(add, run, run[1:])]
    elif not text.isascii() and _OTHER_LETTER.search(text):
        words = WORD.findall(text)
        found += [word for word in words if len(word) > 3 and word not in STOP_WORDS]
    return words, frozenset(found), numbers, wide


def topic_words(text: str) -> frozenset[str]:
    return split_words(text)[1]


def word_count(text: str, most: int, *, wide: bool) -> int:
    """Count words up to a number; in a script without spaces, half of the characters."""
    return min(most, len(text) // 2) if wide else len(text.split(None, most - 1))
