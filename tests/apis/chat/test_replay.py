"""Test what becomes of reasoning that a client returns twice, in a field and in tags."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.chat.messages import add_reasoning, move_reasoning
from abridge.apis.chat.request import read_request
from abridge.core.model_request import ReasoningPart, TextPart
from abridge.providers.catalog import PROFILES

THOUGHT = "I add the odd numbers."
TWICE = {"role": "assistant", "content": f"<think>\n{THOUGHT}\n</think>\n\nSo."}


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("profile", ["auto", "deepseek", "vllm"])
def test_a_profile_that_reads_a_field_gets_it_in_the_field_alone(profile: str, name: str) -> None:
    message: dict[str, Any] = {**TWICE, name: THOUGHT}
    assert move_reasoning(message, PROFILES[profile])
    assert message.pop("content") == "So."
    assert [value.strip() for key, value in message.items() if key != "role"] == [THOUGHT]


@pytest.mark.parametrize("profile", ["minimax", "cerebras"])
def test_a_profile_that_reads_tags_gets_it_in_tags_alone(profile: str) -> None:
    message: dict[str, Any] = {**TWICE, "reasoning_content": THOUGHT}
    assert move_reasoning(message, PROFILES[profile])
    assert message == TWICE


def test_tags_that_hold_something_else_belong_to_the_answer() -> None:
    message = {**TWICE, "reasoning_content": "Something else."}
    move_reasoning(message, PROFILES["deepseek"])
    assert message == {**TWICE, "reasoning_content": "Something else."}


@pytest.mark.parametrize(
    ("field", "text"), [(THOUGHT, "So."), ("Something else.", TWICE["content"])]
)
def test_a_translated_request_says_it_once(field: str, text: str) -> None:
    body = {"model": "m", "messages": [{**TWICE, "reasoning_content": field}]}
    (message,) = read_request(body).messages
    reasoning = [part.text for part in message.parts if isinstance(part, ReasoningPart)]
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    assert (reasoning, texts) == ([field], [text])


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("deepseek", {"content": "So.", "reasoning_content": THOUGHT}),
        ("vllm", {"content": "So.", "reasoning": THOUGHT}),
        ("minimax", {"content": TWICE["content"]}),
    ],
)
def test_another_apis_turn_is_written_with_it_once(profile: str, expected: dict[str, Any]) -> None:
    written = add_reasoning(TWICE, [ReasoningPart(THOUGHT)], PROFILES[profile])
    assert written == {"role": "assistant", **expected}


def test_another_apis_turn_keeps_tags_that_hold_something_else() -> None:
    written = add_reasoning(TWICE, [ReasoningPart("Hm.")], PROFILES["deepseek"])
    assert written == {**TWICE, "reasoning_content": "Hm."}
