"""Read the entries of a message's lists of reasoning, which keep the parts of its text apart."""

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
"""Types of entries: the kind of reasoning, and the key of its text."""


class Entry(NamedTuple):
    kind: Kind
    text: str
    part: Hashable  # in a stream, entries with the same value are pieces of one
    signed: bool  # it has a signature, which ends it


def entries(said: Json) -> list[Entry]:
    """Read the entries of a delta or a message, from the first list that has any.

    A blob of Abridge's has no text: it stands for the whole message, and comes last.
    """
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
