"""Test the rules by which reasoning is attributed to calls."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.core.answer import Attribution, AttributionKind, AttributionPart
from abridge.stages.attribution import ENTRY_OVERHEAD, RAW, REDACTED, SUMMARY, Attributor

Step = tuple[Any, ...]
HIDDEN = AttributionPart(REDACTED)


def raw(text: str) -> AttributionPart:
    return AttributionPart(RAW, text)


def follow(*steps: Step, room: int = sys.maxsize) -> tuple[list[Attribution], Attributor]:
    """Return what led to each call."""
    turn = Attributor(room)
    led: list[Attribution] = []
    for step, *fields in steps:
        if step == "call":
            led.append(turn.attribute_call())
        elif step == "redact":
            turn.add_redacted(stretch=fields[0] if fields else 0)
        else:
            kind, text, stretch, part = fields
            turn.add_reasoning(kind, text, part=part, stretch=stretch)
    return led, turn


def think(text: str, stretch: int = 0, kind: AttributionKind = RAW, part: int = 0) -> Step:
    return "think", kind, text, stretch, part


CALL, REDACT = ("call",), ("redact",)


def test_each_call_gets_the_reasoning_since_the_previous_one_which_is_then_spent() -> None:
    led, turn = follow(think("A"), CALL, think("B"), CALL)
    assert led == [Attribution((raw("A"),)), Attribution((raw("B"),))]
    assert turn.unattributed == ()


def test_calls_with_none_between_refer_to_the_latest_that_had_some() -> None:
    led, _ = follow(think("A"), CALL, CALL, CALL, think("B"), CALL, CALL)
    assert [one.source for one in led] == [None, led[0], led[0], None, led[3]]


def test_turns_are_independent() -> None:
    follow(think("A"), CALL)
    led, _ = follow(CALL)
    assert led == [Attribution()]


def test_a_first_call_without_reasoning_has_neither() -> None:
    led, _ = follow(CALL, CALL, think("A"), CALL)
    assert led == [Attribution(), Attribution(), Attribution((raw("A"),))]


@pytest.mark.parametrize("blank", ["", " ", "\n\n", "\t\u2003"])
def test_several_blocks_go_to_one_call_in_order_and_blank_ones_to_none(blank: str) -> None:
    led, _ = follow(think("A"), think(blank, 1), think("B", 2), CALL, think(blank, 3), CALL)
    assert led == [Attribution((raw("A"), raw("B"))), Attribution(source=led[0])]


def test_deltas_join_with_nothing_between_and_parts_stay_separate() -> None:
    led, _ = follow(think("A"), think(" b\n"), think("C", part=1), think(" d"), CALL)
    assert led[0].parts == (raw("A b\n d"), raw("C"))


def test_hidden_reasoning_has_a_placeholder() -> None:
    led, _ = follow(think("A"), REDACT, think("B"), CALL, REDACT, REDACT, CALL)
    assert led[0].parts == (raw("A"), HIDDEN, raw("B"))
    assert led[1].parts == (HIDDEN, HIDDEN)
    assert "text" not in HIDDEN.kind


def test_the_rest_led_to_the_text() -> None:
    led, turn = follow(think("A"), CALL, think("B"), REDACT)
    assert led == [Attribution((raw("A"),))]
    assert turn.unattributed == (raw("B"), HIDDEN)


def test_raw_reasoning_is_preferred_to_its_summary() -> None:
    summed = [think("S", kind=SUMMARY), think("T", kind=SUMMARY, part=1)]
    assert follow(think("A"), *summed, think("B"), CALL)[0][0].parts == (raw("AB"),)
    assert follow(think(" "), *summed, ("redact",), CALL)[0][0].parts == (
        AttributionPart(SUMMARY, "S"),
        AttributionPart(SUMMARY, "T"),
    )


def test_each_stretch_has_the_kind_that_is_shown_of_it() -> None:
    summed = think("S", 1, SUMMARY)
    led, _ = follow(think("A", 0), summed, ("redact", 2), think("B", 3), CALL)
    assert led[0].parts == (raw("A"), AttributionPart(SUMMARY, "S"), HIDDEN, raw("B"))


steps = st.lists(
    st.one_of(
        st.just(CALL),
        st.builds(lambda stretch: ("redact", stretch), st.integers(0, 3)),
        st.builds(
            think,
            st.text("ab \n", max_size=4),
            st.integers(0, 3),
            st.sampled_from([RAW, SUMMARY]),
            st.integers(0, 1),
        ),
    ),
    max_size=24,
)


@given(steps)
def test_a_call_has_parts_or_refers_to_the_latest_before_it_that_has(sequence: list[Step]) -> None:
    led, _ = follow(*sequence)
    latest: Attribution | None = None
    for one in led:
        assert not (one.parts and one.source is not None)
        assert one.parts or one.source is latest
        latest = one if one.parts else latest


@given(steps)
def test_nothing_is_attributed_twice_and_nothing_raw_is_lost(sequence: list[Step]) -> None:
    led, turn = follow(*sequence)
    attributed = [
        part for parts in (*(one.parts for one in led), turn.unattributed) for part in parts
    ]
    reasoning = "".join(step[2] for step in sequence if step[:2] == ("think", RAW))
    letters = [letter for part in attributed if part.kind == RAW for letter in part.text]
    assert sorted(filter(str.strip, letters)) == sorted(filter(str.strip, reasoning))
    assert all(part.text.strip() for part in attributed if part.kind != REDACTED)


@given(steps, st.integers(0, 12 * ENTRY_OVERHEAD))
def test_over_the_limit_nothing_is_attributed(sequence: list[Step], room: int) -> None:
    whole, _ = follow(*sequence)
    led, turn = follow(*sequence, room=room)
    same = [one == other for one, other in zip(led, whole, strict=True)]
    known = same.index(False) if False in same else len(same)
    assert led[known:] == [Attribution()] * (len(led) - known)
    assert turn.unattributed == () if turn.is_over_limit else led == whole


def test_a_turn_of_endless_calls_ends_too() -> None:
    led, turn = follow(think("A"), *[CALL] * 10, room=8 * ENTRY_OVERHEAD)
    assert turn.is_over_limit
    assert [bool(one.parts) or one.source is not None for one in led] == [True] * 6 + [False] * 4
