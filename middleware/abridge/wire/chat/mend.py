"""Repair chunks from which upstream leaves out required fields.

Gemini omits the index of tool calls, small servers the index of choices and the role. Strict
clients ignore anything without `"object": "chat.completion.chunk"`, and fail where another of these
fields is missing.
"""

from __future__ import annotations

from typing import Any

from abridge.wire import sse
from abridge.wire.codec import Json, dumps, loads_exactly, objects, read_object, string
from abridge.wire.mint import mint

CHUNK = "chat.completion.chunk"


class Mender:
    """Repair the chunks of one response."""

    def __init__(self) -> None:
        self.needed = False  # a chunk lacked header fields, so every chunk must be checked
        self._head: Json = {}
        self._spoken: set[int] = set()
        self._calls: dict[int, dict[str, int]] = {}

    def mend(self, chunk: Json, frame: bytes) -> tuple[Json, bytes]:
        if chunk.get("error"):
            return chunk, frame
        headless = _is_headless(chunk)
        self.needed = self.needed or headless
        if headless or any(map(self._choice_lacks, objects(chunk.get("choices")))):
            chunk = self._mended(read_object(sse.data(frame) or b"", loads_exactly) or chunk)
            frame = sse.encode(dumps(chunk))
        self._spoken |= {_index(choice) for choice in objects(chunk.get("choices"))}
        return chunk, frame

    def _choice_lacks(self, choice: Json) -> bool:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return bool(choice.get("finish_reason")) and "message" not in choice
        fresh = not delta.get("role") and _index(choice) not in self._spoken
        counted = all(isinstance(call.get("index"), int) for call in _calls(delta))
        return fresh or not (counted and isinstance(choice.get("index"), int))

    def _mended(self, chunk: Json) -> Json:
        choices = [self._mended_choice(choice) for choice in objects(chunk.get("choices"))]
        mended = {**chunk, "choices": choices}
        if not _says(mended):
            return mended
        given = {key: mended[key] for key in HEAD if key in mended}
        self._head = {**(self._head or _head()), **given}
        return {**self._head, **mended, "object": CHUNK}

    def _mended_choice(self, choice: Json) -> Json:
        if not isinstance(choice.get("delta"), dict):
            lacks = self._choice_lacks(choice)
            return {"index": _index(choice), **choice, "delta": {}} if lacks else choice
        lane, delta = _index(choice), choice["delta"]
        if not delta.get("role") and lane not in self._spoken:
            delta = {**delta, "role": "assistant"}
        if calls := _calls(delta):
            delta = {**delta, "tool_calls": [self._counted(lane, call) for call in calls]}
        return {**choice, "index": lane, "delta": delta}

    def _counted(self, lane: int, call: Json) -> Json:
        """Add the index of a call's fragment: by its id, or the last call's if it has none."""
        known = self._calls.setdefault(lane, {})
        if isinstance(call.get("index"), int):
            return call
        function = call.get("function")
        named = isinstance(function, dict) and bool(function.get("name"))
        name = string(call.get("id")) or (f"call {len(known)}" if named or not known else "")
        number = known.setdefault(name, len(known)) if name else len(known) - 1
        return {**call, "index": number}


HEAD = frozenset({"id", "created", "model"})


def _head() -> Json:
    return {"id": mint("chatcmpl-"), "created": 0, "model": ""}


def _is_headless(chunk: Json) -> bool:
    if not isinstance(chunk.get("choices"), list):
        return bool(chunk.get("usage")) or chunk.get("object") == CHUNK
    return _says(chunk) and not (chunk.get("object") == CHUNK and chunk.keys() >= HEAD)


def _says(chunk: Json) -> bool:
    """Return whether it holds an answer or usage; Azure's filter results hold neither."""
    answers = any(isinstance(choice.get("delta"), dict) for choice in objects(chunk["choices"]))
    return answers or bool(chunk.get("usage"))


def _calls(delta: Json) -> list[Json]:
    return objects(delta.get("tool_calls"))


def _index(choice: Json) -> int:
    index: Any = choice.get("index")
    return index if isinstance(index, int) else 0
