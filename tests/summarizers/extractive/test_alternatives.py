"""Tests of grouping the alternatives of a regular expression."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive.alternatives import group_alternatives


@pytest.mark.parametrize(
    ("pattern", "grouped"),
    [
        ("thus|so|then", "t(?:hus|hen)|s(?:o)"),
        ("(?:the|my) plan|maybe", "t(?:he plan)|m(?:y plan|aybe)"),
        ("(?:the )?plan", "t(?:he plan)|p(?:lan)"),
        ("(?:a|b)+c|ad", "a(?:d)|(?:a|b)+c"),
        ("tests?|t?op|[ab|]x|\\|y", "t(?:ests?)|t?op|[ab|]x|\\|y"),
    ],
)
def test_alternatives_are_grouped_by_their_first_letter(pattern: str, grouped: str) -> None:
    assert group_alternatives(pattern) == grouped


WORDS = st.text("abc", min_size=1, max_size=3)
GROUPS = st.lists(WORDS, min_size=1, max_size=4).map(lambda words: f"(?:{'|'.join(words)})")
ALTERNATIVES = st.tuples(
    st.one_of(WORDS, GROUPS), st.sampled_from(["", "?", "+"]), st.one_of(st.just(""), WORDS, GROUPS)
).map("".join)


@given(st.lists(ALTERNATIVES, min_size=1, max_size=6).map("|".join), st.text("abc ", max_size=12))
def test_grouped_alternatives_find_what_the_others_find(pattern: str, text: str) -> None:
    plain = re.search(rf"\b(?:{pattern})(?!\w)", text)
    grouped = re.search(rf"\b(?:{group_alternatives(pattern)})(?!\w)", text)
    assert (plain and plain.start()) == (grouped and grouped.start())
