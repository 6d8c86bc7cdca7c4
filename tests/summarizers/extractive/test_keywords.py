"""Test that no text in which a pattern is found lacks its keywords."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive.keywords import WORD, first_words, held_words, initial
from abridge.summarizers.extractive.sentences import split_sentences
from abridge.summarizers.extractive.titles.languages import LANGUAGES
from tests.quality.corpus import load


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(?:so|thus) it\b", {"so", "thus"}),
        (r"let(?:['’]s| us)? see", {"let"}),
        (r"tests?(?!\w)", {"test", "tests"}),
        (r"tests?", {initial("t")}),
        (r"\W*(?:no|w\w+)\b", {"no", initial("w")}),
        (r"(?:un)?likely\b|not ", {"likely", "unlikely", "not"}),
        (r"\w+ly\b", {""}),
    ],
)
def test_the_words_are_known_with_which_a_match_begins(pattern: str, words: set[str]) -> None:
    assert first_words(pattern) == words


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"\b(?:the|a) (?:cause|reason)s? (?:is|was)\b", {"cause", "causes", "reason", "reasons"}),
        (r"^(?=.*\b(?:than|versus)\b)", {"than", "versus"}),
        (r"\bhow \w+|\bwhy\b", {"how", "why"}),
        (r"\bhow \w+|because", set()),
        (r"\bproves?", set()),
        (r"(?<!\w)odd(?= ones\b)", {"ones"}),
    ],
)
def test_words_are_known_that_a_text_holds(pattern: str, words: set[str]) -> None:
    assert held_words(pattern) == words


PIECES = st.recursive(
    st.sampled_from(["a", "ab", "b ", " ", r"\b", r"\w", r"\W", "[ab]", r"(?!\w)", r"\B", "_"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda all_: f"(?:{'|'.join(all_)})"),
        inner.map(lambda one: f"(?:{one})?"),
        inner.map(lambda one: f"(?:{one})*"),
        inner.map(lambda one: f"(?={one})"),
    ),
    max_leaves=8,
)


@given(PIECES, st.text("ab _.", max_size=10))
def test_each_text_that_is_found_holds_them(pattern: str, text: str) -> None:
    found = re.search(pattern, text)
    if found is None:
        return
    held, words = held_words(pattern), WORD.findall(text)
    assert not held or not held.isdisjoint(words)
    first = first_words(rf"\b{pattern}")
    if (found := re.search(rf"\b{pattern}", text)) and "" not in first:
        began = WORD.search(text, found.start())
        assert began is not None
        assert not first.isdisjoint((began[0], initial(began[0])))


def test_no_sentence_that_makes_a_title_lacks_them() -> None:
    lowered = [sentence.text.lower() for one in load() for sentence in split_sentences(one.text)]
    sentences = {text: frozenset(WORD.findall(text)) for text in lowered}
    missed = [
        (pattern.source, text)
        for language in LANGUAGES.values()
        for pattern in language.patterns
        for text, words in sentences.items()
        if pattern.held and pattern.held.isdisjoint(words) and pattern.find(text)
    ]
    assert missed == []
