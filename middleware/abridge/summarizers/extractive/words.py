"""Measure a text: its letters, its topic words, its size."""

from __future__ import annotations

import re
from operator import add

from abridge.core.segmenter import WIDE_LETTERS, WIDE_RUN

_WIDE_LETTERS = re.compile(f"[{WIDE_LETTERS}]+")
_WORD = re.compile(r"[^\W\d_]+")

_LETTER_BYTES = (
    bytes(ord("x") if chr(code).isalpha() else ord(" ") for code in range(128)) + b" " * 128
)
"""Turns letters into `x` and all else into spaces."""

_LETTERS = re.compile(
    rf"[{WIDE_LETTERS}]+|[^\W\d_]{{2,}}"  # a wide one may stand alone
)

_LONG_WORD = re.compile(r"[a-z]{4,}|\d(?:[\d.,]*\d)?")
"""A word of four and more letters, or a number."""


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = words_of(
    "about also been could does first from have here just like make more need only other really"
    " should some something sure than that their them then there these they thing think this"
    " those user want wants what when where which will with would your"
)
"""Stop words of four and more letters."""


def is_wide(text: str) -> bool:
    """Return true if a text is in a script without spaces, at least in part."""
    return not text.isascii() and WIDE_RUN.search(text) is not None


def topic_words(text: str) -> frozenset[str]:
    """Return the longer words and numbers of a text in small letters; pairs of characters where the
    script has no spaces."""
    found = frozenset(_LONG_WORD.findall(text)) - STOP_WORDS
    if text.isascii():
        return found
    if runs := _WIDE_LETTERS.findall(text):
        return found.union(*[map(add, run, run[1:]) for run in runs])
    return found.union([word for word in _WORD.findall(text) if len(word) > 3]) - STOP_WORDS


def letter_share(text: str) -> float:
    """Return the share of letters among what is not a space. A single letter is no word."""
    visible = len(text) - text.count(" ")
    if text.isascii():
        letters = text.encode().translate(_LETTER_BYTES)
        return (letters.count(b"x") - letters.split().count(b"x")) / visible
    return len("".join(_LETTERS.findall(text))) / visible


def word_count(text: str, *, wide: bool) -> int:
    """Count words; in a script without spaces, half of the characters."""
    return len(text) // 2 if wide else len(text.split())


def share_of(words: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of `words` that is among `others`."""
    return len(words & others) / len(words) if words else 0.0
