"""Items that a client sends again beside the response that it continues."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.stored_responses.repeats import StoredConversation

Json = dict[str, Any]


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def said(text: str) -> Json:
    return {"role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call(number: int) -> Json:
    return {"type": "function_call", "call_id": f"c{number}", "name": "f", "arguments": "{}"}


def output(number: int, text: str = "7") -> Json:
    return {"type": "function_call_output", "call_id": f"c{number}", "output": text}


STORED = [user("Hi"), said("I look."), call(0), output(0), said("So."), user("And?"), call(1)]
PARTS = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]}

CASES: dict[str, tuple[list[Json], list[int]]] = {
    "nothing is": ([user("Ho"), output(1)], [0, 1]),
    "a question before a tool's output": ([user("Hi"), output(1)], [1]),
    "one in another form, with an id": ([{**PARTS, "id": "msg_1"}, output(1)], [1]),
    "all questions and outputs": ([user("Hi"), output(0), user("And?"), output(1)], [3]),
    "an output that was given otherwise": ([output(0, "8"), output(1)], [1]),
    "everything": ([*STORED, output(1), user("Go on.")], [7, 8]),
    "a question that is asked again after it": ([user("Hi"), output(1), user("And?")], [1, 2]),
    "a question that comes next": ([user("Hi"), output(0), user("And?"), user("Go.")], [3]),
    "a question that came before": ([output(0), user("Hi"), user("And?")], [1, 2]),
    "a question that is asked again alone": ([user("And?")], [0]),
    "an answer of the assistant's": ([user("Hi"), said("So."), user("Hi")], [2]),
    "a call that is not of it": ([user("Hi"), call(2), output(2)], [0, 1, 2]),
    "odd items": ([{}, {"type": "reasoning"}, {"role": 7}, {"call_id": 7}], [0, 1, 2, 3]),
}


@pytest.mark.parametrize(("items", "kept"), CASES.values(), ids=CASES)
def test_only_what_is_of_the_conversation_is_a_repeat(items: list[Json], kept: list[int]) -> None:
    repeats = StoredConversation(STORED).find_repeats(items)
    assert [index for index in range(len(items)) if index not in repeats] == kept


def test_a_conversation_without_items_has_no_repeats() -> None:
    assert not StoredConversation([]).find_repeats([user("Hi"), output(0), said("So.")])
