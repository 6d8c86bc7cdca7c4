"""Test what of reasoning is kept, and what belongs together."""

from __future__ import annotations

from abridge.core.events import Event, NativeSummary, ProviderState, ReasoningDelta, ReasoningEnded
from abridge.core.reasoning_pieces import Piece, ReasoningPieces, have_text


def build(*events: Event, limit: int = 1000) -> list[Piece] | None:
    pieces = ReasoningPieces(limit)
    for event in events:
        pieces.add(event)
    return pieces.build()


def text(given: str) -> Event:
    return ReasoningDelta(0, None, 0, given)


def state(data: str, *, signs: bool = False) -> Event:
    return ProviderState(0, None, 0, data, signs)


def summary(part: int, given: str) -> Event:
    return NativeSummary(0, None, 0, part, "delta", given)


def test_a_state_is_beside_the_text_before_it() -> None:
    events = text("A"), state("1", signs=True), text("B"), state("2"), text("C"), text("D")
    assert build(*events) == [Piece("A", (), "1", True), Piece("B", (), "2"), Piece("CD")]


def test_state_that_repeats_the_text_is_left_out() -> None:
    assert build(text("So it is."), state("So it is.")) == [Piece("So it is.")]
    assert build(text("A"), state("A", signs=True)) == [Piece("A", (), "A", True)]


def test_a_summary_stands_for_text_that_is_missing() -> None:
    parts = summary(0, "One"), summary(1, "Two"), summary(0, ".")
    assert build(*parts) == [Piece(summary=("One.", "Two"))]
    assert build(*parts, text("A")) == [Piece("A")]
    assert not have_text(build(*parts))


def test_stretches_are_pieces_of_their_own() -> None:
    end = ReasoningEnded(0, None, 0)
    assert build(text("A"), end, text("B"), end) == [Piece("A"), Piece("B")]


def test_without_any_reasoning_there_is_no_piece() -> None:
    assert build() == build(text(" \n")) == []


def test_past_the_limit_there_is_none() -> None:
    assert build(text("abc"), text("def"), limit=5) is None
    assert build(state("abcdef"), limit=5) is None
