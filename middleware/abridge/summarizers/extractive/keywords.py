"""Know which words a text must hold for a pattern to match. To look for them takes a tenth of the
time that the pattern takes, and most texts hold none of them.

They are read off the pattern as `re` parses it, which is in small letters and sets no flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

WORD = re.compile(r"\w+")

_GAP = "\0"  # in a spelling: characters that are not known, or none
_EDGE = "\1"  # in a spelling: the beginning or the end of a word
_FIRST_WORD = re.compile(r"[^\w\0]*(\w*)([^\w\0]?)")
_KNOWN = re.compile(r"[^\w\0]*(?:\w+\W|\0)")
"""A spelling of which the first word is known, or known to be unknown."""

_IN_WORD = re.compile(r"[\w\0]")
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)
_WORD_FOLLOWS = [(ops.IN, [(ops.CATEGORY, ops.CATEGORY_WORD)])]
_OUTSIDE = {(ops.CATEGORY, ops.CATEGORY_NOT_WORD), (ops.CATEGORY, ops.CATEGORY_SPACE)}

Items = Sequence[tuple[Any, Any]]
"""A pattern, or a part of it: operators and their arguments."""


def initial(word: str) -> str:
    """Return what stands for all words that begin with the same letter."""
    return word[0] + _GAP


def first_words(source: str) -> frozenset[str]:
    """Return the words with one of which begins whatever a pattern matches: the `initial` of those
    that it leaves open, an empty text if it may begin with any."""
    return frozenset(_first_words(_parser.parse(source).data))


def held_words(source: str) -> frozenset[str]:
    """Return words of which any text holds one in which a pattern is found; none if any may be."""
    return _held_words(_parser.parse(source).data)


def _held_words(items: Items) -> frozenset[str]:
    found: list[frozenset[str]] = []
    for at, (op, argument) in enumerate(items):
        if not any(map(_IN_WORD.search, spelt := _spell_item(op, argument))) and all(spelt):
            found.append(frozenset(_first_words(items[at + 1 :])))  # a word begins here
        elif op in (ops.SUBPATTERN, ops.ASSERT):
            found.append(_held_words(argument[-1].data))
        elif op is ops.BRANCH:
            branches = [_held_words(branch.data) for branch in argument[1]]
            found.append(frozenset().union(*branches) if all(branches) else frozenset())
    whole = [words for words in found if words and all(map(str.isalnum, words))]
    return min(whole, key=_commonness, default=frozenset())


def _commonness(words: Iterable[str]) -> float:
    """Return about how often one of some words is met: the longer, the rarer."""
    return sum(8.0 ** -len(word) for word in words)


def _first_words(items: Items) -> Iterator[str]:
    for spelling in _spell(items):
        word, end = _FIRST_WORD.match(spelling).groups()  # type: ignore[union-attr]
        yield word if end or not word else initial(word)


def _spell(items: Items) -> set[str]:
    """Return the spellings of what a pattern matches, each up to the end of its first word."""
    done, begun = set(), {""}
    for op, argument in items:
        spelt = _spell_item(op, argument)
        longer = {one + more for one in begun for more in spelt}
        known = {one: found.end() for one in longer if (found := _KNOWN.match(one))}
        done |= {one[:end] for one, end in known.items()}
        begun = longer - known.keys()
        if not begun:
            break
    return done | begun


def _spell_item(op: Any, argument: Any) -> set[str]:
    if op is ops.LITERAL:
        return {chr(argument)}
    if op is ops.SUBPATTERN:
        return _spell(argument[-1].data)
    if op is ops.BRANCH:
        return set().union(*(_spell(branch.data) for branch in argument[1]))
    if op in _REPEATS:
        return _repeat(*argument)
    if op is ops.IN:
        return _spell_class(argument)
    if op is ops.AT:
        return {"" if argument is ops.AT_NON_BOUNDARY else _EDGE}
    if op is ops.ASSERT:
        return {""}
    if op is ops.ASSERT_NOT:
        return {_EDGE if argument[1].data == _WORD_FOLLOWS else ""}
    return {_GAP}


def _spell_class(members: Items) -> set[str]:
    """Return the characters of a class; a space for those that belong to no word."""
    if all(kind is ops.LITERAL for kind, _ in members):
        return {chr(code) for _, code in members}
    return {" " if _OUTSIDE.issuperset(members) else _GAP}


def _repeat(least: int, most: int, inner: Any) -> set[str]:
    spellings = _spell(inner.data)
    if most > 1 and any(map(_IN_WORD.search, spellings)):
        spellings = {one + _GAP for one in spellings}
    return spellings if least else spellings | {""}
