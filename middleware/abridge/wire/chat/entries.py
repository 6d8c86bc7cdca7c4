"""The entries of a message's lists of reasoning: what each says, where its text has parts."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from abridge.turn.attribution import RAW, REDACTED, SUMMARY, Kind
from abridge.wire.chat.dialects import LISTS
from abridge.wire.codec import Json, objects, string
from abridge.wire.envelope import is_ours

KINDS: dict[str, tuple[Kind, str]] = {
    "reasoning.text": (RAW, "text"),
    "reasoning.summary": (SUMMARY, "summary"),
    "reasoning.encrypted": (REDACTED, "data"),
    "thinking": (RAW, "thinking"),
    "redacted_thinking": (REDACTED, "data"),
}
"""Types of entries: what they say, and where."""


class Entry(NamedTuple):
    """`part`: in a stream, those that have the same are pieces of one. `signed`: nothing more is
    said of this one."""

    kind: Kind
    text: str
    part: Hashable
    signed: bool


def entries(said: Json) -> list[Entry]:
    """Those of a delta or a message, out of the first list that has any. A blob of ours says
    nothing: it stands for all of the message, and comes last."""
    for name in LISTS:
        found = [_entry(entry) for entry in objects(said.get(name)) if _kind(entry) in KINDS]
        if found:
            return found
    return []


def _entry(entry: Json) -> Entry:
    kind, key = KINDS[_kind(entry)]
    index, text = entry.get("index"), string(entry.get(key))
    part = _kind(entry), index if isinstance(index, int) else None
    return Entry(kind, "" if is_ours(text) else text, part, signed=bool(entry.get("signature")))


def _kind(entry: Json) -> str:
    return string(entry.get("type"))
