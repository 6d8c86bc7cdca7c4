"""Test which sentences are doubted, for what they say or for what the next one says."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive import doubts
from abridge.summarizers.extractive.doubts import (
    DISMISSAL,
    HYPOTHESIS,
    announces,
    is_nod,
    score_following,
    score_own,
)


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
def test_what_the_next_sentence_takes_back_is_doubted(following: str) -> None:
    assert score_following(following.lower()) <= -4


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
def test_what_the_next_sentence_thinks_over_is_doubted_less(following: str) -> None:
    assert -4 < score_following(following.lower()) < 0


@pytest.mark.parametrize(
    "following", ["", "The log says so.", "No loaf was cut.", "The wait is over."]
)
def test_what_the_next_sentence_continues_is_not_doubted(following: str) -> None:
    assert score_following(following.lower()) == 0


@pytest.mark.parametrize(
    "text",
    [
        *("is it the cache?", "这是缓存吗？", "let me see.", "maybe it is the cache.", "okay."),
        *("don't confirm there is a code.", "i think i'm confident now.", "duplicates again."),
    ],
)
def test_questions_and_thinking_aloud_are_doubted(text: str) -> None:
    assert score_own(text, text) <= -3


@pytest.mark.parametrize(
    "text",
    [
        'what about "the root of it"?',
        "connection c sounds best.",
        "that looks right at first.",
        "verbindung c klingt am besten.",
    ],
)
def test_questions_and_first_impressions_are_doubted(text: str) -> None:
    assert score_own(text, text) <= -3


@pytest.mark.parametrize(
    "text",
    [
        *(
            "what does the cache hold?",
            "let me break down the claim of the log.",
            "还有没有别的原因？",
        ),
        *("another thing is how to restart it.", "i should also consider the disk."),
    ],
)
def test_questions_and_intentions_announce_what_follows(text: str) -> None:
    assert announces(text)


@pytest.mark.parametrize(
    "text", ["why?", "let me see.", "let's say n is 2 and m is 3.", "it is full."]
)
def test_what_names_nothing_announces_nothing(text: str) -> None:
    assert not announces(text)


@pytest.mark.parametrize("text", ["okay.", "let me think.", "i'll proceed.", "good."])
def test_a_nod_says_nothing(text: str) -> None:
    assert is_nod(text)


def test_a_quoted_question_is_no_question() -> None:
    text = 'the riddle asks: "what did i pay?"'
    assert score_own(text, text) == 0


@pytest.mark.parametrize("text", ["bad idea.", "not needed here.", "that won't work.", "不可行。"])
def test_a_short_sentence_dismisses_its_paragraph(text: str) -> None:
    assert DISMISSAL.fullmatch(text)


@pytest.mark.parametrize("text", ["suppose n is even.", "case 2: n is odd.", "假设缓存为空。"])
def test_suppositions_are_known(text: str) -> None:
    assert HYPOTHESIS.match(text)


PATTERNS = (
    doubts.THINKING_ALOUD,
    doubts.SHRUG,
    doubts.HYPOTHESIS,
    doubts.DISMISSAL,
    doubts.CONSEQUENCE,
    doubts.RETRACTION,
    doubts.SECOND_THOUGHT,
)

SOURCE = "|".join(pattern.pattern for pattern in PATTERNS)

PIECES = st.tuples(
    st.sampled_from(sorted({*re.findall(r"[^\W\d_]+", SOURCE), "7", "x_y", "…"})),
    st.sampled_from([" ", " ", "", ", ", "-", "'", "’s ", ". ", "! "]),
).map("".join)

OPENINGS = st.lists(PIECES, max_size=6).map("".join) | st.sampled_from(PATTERNS).flatmap(
    st.from_regex
)


@given(OPENINGS)
def test_what_a_pattern_matches_begins_as_they_all_do(text: str) -> None:
    if any(pattern.match(text) for pattern in PATTERNS[:5]):
        assert doubts.BEGINNING.match(text)


@given(OPENINGS, OPENINGS)
def test_doubts_are_those_found_pattern_by_pattern(lower: str, following: str) -> None:
    begins = doubts.BEGINNING.match(lower) is not None
    assert score_own(lower, lower, begins=begins) == score_own(lower, lower)
    alone = score_following(following)
    if doubts.RETRACTION.match(following):
        assert alone == -4.0
    elif doubts.SECOND_THOUGHT.match(following):
        assert alone == -2.5
    else:
        assert alone == 0.0
