"""Group the alternatives of a regular expression by the letters that they begin with.

`re` tries alternatives one after the other. Of a list of a hundred words, grouped so, it looks at
one for each letter, and goes on with those of one letter alone: a search takes half of the time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PIECE = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|.", re.DOTALL)
"""A character of a pattern, a class, or what a backslash escapes."""

_OPENING = "(?:"

_QUANTIFIERS = ("?", "*", "+", "{")


def group_alternatives(pattern: str) -> str:
    """Return alternatives in another order that match the same texts. It is that of `pattern` among
    those that begin with the same letter."""
    groups: dict[str, list[str]] = {}
    for alternative in dict.fromkeys(_spell_out(pattern)):
        first, rest = alternative[:1], alternative[1:]
        if first.isalpha() and not rest.startswith(_QUANTIFIERS):
            groups.setdefault(first, []).append(rest)
        else:
            groups.setdefault("", []).append(alternative)
    others = groups.pop("", [])
    grouped = [f"{first}(?:{'|'.join(group)})" for first, group in groups.items()]
    return "|".join([*grouped, *others])


def _spell_out(pattern: str) -> Iterator[str]:
    """Yield the alternatives; those in a group at the beginning of one each for itself."""
    for alternative in _split(pattern):
        if not alternative.startswith(_OPENING):
            yield alternative
            continue
        end = _end_of_group(alternative)
        group, rest = alternative[len(_OPENING) : end - 1], alternative[end:]
        if rest.startswith(_QUANTIFIERS[1:]):
            yield alternative
            continue
        tail = rest.removeprefix("?")
        for first in _split(group):
            yield from _spell_out(first + tail)
        if tail != rest:  # the group may be missing
            yield from _spell_out(tail)


def _split(pattern: str) -> list[str]:
    """Split a pattern at the bars that stand in no group."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(pattern):
        depth += (piece == "(") - (piece == ")")
        if piece == "|" and not depth:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _end_of_group(pattern: str) -> int:
    """Return where the group ends that a pattern begins with."""
    depth = 0
    for piece in _PIECE.finditer(pattern):
        depth += (piece[0] == "(") - (piece[0] == ")")
        if not depth:
            return piece.end()
    raise ValueError(f"unbalanced brackets: {pattern}")
