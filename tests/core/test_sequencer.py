"""The ordering rules, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from abridge.core.conversation import RecordedTurn, Turn
from abridge.core.events import (
    ContentDelta,
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
from abridge.core.plan import SummaryPlan
from abridge.core.usage import Tokens
from tests.core.sequencer_driver import BROKEN, Loom

LINE = "word " * 4 + "\n\n"  # fills one part of 20 characters
NEXT = "word " * 5 + "\n\n"  # and this the second, which is a quarter larger
PARTS = SummaryPlan(part_chars=20, tail_chars=5)


@pytest.fixture
def loom() -> Loom:
    return Loom()


def test_a_part_is_emitted_while_the_model_still_reasons(loom: Loom) -> None:
    loom.open()
    loom.raw(LINE)
    loom.say(1, "first")
    loom.raw("more ")
    loom.finish(1)
    loom.raw("and more")
    assert loom.told == ["started", "raw", "part 0", "0: first", "raw", "part 0 done", "raw"]


def test_without_a_style_nothing_is_requested() -> None:
    loom = Loom(SummaryPlan(style=None))
    loom.think("x" * 5000)
    loom.answer()
    loom.end()
    assert not loom.asked
    assert loom.told == ["started", "raw", "closed", "answer", "ended"]
    assert loom.ended.share is None


def test_whitespace_is_no_reasoning(loom: Loom) -> None:
    loom.think("  \n\n \t ")
    assert not loom.asked
    assert loom.told == ["started", "raw", "closed"]


def test_the_answer_waits_for_the_last_part(loom: Loom) -> None:
    loom.think("short thought")
    loom.answer()
    assert loom.told == ["started", "raw"]
    assert loom.weaver.holding
    loom.say(1, "sum")
    loom.wait(0.5)
    loom.finish(1)
    assert loom.told[2:] == ["part 0", "0: sum", "part 0 done", "closed", "answer"]
    assert not loom.weaver.holding
    assert loom.weaver.held_seconds == pytest.approx(0.5)


def test_parts_requested_together_are_emitted_in_order(loom: Loom) -> None:
    loom.open()
    loom.raw(LINE)
    loom.raw(NEXT)
    assert sorted(loom.asked) == [1, 2]
    loom.write(2, "second")
    assert "1: second" not in loom.told
    loom.write(1, "first")
    said = [word for word in loom.told if not word.startswith(("raw", "started"))]
    assert said == ["part 0", "0: first", "part 0 done", "part 1", "1: second", "part 1 done"]


def test_a_part_that_fails_without_text_leaves_no_trace(loom: Loom) -> None:
    loom.open()
    loom.raw(LINE)
    loom.raw(NEXT)
    loom.say(2, "second")
    loom.fail(1)
    assert loom.told[-2:] == ["part 0", "0: second"]
    loom.close()
    loom.finish(2)
    assert loom.told[-1] == "closed: upstream_error"


def test_a_part_that_fails_midway_is_closed_as_it_stands(loom: Loom) -> None:
    loom.think("short thought")
    loom.say(1, "half a sen")
    loom.fail(1)
    assert loom.told[2:] == ["part 0", "0: half a sen", "part 0 cut", "closed: upstream_error"]


def test_an_empty_part_is_a_failure_whose_cost_is_counted(loom: Loom) -> None:
    loom.think("short thought")
    loom.finish(1, Tokens(10, 0, 10))
    loom.end()
    assert loom.told[-2:] == ["closed: empty", "ended"]
    assert loom.ended.share is not None
    assert loom.ended.share.tokens == Tokens(10, 0, 10)


def test_a_short_rest_is_not_worth_a_call_nor_a_hold(loom: Loom) -> None:
    loom.open()
    loom.raw(LINE)
    loom.write(1, "first")
    loom.raw("tail")
    loom.close()
    loom.answer()
    assert not loom.asked
    assert loom.told[-2:] == ["closed", "answer"]


class TestDeadline:
    def test_a_silent_part_is_given_up_after_first_token(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.answer()
        assert loom.weaver.deadline == pytest.approx(2.0)
        loom.wait(1.9)
        assert "answer" not in loom.told
        loom.wait(0.1)
        assert loom.told[-2:] == ["closed: timeout", "answer"]
        assert loom.cancelled == [1]

    def test_a_part_being_emitted_is_closed_at_the_end_of_the_grace(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.answer()
        loom.say(1, "so far")
        assert loom.weaver.deadline == pytest.approx(5.0)
        loom.wait(5.0)
        assert loom.told[-3:] == ["part 0 cut", "closed: deadline", "answer"]
        assert loom.weaver.missed_deadline

    def test_complete_parts_are_emitted_whole(self) -> None:
        loom = Loom(replace(PARTS, first_token_timeout=9.0))
        loom.open()
        loom.raw(LINE)
        loom.raw(NEXT)
        loom.close()
        loom.answer()
        loom.write(2, "second")
        loom.wait(5.0)
        assert loom.told[-5:] == [
            "part 0",
            "0: second",
            "part 0 done",
            "closed: deadline",
            "answer",
        ]

    def test_the_grace_is_one_budget_for_the_lane(self, loom: Loom) -> None:
        loom.think("first item thinks")
        loom.answer("call")
        loom.say(1, "one")
        loom.wait(4.0)
        loom.finish(1)
        loom.think("second item thinks", item=2)
        loom.answer("text")
        loom.say(2, "two")
        assert loom.weaver.deadline == pytest.approx(loom.now + 1.0)
        loom.wait(1.0)
        assert loom.told[-1] == "text"
        assert loom.weaver.held_seconds == pytest.approx(5.0)

    def test_without_grace_the_answer_never_waits(self) -> None:
        loom = Loom(replace(PARTS, grace=0.0))
        loom.think("short thought")
        loom.answer()
        assert loom.told == ["started", "raw", "closed: deadline", "answer"]

    def test_nothing_is_due_while_nothing_is_held(self, loom: Loom) -> None:
        loom.open()
        loom.raw(LINE)
        assert loom.weaver.deadline is None

    def test_a_cancelled_call_leaves_its_share_incomplete(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.wait(5.0)
        loom.end()
        assert loom.ended.share is not None
        assert loom.ended.share.incomplete
        assert loom.ended.share.tokens == Tokens()

    def test_later_text_of_a_cancelled_part_is_ignored(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.wait(5.0)
        before = list(loom.told)
        loom.write(1, "late")
        assert loom.told == before


class TestLanes:
    def test_lanes_do_not_wait_for_each_other(self, loom: Loom) -> None:
        loom.think("lane nought thinks", lane=0)
        loom.answer("held", lane=0)
        loom.answer("free", lane=1)
        assert "free" in loom.told
        assert "held" not in loom.told

    def test_the_end_waits_for_all_lanes(self, loom: Loom) -> None:
        loom.think("lane nought thinks", lane=0)
        loom.answer("held", lane=0)
        loom.end()
        assert loom.told[-1] != "ended"
        loom.write(1, "sum")
        assert loom.told[-2:] == ["held", "ended"]
        assert loom.weaver.done

    def test_a_recorded_turn_waits_in_its_place(self, loom: Loom) -> None:
        heard = RecordedTurn(Turn("assistant"), "lane nought thinks", [], ())
        loom.think("lane nought thinks", lane=0)
        loom.answer("held", lane=0)
        for lane in (0, 1):
            loom.upstream(TurnRecorded(lane, None, heard))
            loom.upstream(Passthrough(lane, loom.frame()))
        assert loom.told[-2:] == ["recorded", "other"]
        assert "held" not in loom.told
        loom.write(1, "sum")
        assert loom.told[-3:] == ["held", "recorded", "other"]

    def test_the_bill_waits_and_carries_the_share(self, loom: Loom) -> None:
        loom.think("lane nought thinks", lane=0)
        loom.upstream(UsageReported(None, loom.frame(), Tokens(1, 2, 3)))
        assert loom.told[-1] != "usage"
        loom.write(1, "sum")
        bill = loom.emitted[-1]
        assert isinstance(bill, UsageReported)
        assert bill.share is not None
        assert bill.share.tokens == Tokens(10, 5, 15)

    def test_what_belongs_to_no_lane_passes_at_once(self, loom: Loom) -> None:
        loom.think("lane nought thinks")
        loom.answer("held")
        loom.upstream(Passthrough(None, b"prelude"))
        assert loom.told[-1] == "other"


class TestStretches:
    def test_a_new_stretch_of_an_item_gets_new_parts(self, loom: Loom) -> None:
        loom.think("the first stretch")
        loom.write(1, "one")
        loom.answer("text")
        loom.think("the second stretch")
        loom.answer("more")
        assert loom.told[-1] == "raw"
        loom.write(2, "two")
        assert loom.told[-5:] == ["part 1", "1: two", "part 1 done", "closed", "more"]

    def test_a_later_stretchs_part_is_not_emitted_before_its_turn(self, loom: Loom) -> None:
        loom.think("the first stretch")
        loom.answer("text")
        loom.think("the second stretch")
        loom.write(2, "two")
        assert "0: two" not in loom.told
        loom.write(1, "one")
        spoken = [word for word in loom.told if word[0].isdigit() or word == "text"]
        assert spoken == ["0: one", "text", "1: two"]

    def test_a_short_rest_joins_the_next_stretch(self, loom: Loom) -> None:
        loom.think(LINE + "abc")
        loom.write(1, "one")
        loom.answer("text")
        loom.think("and something longer")
        passage = loom.asked[2].passage
        assert passage.text == "abc\n\nand something longer"
        assert passage.titles == ()

    def test_reasoning_outside_a_stretch_passes_and_is_not_summarized(self, loom: Loom) -> None:
        loom.raw("stray " * 10)
        assert loom.told == ["raw"]
        assert not loom.asked


class TestNative:
    def test_a_native_summary_that_comes_first_replaces_ours(self, loom: Loom) -> None:
        loom.open()
        loom.raw(LINE)
        loom.upstream(NativeSummary(0, loom.frame(), 0, 0, "delta", "theirs"))
        assert loom.cancelled == [1]
        loom.raw(LINE * 3)
        loom.close()
        assert not loom.asked
        assert loom.told[-1] == "closed"
        loom.end()
        assert loom.ended.summaries[0, 0].native

    def test_native_parts_follow_ours(self, loom: Loom) -> None:
        loom.open()
        loom.raw(LINE)
        loom.say(1, "ours")
        loom.upstream(NativeSummary(0, loom.frame(), 0, 0, "added"))
        assert "native" not in loom.told
        loom.finish(1)
        loom.upstream(NativeSummary(0, loom.frame(), 0, 0, "delta", "theirs"))
        natives = [event for event in loom.emitted if isinstance(event, NativeSummary)]
        assert [event.index for event in natives] == [1, 1]
        assert loom.told[-3:] == ["part 0 done", "native", "native"]

    def test_native_parts_wait_no_longer_than_the_grace(self, loom: Loom) -> None:
        loom.open()
        loom.raw(LINE)
        loom.say(1, "ours")
        loom.upstream(NativeSummary(0, loom.frame(), 0, 0, "added"))
        loom.wait(5.0)
        assert loom.told[-2:] == ["part 0 cut", "native"]


class TestRefused:
    def test_a_refused_part_joins_the_next_one(self, loom: Loom) -> None:
        loom.open()
        loom.raw(LINE)
        loom.refuse(1)
        loom.raw(LINE * 2)
        assert list(loom.asked) == [1]
        assert loom.asked[1].passage.text.startswith(LINE)
        assert len(loom.asked[1].passage.text) > len(LINE)

    def test_a_refused_part_is_requested_again_at_the_end(self, loom: Loom) -> None:
        loom.open()
        loom.raw(LINE)
        loom.refuse(1)
        loom.close()
        loom.write(1, "at last")
        assert loom.told[-3:] == ["0: at last", "part 0 done", "closed"]

    def test_refused_at_the_end_it_is_shed(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.refuse(1)
        loom.end()
        assert loom.told[-2:] == ["closed: shed", "ended"]
        assert loom.ended.share is None


class TestFailure:
    def test_a_failure_drains_the_queue_and_comes_last(self, loom: Loom) -> None:
        loom.open()
        loom.raw(LINE)
        loom.say(1, "spoken")
        loom.raw(NEXT)
        loom.upstream(ErrorReported(None, loom.frame(), BROKEN))
        assert loom.told[-2:] == ["part 0 cut", "failed"]
        assert loom.cancelled == [1, 2]
        loom.end(ok=False)
        assert not loom.ended.ok

    def test_a_held_answer_is_let_out_before_the_failure(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.answer()
        loom.end(ok=False)
        assert loom.told[-3:] == ["closed: upstream_error", "answer", "ended"]

    def test_after_a_failure_nothing_is_requested(self, loom: Loom) -> None:
        loom.open()
        loom.upstream(ErrorReported(None, loom.frame(), BROKEN))
        loom.raw(LINE * 3)
        assert not loom.asked

    def test_a_failed_summary_ends_the_response_where_that_is_the_plan(self) -> None:
        loom = Loom(replace(PARTS, fail_response=True))
        loom.think("short thought")
        loom.fail(1)
        loom.answer()
        loom.end()
        assert loom.told[-2:] == ["answer", "ended"]
        assert loom.ended.ok
        assert loom.ended.error == BROKEN


class TestSubstitute:
    @pytest.fixture
    def loom(self) -> Loom:
        return Loom(replace(PARTS, fallback=lambda passage: f"extract of {len(passage.text)}"))

    def test_an_extract_stands_in_for_a_failed_part(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.fail(1)
        loom.end()
        assert "0: extract of 13" in loom.told
        assert loom.told[-2:] == ["closed: upstream_error", "ended"]
        assert loom.ended.share is not None
        assert loom.ended.share.model == "extractive"
        assert loom.ended.summaries[0, 0] == ItemSummary(
            parts=("extract of 13",), error=BROKEN, extracted=1
        )

    def test_it_stands_in_at_the_deadline_too(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.answer()
        loom.wait(5.0)
        assert loom.told[-3:] == ["part 0 done", "closed: deadline", "answer"]

    def test_the_fallback_does_not_replace_emitted_text(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.say(1, "half")
        loom.fail(1)
        assert loom.told[-2:] == ["part 0 cut", "closed: upstream_error"]


class TestBounds:
    def test_the_oldest_hold_is_released_at_the_ceiling(self) -> None:
        loom = Loom(replace(PARTS, held_limit=100))
        loom.think("short thought")
        for _ in range(5):
            loom.upstream(Passthrough(0, b"x" * 30))
        assert loom.told == ["started", "raw", "closed: deadline", *["other"] * 5]
        assert loom.weaver.held_bytes == 0
        assert loom.weaver.over_held_limit

    def test_held_bytes_are_counted_on_frames(self, loom: Loom) -> None:
        loom.think("short thought")
        loom.upstream(Passthrough(0, b"x" * 30))
        assert loom.weaver.held_bytes == 30 + len(b"frame 3")

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
    def test_translated_events_count_against_the_held_limit(self, loom: Loom, event: Event) -> None:
        loom = Loom(replace(PARTS, held_limit=1000))
        loom.upstream(ReasoningStarted(0, None, 0))
        loom.upstream(ReasoningDelta(0, None, 0, "short thought"))
        loom.upstream(ReasoningEnded(0, None, 0))
        for _ in range(10):
            loom.upstream(event)
        assert loom.weaver.over_held_limit
        assert loom.weaver.held_bytes == 0
        assert len(loom.emitted) == 13


def test_passages_hold_titles_and_what_came_before(loom: Loom) -> None:
    loom.open()
    loom.raw(LINE)
    loom.write(1, "**Adding up**\n\nI add.")
    loom.raw(NEXT)
    passage = loom.asked[2].passage
    assert passage.titles == ("Adding up",)
    assert passage.before
    assert LINE.endswith(passage.before)
    assert not passage.whole


def test_reasoning_that_ends_before_the_first_cut_is_a_whole(loom: Loom) -> None:
    loom.think("short thought")
    assert loom.asked[1].passage.whole


def test_concise_is_one_part_requested_at_the_end() -> None:
    loom = Loom(replace(PARTS, style="concise"))
    loom.open()
    loom.raw(LINE * 10)
    assert not loom.asked
    loom.close()
    assert loom.asked[1].passage.text == LINE * 10
    assert loom.asked[1].passage.whole


def test_live_false_asks_at_the_end() -> None:
    loom = Loom(replace(PARTS, live=False))
    loom.open()
    loom.raw(LINE * 10)
    assert not loom.asked
    loom.close()
    assert list(loom.asked) == [1]


def test_the_shares_of_several_parts_add_up(loom: Loom) -> None:
    loom.open()
    loom.raw(LINE)
    loom.raw(NEXT)
    loom.write(1, "one")
    loom.write(2, "two")
    loom.close()
    loom.end()
    share = loom.ended.share
    assert share is not None
    assert (share.tokens, share.parts, share.incomplete) == (Tokens(20, 10, 30), 2, False)


def test_events_of_a_type_never_seen_pass_in_order(loom: Loom) -> None:
    loom.upstream(ReasoningStarted(0, b"a", 0))
    loom.upstream(Passthrough(0, b"b"))
    loom.upstream(ReasoningDelta(0, b"c", 0, "text"))
    assert [event.frame for event in loom.emitted] == [b"a", b"b", b"c"]
