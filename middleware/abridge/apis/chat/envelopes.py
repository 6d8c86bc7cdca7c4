"""Put Abridge's envelopes into Chat Completions messages, and take them out again.

Their blobs are entries of a list of reasoning, as other opaque state is; which list is a setting,
since some clients keep the one and some the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from abridge.apis.chat.reasoning import LIST_FIELDS, LITELLM_COPIES, extract_native_summary
from abridge.apis.display import Display, Envelope, ListField, is_envelope
from abridge.core.conversation import Json, RecordedTurn

ENVELOPE_FORMAT = "abridge-v1"

_ENTRY_SHAPES: Mapping[ListField, Json] = MappingProxyType(
    {
        "reasoning_details": {"type": "reasoning.encrypted", "format": ENVELOPE_FORMAT},
        "thinking_blocks": {"type": "redacted_thinking"},
    }
)


def make_entry(blob: str, name: ListField, index: int) -> Json:
    """Make the entry of a list that holds a blob."""
    return {**_ENTRY_SHAPES[name], "data": blob, "index": index}


def make_envelope(turn: RecordedTurn) -> Envelope:
    """Make the envelope of an answer's message: its reasoning, and the calls and text by which to
    tell later if the client has changed it."""
    calls = tuple(call.id for call in turn.turn.calls)
    return Envelope(turn.original, call_ids=calls, text=turn.turn.text)


def list_visible_entries(turn: RecordedTurn, display: Display) -> list[Any]:
    """Return upstream's entries that the client was shown, of the list that blobs go into."""
    original: Json = {}
    for fields in turn.original:
        original |= fields
    visible = original if display.show_raw else extract_native_summary(original)
    entries = visible.get(display.envelope_field)
    return entries if isinstance(entries, list) else []


def next_index(entries: list[Any]) -> int:
    """Return the first index free after a list's entries; an entry without index counts by its
    position."""
    return max(
        (_get_index(entry, position) + 1 for position, entry in enumerate(entries)), default=0
    )


def take_blobs(message: Json) -> list[tuple[str, str]]:
    """Remove Abridge's blobs from a message and from LiteLLM's copy of its fields; return each with
    its path."""
    copies = message.get(LITELLM_COPIES)
    copied = _take_from_lists(copies) if isinstance(copies, dict) else []
    return [
        *_take_from_lists(message),
        *((f"{LITELLM_COPIES}.{path}", blob) for path, blob in copied),
    ]


def _take_from_lists(fields: Json) -> list[tuple[str, str]]:
    taken: list[tuple[str, str]] = []
    for name in (*LIST_FIELDS, "content"):
        entries = fields.get(name)
        if not (isinstance(entries, list) and any(map(_is_blob, entries))):
            continue
        for position, entry in enumerate(entries):
            if _is_blob(entry):
                taken.append((f"{name}[{position}].data", entry["data"]))
        fields[name] = [entry for entry in entries if not _is_blob(entry)]
        if not fields[name]:
            del fields[name]
    return taken


def _get_index(entry: Any, position: int) -> int:
    index = entry.get("index") if isinstance(entry, dict) else None
    return max(index, position) if isinstance(index, int) else position


def _is_blob(entry: Any) -> bool:
    return isinstance(entry, dict) and is_envelope(entry.get("data"))
