"""Assign the fragments of tool calls to their calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from abridge.turn.events import Called
from abridge.wire.codec import Json, dumps, objects, string


@dataclass(slots=True)
class _Call:
    id: str
    number: int | None = None  # counts the calls reported; None until its name has come
    kept: str = ""  # arguments that came before the name
    silent: bool = True  # a function that has had no arguments so far


class Calls:
    """Read the calls of one choice.

    A fragment belongs to the call of its index; without an index (Gemini) to that of its id; else
    to the last call, unless it names another function. An index that comes again with another id
    and a name begins another call.
    """

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._indexes: dict[int, _Call] = {}
        self._known: dict[str, _Call] = {}
        self._last: _Call | None = None
        self._told: list[_Call] = []

    @property
    def told(self) -> int:
        """The number of calls reported so far."""
        return len(self._told)

    def settle(self) -> Iterator[Called]:
        """End the calls: give `{}` to those without arguments, which some servers leave out."""
        for number, call in enumerate(self._told):
            if call.silent:
                yield Called(self._lane, None, call=number, arguments="{}")

    def tell(self, delta: Json) -> Iterator[Called]:
        """Read the calls in a delta or a message."""
        for fragment in objects(delta.get("tool_calls")):
            yield from self._tell(fragment)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            yield from self._tell({"function": legacy})

    def _tell(self, fragment: Json) -> Iterator[Called]:
        custom = isinstance(fragment.get("custom"), dict)
        said = fragment["custom"] if custom else fragment.get("function")
        said = said if isinstance(said, dict) else {}
        name, text = string(said.get("name")), _text(said.get("input" if custom else "arguments"))
        call = self._last = self._find(fragment.get("index"), string(fragment.get("id")), name)
        call.silent = call.silent and not (custom or text.strip())
        if call.number is not None:
            if text:
                yield Called(self._lane, None, call=call.number, arguments=text, custom=custom)
            return
        call.kept += text
        if name:
            call.number = self.told
            self._told.append(call)
            yield Called(
                self._lane,
                None,
                call=call.number,
                id=call.id,
                name=name,
                arguments=call.kept,
                custom=custom,
            )

    def _find(self, index: Any, identity: str, name: str) -> _Call:
        known = self._last if not (identity or name) else self._known.get(identity)
        if isinstance(index, int):
            known = self._indexes.get(index)
            if known is not None and name and identity and known.id not in ("", identity):
                known = None
        if known is None:
            known = _Call(identity)
        known.id = known.id or identity
        if identity:
            self._known[identity] = known
        if isinstance(index, int):
            self._indexes[index] = known
        return known


def _text(arguments: Any) -> str:
    """Return arguments as JSON text; some servers give them as an object."""
    return dumps(arguments).decode() if isinstance(arguments, dict) else string(arguments)
