"""The places of items, by which their envelopes are bound to their conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from abridge.apis.json import string
from abridge.apis.places import PlaceTracker, place_after_call
from abridge.core.conversation import Json


class ItemPlaces(PlaceTracker):
    """Follow the items of a conversation. `read_text` returns the text of a user's message."""

    def __init__(self, read_text: Callable[[Json], str]) -> None:
        super().__init__()
        self._read_text = read_text

    def add(self, item: Json) -> None:
        if item.get("role") == "user":
            self.add_question(self._read_text(item))
        elif "call_id" in item:
            self.add_call(string(item.get("call_id")))
        elif item.get("role") == "assistant" or item.get("type") == "reasoning":
            self.add_answer()


def places_in_output(output: Iterable[object]) -> Iterator[bytes | None]:
    """Yield the place of each item of a response; None before its first call."""
    place: bytes | None = None
    for item in output:
        yield place
        if isinstance(item, dict):
            place = place_after_call(string(item.get("call_id"))) or place
