"""Read the input of a request that is translated from another API.

A client of such an API sends everything the assistant said without a break as one message, whatever
reasoning came in between. So all of that is one turn here, and the items of a response are restored
as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from abridge.turn.conversation import Heard, Turn
from abridge.wire.codec import Json, string
from abridge.wire.responses.conversation import ResponsesConversation, turns
from abridge.wire.responses.items import LANE, is_reasoning, raw_text

BETWEEN = "\n\n"
"""Separates texts that are joined."""

PLACES = {"reasoning": 0, "message": 1}
"""Order of items for clients that have one place for text and one for calls."""

TOLD = ("reasoning", "message", "function_call", "custom_tool_call")
"""Types of items that clients of another API are shown."""


class RoundsConversation(ResponsesConversation):
    """See `abridge.apis.api.History`."""

    def _read(self, items: Sequence[Json]) -> Iterator[Turn]:
        return rounds(items)

    def _shown(self, items: Iterable[Json]) -> tuple[str, ...]:
        return shown(items)

    def put_back(self, turn: Turn, original: list[Json]) -> None:
        if _says(original) == turn.canonical():
            turn.items[:] = original
        else:
            super().put_back(turn, list(filter(is_reasoning, original)))


def rounds(items: Sequence[Json]) -> Iterator[Turn]:
    """Yield the turns that the items make, consecutive turns of the assistant as one."""
    run: list[Turn] = []
    for turn in turns(items):
        if turn.role == "assistant":
            run.append(turn)
            continue
        if run:
            yield _as_one(run)
            run = []
        yield turn
    if run:
        yield _as_one(run)


def shown(items: Iterable[Json]) -> tuple[str, ...]:
    """Return the raw reasoning of all items as one text."""
    return (BETWEEN.join(filter(None, map(raw_text, filter(is_reasoning, items)))),)


def hear(output: Sequence[tuple[int | None, Any]]) -> list[Heard]:
    """Return the turn of a response, if there is reasoning in it, readable or not.

    If its items are in an order that clients cannot keep, the original has all of them.
    """
    items = [item for _, item in output if isinstance(item, dict)]
    reasoning = list(filter(is_reasoning, items))
    if not reasoning:
        return []
    numbers = [number for number, item in output if is_reasoning(item) and number is not None]
    places = [PLACES.get(string(item.get("type")), 2) for item in items]
    return [
        Heard(
            _told(items),
            BETWEEN.join(filter(None, map(raw_text, reasoning))),
            reasoning if places == sorted(places) else items,
            tuple((LANE, number) for number in numbers),
        )
    ]


def _says(items: Sequence[Json]) -> bytes:
    return _told(items).canonical()


def _told(items: Sequence[Json]) -> Turn:
    """Return the turn that the client has of these items."""
    told = rounds([item for item in items if item.get("type") in TOLD])
    return next(told, Turn("assistant"))


def _as_one(run: list[Turn]) -> Turn:
    items = [item for turn in run for item in turn.items]
    return Turn(
        "assistant",
        text=BETWEEN.join(turn.text for turn in run if turn.text),
        calls=tuple(call for turn in run for call in turn.calls),
        shown=shown(items),
        items=items,
    )
