"""Attribution fields: which reasoning led to a call, written into the call's own object.

Either `"reasoning": [{"type": "reasoning_text" | "summary_text", "text"}, {"type": "redacted"}]` or
`"reasoning_ref"`, the id of the turn's latest call that has reasoning. They are for the client
only: upstream does not know them and must not get them back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from abridge.apis.json import dumps, loads_exact, parse_object
from abridge.core.attribution import AttributionPart
from abridge.core.conversation import Json

PARTS_FIELD, REF_FIELD = "reasoning", "reasoning_ref"


def attribute_call(call: Json, parts: Sequence[AttributionPart], ref: str) -> Json:
    """Return the call with its attribution in place of any that it has."""
    call = {key: value for key, value in call.items() if not _is_mark(key, value)}
    if parts:
        return {**call, PARTS_FIELD: [_write_part(part) for part in parts]}
    return {**call, REF_FIELD: ref} if ref else call


def strip_marks(call: Json) -> int:
    """Remove the attribution from a call; return the number of fields removed."""
    marks = [key for key, value in call.items() if _is_mark(key, value)]
    for key in marks:
        del call[key]
    return len(marks)


def change_answer(body: bytes, change: Callable[[Json], Json]) -> bytes:
    """Apply `change` to the answer in a body; the body of a failure has the answer within its
    error.
    """
    answer = parse_object(body, loads_exact)
    if answer is None:
        return body
    error = answer.get("error")
    response = error.get("response") if isinstance(error, dict) else None
    if isinstance(error, dict) and isinstance(response, dict):
        return dumps({**answer, "error": {**error, "response": change(response)}})
    return dumps(change(answer))


def _is_mark(key: str, value: Any) -> bool:
    """Return True for an attribution field.

    Other servers may use `reasoning` for text of their own, which is not ours to remove.
    """
    return key == REF_FIELD or (key == PARTS_FIELD and isinstance(value, list))


def _write_part(part: AttributionPart) -> Json:
    return {"type": part.kind, "text": part.text} if part.text else {"type": part.kind}
