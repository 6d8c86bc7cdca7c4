"""Test that what candidates are worth is known after each choice without looking at all again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from abridge.summarizers.extractive.choosing import FIRST_FLOOR, FLOOR, Choice
from abridge.summarizers.extractive.scoring import Candidate

WORDS = st.frozensets(st.sampled_from(["one", "two", "three", "four"]), max_size=3)


def candidate(position: int, score: float, words: frozenset[str], *, leans: bool) -> Candidate:
    return Candidate(
        position=position,
        text="A text.",
        tied="A text.",
        size=7.0,
        leans=leans,
        words=words,
        told=1.0 if words else 0.0,
        concludes=False,
        sound=True,
        score=score,
    )


DRAWN = st.none() | st.tuples(st.integers(-4, 4), WORDS, st.booleans())


def choice_of(drawn: list[tuple[int, frozenset[str], bool] | None], places: int) -> Choice:
    candidates = {
        position: candidate(position, each[0] / 2, each[1], leans=each[2])
        for position, each in enumerate(drawn)
        if each is not None
    }
    return Choice(candidates, [frozenset(["one", "two"])], room=30.0, places=places)


def add_best_of_all(choice: Choice) -> bool:
    """Add what is worth most, like `Choice.add_best`, but value every candidate."""
    best, taken = FLOOR if choice.chosen else FIRST_FLOOR, None
    for one in choice.candidates.values():
        if one.position in choice.chosen:
            continue
        value, group = choice.value(one)
        if value > best and choice.fits(group) and not any(map(choice.is_said, group)):
            best, taken = value, group
    for one in taken or ():
        choice.take(one)
    return taken is not None


@given(st.lists(DRAWN, max_size=9), st.integers(1, 5))
def test_the_best_is_added_each_time(
    drawn: list[tuple[int, frozenset[str], bool] | None], places: int
) -> None:
    choice, other = choice_of(drawn, places), choice_of(drawn, places)
    choice.value_all()
    while choice.places > 0 and choice.add_best():
        assert add_best_of_all(other)
        assert list(choice.chosen) == list(other.chosen)
    assert choice.places <= 0 or not add_best_of_all(other)
