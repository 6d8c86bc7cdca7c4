"""Put Abridge's envelopes into Chat Completions messages.

Their blobs are entries of a list of reasoning, as other opaque state is; which list is a setting,
since some clients keep the one and some the other. `history.py` takes them out again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from abridge.apis.chat.chunks import ChatMessageAccumulator
from abridge.apis.chat.history import message_place, read_turn
from abridge.apis.chat.reasoning import ANSWER_FIELDS, extract_native_summary
from abridge.apis.display import Display, Envelope, ListField
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import Event
from abridge.core.reasoning_pieces import Piece, ReasoningPieces, have_text

ENVELOPE_FORMAT = "unknown"
"""OpenRouter's word for a format without a name. Its AI SDK provider drops an entry of any format
that it does not know (OpenRouterTeam/ai-sdk-provider, src/schemas/format.ts)."""

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
    """Make the envelope of an answer's message.

    It is bound to the message's text and calls, which the client may not change.
    """
    holds_answer = any("content" in fields for fields in turn.original)
    return Envelope(turn.original, place=message_place(turn.turn), holds_answer=holds_answer)


def list_visible_entries(turn: RecordedTurn, display: Display) -> list[Any]:
    """Return the entries of upstream's that are visible to the client, of the list for blobs."""
    original: Json = {}
    for fields in turn.original:
        original |= fields
    visible = original if display.show_raw else extract_native_summary(original)
    entries = visible.get(display.envelope_field)
    return entries if isinstance(entries, list) else []


def next_index(entries: list[Any]) -> int:
    """Return the first index free after a list's entries.

    An entry without an index counts by its position.
    """
    return max(
        (_get_index(entry, position) + 1 for position, entry in enumerate(entries)), default=0
    )


def _get_index(entry: Any, position: int) -> int:
    index = entry.get("index") if isinstance(entry, dict) else None
    return max(index, position) if isinstance(index, int) else position


class ChatEnvelopeBuilder:
    """Build the envelope of a translated answer, of its reasoning's events and its deltas.

    Past `limit` characters of either give up: there is no envelope then.
    """

    def __init__(self, limit: int) -> None:
        self._reasoning = ReasoningPieces(limit)
        self._answer = ChatMessageAccumulator(limit)

    def add_event(self, event: Event) -> None:
        self._reasoning.add(event)

    def add_content(self, text: str) -> None:
        self._answer.append_text("content", text)

    def add_answer(self, delta: Json) -> None:
        self._answer.add({key: delta[key] for key in ANSWER_FIELDS if key in delta})

    def build(self) -> Envelope | None:
        """Build the envelope; None if there was no raw reasoning, or too much to keep."""
        pieces, turn = self._reasoning.build(), read_turn(self._answer.as_dict())
        if pieces is None or not (have_text(pieces) and self._answer.is_complete):
            return None
        entries = (entry for piece in pieces for entry in _write_piece(piece))
        details = [{**entry, "index": index} for index, entry in enumerate(entries)]
        return Envelope([{"reasoning_details": details}], place=message_place(turn))


def _write_piece(piece: Piece) -> Iterator[Json]:
    """Write a piece as entries of `reasoning_details`."""
    yield from ({"type": "reasoning.summary", "summary": part} for part in piece.summary)
    if piece.signs:
        yield {"type": "reasoning.text", "text": piece.text, "signature": piece.state}
        return
    if piece.text.strip():
        yield {"type": "reasoning.text", "text": piece.text}
    if piece.state:
        yield {"type": "reasoning.encrypted", "data": piece.state}
