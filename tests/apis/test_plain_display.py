"""Test that without a summary or hiding an answer passes unchanged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.core.plan import SummaryPlan
from tests.support.checker import check_chat, check_responses
from tests.support.pipeline import chat, responses
from tests.support.streams import (
    THOUGHT,
    call,
    call_item,
    chat_stream,
    chunk,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)

HOW: dict[str, Any] = {"expose": "both", "plan": SummaryPlan(style=None), "details": True}
CALLS = [call("look", "{}")]
NATIVE = [{"type": "summary_text", "text": "Theirs."}]
OUTPUT = [
    {**reasoning_item(0, THOUGHT), "summary": NATIVE},
    call_item(1, "look", "{}"),
    message_item(2, "So."),
]
WISH = {"reasoning": {"effort": None, "summary": "auto"}}
"""Upstream may make a summary of its own accord."""


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("reasoning", [THOUGHT, "\n\n" + THOUGHT, "\n"])
def test_raw_reasoning_stays_in_its_field(field: str, reasoning: str) -> None:
    sent = chat_stream(reasoning, "So.", calls=CALLS, field=field, finish="tool_calls")
    out = chat(**HOW).stream(b"".join(sent))
    assert out == b"".join(sent)
    assert check_chat(out).choices[0].fields[field] == reasoning
    body = completion({"content": "So.", field: reasoning, "tool_calls": CALLS})
    assert json.loads(chat(**HOW).whole(json.dumps(body).encode())) == body


def test_inline_reasoning_gets_a_field_streamed_or_not() -> None:
    text = f"<think>{THOUGHT}</think>So."
    how = {**HOW, "details": False}
    answer = check_chat(chat(**how).stream(b"".join(chat_stream("", text)))).choices[0].fields
    message = json.loads(chat(**how).whole(json.dumps(completion({"content": text})).encode()))
    assert answer == {"content": "So.", "reasoning_content": THOUGHT}
    assert message["choices"][0]["message"] == {"role": "assistant", **answer}


def test_a_native_summary_stays() -> None:
    detail = {"type": "reasoning.summary", "summary": "Theirs.", "index": 0}
    answer = {"reasoning": "Theirs.", "reasoning_details": [detail]}
    frames = chat_stream("", "So.")
    frames.insert(1, chunk(answer))
    assert chat(**HOW).stream(b"".join(frames)) == b"".join(frames)
    body = completion({**answer, "content": "So."})
    assert json.loads(chat(**HOW).whole(json.dumps(body).encode())) == body


def test_a_response_stays_as_it_is() -> None:
    sent = b"".join(responses_stream(OUTPUT, **WISH))
    out = responses(**HOW).stream(sent)
    assert out == sent
    assert check_responses(out).response["reasoning"] == WISH["reasoning"]
    body = response(OUTPUT, **WISH)
    assert json.loads(responses(**HOW).whole(json.dumps(body).encode())) == body
