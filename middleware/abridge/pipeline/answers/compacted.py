"""Show a compaction first in the response for which it was made.

A stream gets its events after those that begin the response, and all that follow are counted on.
The response itself is written, and stored, as if there were none: it is in the input of what is
stored, where it has the same meaning.
"""

from __future__ import annotations

from abridge.apis.compaction.responses import encode_events, item_events, write_usage
from abridge.apis.json import as_object, dumps, loads_exact, objects, parse_object, string
from abridge.apis.sse import encode_frame, frame_data
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json
from abridge.core.usage import Tokens

BEGINNING = ("response.created", "response.queued", "response.in_progress")
"""The events before the first item."""

USAGE_FIELD = "compaction"
"""The field of a usage that says what the compaction took."""


class ShownCompaction:
    """Puts a compaction before the items of a response. What it took is added to the usage; to its
    totals, too, if it is to be `merged`."""

    def __init__(self, item: Json, tokens: Tokens | None, *, merged: bool) -> None:
        self._item = item
        self._tokens = (tokens or Tokens()).with_total()
        self._merged = merged
        self._is_shown = False
        self._next_number = 0

    async def show_whole(self, response: Json) -> Json:
        return self._show_response(response)

    def show_frame(self, frame: bytes) -> bytes:
        """Return a frame as it is sent; before that of the first item, those of the compaction."""
        event = parse_object(frame_data(frame) or b"", loads_exact)
        if event is None:
            return frame
        kind, before = string(event.get("type")), b""
        if kind not in BEGINNING and not self._is_shown:
            self._is_shown = True
            written = encode_events(item_events(self._item), self._next_number)
            self._next_number += len(written)
            before = b"".join(written)
        event["sequence_number"] = self._next_number
        self._next_number += 1
        if isinstance(index := event.get("output_index"), int):
            event["output_index"] = index + 1
        if self._is_shown and isinstance(response := event.get("response"), dict):
            event["response"] = self._show_response(response)
        return before + encode_frame(dumps(event), kind)

    def _show_response(self, response: Json) -> Json:
        shown = {**response, "output": [self._item, *objects(response.get("output"))]}
        if usage := as_object(response.get("usage")):
            shown["usage"] = {**usage, USAGE_FIELD: write_usage(self._tokens)}
            if self._merged:
                RESPONSES_USAGE.add_to_totals(shown["usage"], self._tokens)
        return shown
