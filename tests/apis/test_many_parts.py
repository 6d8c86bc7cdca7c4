"""Answers of very many parts are read in time that is in proportion to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from abridge.apis.chat.api import CHAT
from abridge.apis.display import Display
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.support.growth import Text, grows_too_much
from tests.support.streams import CHAT_USAGE, chunk, frame, message_item, response

Json = dict[str, Any]
SHORT, LONG = 1_000, 4_000
AUTO = PROFILES["auto"]


def read_choices(count: int) -> None:
    """Read a stream of choices in one chunk, and as many chunks of the first after it."""
    reader = CHAT.reader(AUTO, Display(), 1 << 20)
    said = [{"index": index, "delta": {"content": "A"}} for index in range(count)]
    reader.read(frame({"id": "c", "choices": said}))
    for number in range(count):
        reader.read(chunk({"content": f"B{number}"}, usage=CHAT_USAGE))


def item_event(kind: str, number: int, **fields: Any) -> bytes:
    event_type, place = f"response.{kind}", {"output_index": number, "item_id": f"msg_{number}"}
    return frame({"type": event_type, **place, "content_index": 0, **fields}, event_type)


def read_contents(count: int) -> None:
    """Read the end of an item with so many texts that were not streamed."""
    reader = RESPONSES.reader(AUTO, Display(), 1 << 20)
    part = {"type": "output_text", "text": "A", "annotations": []}
    item = {**message_item(0, ""), "content": [part] * count}
    ended = {"type": "response.completed", "response": response([item])}
    reader.read(frame(ended, ended["type"]))  # type: ignore[arg-type]


def read_returning(count: int) -> None:
    """Read items that begin one after the other, and then texts for each in turn."""
    reader = RESPONSES.reader(AUTO, Display(), 1 << 20)
    for number in range(count):
        added = {**message_item(number, ""), "content": []}
        reader.read(item_event("output_item.added", number, item=added))
    for number in [*range(count), *range(count)]:
        reader.read(item_event("output_text.delta", number, delta="A"))


@pytest.mark.parametrize("read", [read_choices, read_contents, read_returning])
def test_the_time_is_in_proportion_to_the_parts(read: Callable[[int], None]) -> None:
    def read_text(text: str) -> None:
        read(len(text))

    assert not grows_too_much(read_text, Text("", "x"), (SHORT, LONG))
