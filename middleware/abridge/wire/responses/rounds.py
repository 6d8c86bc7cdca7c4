"""The input of a request that was written for a client of another API.

Such a client says in one message all that was said without a break, whatever was thought in its
midst: so all of that is one turn here, and what upstream said in a response is put back whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from abridge.turn.conversation import Heard, Turn
from abridge.wire.codec import Json, string
from abridge.wire.responses.conversation import ResponsesConversation, turns
from abridge.wire.responses.items import LANE, is_reasoning, raw_text

BETWEEN = "\n\n"
"""Goes between texts where they become one."""

PLACES = {"reasoning": 0, "message": 1}
"""The order of clients that know but one place for text and one for calls."""

TOLD = ("reasoning", "message", "function_call", "custom_tool_call")
"""What a client of another API is told of."""


class RoundsConversation(ResponsesConversation):
    """See `abridge.wire.api.Conversation`."""

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
    """The turns that items make, those of the assistant without a break as one."""
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
    """What items say where reasoning stands."""
    return (BETWEEN.join(filter(None, map(raw_text, filter(is_reasoning, items)))),)


def hear(output: Sequence[tuple[int | None, Any]]) -> list[Heard]:
    """The turn that a response makes, if there is reasoning in it, whoever can read it. Where its
    items are in another order than clients know, the original has all of them."""
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
    """The turn that a client makes of them."""
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
