"""Test that a text whose model was stopped ends with a whole sentence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.model.whole_sentences import MAX_SENTENCE, WholeSentences


def passed_on(pieces: list[str], *, stopped: bool, max_tokens: int = 0) -> list[str]:
    sentences = WholeSentences(max_tokens)
    shown = []
    for piece in pieces:
        sentences.count(piece)
        shown.append(sentences.feed(piece))
    return [*shown, sentences.end("", stopped=stopped)]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("I add. I then look at", "I add."),
        ("I add. It is 3.5 and", "I add."),
        ("I add. It is done.", "I add. It is done."),
        ('I say "yes." Then', 'I say "yes."'),
        ("我算。然后", "我算。"),
        ("**Adding up**\n\nI then look", "**Adding up**\n\n"),
        ("I then look at", "I then look at"),
    ],
)
def test_words_after_the_last_sentence_are_left_out(text: str, whole: str) -> None:
    assert "".join(passed_on(list(text), stopped=True)) == whole
    assert "".join(passed_on(list(text), stopped=False)) == text
    assert WholeSentences(10_000).end(text, stopped=True) == whole


def test_a_text_of_usual_length_is_not_held_up() -> None:
    pieces = ["I ", "add ", "the ", "numbers"]
    assert passed_on(pieces, stopped=False, max_tokens=400) == [*pieces, ""]


def test_from_half_of_the_length_on_sentences_are_whole() -> None:
    pieces = ["word " * 40, "and. So", " it is. And", " then"]
    shown = passed_on(pieces, stopped=True, max_tokens=101)
    assert shown == ["word " * 40, "and.", " So it is.", "", ""]


def test_thinking_counts() -> None:
    sentences = WholeSentences(100)
    sentences.count("hm " * 100)
    assert sentences.feed("I add. Then") == "I add."


@given(
    text=st.text(alphabet="a. \n。", max_size=400),
    sizes=st.lists(st.integers(0, 50)),
    stopped=st.booleans(),
)
def test_what_is_held_is_bounded_and_nothing_else_is_lost(
    text: str, sizes: list[int], *, stopped: bool
) -> None:
    pieces, start = list[str](), 0
    for size in [*sizes, len(text)]:
        pieces.append(text[start : start + size])
        start += size
    shown = "".join(passed_on(pieces, stopped=stopped))
    assert text.startswith(shown)
    assert stopped or shown == text


def test_a_sentence_without_end_is_passed_on() -> None:
    shown = passed_on(["word "] * 1000, stopped=False)
    assert max(map(len, shown)) <= MAX_SENTENCE + 5
