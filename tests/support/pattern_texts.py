"""Texts made of the beginnings of a regular expression, on which it may have to try again and
again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, TypeAlias

from tests.support.growth import Text

Element: TypeAlias = tuple[Any, Any]
"""An element of a parsed expression: what it is, and its arguments."""

REPEATS = frozenset({codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT})

CHARACTERS = frozenset({codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN})

MANY = 64
"""Repetitions beyond which a repeat counts as one without an end."""

SAMPLES = "a", "A", "0", " ", "\n", "-<>*.\\/'\"`,:;()[]{}|#@=+_!&", "中。éß가あ！"
"""Characters of each kind, the first that fits of which stands for the others."""

TAILS = "", "!"
"""What ends a text: nothing, or what an expression may not expect."""


def texts_for(pattern: re.Pattern[Any]) -> list[Text]:
    """Return texts that repeat a piece of a pattern, after what it begins with or with that."""
    flags = pattern.flags
    texts: dict[Text, None] = {}
    for head, piece in _find_pieces(parser.parse(pattern.pattern, flags), flags):
        starts = (head, piece), ("", head + piece), ("", piece)
        texts |= {Text(*start, tail): None for start in starts if start[1] for tail in TAILS}
    return list(texts)


def _find_pieces(
    elements: Iterable[Element], flags: int, head: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield a text that matches up to an element, and one that the element may repeat."""
    for code, arguments in elements:
        if code in REPEATS:
            _, most, inner = arguments
            yield from _find_pieces(inner, flags, head)
            for piece in _pieces_of(inner, flags) if most > MANY else ():
                yield head, piece
        for inner in inner_elements(code, arguments):
            yield from _find_pieces(inner, flags, head)
        if not (code is codes.ASSERT and head):
            head += _match(((code, arguments),), flags)
        yield head, ""


def inner_elements(code: Any, arguments: Any) -> list[Iterable[Element]]:
    """Return what an element holds that is no repeat: of a choice, each alternative."""
    if code is codes.SUBPATTERN:
        return [arguments[3]]
    if code is codes.BRANCH:
        return list(arguments[1])
    if code is codes.ATOMIC_GROUP:
        return [arguments]
    return [arguments[1]] if code in (codes.ASSERT, codes.ASSERT_NOT) else []


def _pieces_of(elements: Any, flags: int) -> list[str]:
    """Return what a repeat may repeat: characters of several kinds, or one text."""
    code, arguments = elements[0]
    if len(elements) == 1 and code in CHARACTERS:
        return _characters(code, arguments, flags)
    return [_match(elements, flags)]


def _match(elements: Iterable[Element], flags: int) -> str:
    """Return a text that elements match, or nearly so."""
    text = ""
    for code, arguments in elements:
        if code is codes.LITERAL:
            text += chr(arguments)
        elif code in CHARACTERS:
            text += _characters(code, arguments, flags)[0]
        elif code in REPEATS:
            least, most, inner = arguments
            text += _match(inner, flags) * min(max(1, least), most)
        elif code is codes.ASSERT and arguments[0] < 0 and not text:
            text += _match(arguments[1], flags)
        elif code in (codes.SUBPATTERN, codes.ATOMIC_GROUP, codes.BRANCH):
            text += _match(inner_elements(code, arguments)[0], flags)
    return text


def _characters(code: Any, arguments: Any, flags: int) -> list[str]:
    """Return characters of several kinds that an element matches."""
    fitting = ([char for char in kind if _fits(code, arguments, char, flags)] for kind in SAMPLES)
    found = [kind[0] for kind in fitting if kind]
    return found or [_first_of_set(arguments)]


def _first_of_set(arguments: Any) -> str:
    for code, value in arguments if isinstance(arguments, list) else ():
        if code is codes.LITERAL:
            return chr(value)
        if code is codes.RANGE:
            return chr(value[0])
    return "a"


_CATEGORIES = {
    codes.CATEGORY_DIGIT: re.compile(r"\d"),
    codes.CATEGORY_NOT_DIGIT: re.compile(r"\D"),
    codes.CATEGORY_SPACE: re.compile(r"\s"),
    codes.CATEGORY_NOT_SPACE: re.compile(r"\S"),
    codes.CATEGORY_WORD: re.compile(r"\w"),
    codes.CATEGORY_NOT_WORD: re.compile(r"\W"),
}


def _fits(code: Any, arguments: Any, char: str, flags: int) -> bool:
    if code is codes.LITERAL:
        return char == chr(arguments)
    if code is codes.NOT_LITERAL:
        return char != chr(arguments)
    if code is codes.ANY:
        return char != "\n" or bool(flags & re.DOTALL)
    members = [member for member in arguments if member[0] is not codes.NEGATE]
    is_member = any(_is_member(kind, value, char) for kind, value in members)
    return is_member == (len(members) == len(arguments))


def _is_member(code: Any, value: Any, char: str) -> bool:
    if code is codes.LITERAL:
        return char == chr(value)
    if code is codes.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return _CATEGORIES[value].fullmatch(char) is not None
