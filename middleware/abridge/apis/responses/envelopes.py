"""Put the reasoning of a response into envelopes, from which a later request restores it."""

from __future__ import annotations

from io import StringIO

from abridge.apis.display import Envelope, SealEnvelope
from abridge.apis.json import string
from abridge.apis.places import place_after_call
from abridge.apis.responses.reasoning import as_sent, raw_parts, raw_text
from abridge.core.conversation import Json

MAX_BLOB_CHARS = 1 << 22
"""Characters of blobs that are stored until a response's end. Items after that get no blob."""


class EnvelopeSealer:
    """Seal the items of one response.

    An item with only opaque state is not sealed: the client can return that as it is.
    """

    def __init__(self, seal: SealEnvelope | None) -> None:
        self._seal = seal
        self._blobs: dict[int, str] = {}
        self._room_left = MAX_BLOB_CHARS
        self._place: bytes | None = None

    @property
    def is_sealing(self) -> bool:
        return self._seal is not None

    def note_call(self, item: Json) -> None:
        """Take a call of the response, to which the reasoning after it is bound."""
        self._place = place_after_call(string(item.get("call_id"))) or self._place

    def get_blob(self, output_index: int, item: Json, place: bytes | None = None) -> str:
        """Return the blob of upstream's item with this output index, or an empty string. It is
        sealed once, at its `place` in the response, or else after the last call that was noted."""
        if self._seal is None or output_index < 0:
            return ""
        if output_index not in self._blobs and self._room_left > 0 and raw_text(item).strip():
            blob = self._seal(
                Envelope([as_sent(item)], string(item.get("id")), place or self._place)
            )
            self._room_left -= len(blob)
            self._blobs[output_index] = blob
        return self._blobs.get(output_index, "")


class EnvelopeBuilder:
    """Collect one stretch of reasoning.

    Make an item of each piece of text that opaque state belongs to, since each signature is for its
    own text, and one of the text after the last.
    """

    def __init__(self) -> None:
        self._items: list[Json] = []
        self._buffer = StringIO()
        self.has_text = False  # there is text that can be read

    def add_text(self, text: str) -> None:
        self._buffer.write(text)
        self.has_text = self.has_text or bool(text.strip())

    def add_state(self, state: str) -> None:
        """Add opaque state, which belongs to the text since the last one."""
        self._items.append({**self._build_item(), "encrypted_content": state})
        self._buffer = StringIO()

    def build_items(self, item_id: str) -> list[Json]:
        """Return all items. The first gets this id, which the client knows."""
        rest = [self._build_item()] if self._buffer.tell() else []
        first, *following = self._items + rest
        return [{"id": item_id, **first}, *following]

    def _build_item(self) -> Json:
        texts = filter(None, [self._buffer.getvalue()])
        return {"type": "reasoning", "summary": [], "content": raw_parts(texts)}
