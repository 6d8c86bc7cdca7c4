"""The order in which the parts of an answer come to clients that know one open part at a time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count, groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.core.answer import Part
from abridge.core.events import (
    STRAY_ARGUMENTS,
    ContentDelta,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    PartEnded,
    PartStarted,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ToolCallDelta,
)
from abridge.stages.order import Order
from tests.support.streams import pieces

LIMIT = 1 << 20
FINISHED = Finished(0, None, "stop")


def piece(part: Part, arguments: str) -> ToolCallDelta:
    part.texts.append(arguments)
    return ToolCallDelta(0, None, call_index=part.number, arguments=arguments, part=part)


def said(part: Part, text: str) -> ContentDelta:
    part.texts.append(text)
    return ContentDelta(0, None, text, part=part)


def thought(part: Part, text: str) -> ReasoningDelta:
    part.texts.append(text)
    return ReasoningDelta(0, None, part.number, text, part=part)


def ended(part: Part) -> PartEnded:
    part.is_ended = True
    return PartEnded(0, None, part=part)


def arranged(events: Sequence[Event], order: Order | None = None) -> list[Event]:
    order = order or Order(LIMIT, count(-1, -1))
    return [out for event in events for out in order.take([event])]


def told(events: Sequence[Event]) -> list[tuple[str, str]]:
    """Return what the client gets of each part, one after the other."""
    texts: list[tuple[str, str]] = []
    for part, group in groupby(events, lambda event: event.part):
        if part is not None:
            words = (
                getattr(event, "arguments", "") or getattr(event, "text", "") for event in group
            )
            texts.append((part.kind, "".join(words)))
    return texts


@given(st.data())
def test_calls_come_one_after_the_other_whole_and_in_order(data: st.DataObject) -> None:
    arguments = data.draw(st.lists(st.dictionaries(st.text(), st.text()), min_size=1, max_size=4))
    waiting = [pieces(json.dumps(given), 5) for given in arguments]
    parts = [Part("call", number) for number in range(len(arguments))]
    text, order = Part("text"), Order(LIMIT, count(-1, -1))
    out: list[Event] = []
    while left := [number for number, fragments in enumerate(waiting) if fragments]:
        number = data.draw(st.sampled_from(left))
        out += order.take([piece(parts[number], waiting[number].pop(0))])
        out += order.take([said(text, "x")] * data.draw(st.integers(0, 1)))
    out += order.take([FINISHED])
    calls = [event for event in out if isinstance(event, ToolCallDelta)]
    written = [
        (number, json.loads("".join(event.arguments for event in fragments)))
        for number, fragments in groupby(calls, lambda event: event.call_index)
    ]
    assert sorted(number for number, _ in written) == list(range(len(arguments)))
    assert all(given == arguments[number] for number, given in written)
    assert order.failure is None


def test_what_is_not_of_an_open_call_waits_until_that_is_whole() -> None:
    call, text, thinking = Part("call"), Part("text"), Part("reasoning")
    begun, order = ReasoningStarted(0, None, 0, part=thinking), Order(LIMIT, count(-1, -1))
    first = arranged([piece(call, "{"), said(text, "Done."), begun, thought(thinking, "Hm")], order)
    assert told(first) == [("call", "{")]
    rest = arranged([piece(call, "}"), FINISHED], order)
    assert told(rest) == [("call", "}"), ("text", "Done."), ("reasoning", "Hm")]
    assert [type(event) for event in rest if event.part is call] == [ToolCallDelta, PartEnded]
    assert isinstance(rest[-2], ReasoningEnded)


@pytest.mark.parametrize("fragments", [['{"a":"}', '{"}'], ['{"a":"\\', '"}"}'], ['{"a":{', "}}"]])
def test_a_call_is_whole_as_its_object_ends_and_not_before(fragments: list[str]) -> None:
    call, text, order = Part("call"), Part("text"), Order(LIMIT, count(-1, -1))
    first = arranged([piece(call, fragments[0]), said(text, "x")], order)
    assert told(first) == [("call", fragments[0])]
    assert told(arranged([piece(call, fragments[1])], order))[-1] == ("text", "x")


@pytest.mark.parametrize("arguments", ["{}{}", "null", "[1]", "{a}"])
def test_what_is_no_object_is_not_whole(arguments: str) -> None:
    call, text = Part("call"), Part("text")
    assert told(arranged([piece(call, arguments), said(text, "x")])) == [("call", arguments)]


def test_free_text_is_not_known_to_be_whole_before_it_ends() -> None:
    call, text, order = Part("call", free_text=True), Part("text"), Order(LIMIT, count(-1, -1))
    assert told(arranged([piece(call, "{}"), said(text, "x")], order)) == [("call", "{}")]
    assert told(arranged([ended(call)], order))[-1] == ("text", "x")


def test_a_text_that_was_ended_goes_on_as_another_one() -> None:
    one, other = Part("text"), Part("text")
    order = Order(LIMIT, count(-1, -1))
    out = arranged([said(one, "a")], order) + arranged([said(other, "b")], order)
    out += arranged([said(one, "c"), ended(one), FINISHED], order)
    assert told(out) == [("text", "a"), ("text", "b"), ("text", "c")]
    starts = [event for event in out if isinstance(event, PartStarted)]
    ends = [event for event in out if isinstance(event, PartEnded)]
    assert (len(starts), len(ends)) == (1, 3)
    assert (one.shown_text, other.shown_text) == ("a", "b")


def test_reasoning_that_was_ended_goes_on_as_an_item_of_its_own() -> None:
    one, text = Part("reasoning"), Part("text")
    begun = ReasoningStarted(0, None, 0, part=one)
    out = arranged([begun, thought(one, "a"), said(text, "b"), thought(one, "c"), FINISHED])
    assert told(out) == [("reasoning", "a"), ("text", "b"), ("reasoning", "c")]
    items = [event.item for event in out if isinstance(event, ReasoningEnded)]
    assert items == [0, -1]


def test_arguments_of_a_call_that_is_over_fail_the_answer() -> None:
    call, other, order = Part("call"), Part("call", 1), Order(LIMIT, count(-1, -1))
    arranged([piece(call, "{}"), piece(other, "{}"), piece(call, " ")], order)
    assert (order.failure, order.faults) == (None, 1)
    arranged([piece(call, "more")], order)
    assert order.failure is STRAY_ARGUMENTS


@pytest.mark.parametrize(
    "end",
    [
        ErrorReported(None, None, ErrorDetail("upstream_error", "")),
        ResponseEnded(None, None, ok=False),
    ],
)
def test_after_an_error_nothing_that_waits_is_told(end: Event) -> None:
    call, text = Part("call"), Part("text")
    out = arranged([piece(call, "{"), said(text, "x"), end])
    assert told(out) == [("call", "{")]
    assert not any(isinstance(event, PartEnded) for event in out)


def test_past_the_limit_the_open_call_keeps_nobody_waiting() -> None:
    call, text, order = Part("call"), Part("text"), Order(50, count(-1, -1))
    out = arranged([piece(call, "{"), said(text, "x" * 90)], order)
    assert told(out) == [("call", "{"), ("text", "x" * 90)]
    assert order.cut is call


def test_where_parts_may_alternate_only_reasoning_is_ended_and_texts_before_it() -> None:
    call, text, thinking = Part("call"), Part("text"), Part("reasoning")
    begun = ReasoningStarted(0, None, 0, part=thinking)
    events = [piece(call, "{"), said(text, "a"), begun, piece(call, "}"), said(text, "b")]
    out = arranged([*events, FINISHED], Order(LIMIT, count(-1, -1), ("call",)))
    bounds = PartStarted, PartEnded, ReasoningEnded
    assert [event for event in out if not isinstance(event, bounds)] == [*events, FINISHED]
    made = [type(event) for event in out if isinstance(event, bounds)]
    assert made == [PartEnded, ReasoningEnded, PartStarted]


def test_where_parts_may_alternate_a_text_is_ended_by_another_but_not_by_a_call() -> None:
    text, call, following = Part("text"), Part("call"), Part("text")
    events = [said(text, "a"), piece(call, "{"), said(text, "b"), said(following, "c")]
    out = arranged(events, Order(LIMIT, count(-1, -1), ("call",)))
    ends = [event for event in out if isinstance(event, PartEnded)]
    assert out == [*events[:3], *ends, events[3]]
    assert [end.part for end in ends] == [text]


def test_where_texts_may_alternate_too_none_is_ended_by_another() -> None:
    text, following = Part("text"), Part("text")
    events = [said(text, "a"), said(following, "b"), said(text, "c")]
    assert arranged(events, Order(LIMIT, count(-1, -1), ("text", "call"))) == events


def test_texts_that_alternate_thousands_of_times_are_told_one_after_the_other() -> None:
    parts = [Part("text"), Part("text")]
    out = arranged([said(parts[turn % 2], str(turn)) for turn in range(5000)])
    assert told(out) == [("text", str(turn)) for turn in range(5000)]
