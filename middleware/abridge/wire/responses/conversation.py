"""Read the input of a Responses request as turns, and change what upstream gets of it.

A turn of the assistant is reasoning, then text, and a call ends it. So each call is a turn of its
own, whether or not the client still returns the reasoning between two of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from abridge.turn.conversation import Call, Heard, Turn
from abridge.wire.api import Spelt
from abridge.wire.attribution import unmark
from abridge.wire.codec import Json, objects, string
from abridge.wire.envelope import Envelope, Open, is_ours
from abridge.wire.profile import Profile
from abridge.wire.responses.items import LANE, is_call, is_reasoning, raw_text, summary_text

MARKS = ("summary_error",)
"""Fields that Abridge adds to an item beside its summary."""

STATE = "encrypted_content"
_BARE = frozenset({"id", "type", "status", *MARKS})
"""Fields of an item that say nothing on their own."""


class ResponsesConversation:
    """See `abridge.apis.api.History`."""

    insists = False

    def __init__(self, body: Json) -> None:
        self._body = body
        given = body.get("input")
        items = given if isinstance(given, list) and _plain(given) else []
        self._items = list(self._read(items))
        previous = string(body.get("previous_response_id"))
        loose = objects(given if isinstance(given, list) else [given])
        said = [] if self._items else [Turn("user", _text(given), items=loose)]
        self.turns = [
            *([Turn("previous", previous)] if previous else []),
            Turn("system", _text(body.get("instructions"))),
            *said,
            *self._items,
        ]

    def _read(self, items: Sequence[Json]) -> Iterator[Turn]:
        return turns(items)

    def strip(self, turn: Turn, ours: Callable[[str], bool]) -> tuple[int, bool]:
        taken, kept = 0, []
        for item in turn.items:
            removed = _strip(item, ours) if is_reasoning(item) else 0
            taken += removed
            if not removed or any(map(item.get, ("summary", "content", "encrypted_content"))):
                kept.append(item)
        turn.items[:] = kept
        return taken, any(is_reasoning(item) and raw_text(item) for item in kept)

    def unmark(self, turn: Turn) -> int:
        return sum(unmark(item) for item in turn.items if is_call(item))

    def unseal(self, turn: Turn, opened: Open) -> bool:
        """Replace each item with a blob by the items in its envelope.

        An item whose blob does not open loses its summary too, which is Abridge's.
        """
        if not any(is_ours(item.get(STATE)) for item in turn.items):
            return False
        kept, placed = list[Json](), False
        for item in turn.items:
            if not is_ours(item.get(STATE)):
                kept.append(item)
            elif (found := self._open(item, turn, opened)) is not None:
                kept += found.reasoning
                placed = True
            else:
                bare = {**item, "summary": []} if is_reasoning(item) else item
                kept += [bare] if any(bare[key] for key in bare.keys() - _BARE) else []
        turn.items[:] = kept
        turn.shown = self._shown(kept)
        return placed

    def _open(self, item: Json, turn: Turn, opened: Open) -> Envelope | None:
        """Take the blob out of an item and open it.

        In an item that is not reasoning it belongs to no turn.
        """
        number, blob = self._numbers.get(id(item)), item.pop(STATE)
        place = "input" if number is None else f"input[{number}]"
        turn = turn if is_reasoning(item) else Turn("")
        return opened(blob, f"{place}.{STATE}", turn, string(item.get("id")))

    def put_back(self, turn: Turn, original: list[Json]) -> None:
        turn.items[:] = original + [item for item in turn.items if not is_reasoning(item)]

    def drop(self, turn: Turn) -> bool:
        """Remove the reasoning, and the ids of the turn's other items.

        By such an id OpenAI knows that reasoning came first, and refuses the item ("provided
        without its required 'reasoning' item").
        """
        kept = [item for item in turn.items if not is_reasoning(item)]
        dropped = len(kept) < len(turn.items)
        if dropped:
            kept = [{key: item[key] for key in item if key != "id"} for item in kept]
        turn.items[:] = kept
        return dropped

    def spell(self, turn: Turn, profile: Profile) -> Spelt:  # noqa: ARG002 -- has one place
        return "as it was"

    def body(self) -> Json:
        if self._items:
            self._body["input"] = [item for turn in self._items for item in turn.items]
        return self._body

    def _shown(self, items: Iterable[Json]) -> tuple[str, ...]:
        return shown(items)

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """Return the index of each item in the client's input, by `id()`."""
        return {id(item): number for number, item in enumerate(self._body["input"])}


def turns(items: Sequence[Json]) -> Iterator[Turn]:
    """Yield the turns that the items make."""
    run, texts = list[Json](), list[str]()
    for item in items:
        kind, role = string(item.get("type")), string(item.get("role"))
        thinks = is_reasoning(item)
        speaks = not thinks and role == "assistant"
        calls = not (thinks or speaks) and is_call(item)
        other = not (thinks or speaks or calls)
        if (thinks and texts) or (other and run):
            yield _spoken(run, texts)
            run, texts = [], []
        if other:
            yield _other(item, kind, role)
            continue
        run.append(item)
        if speaks:
            texts += filter(None, [_text(item.get("content"))])
        elif calls:
            yield _spoken(run, texts, _call(item))
            run, texts = [], []
    if run:
        yield _spoken(run, texts)


def shown(items: Iterable[Json]) -> tuple[str, ...]:
    """Return the summary and the raw text of each reasoning item."""
    reasoning = filter(is_reasoning, items)
    return tuple(text for item in reasoning for text in (summary_text(item), raw_text(item)))


def hear(output: Sequence[tuple[int | None, Any]]) -> list[Heard]:
    """Return the turns of a response that hold reasoning or opaque state.

    `output` has each item with its output index, or with None if it was not in the stream.
    """
    items = [(number, item) for number, item in output if isinstance(item, dict)]
    left = iter([number for number, item in items if is_reasoning(item)])
    said, heard = list(turns([item for _, item in items])), []
    for place, turn in enumerate(said):
        reasoning = [item for item in turn.items if is_reasoning(item)]
        numbers = [number for _, number in zip(reasoning, left, strict=False)]
        keys = tuple((LANE, number) for number in numbers if number is not None)
        raw = "".join(map(raw_text, reasoning))
        if raw.strip() or any(item.get("encrypted_content") for item in reasoning):
            heard.append(Heard(turn, raw, reasoning, keys, tuple(said[:place])))
    return heard


def _plain(given: list[Any]) -> bool:
    return all(isinstance(item, dict) for item in given)


def _strip(item: Json, ours: Callable[[str], bool]) -> int:
    taken = sum(item.pop(mark, None) is not None for mark in MARKS)
    for name in ("summary", "content"):
        parts = item.get(name)
        parts = parts if isinstance(parts, list) else []
        kept = [part for part in parts if not _is_ours(part, ours)]
        if len(kept) < len(parts):
            item[name] = kept
            taken += len(parts) - len(kept)
    return taken


def _is_ours(part: Any, ours: Callable[[str], bool]) -> bool:
    return isinstance(part, dict) and ours(string(part.get("text")))


def _spoken(items: list[Json], texts: list[str], *calls: Call) -> Turn:
    return Turn("assistant", "".join(texts), calls, shown=shown(items), items=items)


def _call(item: Json) -> Call:
    """Read a call under the id that its output refers to, or its own for a server tool."""
    arguments = item.get("arguments", item.get("input", item.get("action")))
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True)
    name = string(item.get("name")) or string(item.get("type"))
    return Call(string(item.get("call_id")) or string(item.get("id")), name, text)


def _other(item: Json, kind: str, role: str) -> Turn:
    if "output" in item:
        call = string(item.get("call_id"))
        return Turn("tool", _text(item["output"]), answers=call, items=[item])
    text = _text(item.get("content")) if role else json.dumps(item, sort_keys=True)
    return Turn(role or kind, text, items=[item])


def _text(content: Any) -> str:
    """Return the text of a content, followed by its other parts as JSON."""
    if isinstance(content, str):
        return content
    parts = objects(content)
    texts = "".join(string(part.get("text")) or string(part.get("refusal")) for part in parts)
    others = [
        json.dumps(part, sort_keys=True)
        for part in parts
        if "text" not in part and "refusal" not in part
    ]
    return "\n".join([texts, *others])
