"""Test which sentences are doubted, for what they say or for what the next one says."""

from __future__ import annotations

import pytest

from abridge.summarizers.extractive.blocks import Sentence
from abridge.summarizers.extractive.doubts import (
    is_doubtful,
    is_nod,
    is_taken_back,
    names_a_question,
)
from abridge.summarizers.extractive.reading import Reading


def read(text: str) -> Reading:
    return Reading(Sentence(text))


def followed(text: str, following: str) -> Reading:
    """Return a sentence that ends its paragraph, and what the next one begins with."""
    one = read(text)
    one.following = Reading(Sentence(following, block=1))
    return one


@pytest.mark.parametrize(
    "following",
    [
        "No, that can't be.",
        "Wait, no, it was cleared.",
        "But that contradicts the log.",
        "That doesn't fit.",
        "Not needed.",
        "I misread the log.",
        "Nein, das stimmt nicht.",
        "Das geht nicht.",
        "不对，缓存是空的。",
        "いや、違う。",
    ],
)
def test_what_the_next_sentence_denies_is_taken_back(following: str) -> None:
    assert is_taken_back(followed("The cache is full.", following), is_first=False)
    assert is_taken_back(followed("So the cache is full.", following), is_first=False)


@pytest.mark.parametrize(
    "following",
    [
        "Wait, let me check.",
        "Hmm.",
        "Actually, there is a second one.",
        "Good.",
        "Moment, der Antrag.",
        "等等，还要检查。",
        "ちょっと待って、確認する。",
    ],
)
def test_what_the_next_sentence_thinks_over_is_taken_back_unless_it_settles(following: str) -> None:
    assert is_taken_back(followed("The cache is full.", following), is_first=False)
    assert is_taken_back(followed("So is the cache full?", following), is_first=False)
    assert not is_taken_back(followed("So the cache is full.", following), is_first=False)


@pytest.mark.parametrize(
    "following", ["", "The log says so.", "No loaf was cut.", "The wait is over."]
)
def test_what_the_next_sentence_continues_is_not_taken_back(following: str) -> None:
    assert not is_taken_back(followed("The cache is full.", following), is_first=False)


@pytest.mark.parametrize(
    "text",
    [
        *("is it the cache?", "这是缓存吗？", "let me see.", "maybe it is the cache.", "okay."),
        *("don't confirm there is a code.", "i think i'm confident now."),
        *('what about "the root of it"?', "that looks right to me.", "it all makes sense now."),
    ],
)
def test_questions_and_thinking_aloud_are_doubted(text: str) -> None:
    assert is_nod(read(text), asked=False) or is_doubtful(read(text))


@pytest.mark.parametrize("text", ["what does the cache hold?", "还有没有别的原因？"])
def test_questions_that_name_something_say_what_follows(text: str) -> None:
    assert names_a_question(read(text))


@pytest.mark.parametrize("text", ["why?", "let me see.", "it is full."])
def test_short_questions_and_statements_name_no_question(text: str) -> None:
    assert not names_a_question(read(text))


@pytest.mark.parametrize(
    "text",
    ["i should keep it short.", "we need to also write in english.", "do not mention the price."],
)
def test_notes_on_the_answer_are_doubted(text: str) -> None:
    assert is_doubtful(read(text))


@pytest.mark.parametrize(
    "text",
    [
        *("okay.", "let me think.", "i'll proceed.", "good.", "let me try to answer it."),
        *("so that’s not a problem.", "everything is fine now."),
    ],
)
def test_a_nod_says_nothing(text: str) -> None:
    assert is_nod(read(text), asked=False)


@pytest.mark.parametrize("text", ["so that is 7.", "the cache is fine.", "好。就是这样，没问题。"])
def test_what_names_something_is_no_nod(text: str) -> None:
    assert not is_nod(read(text), asked=False)


def test_one_or_two_words_are_told_as_an_answer_alone() -> None:
    assert is_nod(read("two requests."), asked=False)
    assert not is_nod(read("two requests."), asked=True)


def test_a_quoted_question_is_told() -> None:
    assert not is_doubtful(read('the riddle asks: "what did i pay?"'))


def test_the_first_sentence_of_all_is_only_denied() -> None:
    assert not is_taken_back(followed("The cache is full.", "Wait, let me check."), is_first=True)
    assert is_taken_back(followed("The cache is full.", "No, that can't be."), is_first=True)
