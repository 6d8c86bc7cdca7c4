"""What an envelope of a Responses item is bound to: what its reasoning answers."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.responses.history import ResponsesHistory, places_in_output
from abridge.core.places import place_after_call
from tests.support.streams import message_item, reasoning_item

Json = dict[str, Any]

A, B = "call_Ab3dEf6hIj", "call_Xy7zWv4uTs"


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def call(call_id: str) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def output(call_id: str, text: str = "7") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


THOUGHT, SAID = reasoning_item(0, "I think."), message_item(1, "So.")


def place(*items: Any, **more: Any) -> bytes:
    return ResponsesHistory({"input": list(items), **more}).next_place()


SAME = {
    "the oldest turns are left out": (
        place(user("One"), THOUGHT, SAID, user("Two")),
        place(user("Two")),
    ),
    "the question is left out, but the call is there": (
        place(user("One"), THOUGHT, call(A), output(A)),
        place(call(A), output(A)),
    ),
    "reasoning is left out": (
        place(user("One"), THOUGHT, SAID, user("Two")),
        place(user("One"), SAID, user("Two")),
    ),
    "a tool's output is shortened": (place(call(A), output(A)), place(call(A), output(A, "…"))),
    "an output comes before the response's next reasoning": (
        place(user("One"), call(A)),
        place(user("One"), call(A), output(A)),
    ),
    "ids are dropped": (
        place(user("One"), {**SAID, "id": "msg_1"}, {**user("Two"), "id": "msg_2"}),
        place(user("One"), SAID, user("Two")),
    ),
    "a text is written as a part": (
        place(user("One")),
        place({"role": "user", "content": [{"type": "input_text", "text": "One"}]}),
    ),
    "instructions change": (place(user("One")), place(user("One"), instructions="Be brief.")),
    "a message for developers is added": (
        place(user("One")),
        place(user("One"), {"role": "developer", "content": "It is noon."}),
    ),
    "a call has an id that others have too": (
        place(user("One"), call("call_0"), output("call_0")),
        place(user("One")),
    ),
}

DIFFERENT = {
    "the question is another": (place(user("One")), place(user("Two"))),
    "a message is added to the question": (place(user("One")), place(user("One"), user("Two"))),
    "the message was split": (place(user("OneTwo")), place(user("One"), user("Two"))),
    "the question was answered by a call": (place(user("One")), place(user("One"), call(A))),
    "the call is another": (place(call(A)), place(call(B))),
    "another call came later": (place(call(A)), place(call(A), output(A), call(B))),
    "the user spoke after the call": (place(call(A)), place(call(A), output(A), user("One"))),
    "the same call ids belong to another question": (
        place(user("One"), call("call_0")),
        place(user("Two"), call("call_0")),
    ),
}


@pytest.mark.parametrize(("one", "other"), SAME.values(), ids=SAME)
def test_a_place_stays_the_same_where(one: bytes, other: bytes) -> None:
    assert one == other


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_place_is_another_where(one: bytes, other: bytes) -> None:
    assert one != other


def test_a_string_is_a_users_message() -> None:
    assert ResponsesHistory({"input": "One"}).next_place() == place(user("One"))


@pytest.mark.parametrize("odd", [None, 7, [], [7], {}, [{}], [{"role": "user", "content": 7}]])
def test_any_input_has_a_place(odd: Any) -> None:
    assert ResponsesHistory({"input": odd}).next_place()


def test_reasoning_after_a_call_of_the_same_response_is_bound_to_that() -> None:
    items = [THOUGHT, call(A), THOUGHT, SAID, call("call_0"), THOUGHT, None, call(B)]
    after = place_after_call(A)
    assert list(places_in_output(items)) == [None, None, *[after] * 6]
    assert after == place(user("One"), call(A))
