"""Rebuild what upstream sends from what is known of it, where raw reasoning is hidden.

`shapes.py` says what is known. What a response repeats of the request is taken from the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from abridge.apis.json import as_object, string
from abridge.apis.responses.items import upstream_id
from abridge.apis.responses.shapes import ITEM_EVENTS, OUTPUT_PARTS, RESPONSE, RESPONSE_EVENTS
from abridge.apis.shapes import DropCount
from abridge.core.conversation import Json

ECHOED: Mapping[str, Any] = {
    "instructions": None,
    "metadata": {},
    "prompt": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
}
"""Fields in which a response repeats the request, and their values where that has none. They are
taken from the request itself, since they hold keys of the client's own."""


def with_echo(rebuilt: Json, echoed: Json) -> Json:
    """Return a rebuilt response with what it repeats of the request."""
    repeated = {key: echoed.get(key) or ECHOED[key] for key in ECHOED if key in rebuilt}
    if "text" in repeated:
        repeated["text"] = {**ECHOED["text"], **as_object(repeated["text"])}
    return {**rebuilt, **repeated}


_CONTENTS = ("item", "part", "annotation", "delta")
"""Without these an event says nothing."""


MAX_ADDRESSES = 8192
"""Ids and indexes of items, or addresses of parts, that are remembered."""

TEXT_EVENTS = ("response.output_text.", "response.refusal.")
"""Beginnings of the types of events about a text of the answer."""


class ResponseRebuilder:
    """Rebuild the events of one stream.

    Of an item of unknown type nothing is left: neither its beginning and end nor the events that
    name it, even those of a known type.
    """

    def __init__(self, echoed: Json) -> None:
        self.drops = DropCount()
        self._echoed = echoed
        self._is_known: dict[str | int | None, bool] = {}
        """Whether an item's type is known, by its id and `output_index`; of the last one by None,
        since some servers give neither."""
        self._closed_parts: set[tuple[str, ...]] = set()
        """Addresses of content parts that are no text of the answer."""

    def rebuild_response(self, response: Json) -> Json:
        """Return a whole response rebuilt."""
        return with_echo(RESPONSE(response, self.drops), self._echoed)

    def rebuild(self, event: Json) -> Json | None:
        """Return the event rebuilt; None if it, or what it brings, is not understood."""
        kind = string(event.get("type"))
        shape = RESPONSE_EVENTS.get(kind)
        if shape is None and ("item" in event or self._is_of_known_item(event)):
            is_closed = kind.startswith(TEXT_EVENTS) and _address(event) in self._closed_parts
            shape = None if is_closed else ITEM_EVENTS.get(kind)
        if shape is None:
            self.drops.drop(event)
            return None
        rebuilt: Json = shape(event, self.drops)
        if isinstance(rebuilt.get("response"), dict):
            rebuilt["response"] = with_echo(rebuilt["response"], self._echoed)
        if "item" in event:
            self._note_item(event, is_known="item" in rebuilt)
        if kind == "response.content_part.added":
            self._note_part(event)
        return rebuilt if all(key in rebuilt for key in _CONTENTS if key in event) else None

    def _note_item(self, event: Json, *, is_known: bool) -> None:
        if len(self._is_known) > MAX_ADDRESSES:
            return
        item = event["item"] if isinstance(event["item"], dict) else {}
        index = event.get("output_index")
        self._is_known[upstream_id(item) or None] = self._is_known[None] = is_known
        if isinstance(index, int):
            self._is_known[index] = is_known

    def _note_part(self, event: Json) -> None:
        """Note whether a part holds text of the answer."""
        if string(as_object(event.get("part")).get("type")) in OUTPUT_PARTS:
            self._closed_parts.discard(_address(event))
        elif len(self._closed_parts) < MAX_ADDRESSES:
            self._closed_parts.add(_address(event))

    def _is_of_known_item(self, event: Json) -> bool:
        item_id, index = string(event.get("item_id")), event.get("output_index")
        if item_id in self._is_known:
            return self._is_known[item_id]
        if isinstance(index, int):
            return self._is_known.get(index, True)
        return bool(item_id) or self._is_known.get(None, True)


def _address(event: Json) -> tuple[str, ...]:
    """Return where an event's part is."""
    return tuple(str(event.get(key)) for key in ("item_id", "output_index", "content_index"))
