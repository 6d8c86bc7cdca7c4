"""What is repeated possessively, or is in an atomic group, is matched alike by each Python.

Where such a thing fails after it has taken a character, Python 3.11.0 to 3.11.4 do not take that
back (CPython issue 106052). So each of its alternatives is a row of characters, which fails as a
whole, or one element alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]

import pytest

from tests.support.package import find_patterns
from tests.support.pattern_texts import CHARACTERS, REPEATS, Element, inner_elements


def fragile(elements: Iterable[Element]) -> Iterator[Element]:
    """Yield the elements that those Pythons may match wrongly."""
    for code, arguments in elements:
        inner = [arguments[2]] if code in REPEATS else inner_elements(code, arguments)
        if code in (codes.POSSESSIVE_REPEAT, codes.ATOMIC_GROUP) and not all(map(holds, inner)):
            yield code, arguments
        for each in inner:
            yield from fragile(each)


def holds(elements: Iterable[Element]) -> bool:
    """Return whether nothing fails after a character was taken, or else all does."""
    (code, arguments), *others = elements
    if others:
        return all(each[0] in CHARACTERS for each in elements)
    inner = inner_elements(code, arguments)
    return all(map(holds, inner))


def is_fragile(pattern: re.Pattern[str] | re.Pattern[bytes]) -> bool:
    return any(fragile(parser.parse(pattern.pattern, pattern.flags)))


def test_no_expression_of_the_package_is_matched_otherwise_before_python_3_11_5() -> None:
    assert [used.name for used in find_patterns() if is_fragile(used.pattern)] == []


@pytest.mark.parametrize("wrong", [r"(?:a|b(?=c))++", r"(a\d++)?+b", r"\d(?:x(?:a\d+)?+b)*"])
def test_one_that_was_wrong_is_found(wrong: str) -> None:
    assert is_fragile(re.compile(wrong))


@pytest.mark.parametrize("right", [r"(?:[^'\\]++|\\.)*+", r"(?:a\d+)?b", r"(?>[ab]|cd)e++"])
def test_one_that_was_right_is_not(right: str) -> None:
    assert not is_fragile(re.compile(right))
