"""Put Abridge's envelopes into Chat Completions messages, and take them out again.

Their blobs are entries of a list of reasoning, as other opaque state is; which list is a setting,
since some clients keep the one and some the other.
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
    """Make the entry of a list that holds a blob."""
    return {**_ENTRIES[name], "data": blob, "index": index}


def envelope_of(heard: Heard) -> Envelope:
    """Make the envelope of an answer's message: its reasoning, and the calls and text by which to
    tell later if the client has changed it."""
    calls = tuple(call.id for call in heard.turn.calls)
    return Envelope(heard.original, calls=calls, text=heard.turn.text)


def shown_in(heard: Heard, display: Display) -> list[Any]:
    """Return upstream's entries that the client was shown, of the list that blobs go into."""
    original: Json = {}
    for said in heard.original:
        original |= said
    told = original if display.raw else native_summary(original)
    listed = told.get(display.envelope)
    return listed if isinstance(listed, list) else []


def after(entries: list[Any]) -> int:
    """Return the first index free after a list's entries; an entry without index counts by its
    position."""
    return max((_index(entry, place) + 1 for place, entry in enumerate(entries)), default=0)


def take_blobs(message: Json) -> list[tuple[str, str]]:
    """Remove Abridge's blobs from a message and from LiteLLM's copy of its fields; return each with
    its path."""
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
