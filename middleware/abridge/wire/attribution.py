"""How a call says which reasoning led to it, on any API: fields of its own object.

Either `"reasoning": [{"type": "reasoning_text" | "summary_text", "text"}, {"type": "redacted"}]` or
`"reasoning_ref"`, the id of the latest call of the same turn that has them. They are for the client
alone: what made an answer does not know them, and must not get them back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from abridge.turn.attribution import Part
from abridge.wire.codec import Json, dumps, loads_exactly, read_object

PARTS, REF = "reasoning", "reasoning_ref"


def attributed(call: Json, parts: Sequence[Part], ref: str) -> Json:
    """The call with what led to it, and nothing else that may have been said to."""
    call = {key: value for key, value in call.items() if not _is_mark(key, value)}
    if parts:
        return {**call, PARTS: [_spelled(part) for part in parts]}
    return {**call, REF: ref} if ref else call


def unmark(call: Json) -> int:
    """Take out of a call what it says of reasoning; return how much that was."""
    marks = [key for key, value in call.items() if _is_mark(key, value)]
    for key in marks:
        del call[key]
    return len(marks)


def within(body: bytes, change: Callable[[Json], Json]) -> bytes:
    """A body with its answer changed, which that of a failure holds in its error."""
    answer = read_object(body, loads_exactly)
    if answer is None:
        return body
    error = answer.get("error")
    held = error.get("response") if isinstance(error, dict) else None
    if isinstance(error, dict) and isinstance(held, dict):
        return dumps({**answer, "error": {**error, "response": change(held)}})
    return dumps(change(answer))


def _is_mark(key: str, value: Any) -> bool:
    """Whether a field is one of these. Under the name of the first another may say why in words of
    its own, which are not ours to take."""
    return key == REF or (key == PARTS and isinstance(value, list))


def _spelled(part: Part) -> Json:
    return {"type": part.kind, "text": part.text} if part.text else {"type": part.kind}
