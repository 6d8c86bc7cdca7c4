"""Test that what is kept of an answer's text takes about its size, however it was streamed."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

from abridge.apis.chat.chunks import ChatMessageAccumulator
from tests.apis.responses.test_content_repair import streamed
from tests.support.pipeline import responses
from tests.support.streams import frame, message_item

COUNT = 5000
TEXT = "".join(f"{number:04}" for number in range(COUNT))


def size_of(make: Callable[[], object]) -> int:
    """Return how many bytes what `make` returns takes."""
    tracemalloc.start()
    try:
        made = make()
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
        del made
        return size
    finally:
        tracemalloc.stop()


def test_a_message_of_small_deltas_takes_little_more_than_its_text() -> None:
    def add_up() -> ChatMessageAccumulator:
        message = ChatMessageAccumulator(len(TEXT))
        for number in range(COUNT):
            message.add({"content": f"{number:04}"})
        return message

    assert size_of(add_up) < 2 * len(TEXT)
    assert add_up().as_dict()["content"] == TEXT


def test_halves_of_a_character_are_kept() -> None:
    message = ChatMessageAccumulator(9)
    for piece in ("\ud83d", "\ude00", "é€"):
        message.add({"content": piece})
    assert message.as_dict()["content"] == "\ud83d\ude00é€"


def test_an_item_whose_text_is_final_keeps_no_pieces() -> None:
    events = streamed("message", [f"{number:04}" for number in range(COUNT)], TEXT)
    frames = [frame(event, event["type"]) for event in events[:-1]]

    def read() -> object:
        reader = responses().reader
        for each in frames:
            reader.read(each)
        return reader

    read()
    assert size_of(read) < 5 * len(TEXT)


def test_an_id_that_two_items_have_takes_no_room_with_each_event() -> None:
    def begin(number: int) -> bytes:
        added = {**message_item(number, ""), "id": "twice", "content": []}
        event = {"type": "response.output_item.added", "output_index": number, "item": added}
        return frame(event, "response.output_item.added")

    def read(count: int) -> object:
        reader = responses().reader
        delta = {"type": "response.output_text.delta", "item_id": "twice", "content_index": 0}
        for each in [begin(0), begin(1), *[frame({**delta, "delta": ""})] * count]:
            reader.read(each)
        return reader

    read(1)
    assert size_of(lambda: read(COUNT)) < 2 * size_of(lambda: read(1))
