"""Test which cues are found in a sentence, and where."""

from __future__ import annotations

import pytest

from abridge.summarizers.extractive import cues
from abridge.summarizers.extractive.openings import (
    CONNECTIVES,
    HINTS,
    PRONOUNS,
    leans,
    strip,
)
from abridge.summarizers.extractive.sentences import split_sentences
from abridge.summarizers.extractive.words import WORD
from tests.support.shared import REASONING, needs_reasoning

CUES = [cues.CONCLUSION, cues.HEDGE, cues.META, cues.TASK]


def is_in(text: str, cue: cues.Cue, within: int = 1000, *, wide: bool = False) -> bool:
    return cue.is_in(text, frozenset(WORD.findall(text)), wide=wide, within=within)


@pytest.mark.parametrize(
    ("text", "cue", "start"),
    [
        ("in the end the answer must be 7", cues.CONCLUSION, 0),
        ("we know that the answer is 7", cues.CONCLUSION, 13),
        ("so must refuse to write it", cues.CONCLUSION, 3),
        ("the user wants a short plan", cues.TASK, 0),
        ("ich nehme vielleicht den zug", cues.HEDGE, 10),
    ],
)
def test_a_cue_is_found_where_it_begins_first(text: str, cue: cues.Cue, start: int) -> None:
    assert is_in(text, cue, within=start + 1)
    assert not is_in(text, cue, within=start)


def test_cues_of_scripts_without_spaces_are_looked_for_alone() -> None:
    text = "因此 the user"
    assert is_in(text, cues.CONCLUSION, wide=True)
    assert not is_in(text, cues.CONCLUSION)
    assert not is_in(text, cues.TASK, wide=True)


@pytest.mark.parametrize("text", ["nevertheless it runs", "the ensuring of it", "x_so the y"])
@pytest.mark.parametrize("cue", CUES)
def test_a_cue_is_a_whole_word(text: str, cue: cues.Cue) -> None:
    assert not is_in(text, cue)


@needs_reasoning
def test_no_cue_is_missed_by_the_words_that_stand_for_it() -> None:
    for path in REASONING.glob("*.txt"):
        for sentence in split_sentences(path.read_text()):
            lower = sentence.text.lower()
            words = frozenset(WORD.findall(lower))
            for cue in [*CUES, PRONOUNS]:
                assert cue.is_in(lower, words) == cue.is_in(lower, cue.words), lower
            for text in (sentence.text, strip(sentence.text, CONNECTIVES.match(lower))):
                assert leans(text, words) == leans(text, HINTS), text
