"""The order of events whose reader names no parts: one call is written after the other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from abridge.core.events import (
    ContentDelta,
    Event,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ToolCallDelta,
)
from abridge.stages.order import CallOrder
from tests.support.streams import pieces


def piece(number: int, arguments: str) -> ToolCallDelta:
    return ToolCallDelta(0, None, call_index=number, arguments=arguments)


def arranged(events: Sequence[Event]) -> list[Event]:
    order = CallOrder()
    return [*(out for event in events for out in order.take([event])), *order.rest()]


def test_reasoning_waits_as_a_whole_until_an_open_call_is_whole() -> None:
    thought = [
        ReasoningStarted(0, None, 0),
        ReasoningDelta(0, None, 0, "I"),
        ReasoningEnded(0, None, 0),
    ]
    begun, ended = piece(0, "{"), piece(0, "}")
    assert arranged([begun, *thought, ended]) == [begun, ended, *thought]


def test_a_piece_of_a_call_that_is_done_is_dropped() -> None:
    assert arranged([piece(0, "{}"), piece(1, "{}"), piece(0, "more")]) == [
        piece(0, "{}"),
        piece(1, "{}"),
    ]


@pytest.mark.parametrize(
    ("more", "lost"), [(piece(0, "more"), True), (piece(0, " \n"), False), (piece(1, "{}"), False)]
)
def test_it_is_known_whether_arguments_were_lost(more: ToolCallDelta, *, lost: bool) -> None:
    order = CallOrder()
    for event in (piece(0, "{}"), ContentDelta(0, None, "So."), more):
        order.take([event])
    assert (order.failure is not None) == lost


def test_a_long_call_is_not_read_again_for_each_fragment(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def reading(data: str) -> Any:
        read.append(len(data))
        return json.loads(data)

    monkeypatch.setattr("abridge.stages.order.json", SimpleNamespace(loads=reading))
    text = json.dumps({"x": "}" * 100_000})
    order = CallOrder()
    for fragment in pieces(text, 50):
        order.take([piece(0, fragment), ContentDelta(0, None, "x")])
    assert read == [len(text)]


def test_texts_keep_their_place_between_the_calls_that_wait() -> None:
    one, two, three = (ContentDelta(0, None, text) for text in ("one", "two", "three"))
    waiting = [one, piece(1, "{}"), two, piece(2, "{}"), three]
    assert arranged([piece(0, "{"), *waiting, piece(0, "}")]) == [
        *(piece(0, "{"), piece(0, "}")),
        *waiting,
    ]


def test_many_calls_that_wait_are_looked_at_a_few_times_each() -> None:
    looks = 0

    class LookedAt(ToolCallDelta):
        def __getattribute__(self, name: str) -> Any:
            nonlocal looks
            looks += 1
            return super().__getattribute__(name)

    events = [LookedAt(0, None, call_index=number) for number in range(500)]
    assert arranged(events) == events
    assert looks < 50 * len(events)
