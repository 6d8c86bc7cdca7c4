"""Write the events of a summary part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from abridge.turn.events import PartClosed, PartOpened, PartSaid
from abridge.wire.codec import Json

Spoken: TypeAlias = Iterator[tuple[str, Json]]
"""Stream events without their numbers: the type of each, and its other fields."""

_KIND = "response.reasoning_summary_"


def spoken(event: PartOpened | PartSaid | PartClosed, at: Json) -> Spoken:
    """Write an event. `address` has the item's id and index, and the part's `summary_index`."""
    match event:
        case PartOpened():
            yield from part_opened(at)
        case PartSaid():
            yield from part_said(at, event.text)
        case PartClosed():
            yield from part_closed(at, event.text, complete=event.complete)


def part_opened(at: Json) -> Spoken:
    yield f"{_KIND}part.added", {**at, "part": {"type": "summary_text", "text": ""}}


def part_said(at: Json, text: str) -> Spoken:
    yield f"{_KIND}text.delta", {**at, "delta": text}


def part_closed(at: Json, text: str, *, complete: bool = True) -> Spoken:
    status = {} if complete else {"status": "incomplete"}
    yield f"{_KIND}text.done", {**at, "text": text}
    yield f"{_KIND}part.done", {**at, "part": {"type": "summary_text", "text": text}, **status}
