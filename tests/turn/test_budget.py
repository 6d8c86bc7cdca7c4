"""What a summary may cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from abridge.turn.budget import BYTES, Budget
from abridge.turn.part import Passage
from abridge.turn.plan import Plan
from abridge.turn.usage import Tokens
from tests.turn.loom import Loom

PARTS = Plan(part_chars=20, tail_chars=5)
LINE = "word word word word \n\n"


def budget(share: float | None = 1.0, own: int = 100) -> Budget:
    made = Budget(share)
    made.earn("x" * own * BYTES)
    return made


def ask(made: Budget, tokens: int) -> None:
    made.ask(1, Passage("x" * tokens * BYTES))


@pytest.mark.parametrize(
    ("share", "spent", "allowed"),
    [
        (None, 10_000, True),
        (0.5, 50, True),
        (0.5, 51, False),
        (2.0, 200, True),
        (2.0, 201, False),
    ],
)
def test_a_share_of_the_models_own_tokens(
    share: float | None, spent: int, *, allowed: bool
) -> None:
    made = budget(share)
    ask(made, 1)
    made.settle(1, Tokens(spent - 1, 1))
    assert made.allows_more() is allowed


def test_the_first_call_is_always_within_it() -> None:
    assert Budget(0.01).allows_more()


def test_a_call_that_still_runs_counts_as_far_as_it_is_known() -> None:
    made = budget()
    ask(made, 90)
    assert made.allows_more()
    made.write(1, "x" * 11 * BYTES)
    assert not made.allows_more()


def test_what_is_reported_takes_the_estimates_place() -> None:
    made = budget()
    ask(made, 500)
    made.settle(1, Tokens(30, 10))
    assert made.allows_more()


def test_what_is_not_reported_stays_estimated() -> None:
    made = budget()
    ask(made, 500)
    made.settle(1, None)
    assert not made.allows_more()


def test_a_script_of_wide_characters_counts_for_more() -> None:
    made = Budget(1.0)
    made.earn("想" * 100)
    made.ask(1, Passage("x" * 299))
    assert made.allows_more()


class TestWoven:
    def test_past_it_no_more_parts_are_asked_for_and_what_was_said_stays(self) -> None:
        loom = Loom(replace(PARTS, max_overhead=0.5))
        loom.open()
        loom.raw(LINE)
        loom.write(1, "one")
        loom.raw(LINE * 3)
        loom.close()
        loom.answer()
        loom.end()
        assert list(loom.asked) == []
        assert loom.ended.summaries[0, 0].parts == ("one",)
        assert loom.ended.summaries[0, 0].trouble is None
        assert not loom.weaver.held_for

    def test_with_more_said_there_is_more_to_spend(self) -> None:
        loom = Loom(replace(PARTS, max_overhead=0.5))
        loom.open()
        loom.raw(LINE)
        loom.say(1, "one")
        loom.finish(1, Tokens(9, 3))
        loom.raw(LINE * 2)
        assert list(loom.asked) == []
        loom.raw(LINE * 2)
        (asked,) = loom.asked.values()
        assert asked.passage.text == LINE * 2, "what was refused is asked for with the next"
