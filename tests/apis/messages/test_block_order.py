"""Test that the events of a stream come out with one block open at a time, and in linear time."""

from __future__ import annotations

from typing import Any

from abridge.apis.messages.block_order import BlockOrder

Event = dict[str, Any]


def start(index: int, kind: str = "tool_use") -> Event:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind}}


def arguments(index: int, fragment: str) -> Event:
    delta = {"type": "input_json_delta", "partial_json": fragment}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stop(index: int) -> Event:
    return {"type": "content_block_stop", "index": index}


END: Event = {"type": "message_stop"}


def arranged(*events: Event, limit: int = 1 << 20) -> list[Event]:
    order = BlockOrder(limit)
    return [one for event in events for one, _ in order.arrange(event, b"x" * 10)]


def test_calls_that_alternate_follow_each_other() -> None:
    first = [start(0), arguments(0, '{"a": {}'), arguments(0, "}")]
    second = [start(1), arguments(1, '{"b":'), arguments(1, "1}")]
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    assert arranged(*mixed, END) == [*first, *second, END]


def test_blocks_wait_together_behind_a_call_that_stays_incomplete() -> None:
    calls = [[start(index), arguments(index, "{")] for index in range(3)]
    mixed = [call[at] for at in range(2) for call in calls]
    assert arranged(*mixed, END) == [*calls[0], *calls[1], *calls[2], END]


def test_a_call_too_long_to_be_kept_keeps_nobody_waiting() -> None:
    events = [start(0), arguments(0, "{" * 100), start(1, "text"), stop(1)]
    assert arranged(*events, limit=50) == events


def test_past_the_limit_the_queue_is_given_up() -> None:
    events = [start(0), *(start(index, "text") for index in range(1, 8))]
    assert arranged(*events, limit=50) == events


class LookedAt(dict[str, Any]):
    """An event that counts how often it is looked at."""

    count = 0

    def get(self, key: str, default: Any = None) -> Any:
        LookedAt.count += 1
        return super().get(key, default)


def test_many_calls_that_wait_are_looked_at_a_few_times_each() -> None:
    LookedAt.count = 0
    calls = [LookedAt(start(index)) for index in range(500)]
    assert arranged(*calls, END) == [*calls, END]
    assert LookedAt.count < 50 * len(calls)
