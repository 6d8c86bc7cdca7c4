"""Test how the letters of a text are measured."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive.words import letter_share


@pytest.mark.parametrize(
    ("text", "share"), [("ab cd", 1.0), ("a bc", 2 / 3), ("x=1", 0.0), ("übrig 7", 5 / 6)]
)
def test_a_single_letter_is_no_word(text: str, share: float) -> None:
    assert letter_share(text) == share


@given(st.text(st.characters(codec="ascii"), min_size=1).filter(lambda text: text.strip(" ")))
def test_letters_count_in_runs_of_two_and_more(text: str) -> None:
    letters = sum(map(len, re.findall("[A-Za-z]{2,}", text)))
    assert letter_share(text) == letters / len(text.replace(" ", ""))
