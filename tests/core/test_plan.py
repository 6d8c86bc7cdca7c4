"""Test the limit on a summary's cost, and the sum of what summarizers report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from abridge.core.plan import BYTES_PER_TOKEN, OverheadBudget, Passage, SummaryPlan
from abridge.core.usage import SummaryShare, Tokens
from tests.core.sequencer_driver import SequencerDriver

PARTS = SummaryPlan(part_chars=20, tail_chars=5)
LINE = "word word word word \n\n"


def budget(share: float | None = 1.0, model_tokens: int = 100) -> OverheadBudget:
    made = OverheadBudget(share)
    made.add_model_text("x" * model_tokens * BYTES_PER_TOKEN)
    return made


def ask(made: OverheadBudget, tokens: int) -> None:
    made.start_call(1, Passage("x" * tokens * BYTES_PER_TOKEN))


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
def test_the_limit_is_a_share_of_the_models_tokens(
    share: float | None, spent: int, *, allowed: bool
) -> None:
    made = budget(share)
    ask(made, 1)
    made.settle_call(1, Tokens(spent - 1, 1))
    assert made.has_room() is allowed


def test_the_first_call_is_always_allowed() -> None:
    assert OverheadBudget(0.01).has_room()


def test_a_running_call_counts_with_its_estimate() -> None:
    made = budget()
    ask(made, 90)
    assert made.has_room()
    made.add_call_text(1, "x" * 11 * BYTES_PER_TOKEN)
    assert not made.has_room()


def test_reported_usage_replaces_the_estimate() -> None:
    made = budget()
    ask(made, 500)
    made.settle_call(1, Tokens(30, 10))
    assert made.has_room()


def test_unreported_usage_stays_estimated() -> None:
    made = budget()
    ask(made, 500)
    made.settle_call(1, None)
    assert not made.has_room()


def test_a_script_of_wide_characters_counts_for_more() -> None:
    made = OverheadBudget(1.0)
    made.add_model_text("想" * 100)
    made.start_call(1, Passage("x" * 299))
    assert made.has_room()


class TestSequenced:
    def test_over_the_limit_no_part_is_requested_and_emitted_text_stays(self) -> None:
        driver = SequencerDriver(replace(PARTS, max_overhead=0.5))
        driver.open()
        driver.raw(LINE)
        driver.write(1, "one")
        driver.raw(LINE * 3)
        driver.close()
        driver.answer()
        driver.end()
        assert list(driver.requested) == []
        assert driver.ended.summaries[0, 0].parts == ("one",)
        assert driver.ended.summaries[0, 0].error is None
        assert not driver.sequencer.held_seconds

    def test_more_output_of_the_model_raises_the_limit(self) -> None:
        driver = SequencerDriver(replace(PARTS, max_overhead=0.5))
        driver.open()
        driver.raw(LINE)
        driver.say(1, "one")
        driver.finish(1, Tokens(9, 3))
        driver.raw(LINE)
        assert list(driver.requested) == []
        driver.raw(LINE * 3)
        requested = next(iter(driver.requested.values()))
        assert requested.passage.text == LINE * 2, "what was refused is asked for with the next"


def share_of(*calls: Tokens | None) -> SummaryShare:
    share = SummaryShare()
    for spent in calls:
        share = share.with_call(spent, "mini")
    return share


@pytest.mark.parametrize(
    ("calls", "tokens", "incomplete"),
    [
        ([Tokens(28, 401)], Tokens(28, 401, 429), False),
        ([Tokens(28, 401), Tokens(10, 5, 15)], Tokens(38, 406, 444), False),
        ([Tokens(28)], Tokens(28, None, 28), True),
        ([Tokens(28, 401), None], Tokens(28, 401, 429), True),
        ([Tokens(reasoning=7)], Tokens(reasoning=7), True),
    ],
)
def test_without_a_total_it_is_the_sum(
    calls: list[Tokens | None], tokens: Tokens, *, incomplete: bool
) -> None:
    share = share_of(*calls)
    assert (share.tokens, share.incomplete) == (tokens, incomplete)


def test_a_total_that_is_reported_stands() -> None:
    """It may count reasoning that the output leaves out."""
    assert share_of(Tokens(28, 401, 500)).tokens == Tokens(28, 401, 500)
