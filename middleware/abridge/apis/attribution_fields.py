"""The fields of a tool call that say which reasoning led to it.

Either `"reasoning": [{"type": "reasoning_text" | "summary_text", "text"}, {"type": "redacted"}]` or
`"reasoning_ref"`, the id of the turn's latest call that has reasoning. They are for the client
only: upstream does not know them and must not get them back.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from abridge.core.conversation import Json

PARTS_FIELD, REF_FIELD = "reasoning", "reasoning_ref"


def attribute_call(call: Json, parts: Iterable[tuple[str, str]], ref: str) -> Json:
    """Return the call with its attribution in place of any that it has.

    `parts` are the type and the text of each part of the reasoning.
    """
    call = {key: value for key, value in call.items() if not _is_attribution(key, value)}
    if written := [_write_part(kind, text) for kind, text in parts]:
        return {**call, PARTS_FIELD: written}
    return {**call, REF_FIELD: ref} if ref else call


def strip_attribution(call: Json) -> int:
    """Remove the attribution from a call; return the number of fields removed."""
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


def _write_part(kind: str, text: str) -> Json:
    return {"type": kind, "text": text} if text else {"type": kind}
