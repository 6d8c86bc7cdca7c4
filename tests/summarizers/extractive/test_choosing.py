"""Test that runs of neighbours are chosen, within the room that there is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from abridge.core.styles import STYLES
from abridge.summarizers.extractive.choosing import choose_sentences
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


DRAWN = st.none() | st.tuples(st.integers(-4, 8), WORDS, st.booleans())


@given(st.lists(DRAWN, max_size=12))
def test_no_run_begins_with_a_sentence_that_leans_and_all_fit(
    drawn: list[tuple[int, frozenset[str], bool] | None],
) -> None:
    candidates = [
        candidate(position, each[0] / 2, each[1], leans=each[2])
        for position, each in enumerate(drawn)
        if each is not None
    ]
    told = [frozenset(["one", "two"])]
    chosen = choose_sentences(candidates, RULES, told)
    positions = {one.position for one in chosen}
    assert len(positions) == len(chosen) <= RULES.max_sentences
    assert sum(one.size for one in chosen) <= RULES.max_chars
    assert sum(position - 1 not in positions for position in positions) <= 3
    assert all(one.position - 1 in positions for one in chosen if one.leans)


def test_what_is_worth_less_is_told_up_to_forty_words() -> None:
    dull = [replace(candidate(position, -1.0), size=90.0) for position in (0, 3, 6, 9)]
    assert len(choose_sentences(dull, RULES, ())) == 3
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


def test_a_part_without_a_conclusion_ends_with_what_was_found_last() -> None:
    scores = [2.5, 2.0, 2.0, 2.0, 2.0, -0.4, -0.6, 1.3]
    chosen = choose_sentences(
        [candidate(position, score) for position, score in enumerate(scores)], RULES, ()
    )
    assert max(one.position for one in chosen) == 7


def test_a_part_does_not_end_with_an_early_conclusion_where_more_was_found_later() -> None:
    scores = [2.0, 2.0, 3.9, 0.1, 0.1, 0.1, 0.1, 2.6]
    candidates = [candidate(position, score) for position, score in enumerate(scores)]
    candidates[2].concludes = True
    assert max(one.position for one in choose_sentences(candidates, RULES, ())) == 7
