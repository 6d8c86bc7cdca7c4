"""Test which sentences conclude."""

from __future__ import annotations

import pytest

from abridge.summarizers.extractive.blocks import Sentence
from abridge.summarizers.extractive.conclusions import LEADING_CHARS, PATTERNS, concludes
from abridge.summarizers.extractive.reading import Reading
from abridge.summarizers.extractive.sentences import split_sentences
from tests.support.shared import REASONING, needs_reasoning


def read(text: str) -> Reading:
    """Return a sentence that does not end its paragraph."""
    one = Reading(Sentence(text))
    one.following = Reading(Sentence("More of it."))
    return one


@pytest.mark.parametrize(
    "text",
    [
        "In the end the answer must be 7.",
        "We know that the answer is 7.",
        "So must refuse to write it.",
        "Das heißt, ich nehme den Zug um acht.",
        "因此 the user waits.",
        "答えは7だ。",
        "The total is 42.",
    ],
)
def test_a_sentence_that_says_so_concludes(text: str) -> None:
    assert concludes(read(text))


@pytest.mark.parametrize(
    "text",
    [
        "Nevertheless it runs.",
        "The overallness of it.",
        "x_so the y",
        "The log is full.",
        f"The log of {'the day before ' * 3} says that the answer is 7.",
    ],
)
def test_other_sentences_do_not(text: str) -> None:
    assert not concludes(read(text))


def test_a_consequence_concludes_at_the_end_of_its_paragraph_or_before_a_question() -> None:
    one = read("So 9:30 and six more hours make 15:30.")
    assert not concludes(one)
    one.following = Reading(Sentence("Is it closed?"))
    assert concludes(one)
    one.following = Reading(Sentence("More of it.", block=1))
    assert concludes(one)
    one.following = None
    assert concludes(one)


@needs_reasoning
def test_no_conclusion_is_missed_by_the_words_that_stand_for_it() -> None:
    for path in REASONING.glob("*.txt"):
        for sentence in split_sentences(path.read_text()):
            one = read(sentence.text)
            found = [
                match.start()
                for word, patterns in PATTERNS.items()
                if word and not one.wide
                for match in (pattern.search(one.lower) for pattern in patterns)
                if match
            ]
            if any(start < LEADING_CHARS for start in found):
                assert concludes(one), sentence.text
