"""Test that the best sentences together are chosen, within the room that there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.core.styles import STYLES
from abridge.summarizers.extractive.choosing import (
    BEGIN,
    GO_ON,
    GO_ON_LEANING,
    LAST,
    choose_sentences,
)
from abridge.summarizers.extractive.scoring import Candidate

WORDS = st.frozensets(st.sampled_from(["one", "two", "three", "four"]), max_size=3)

RULES = STYLES["auto"].extract


def candidate(
    position: int, score: float, words: frozenset[str] = frozenset(), *, leans: bool = False
) -> Candidate:
    return Candidate(
        position=position,
        text=f"Text {position}.",
        tied=f"Text {position}.",
        size=120.0,
        words=words,
        told=1.0 if words else 0.0,
        score=score,
        leans=leans,
    )


DRAWN = st.none() | st.tuples(st.integers(-4, 8), WORDS, st.booleans(), st.booleans())


@given(st.lists(DRAWN, max_size=12))
def test_no_run_begins_with_a_sentence_that_leans_or_ends_with_a_question_and_all_fit(
    drawn: list[tuple[int, frozenset[str], bool, bool] | None],
) -> None:
    candidates = [
        replace(
            candidate(position, each[0] / 2, each[1], leans=each[2]),
            asks=each[3],
            sound=not each[3],
        )
        for position, each in enumerate(drawn)
        if each is not None
    ]
    told = [frozenset(["one", "two"])]
    chosen = choose_sentences(candidates, RULES, told)
    positions = {one.position for one in chosen}
    assert len(positions) == len(chosen) <= RULES.max_sentences
    assert sum(one.size for one in chosen) <= RULES.max_chars
    assert all(one.position - 1 in positions for one in chosen if one.leans)
    assert all(one.position + 1 in positions for one in chosen if one.asks)


def test_what_is_worth_less_is_told_up_to_the_least_size() -> None:
    dull = [replace(candidate(position, -position), size=100.0) for position in (0, 3, 6, 9, 12)]
    assert len(choose_sentences(dull, replace(RULES, min_chars=300), ())) == 3
    assert len(choose_sentences(dull, replace(RULES, min_chars=0), ())) == 1


def test_neighbours_are_preferred_to_better_sentences_that_stand_alone() -> None:
    scores = [1.9, 0.0, 2.0, 2.0, 0.0, 2.3]
    chosen = choose_sentences(
        [candidate(position, score) for position, score in enumerate(scores)], RULES, ()
    )
    assert {2, 3} <= {one.position for one in chosen}


def test_the_conclusion_of_all_is_told_again_at_the_end_in_another_sentence() -> None:
    told = [frozenset(["answer", "three", "letters"])]
    again = replace(candidate(0, 2.0, frozenset(["answer", "three", "total"])), concludes=True)
    same = replace(candidate(1, 2.0, told[0]), concludes=True)
    assert choose_sentences([again, same], RULES, told, is_last=True) == [again]
    assert choose_sentences([again, same], RULES, told) == []


def test_what_is_said_or_concluded_last_is_preferred_and_the_end_of_all_is_told() -> None:
    scores = [2.9, 3.3, 3.2, 3.1, 3.0, 2.5, -3.0, 4.0, -3.0]
    candidates = [candidate(position, score) for position, score in enumerate(scores)]
    assert {5, 7}.isdisjoint(one.position for one in choose_sentences(candidates, RULES, ()))
    assert candidates[7] in choose_sentences(candidates[:8], RULES, ())
    candidates[5].concludes = True
    assert candidates[5] in choose_sentences(candidates, RULES, ())
    candidates[5].score = -3.0
    assert candidates[5] not in choose_sentences(candidates, RULES, ())
    assert candidates[5] in choose_sentences(candidates, RULES, (), is_last=True)


def test_the_first_sentence_is_preferred_at_the_beginning_of_all_and_of_that_alone() -> None:
    scores = [0.4, 2.0, 2.1, 2.2, 2.3, 0.9, 0.8, 0.7, -3.0]
    candidates = [candidate(position, score) for position, score in enumerate(scores)]
    assert candidates[0] in choose_sentences(candidates, RULES, ())
    assert candidates[0] not in choose_sentences(candidates, RULES, [frozenset(["other"])])
    assert candidates[0] not in choose_sentences(candidates, replace(RULES, max_sentences=2), ())


def test_a_question_is_told_with_what_follows_alone() -> None:
    candidates = [candidate(position, 2.0) for position in range(3)]
    candidates[1].asks, candidates[1].sound = True, False
    assert choose_sentences(candidates, RULES, ()) == candidates
    assert choose_sentences(candidates[:2], RULES, ()) == candidates[:1]


def test_steps_with_other_numbers_are_not_the_same() -> None:
    words = frozenset(["machines", "widgets", "minutes"])
    first, second = (
        replace(candidate(position, 2.0, words | {number}), told=0.0)
        for position, number in ((0, "50"), (1, "100"))
    )
    assert choose_sentences([first, second], RULES, ()) == [first, second]
    second.words = first.words
    assert len(choose_sentences([first, second], RULES, ())) == 1


def test_of_sentences_that_say_the_same_one_is_told() -> None:
    words = frozenset(["answer", "three", "letters"])
    same = [replace(candidate(position, 2.0, words), told=0.0) for position in range(40)]
    other = candidate(40, -2.0)
    assert len(choose_sentences([*same, other], replace(RULES, min_chars=240), ())) == 2


def test_an_answer_is_told_beside_the_question_that_has_the_same_words() -> None:
    words = frozenset(["many", "primes", "below"])
    question = replace(candidate(3, 1.0, words), told=0.0, asks=True, sound=False)
    answer = replace(candidate(4, 2.5, words), told=0.0, concludes=True)
    assert choose_sentences([question, answer], RULES, (), is_last=True) == [question, answer]
    same = replace(answer, position=5)
    assert len(choose_sentences([question, answer, same], RULES, (), is_last=True)) == 2


def test_nothing_leans_on_a_sentence_that_is_left_out_as_said_twice() -> None:
    pairs = [frozenset([f"w{number}", f"x{number}"]) for number in range(9)]
    doubled = [
        replace(candidate(position, 2.0 - position / 99, pairs[position // 6]), told=0.0)
        for position in range(54)
    ]
    candidates = [replace(one, leans=one.position % 2 == 1, size=60.0) for one in doubled]
    chosen = choose_sentences(candidates, RULES, ())
    positions = {one.position for one in chosen}
    assert chosen
    assert all(one.position - 1 in positions for one in chosen if one.leans)
    assert len({one.words for one in chosen}) == len(chosen)


FORBIDDEN = -99.0
BEST = st.lists(st.tuples(st.integers(-6, 6), st.booleans(), st.booleans()), max_size=9)


@given(BEST)
def test_no_other_choice_is_worth_more(drawn: list[tuple[int, bool, bool]]) -> None:
    candidates = [
        replace(candidate(position, score / 3, leans=leans), asks=asks, sound=not asks)
        for position, (score, leans, asks) in enumerate(drawn)
    ]
    anything = replace(
        RULES, min_chars=0, max_chars=10_000, chars_per_sentence=1, max_sentences=9999
    )
    chosen = choose_sentences(candidates, anything, [frozenset(["other"])])
    subsets = chain.from_iterable(combinations(candidates, count) for count in range(1, 10))
    last = max((one.position for one in candidates if one.sound), default=-1)
    best = max([_worth(subset, last) for subset in subsets], default=FORBIDDEN)
    if best > 0:
        assert _worth(chosen, last) == pytest.approx(best)
    else:  # then something is told all the same
        assert chosen or best <= FORBIDDEN / 2


def _worth(chosen: Sequence[Candidate], last: int) -> float:
    """Return what a choice is worth. `last` is the position of the last sound sentence."""
    positions = {one.position for one in chosen}
    worth = 0.0
    for one in chosen:
        if one.position - 1 in positions:
            worth += GO_ON + GO_ON_LEANING * one.leans
        else:
            worth += FORBIDDEN if one.leans else BEGIN
        worth += FORBIDDEN * (one.asks and one.position + 1 not in positions)
        worth += one.score + LAST * (one.position == last)
    return worth
