"""Test the Sequencer's ordering rules one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from abridge.core.conversation import RecordedTurn, Turn
from abridge.core.events import (
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    ItemSummary,
    NativeSummary,
    Passthrough,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ToolCallDelta,
    TurnRecorded,
    UsageReported,
)
from abridge.core.parts import GIVEN_UP_AT_ONCE
from abridge.core.plan import Passage, SummaryPlan
from abridge.core.sequencer import EMITTED_AT_ONCE
from abridge.core.usage import Tokens
from tests.core.sequencer_driver import BROKEN, SPENT, SequencerDriver
from tests.support.growth import Text, grows_too_much

LINE = "word " * 4 + "\n\n"  # fills one part of 20 characters
PARTS = SummaryPlan(part_chars=20, tail_chars=5)
ENOUGH = "**Adding**\n\n" + "I add what there is. " * 12
"""A part that tells enough to stand alone."""


@pytest.fixture
def driver() -> SequencerDriver:
    return SequencerDriver()


def test_a_part_is_emitted_while_the_model_still_reasons(driver: SequencerDriver) -> None:
    driver.open()
    driver.raw(LINE)
    driver.say(1, "first")
    driver.raw("more ")
    driver.finish(1)
    driver.raw("and more")
    assert driver.emitted_labels == [
        "started",
        "raw",
        "part 0",
        "0: first",
        "raw",
        "part 0 done",
        "raw",
    ]


def test_without_a_style_nothing_is_requested() -> None:
    driver = SequencerDriver(SummaryPlan(style=None))
    driver.think("x" * 5000)
    driver.answer()
    driver.end()
    assert not driver.requested
    assert driver.emitted_labels == ["started", "raw", "closed", "answer", "ended"]
    assert driver.ended.share is None


def test_what_comes_together_leaves_together_up_to_an_end_of_reasoning(
    driver: SequencerDriver,
) -> None:
    events = [
        Passthrough(None, b"prelude"),
        ReasoningStarted(0, b"started", 0),
        ReasoningEnded(0, b"ended", 0),
        Passthrough(0, b"more"),
        Passthrough(0, b"and more"),
    ]
    steps = driver.sequencer.upstream(events, 0.0)
    assert [len(effects) for effects in steps] == [3, 2]


def test_whitespace_alone_is_no_reasoning(driver: SequencerDriver) -> None:
    driver.think("  \n\n \t ")
    assert not driver.requested
    assert driver.emitted_labels == ["started", "raw", "closed"]


def test_the_answer_waits_for_the_last_part(driver: SequencerDriver) -> None:
    driver.think("short thought")
    driver.answer()
    assert driver.emitted_labels == ["started", "raw"]
    assert driver.sequencer.holding
    driver.say(1, "sum")
    driver.wait(0.5)
    driver.finish(1)
    assert driver.emitted_labels[2:] == ["part 0", "0: sum", "part 0 done", "closed", "answer"]
    assert not driver.sequencer.holding
    assert driver.sequencer.held_seconds == pytest.approx(0.5)


def test_without_frames_the_end_of_reasoning_is_told_before_the_rest_of_its_summary() -> None:
    driver = SequencerDriver(replace(PARTS, fallback=lambda _: "extract"))
    for item in (0, 1):  # the second arrives while the first is held
        driver.upstream(ReasoningStarted(0, None, item))
        driver.upstream(ReasoningDelta(0, None, item, "short thought"))
        driver.upstream(ReasoningEnded(0, None, item))
    assert driver.emitted_labels == ["started", "raw", "told"]
    driver.write(1, "one")
    ended = ["part 0", "0: one", "part 0 done", "closed"]
    assert driver.emitted_labels[3:] == [*ended, "started", "raw", "told"]


def test_so_it_is_where_nobody_waits_for_that() -> None:
    driver = SequencerDriver(replace(PARTS, fallback=lambda _: "extract", grace=0.0))
    driver.upstream(ReasoningStarted(0, None, 0))
    driver.upstream(ReasoningDelta(0, None, 0, "short thought"))
    driver.upstream(ReasoningEnded(0, None, 0))
    assert driver.emitted_labels[:4] == ["started", "raw", "told", "part 0"]


def test_parts_requested_together_are_emitted_in_order(driver: SequencerDriver) -> None:
    driver.open()
    driver.raw(LINE)
    driver.raw(LINE)
    assert sorted(driver.requested) == [1, 2]
    driver.write(2, "second")
    assert "1: second" not in driver.emitted_labels
    driver.write(1, "first")
    upstream_events = [
        word for word in driver.emitted_labels if not word.startswith(("raw", "started"))
    ]
    assert upstream_events == [
        "part 0",
        "0: first",
        "part 0 done",
        "part 1",
        "1: second",
        "part 1 done",
    ]


def test_a_part_that_fails_without_text_leaves_no_trace(driver: SequencerDriver) -> None:
    driver.open()
    driver.raw(LINE)
    driver.raw(LINE)
    driver.say(2, "second")
    driver.fail(1)
    assert driver.emitted_labels[-2:] == ["part 0", "0: second"]
    driver.close()
    driver.finish(2)
    assert driver.emitted_labels[-1] == "closed: upstream_error"


def test_a_part_that_fails_midway_is_closed_as_it_stands(driver: SequencerDriver) -> None:
    driver.think("short thought")
    driver.say(1, "half a sen")
    driver.fail(1)
    assert driver.emitted_labels[2:] == [
        "part 0",
        "0: half a sen",
        "part 0 cut",
        "closed: upstream_error",
    ]


def test_an_empty_part_is_a_failure_whose_cost_is_counted(driver: SequencerDriver) -> None:
    driver.think("short thought")
    driver.finish(1, Tokens(10, 0, 10))
    driver.end()
    assert driver.emitted_labels[-2:] == ["closed: empty", "ended"]
    assert driver.ended.share is not None
    assert driver.ended.share.tokens == Tokens(10, 0, 10)


def test_a_short_rest_causes_neither_a_call_nor_a_hold(driver: SequencerDriver) -> None:
    driver.open()
    driver.raw(LINE)
    driver.write(1, "first")
    driver.raw("tail")
    driver.close()
    driver.answer()
    assert not driver.requested
    assert driver.emitted_labels[-2:] == ["closed", "answer"]


class TestDeadline:
    def test_a_silent_part_is_given_up_after_first_token(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        driver.answer()
        assert driver.sequencer.deadline == pytest.approx(2.0)
        driver.wait(1.9)
        assert "answer" not in driver.emitted_labels
        driver.wait(0.1)
        assert driver.emitted_labels[-2:] == ["closed: timeout", "answer"]
        assert driver.cancelled == [1]

    def test_a_part_being_emitted_is_closed_at_the_end_of_the_grace(
        self, driver: SequencerDriver
    ) -> None:
        driver.think("short thought")
        driver.answer()
        driver.say(1, "so far")
        assert driver.sequencer.deadline == pytest.approx(5.0)
        driver.wait(5.0)
        assert driver.emitted_labels[-3:] == ["part 0 cut", "closed: deadline", "answer"]
        assert driver.sequencer.missed_deadline

    def test_complete_parts_are_emitted_whole(self) -> None:
        driver = SequencerDriver(replace(PARTS, first_token_timeout=9.0))
        driver.open()
        driver.raw(LINE)
        driver.raw(LINE)
        driver.close()
        driver.answer()
        driver.write(2, "second")
        driver.wait(5.0)
        assert driver.emitted_labels[-5:] == [
            "part 0",
            "0: second",
            "part 0 done",
            "closed: deadline",
            "answer",
        ]

    def test_the_grace_is_one_budget_for_the_lane(self, driver: SequencerDriver) -> None:
        driver.think("first item thinks")
        driver.answer("call")
        driver.say(1, "one")
        driver.wait(4.0)
        driver.finish(1)
        driver.think("second item thinks", item=2)
        driver.answer("text")
        driver.say(2, "two")
        assert driver.sequencer.deadline == pytest.approx(driver.now + 1.0)
        driver.wait(1.0)
        assert driver.emitted_labels[-1] == "text"
        assert driver.sequencer.held_seconds == pytest.approx(5.0)

    def test_without_grace_the_answer_never_waits(self) -> None:
        driver = SequencerDriver(replace(PARTS, grace=0.0))
        driver.think("short thought")
        driver.answer()
        assert driver.emitted_labels == ["started", "raw", "closed: deadline", "answer"]

    def test_no_deadline_is_set_while_nothing_is_held(self, driver: SequencerDriver) -> None:
        driver.open()
        driver.raw(LINE)
        assert driver.sequencer.deadline is None

    def test_a_cancelled_call_leaves_its_share_incomplete(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        driver.wait(5.0)
        driver.end()
        assert driver.ended.share is not None
        assert driver.ended.share.incomplete
        assert driver.ended.share.tokens == Tokens()

    def test_later_text_of_a_cancelled_part_is_ignored(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        driver.wait(5.0)
        before = list(driver.emitted_labels)
        driver.write(1, "late")
        assert driver.emitted_labels == before

    def test_many_parts_are_given_up_a_few_at_a_time(self) -> None:
        made: list[str] = []

        def fallback(passage: Passage) -> str:
            made.append(passage.text)
            return "an extract"

        plan = SummaryPlan(part_chars=20, tail_chars=5, in_turn=True, fallback=fallback)
        driver = SequencerDriver(plan)
        driver.think(LINE * 12)
        driver.answer()
        steps = []
        while (deadline := driver.sequencer.deadline) is not None:
            before = len(made)
            driver.wait(max(0.0, deadline - driver.now))
            steps.append(len(made) - before)
        assert sum(steps) > 2 * GIVEN_UP_AT_ONCE
        assert max(steps) == GIVEN_UP_AT_ONCE
        assert driver.now == plan.first_token_timeout
        assert driver.emitted_labels[-1] == "answer"


class TestLanes:
    def test_lanes_do_not_wait_for_each_other(self, driver: SequencerDriver) -> None:
        driver.think("lane nought thinks", lane=0)
        driver.answer("held", lane=0)
        driver.answer("free", lane=1)
        assert "free" in driver.emitted_labels
        assert "held" not in driver.emitted_labels

    def test_the_end_waits_for_all_lanes(self, driver: SequencerDriver) -> None:
        driver.think("lane nought thinks", lane=0)
        driver.answer("held", lane=0)
        driver.end()
        assert driver.emitted_labels[-1] != "ended"
        driver.write(1, "sum")
        assert driver.emitted_labels[-2:] == ["held", "ended"]
        assert driver.sequencer.done

    def test_a_recorded_turn_waits_in_its_place(self, driver: SequencerDriver) -> None:
        recorded_turn = RecordedTurn(Turn("assistant"), "lane nought thinks", [], ())
        driver.think("lane nought thinks", lane=0)
        driver.answer("held", lane=0)
        for lane in (0, 1):
            driver.upstream(TurnRecorded(lane, None, recorded_turn))
            driver.upstream(Passthrough(lane, driver.frame()))
        assert driver.emitted_labels[-2:] == ["recorded", "other"]
        assert "held" not in driver.emitted_labels
        driver.write(1, "sum")
        assert driver.emitted_labels[-3:] == ["held", "recorded", "other"]

    def test_usage_waits_and_includes_the_summarys_share(self, driver: SequencerDriver) -> None:
        driver.think("lane nought thinks", lane=0)
        driver.upstream(UsageReported(None, driver.frame(), Tokens(1, 2, 3)))
        assert driver.emitted_labels[-1] != "usage"
        driver.write(1, "sum")
        bill = driver.emitted[-1]
        assert isinstance(bill, UsageReported)
        assert bill.share is not None
        assert bill.share.tokens == Tokens(10, 5, 15)

    def test_events_of_no_lane_pass_at_once(self, driver: SequencerDriver) -> None:
        driver.think("lane nought thinks")
        driver.answer("held")
        driver.upstream(Passthrough(None, b"prelude"))
        assert driver.emitted_labels[-1] == "other"


class TestStretches:
    def test_a_new_stretch_of_an_item_gets_new_parts(self, driver: SequencerDriver) -> None:
        driver.think("the first stretch")
        driver.write(1, "one")
        driver.answer("text")
        driver.think("the second stretch")
        driver.answer("more")
        assert driver.emitted_labels[-1] == "raw"
        driver.write(2, "two")
        assert driver.emitted_labels[-5:] == ["part 1", "1: two", "part 1 done", "closed", "more"]

    def test_a_later_stretchs_part_is_not_emitted_before_its_turn(
        self, driver: SequencerDriver
    ) -> None:
        driver.think("the first stretch")
        driver.answer("text")
        driver.think("the second stretch")
        driver.write(2, "two")
        assert "0: two" not in driver.emitted_labels
        driver.write(1, "one")
        emitted_text = [
            word for word in driver.emitted_labels if word[0].isdigit() or word == "text"
        ]
        assert emitted_text == ["0: one", "text", "1: two"]

    def test_a_short_rest_joins_the_next_stretch(self, driver: SequencerDriver) -> None:
        driver.think(LINE + "abc")
        driver.write(1, "one")
        driver.answer("text")
        driver.think("and longer")
        passage = driver.requested[2].passage
        assert passage.text == "abc\n\nand longer"
        assert passage.told == ("one",)
        assert passage.titles == ()

    def test_what_went_wrong_is_told_at_the_end_of_one_stretch(
        self, driver: SequencerDriver
    ) -> None:
        for part, stretch in ((1, "the first stretch"), (2, "the second stretch")):
            driver.think(stretch)
            driver.fail(part)
        driver.end()
        ends = [label for label in driver.emitted_labels if label.startswith("closed")]
        assert ends == ["closed: upstream_error", "closed"]
        assert driver.ended.summaries[0, 0].error == BROKEN

    def test_reasoning_outside_a_stretch_passes_and_is_not_summarized(
        self, driver: SequencerDriver
    ) -> None:
        driver.raw("stray " * 10)
        assert driver.emitted_labels == ["raw"]
        assert not driver.requested


class TestNative:
    def test_a_native_summary_that_comes_first_replaces_ours(self, driver: SequencerDriver) -> None:
        driver.open()
        driver.raw(LINE)
        driver.upstream(NativeSummary(0, driver.frame(), 0, 0, "delta", "theirs"))
        assert driver.cancelled == [1]
        driver.raw(LINE * 3)
        driver.close()
        assert not driver.requested
        assert driver.emitted_labels[-1] == "closed"
        driver.end()
        assert driver.ended.summaries[0, 0].native

    def test_native_parts_follow_ours(self, driver: SequencerDriver) -> None:
        driver.open()
        driver.raw(LINE)
        driver.say(1, "ours")
        driver.upstream(NativeSummary(0, driver.frame(), 0, 0, "added"))
        assert "native" not in driver.emitted_labels
        driver.finish(1)
        driver.upstream(NativeSummary(0, driver.frame(), 0, 0, "delta", "theirs"))
        natives = [event for event in driver.emitted if isinstance(event, NativeSummary)]
        assert [event.index for event in natives] == [1, 1]
        assert driver.emitted_labels[-3:] == ["part 0 done", "native", "native"]

    def test_native_parts_wait_no_longer_than_the_grace(self, driver: SequencerDriver) -> None:
        driver.open()
        driver.raw(LINE)
        driver.say(1, "ours")
        driver.upstream(NativeSummary(0, driver.frame(), 0, 0, "added"))
        driver.wait(5.0)
        assert driver.emitted_labels[-2:] == ["part 0 cut", "native"]


class TestRefused:
    def test_a_refused_part_joins_the_next_one(self, driver: SequencerDriver) -> None:
        driver.open()
        driver.raw(LINE)
        driver.refuse(1)
        driver.raw(LINE)
        assert list(driver.requested) == [1]
        assert driver.requested[1].passage.text.startswith(LINE)
        assert len(driver.requested[1].passage.text) > len(LINE)

    def test_a_refused_part_is_requested_again_at_the_end(self, driver: SequencerDriver) -> None:
        driver.open()
        driver.raw(LINE)
        driver.refuse(1)
        driver.close()
        driver.write(1, "at last")
        assert driver.emitted_labels[-3:] == ["0: at last", "part 0 done", "closed"]

    def test_no_answer_waits_for_refused_parts_that_came_together(
        self, driver: SequencerDriver
    ) -> None:
        driver.open()
        driver.raw(LINE * 4)
        refused = list(driver.requested)
        for part in refused:
            driver.refuse(part)
        driver.close()
        driver.answer()
        assert len(refused) > 2
        assert list(driver.requested) == refused[-1:]
        driver.write(refused[-1], "the last")
        assert driver.emitted_labels[-4:] == [
            "0: the last",
            "part 0 done",
            "closed: shed",
            "answer",
        ]

    def test_refused_at_the_end_it_is_shed(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        driver.refuse(1)
        driver.end()
        assert driver.emitted_labels[-2:] == ["closed: shed", "ended"]
        assert driver.ended.share is None


class TestFailure:
    def test_a_failure_drains_the_queue_and_comes_last(self, driver: SequencerDriver) -> None:
        driver.open()
        driver.raw(LINE)
        driver.say(1, "spoken")
        driver.raw(LINE)
        driver.upstream(ErrorReported(None, driver.frame(), BROKEN))
        assert driver.emitted_labels[-2:] == ["part 0 cut", "failed"]
        assert driver.cancelled == [1, 2]
        driver.end(ok=False)
        assert not driver.ended.ok

    def test_a_held_answer_is_let_out_before_the_failure(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        driver.answer()
        driver.end(ok=False)
        assert driver.emitted_labels[-3:] == ["closed: upstream_error", "answer", "ended"]

    def test_after_a_failure_nothing_is_requested(self, driver: SequencerDriver) -> None:
        driver.open()
        driver.upstream(ErrorReported(None, driver.frame(), BROKEN))
        driver.raw(LINE * 3)
        assert not driver.requested

    def test_reasoning_that_begins_after_a_failure_is_not_summarized(
        self, driver: SequencerDriver
    ) -> None:
        driver.upstream(ErrorReported(None, driver.frame(), BROKEN))
        driver.think(LINE * 3)
        driver.end(ok=False)
        assert not driver.requested
        assert driver.ended.share is None

    def test_a_failed_summary_ends_the_response_where_that_is_the_plan(self) -> None:
        driver = SequencerDriver(replace(PARTS, fail_response=True))
        driver.think("short thought")
        driver.fail(1)
        driver.answer()
        driver.end()
        assert driver.emitted_labels[-2:] == ["answer", "ended"]
        assert driver.ended.ok
        assert driver.ended.error == BROKEN


class TestFallback:
    @pytest.fixture
    def driver(self) -> SequencerDriver:
        return SequencerDriver(
            replace(PARTS, fallback=lambda passage: f"extract of {len(passage.text)}")
        )

    def test_an_extract_stands_in_for_a_failed_part(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        driver.fail(1)
        driver.end()
        assert "0: extract of 13" in driver.emitted_labels
        assert driver.emitted_labels[-2:] == ["closed: upstream_error", "ended"]
        assert driver.ended.share is not None
        assert driver.ended.share.models == ("extractive",)
        assert driver.ended.summaries[0, 0] == ItemSummary(
            parts=("extract of 13",), error=BROKEN, extracted=1
        )

    def test_it_stands_in_at_the_deadline_too(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        driver.answer()
        driver.wait(5.0)
        assert driver.emitted_labels[-3:] == ["part 0 done", "closed: deadline", "answer"]

    def test_the_fallback_does_not_replace_emitted_text(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        driver.say(1, "half")
        driver.fail(1)
        assert driver.emitted_labels[-2:] == ["part 0 cut", "closed: upstream_error"]


class TestStopping:
    """After a part that stops the summaries of a response, none is made or shown."""

    WITHHELD = ErrorDetail("withheld", "The summary was withheld.")

    def test_what_is_being_written_is_cancelled_and_what_waits_is_not_shown(
        self, driver: SequencerDriver
    ) -> None:
        driver.open()
        driver.raw(LINE * 3)
        driver.write(2, "written, and waits for the first")
        driver.stop(3, self.WITHHELD)
        assert driver.cancelled == [1]
        driver.close()
        driver.answer()
        driver.end()
        assert [each for each in driver.emitted_labels if "raw" not in each] == [
            "started",
            "closed: withheld",
            "answer",
            "ended",
        ]

    def test_what_is_shown_stays_and_ends_as_it_would_have(self, driver: SequencerDriver) -> None:
        driver.open()
        driver.raw(LINE * 2)
        driver.say(1, "one")
        driver.stop(2, self.WITHHELD)
        driver.finish(1)
        driver.close()
        assert driver.emitted_labels[-4:] == ["part 0", "0: one", "part 0 done", "closed: withheld"]

    def test_no_more_is_requested_for_any_item_or_choice(self, driver: SequencerDriver) -> None:
        driver.think(LINE, lane=1)
        driver.think(LINE)
        driver.stop(2, self.WITHHELD)
        assert driver.cancelled == [1]
        driver.raw(LINE * 3)
        driver.think(LINE * 3, item=1)
        driver.think("Hm.", item=2)
        assert not driver.requested
        driver.end()
        errors = {key: summary.error for key, summary in driver.ended.summaries.items()}
        assert errors == dict.fromkeys([(1, 0), (0, 0), (0, 1), (0, 2)], self.WITHHELD)

    def test_nothing_holds_the_answer_any_more(self, driver: SequencerDriver) -> None:
        driver.think(LINE * 2)
        driver.answer()
        assert driver.sequencer.holding
        driver.stop(1, self.WITHHELD)
        assert not driver.sequencer.holding
        assert driver.emitted_labels[-2:] == ["closed: withheld", "answer"]

    def test_a_part_that_waits_for_its_turn_never_has_it(self) -> None:
        driver = SequencerDriver(replace(PARTS, in_turn=True))
        driver.think(LINE * 3)
        driver.stop(1, self.WITHHELD)
        assert not driver.requested
        assert driver.emitted_labels[-1] == "closed: withheld"

    def test_a_summary_of_upstreams_own_still_passes(self, driver: SequencerDriver) -> None:
        driver.think(LINE)
        driver.stop(1, self.WITHHELD)
        driver.open(item=1)
        driver.upstream(NativeSummary(0, driver.frame(), 1, 0, "delta", "theirs"))
        driver.close(item=1)
        assert driver.emitted_labels[-2:] == ["native", "closed"]

    def test_what_the_part_cost_is_counted(self, driver: SequencerDriver) -> None:
        driver.think(LINE)
        driver.stop(1, self.WITHHELD, SPENT)
        assert driver.sequencer.spent == SPENT


class TestBounds:
    def test_bytes_end_no_hold_but_fill_the_sequencer(self) -> None:
        driver = SequencerDriver(replace(PARTS, held_limit=100))
        driver.think("short thought")
        for _ in range(3):
            assert not driver.sequencer.is_full
            driver.upstream(Passthrough(0, b"x" * 40))
        assert driver.sequencer.is_full
        driver.upstream(Passthrough(0, b"x" * 1_000_000))
        assert driver.sequencer.holding
        assert driver.sequencer.deadline == driver.plan.first_token_timeout
        driver.write(1, "sum")
        assert driver.emitted_labels[2:] == [
            "part 0",
            "0: sum",
            "part 0 done",
            "closed",
            *["other"] * 4,
        ]
        assert not driver.sequencer.is_full

    def test_a_full_sequencer_has_room_again_at_the_deadline(self) -> None:
        driver = SequencerDriver(replace(PARTS, held_limit=10, grace=1.0))
        for lane in (0, 1):
            driver.think("short thought", lane=lane)
            driver.answer("x" * 20, lane=lane)
        driver.end()
        assert driver.sequencer.is_full
        driver.wait(1.0)
        assert not driver.sequencer.is_full
        assert driver.sequencer.done

    def test_what_has_waited_leaves_a_part_at_a_time(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        said = [str(number) for number in range(EMITTED_AT_ONCE * 5 // 2)]
        for text in said:
            driver.answer(text)
        before = len(driver.emitted)
        driver.write(1, "sum")
        driver.answer("later")
        driver.end()
        steps = [len(driver.emitted) - before]
        while (deadline := driver.sequencer.deadline) is not None:
            assert deadline <= driver.now
            assert driver.sequencer.is_full
            driver.wait(0)
            steps.append(len(driver.emitted) - before - sum(steps))
        assert not driver.sequencer.is_full
        assert max(steps) < EMITTED_AT_ONCE + 10
        closed = driver.emitted_labels.index("closed")
        assert driver.emitted_labels[closed + 1 :] == [*said, "later", "ended"]

    def test_what_is_emitted_at_once_takes_no_room(self) -> None:
        driver = SequencerDriver(replace(PARTS, held_limit=10))
        driver.upstream(Passthrough(0, b"x" * 1000))
        driver.answer("x" * 1000)
        assert not driver.sequencer.is_full

    def test_held_bytes_are_counted_on_frames(self, driver: SequencerDriver) -> None:
        driver.think("short thought")
        driver.upstream(Passthrough(0, b"x" * 30))
        assert driver.sequencer.held_bytes == 30 + len(b"frame 3")

    @pytest.mark.parametrize(
        "event",
        [
            ContentDelta(0, None, "x" * 30),
            ContentDelta(0, None, "x", logprobs=[{"token": "x"}]),
            RefusalDelta(0, None, refusal="x" * 30),
            ToolCallDelta(0, None, call_index=0, arguments="x" * 30),
            ProviderState(0, None, 0, "x" * 30),
        ],
        ids=lambda event: type(event).__name__,
    )
    def test_translated_events_take_room(self, driver: SequencerDriver, event: Event) -> None:
        driver = SequencerDriver(replace(PARTS, held_limit=1000))
        driver.upstream(ReasoningStarted(0, None, 0))
        driver.upstream(ReasoningDelta(0, None, 0, "short thought"))
        driver.upstream(ReasoningEnded(0, None, 0))
        for _ in range(10):
            driver.upstream(event)
        assert driver.sequencer.is_full
        assert driver.emitted_labels == ["started", "raw", "told"]
        driver.wait(2.0)
        assert driver.sequencer.held_bytes == 0
        assert len(driver.emitted) == 3 + 1 + 10


def test_passages_include_earlier_titles_and_context(driver: SequencerDriver) -> None:
    driver.open()
    driver.raw(LINE)
    driver.write(1, "**Adding up**\n\nI add.")
    driver.raw(LINE)
    passage = driver.requested[2].passage
    assert passage.titles == ("Adding up",)
    assert passage.before
    assert LINE.endswith(passage.before)
    assert not passage.whole


class TestTooLittle:
    """A part written in its turn that tells too little goes with the reasoning that follows."""

    @pytest.fixture
    def driver(self) -> SequencerDriver:
        driver = SequencerDriver(replace(PARTS, in_turn=True))
        driver.open()
        driver.raw(LINE)
        driver.write(1, "**One**\n\nI add.")
        driver.raw(LINE)
        driver.raw("And so on. ")  # what follows the second part
        return driver

    def test_it_is_told_with_what_is_still_to_come(self, driver: SequencerDriver) -> None:
        driver.write(2, "**Two**\n\nI take.")
        assert "part 1" not in driver.emitted_labels
        driver.raw(LINE * 2)
        passage = driver.requested[2].passage
        assert passage.text.startswith("I take.\n\n…\n\nAnd so on. word")
        assert passage.told == ("**One**\n\nI add.",)
        driver.write(2, ENOUGH)
        assert driver.emitted_labels[-3:] == ["part 1", f"1: {ENOUGH}", "part 1 done"]

    def test_it_is_told_with_what_has_come_by_then(self, driver: SequencerDriver) -> None:
        driver.close()
        driver.write(2, "**Two**\n\nI take.")
        assert driver.requested[3].passage.text == "I take.\n\n…\n\nAnd so on. "
        driver.write(3, ENOUGH)
        driver.end()
        assert driver.ended.summaries[0, 0].parts == ("**One**\n\nI add.", ENOUGH)
        assert driver.ended.summaries[0, 0].unfinished == 0

    def test_each_call_is_counted(self, driver: SequencerDriver) -> None:
        driver.write(2, "**Two**")
        driver.close()
        driver.write(2, ENOUGH)
        driver.end()
        assert driver.ended.share is not None
        assert driver.ended.share.parts == 3

    @pytest.mark.parametrize(("text", "parts"), [("**Two**\n\nI take.", 2), ("**Two**", 1)])
    def test_it_is_shown_as_it_was_written_if_nothing_worth_a_part_comes(
        self, text: str, parts: int
    ) -> None:
        driver = SequencerDriver(replace(PARTS, in_turn=True, tail_chars=30))
        driver.open()
        for part, said in ((1, ENOUGH), (2, text)):
            driver.raw(LINE)
            driver.raw("And so on. ")
            driver.write(part, said)
        driver.close()
        driver.end()
        assert driver.ended.summaries[0, 0].parts == (ENOUGH, text)[:parts]
        assert driver.ended.summaries[0, 0].error is None

    def test_it_is_shown_if_nothing_follows(self, driver: SequencerDriver) -> None:
        driver.close()
        driver.write(2, "**Two**\n\nI take.")
        driver.write(3, "**Three**\n\nI divide.")
        assert driver.emitted_labels[-3:] == ["1: **Three**\n\nI divide.", "part 1 done", "closed"]

    def test_a_title_alone_is_not_shown_at_the_end(self, driver: SequencerDriver) -> None:
        driver.close()
        driver.write(2, "**Two**")
        driver.write(3, "**Three**")
        assert driver.emitted_labels[-1] == "closed"
        assert "part 1" not in driver.emitted_labels

    def test_what_is_in_the_midst_of_being_written_is_not_shown(
        self, driver: SequencerDriver
    ) -> None:
        driver.say(2, ENOUGH)
        assert "part 1" not in driver.emitted_labels
        driver.finish(2)
        assert driver.emitted_labels[-1] == "part 1 done"

    def test_the_first_part_is_shown_whatever_it_tells(self) -> None:
        driver = SequencerDriver(replace(PARTS, in_turn=True))
        driver.open()
        driver.raw(LINE)
        driver.write(1, "**One**")
        assert driver.emitted_labels[-1] == "part 0 done"

    def test_a_style_of_titles_has_nothing_below_them(self) -> None:
        driver = SequencerDriver(replace(PARTS, in_turn=True, style="title"))
        driver.open()
        driver.raw(LINE)
        driver.write(1, "**One**")
        driver.raw(LINE)
        driver.raw("And so on. ")
        driver.write(2, "**Two**")
        assert driver.emitted_labels[-1] == "part 1 done"

    def test_a_model_is_taken_at_its_word(self) -> None:
        driver = SequencerDriver(PARTS)
        driver.open()
        driver.raw(LINE)
        driver.raw(LINE)
        driver.write(1, "**One**")
        driver.write(2, "**Two**")
        assert driver.emitted_labels[-1] == "part 1 done"


class TestInTurn:
    @pytest.fixture
    def driver(self) -> SequencerDriver:
        return SequencerDriver(replace(PARTS, in_turn=True))

    def test_each_part_knows_all_that_was_told_before_it(self, driver: SequencerDriver) -> None:
        driver.open()
        for _ in range(3):
            driver.raw(LINE)
        driver.raw("the end")  # what follows the third part
        assert list(driver.requested) == [1]
        driver.write(1, "**One**\n\nI add.")
        assert list(driver.requested) == [2]
        driver.write(2, ENOUGH)
        assert driver.requested[3].passage.told == ("**One**\n\nI add.", ENOUGH)
        driver.write(3, ENOUGH)
        driver.close()
        driver.write(4, "four")
        assert driver.emitted_labels[-1] == "closed"

    def test_only_the_last_part_is_called_last(self, driver: SequencerDriver) -> None:
        driver.think(LINE + LINE + "the conclusion")
        passages = []
        for part in (1, 2, 3):
            passages.append(driver.requested[part].passage)
            driver.write(part, ENOUGH)
        assert [passage.last for passage in passages] == [False, False, True]

    def test_a_part_that_fails_lets_the_next_one_have_its_turn(
        self, driver: SequencerDriver
    ) -> None:
        driver.think(LINE + LINE)
        driver.fail(1)
        driver.write(2, "two")
        assert driver.emitted_labels[-4:] == [
            "part 0",
            "0: two",
            "part 0 done",
            "closed: upstream_error",
        ]

    def test_a_part_that_waits_for_its_turn_is_not_waited_for_longer_than_the_grace(
        self, driver: SequencerDriver
    ) -> None:
        driver.think(LINE + LINE)
        driver.answer()
        driver.wait(5.0)
        assert driver.emitted_labels[-2:] == ["closed: deadline", "answer"]

    def test_a_part_that_is_late_is_written_by_the_fallback_and_has_not_failed(self) -> None:
        plan = replace(PARTS, in_turn=True, fallback=lambda passage: passage.text.upper())
        driver = SequencerDriver(plan)
        driver.think("short thought")
        driver.wait(5.0)
        assert driver.emitted_labels[-3:] == ["0: SHORT THOUGHT", "part 0 done", "closed"]

    def test_a_broken_response_waits_for_no_part(self, driver: SequencerDriver) -> None:
        driver.think(LINE + LINE + "more of it")
        driver.end(ok=False)
        assert not driver.requested
        assert driver.emitted_labels[-1] == "ended"


def test_reasoning_without_a_cut_is_one_whole_passage(
    driver: SequencerDriver,
) -> None:
    driver.think("short thought")
    assert driver.requested[1].passage.whole


def test_concise_is_one_part_requested_at_the_end() -> None:
    driver = SequencerDriver(replace(PARTS, style="concise"))
    driver.open()
    driver.raw(LINE * 10)
    assert not driver.requested
    driver.close()
    assert driver.requested[1].passage.text == LINE * 10
    assert driver.requested[1].passage.whole


def test_live_false_asks_at_the_end() -> None:
    driver = SequencerDriver(replace(PARTS, live=False))
    driver.open()
    driver.raw(LINE * 10)
    assert not driver.requested
    driver.close()
    assert list(driver.requested) == [1]


def test_the_shares_of_several_parts_add_up(driver: SequencerDriver) -> None:
    driver.open()
    driver.raw(LINE)
    driver.raw(LINE)
    driver.write(1, "one")
    driver.write(2, "two")
    driver.close()
    driver.end()
    share = driver.ended.share
    assert share is not None
    assert (share.tokens, share.parts, share.incomplete) == (Tokens(20, 10, 30), 2, False)


def test_events_of_a_type_never_seen_pass_in_order(driver: SequencerDriver) -> None:
    driver.upstream(ReasoningStarted(0, b"a", 0))
    driver.upstream(Passthrough(0, b"b"))
    driver.upstream(ReasoningDelta(0, b"c", 0, "text"))
    assert [event.frame for event in driver.emitted] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("settle", [SequencerDriver.refuse, SequencerDriver.fail])
def test_the_time_is_in_proportion_to_the_lanes(
    settle: Callable[[SequencerDriver, int], None],
) -> None:
    """Choices wait side by side; what becomes of one part lets others be."""

    def sequence(text: str) -> None:
        driver = SequencerDriver(PARTS)
        for lane in range(len(text)):
            driver.think(LINE, lane=lane)
            settle(driver, lane + 1)
            assert driver.sequencer.deadline is None

    assert not grows_too_much(sequence, Text("", "x"), (4_000, 16_000))
