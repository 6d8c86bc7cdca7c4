"""Blobs of ours in Chat Completions: where they stand in a message, and what they hold.

They stand where other opaque state does, in one of the lists of reasoning; which one is a setting,
since clients keep the one or the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from abridge.turn.conversation import Heard
from abridge.wire.chat.dialects import COPIES, LISTS, native_summary
from abridge.wire.codec import Json
from abridge.wire.display import Display, Listed
from abridge.wire.envelope import Envelope, is_ours

FORMAT = "abridge-v1"

_ENTRIES: Mapping[Listed, Json] = MappingProxyType(
    {
        "reasoning_details": {"type": "reasoning.encrypted", "format": FORMAT},
        "thinking_blocks": {"type": "redacted_thinking"},
    }
)


def spell(blob: str, name: Listed, index: int) -> Json:
    """A blob as an entry of a list."""
    return {**_ENTRIES[name], "data": blob, "index": index}


def envelope_of(heard: Heard) -> Envelope:
    """What an answer's message is to come back with; the rest of it tells whether it does so as it
    was."""
    calls = tuple(call.id for call in heard.turn.calls)
    return Envelope(heard.original, calls=calls, text=heard.turn.text)


def shown_in(heard: Heard, display: Display) -> list[Any]:
    """The entries of upstream's own that a client was shown, in the list that blobs stand in."""
    original: Json = {}
    for said in heard.original:
        original |= said
    told = original if display.raw else native_summary(original)
    listed = told.get(display.envelope)
    return listed if isinstance(listed, list) else []


def after(entries: list[Any]) -> int:
    """The index that comes after those of a list's entries; of an entry without one, its place is
    its index."""
    return max((_index(entry, place) + 1 for place, entry in enumerate(entries)), default=0)


def take_blobs(message: Json) -> list[tuple[str, str]]:
    """Take out of a message, and of what its client copied beside it, all that is ours; return it,
    with its places."""
    copies = message.get(COPIES)
    copied = _take_blobs(copies) if isinstance(copies, dict) else []
    return [*_take_blobs(message), *((f"{COPIES}.{place}", blob) for place, blob in copied)]


def _take_blobs(said: Json) -> list[tuple[str, str]]:
    taken: list[tuple[str, str]] = []
    for name in (*LISTS, "content"):
        entries = said.get(name)
        if not (isinstance(entries, list) and any(map(_is_blob, entries))):
            continue
        for place, entry in enumerate(entries):
            if _is_blob(entry):
                taken.append((f"{name}[{place}].data", entry["data"]))
        said[name] = [entry for entry in entries if not _is_blob(entry)]
        if not said[name]:
            del said[name]
    return taken


def _index(entry: Any, place: int) -> int:
    index = entry.get("index") if isinstance(entry, dict) else None
    return max(index, place) if isinstance(index, int) else place


def _is_blob(entry: Any) -> bool:
    return isinstance(entry, dict) and is_ours(entry.get("data"))
