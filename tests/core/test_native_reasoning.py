"""The Sequencer shows reasoning that is a summary already, and requests none."""

from __future__ import annotations

import pytest

from abridge.core.events import (
    NativeSummary,
    ReasoningEnded,
    ResponseEnded,
    SummaryPartAdded,
    SummaryPartDone,
    SummaryTextDelta,
)
from abridge.core.plan import NativeReasoning, SummaryPlan
from tests.core.sequencer_driver import SequencerDriver

TITLED = "**One**\n\nFirst.\n\n**Two**\n\nSecond."


def driver(native: NativeReasoning = "copied", **plan: int) -> SequencerDriver:
    return SequencerDriver(SummaryPlan(part_chars=5, tail_chars=1, native=native, **plan))


def parts(driven: SequencerDriver) -> list[tuple[str, bool]]:
    """Return the finished parts, which were announced in order before."""
    announced = [event.index for event in driven.emitted if isinstance(event, SummaryPartAdded)]
    assert announced == list(range(len(announced)))
    done = [event for event in driven.emitted if isinstance(event, SummaryPartDone)]
    for event in done:
        deltas = [
            each.text
            for each in driven.emitted
            if isinstance(each, SummaryTextDelta) and each.index == event.index
        ]
        assert "".join(deltas) == event.text
    return [(event.text, event.complete) for event in done]


def test_reasoning_is_copied_into_parts_as_it_comes() -> None:
    driven = driver()
    driven.open()
    for char in TITLED:
        driven.raw(char)
    assert parts(driven) == [("**One**\n\nFirst.", True)]
    driven.close()
    driven.answer()
    driven.end()
    assert parts(driven) == [("**One**\n\nFirst.", True), ("**Two**\n\nSecond.", True)]
    assert driven.requested == {}
    assert driven.sequencer.held_seconds == 0
    (ended,) = (event for event in driven.emitted if isinstance(event, ResponseEnded))
    (summary,) = ended.summaries.values()
    assert (summary.native, summary.parts, summary.error) == (
        True,
        ("**One**\n\nFirst.", "**Two**\n\nSecond."),
        None,
    )
    assert ended.share is None


def test_reasoning_that_is_shown_where_it_stands_is_native_without_parts() -> None:
    driven = driver("shown")
    driven.think(TITLED)
    driven.end()
    assert (parts(driven), driven.requested) == ([], {})
    (ended,) = (event for event in driven.emitted if isinstance(event, ReasoningEnded))
    assert (ended.summary.native, ended.summary.parts) == (True, ())


@pytest.mark.parametrize("native", ["copied", "shown"])
def test_blank_reasoning_is_no_summary(native: NativeReasoning) -> None:
    driven = driver(native)
    driven.think(" \n")
    driven.end()
    (ended,) = (event for event in driven.emitted if isinstance(event, ReasoningEnded))
    assert not ended.summary.native
    assert driven.requested == {}


def test_each_stretch_begins_a_part() -> None:
    driven = driver()
    for text in ("first", "second"):
        driven.think(text)
        driven.answer()
    driven.end()
    assert parts(driven) == [("first", True), ("second", True)]


def test_a_summary_of_its_own_beside_it_takes_its_place() -> None:
    driven = driver()
    driven.open()
    driven.raw("some reasoning")
    for stage in ("added", "delta", "done"):
        driven.upstream(NativeSummary(0, driven.frame(), 0, 0, stage, "its summary"))
    driven.raw("and more")
    driven.close()
    driven.end()
    assert parts(driven) == [("some reasoning", True)]
    native = [event.index for event in driven.emitted if isinstance(event, NativeSummary)]
    assert native == [1, 1, 1]


def test_an_answer_that_breaks_off_leaves_an_unfinished_part() -> None:
    driven = driver()
    driven.open()
    driven.raw("some reasoning")
    driven.end(ok=False)
    assert parts(driven) == [("some reasoning", False)]


def test_reasoning_over_the_limit_is_cut_and_said_to_be() -> None:
    driven = driver(reasoning_limit=10)
    driven.think("0123456789 and more")
    driven.end()
    assert parts(driven) == [("0123456789", False)]
