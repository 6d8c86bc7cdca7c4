"""Test what of reasoning is sealed, what belongs together, and what it is bound to."""

from __future__ import annotations

from typing import Any

from abridge.core.envelope import Envelope
from abridge.core.events import Event, NativeSummary, ProviderState, ReasoningDelta, ReasoningEnded
from abridge.core.model_request import ReasoningPart
from abridge.core.places import place_after_call
from abridge.stages.sealing import Sealing

Json = dict[str, Any]

sealed: list[Envelope] = []


def sealing(*events: Event, limit: int = 1000) -> Sealing:
    """Return what seals an answer, once it has taken these events."""

    def seal(envelope: Envelope) -> str:
        sealed.append(envelope)
        return f"abr1.{len(sealed)}"

    made = Sealing(seal, lambda pieces: [{"piece": piece} for piece in pieces], limit)
    for event in events:
        made.add(event)
    return made


def build(*events: Event, limit: int = 1000) -> list[ReasoningPart] | None:
    collected = sealing(*events, limit=limit).collected()
    return None if collected is None else [one["piece"] for one in collected]


def is_needed(*events: Event) -> bool:
    made = sealing(*events)
    made.collected()
    return made.is_needed


def text(given: str) -> Event:
    return ReasoningDelta(0, None, 0, given)


def state(data: str, *, signs: bool = False, withheld: bool = False) -> Event:
    return ProviderState(0, None, 0, data, signs, withheld)


def summary(part: int, given: str) -> Event:
    return NativeSummary(0, None, 0, part, "delta", given)


def test_a_state_is_beside_the_text_before_it() -> None:
    events = text("A"), state("1", signs=True), text("B"), state("2"), text("C"), text("D")
    assert build(*events) == [
        ReasoningPart("A", (), "1", True),
        ReasoningPart("B", (), "2"),
        ReasoningPart("CD"),
    ]


def test_state_that_repeats_the_text_is_left_out() -> None:
    assert build(text("So it is."), state("So it is.")) == [ReasoningPart("So it is.")]
    assert build(text("A"), state("A", signs=True)) == [ReasoningPart("A", (), "A", True)]


def test_a_summary_stands_for_text_that_is_missing() -> None:
    parts = summary(0, "One"), summary(1, "Two"), summary(0, ".")
    assert build(*parts) == [ReasoningPart(summary=("One.", "Two"))]
    assert build(*parts, text("A")) == [ReasoningPart("A")]


def test_stretches_are_pieces_of_their_own() -> None:
    end = ReasoningEnded(0, None, 0)
    assert build(text("A"), end, text("B"), end) == [ReasoningPart("A"), ReasoningPart("B")]


def test_without_any_reasoning_there_is_no_piece() -> None:
    assert build() == build(text(" \n")) == []


def test_past_the_limit_there_is_none() -> None:
    assert build(text("abc"), text("def"), limit=5) is None
    assert build(state("abcdef"), limit=5) is None


def test_only_what_clients_are_not_shown_has_to_be_sealed() -> None:
    assert is_needed(text("A"))
    assert is_needed(state("1", withheld=True))
    assert not is_needed(summary(0, "One"), state("1"), text(" "))


def test_a_stretch_begins_anew() -> None:
    made = sealing(text("abcdef"), state("1", withheld=True), limit=5)
    made.begin()
    made.add(text("abc"))
    assert made.collected() == [{"piece": ReasoningPart("abc")}]
    made.begin()
    assert made.collected() == []
    assert not made.is_needed


def test_what_is_sealed_is_bound_to_the_last_call_with_a_random_id() -> None:
    made, call_id = sealing(), "call_Ab3dEf6hIj"
    for given in ("", call_id, "call_0"):
        made.note_call(given)
        assert made.seal([{"text": given}], "rs_1").startswith("abr1.")
    place = place_after_call(call_id)
    assert [(one.item_id, one.place) for one in sealed[-3:]] == [
        *(("rs_1", None), ("rs_1", place), ("rs_1", place))
    ]
    made.seal([], place=b"here")
    assert sealed[-1].place == b"here"


def test_nothing_is_kept_without_a_key() -> None:
    made = Sealing(None, lambda _: [], 1000)
    for event in (text("A"), state("1", withheld=True)):
        made.add(event)
    made.note_call("call_Ab3dEf6hIj")
    assert (made.collected(), made.seal([{"text": "A"}])) == (None, "")


def test_withheld_state_is_needed_whatever_follows_it() -> None:
    assert is_needed(state("1", withheld=True), state("2"))
