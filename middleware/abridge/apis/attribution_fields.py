"""The fields of a tool call that say which reasoning led to it.

Either `"reasoning": [{"type": "reasoning_text" | "summary_text", "text"}, {"type": "redacted"}]` or
`"reasoning_ref"`, the id of the turn's latest call that has reasoning. They are for the client
only: upstream does not know them and must not get them back.
"""

from __future__ import annotations

from typing import Any

from abridge.core.answer import Attribution, AttributionPart
from abridge.core.conversation import Json

PARTS_FIELD, REF_FIELD = "reasoning", "reasoning_ref"


def attribute_call(call: Json, attribution: Attribution | None, call_id: str) -> Json:
    """Return the call, which the client knows by this id, with its attribution in place of any that
    it has; as it is where calls have none."""
    if attribution is None:
        return call
    attribution.call_id = call_id
    call = {key: value for key, value in call.items() if not _is_attribution(key, value)}
    if written := [_write_part(part) for part in attribution.parts]:
        return {**call, PARTS_FIELD: written}
    source = attribution.source
    return {**call, REF_FIELD: source.call_id} if source and source.call_id else call


def strip_attribution(call: Json) -> int:
    """Remove the attribution from a call; return the number of fields removed."""
    if PARTS_FIELD not in call and REF_FIELD not in call:
        return 0  # the usual case
    fields = [
        key for key in (REF_FIELD, PARTS_FIELD) if key in call and _is_attribution(key, call[key])
    ]
    for key in fields:
        del call[key]
    return len(fields)


def _is_attribution(key: str, value: Any) -> bool:
    """Return True for an attribution field.

    Other servers may use `reasoning` for text of their own, which is not ours to remove.
    """
    return key == REF_FIELD or (key == PARTS_FIELD and isinstance(value, list))


def _write_part(part: AttributionPart) -> Json:
    return {"type": part.kind, "text": part.text} if part.text else {"type": part.kind}
