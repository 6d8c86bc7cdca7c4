"""Test that all cues of a sentence are found at once as each is found alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive import cues
from abridge.summarizers.extractive.cues import find_cues, group_alternatives

CUES = (
    cues.CONCLUSION,
    cues.ANSWER,
    cues.DECISION,
    cues.TASK,
    cues.FINDING,
    cues.HEDGE,
    cues.META,
    cues.PLAN,
)

WORDS = """
so therefore the user's user wants final answer is must be we i'll i will should need to find out
check because only maybe might likely think best plan approach in conclusion summary step by
die antwort ich muss prüfen zuerst einmal vielleicht daher поэтому только la réponse
因此 用户 可能 我们需要 答案 必须 接下来 がある まず 따라서 ok-must x_must (thus) answer: “so” 7
"""
PIECES = st.tuples(
    st.sampled_from(WORDS.split()), st.sampled_from([" ", " ", " ", "", ", ", "-"])
).map("".join)


@given(text=st.lists(PIECES, max_size=14).map("".join), wide=st.booleans())
def test_cues_found_at_once_are_those_found_one_by_one(text: str, *, wide: bool) -> None:
    alone = {cue: cue.search(text, wide=wide) for cue in CUES}
    assert find_cues(text, wide=wide) == {
        cue: found.start() for cue, found in alone.items() if found is not None
    }


@pytest.mark.parametrize(
    ("text", "cue", "start"),
    [
        ("in the end the answer must be 7", cues.CONCLUSION, 0),
        ("we know that the answer must be 7", cues.ANSWER, 13),
        ("the user wants a short plan", cues.TASK, 0),
        ("ich muss die frist prüfen", cues.PLAN, 0),
    ],
)
def test_a_cue_is_found_where_it_begins_first(text: str, cue: cues.Cue, start: int) -> None:
    assert find_cues(text, wide=False)[cue] == start


@pytest.mark.parametrize(
    ("pattern", "grouped"),
    [
        ("thus|so|then", "t(?:hus|hen)|s(?:o)"),
        ("(?:the|my) plan|maybe|my", "m(?:aybe|y)|(?:the|my) plan"),
        ("tests?|t?op|\\d", "t(?:ests?)|t?op|\\d"),
    ],
)
def test_alternatives_are_grouped_by_their_first_letter(pattern: str, grouped: str) -> None:
    assert group_alternatives(pattern) == grouped


LETTERS = st.text("abc", min_size=1, max_size=3)
GROUPS = st.lists(LETTERS, min_size=1, max_size=4).map(lambda words: f"(?:{'|'.join(words)})")
ALTERNATIVES = st.tuples(
    st.one_of(LETTERS, GROUPS),
    st.sampled_from(["", "?", "+"]),
    st.one_of(st.just(""), LETTERS, GROUPS),
).map("".join)


@given(st.lists(ALTERNATIVES, min_size=1, max_size=6).map("|".join), st.text("abc ", max_size=12))
def test_grouped_alternatives_find_what_the_others_find(pattern: str, text: str) -> None:
    plain = re.search(rf"\b(?:{pattern})(?!\w)", text)
    grouped = re.search(rf"\b(?:{group_alternatives(pattern)})(?!\w)", text)
    assert (plain and plain.start()) == (grouped and grouped.start())
