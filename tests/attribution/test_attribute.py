"""`attribute`: the reasoning that led to each call, in a body of any API."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings

from abridge.attribution import attribute
from tests.apis.messages import scripts as messages
from tests.attribution.test_writers import CALL, CLIENTS, REDACT, SAY, A, B, turns
from tests.support.attribution import (
    MARKS,
    attribution_texts,
    blocks,
    chat_body,
    expected_texts,
    items,
    read_attributions,
    without_attributions,
)
from tests.support.checker import attribution_of, check_attributions
from tests.support.matrix import some
from tests.support.pipeline import LIMIT, Pipeline, translating
from tests.support.streams import (
    THOUGHT,
    call,
    call_item,
    completion,
    message_item,
    reasoning_item,
    response,
)

Json = dict[str, Any]


def led(body: Json) -> list[Any]:
    """What the calls of a message of Anthropic's were given."""
    calls = [block for block in attribute(body)["content"] if block["type"].endswith("tool_use")]
    read_attributions = [attribution_of(call) for call in calls]
    check_attributions([call["id"] for call in calls], read_attributions)
    return attribution_texts(read_attributions)


def test_thinking_with_signatures_and_redacted_blocks() -> None:
    body = messages.message(blocks([A, REDACT, B, SAY, CALL, CALL]), "tool_use")
    assert led(body) == [[A[1], "[redacted]", B[1]], True]
    first = attribute(body)["content"][4]
    assert first["reasoning"] == [
        {"type": "reasoning_text", "text": A[1]},
        {"type": "redacted"},
        {"type": "reasoning_text", "text": B[1]},
    ]
    assert first["input"] == {"where": "here"}


def test_thinking_between_the_servers_tools_and_the_clients() -> None:
    search, result = messages.search(0)
    content = [
        messages.thinking("A"),
        search,
        result,
        messages.thinking("B"),
        messages.tool_use(1),
        {**search, "id": "srv_2"},
        {**result, "tool_use_id": "srv_2"},
        messages.thinking(" \n"),
        {**messages.tool_use(3), "type": "mcp_tool_use"},
    ]
    body = messages.message(content)
    assert led(body) == [["A"], ["B"], True, True]
    read_attributions = attribute(body)["content"]
    assert read_attributions[2] == result
    assert [block.get("reasoning_ref") for block in read_attributions[5:]] == [
        "toolu_1",
        None,
        None,
        "toolu_1",
    ]


@pytest.mark.parametrize("client", ["chat", "responses"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@given(steps=turns())
def test_a_translated_answer_is_attributed_alike(steps: Any, client: str, *, stream: bool) -> None:
    body = messages.message(blocks(steps), "tool_use")
    frames = messages.stream(body["content"], "tool_use")
    run: Pipeline = translating("messages", CLIENTS[client], expose="raw", attribution_limit=LIMIT)
    out = run.stream(b"".join(frames)) if stream else run.whole(json.dumps(body).encode())
    assert (
        attribution_texts(read_attributions(client, out, stream=stream))
        == led(body)
        == expected_texts(steps)
    )


@settings(max_examples=some(50), deadline=None)
@given(turns())
def test_a_response_of_anybodys(steps: Any) -> None:
    body = response(items(steps))
    said = attribute(body)
    assert attribution_texts(
        read_attributions("responses", json.dumps(said).encode(), stream=False)
    ) == expected_texts(steps)
    assert without_attributions(said) == body


def test_a_message_that_shows_both_is_attributed_raw() -> None:
    both = {"reasoning": "A", "reasoning_content": "S"}
    body = completion({**both, "tool_calls": [call("look", "{}"), call("look", "{}", 1)]})
    first, second = attribute(body)["choices"][0]["message"]["tool_calls"]
    assert first["reasoning"] == [{"type": "reasoning_text", "text": "A"}]
    assert second["reasoning_ref"] == "call_0"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_single_text_is_raw_unless_a_list_says_otherwise(field: str) -> None:
    message: Json = {field: "A", "tool_calls": [call("look", "{}")]}
    (made,) = attribute(completion(message))["choices"][0]["message"]["tool_calls"]
    assert made["reasoning"] == [{"type": "reasoning_text", "text": "A"}]
    message["reasoning_details"] = [{"type": "reasoning.summary", "summary": "A", "index": 0}]
    (made,) = attribute(completion(message))["choices"][0]["message"]["tool_calls"]
    assert made["reasoning"] == [{"type": "summary_text", "text": "A"}]


BODIES: list[Json] = [
    completion({"reasoning": THOUGHT, "tool_calls": [call("look", "{}")]}),
    chat_body([A, REDACT, CALL, CALL]),
    response([reasoning_item(0, THOUGHT), call_item(1, "look", "{}"), message_item(2, "So")]),
    messages.message(blocks([A, CALL, B, CALL])),
]


@pytest.mark.parametrize("body", BODIES)
def test_the_body_is_not_changed_and_a_second_time_changes_nothing(body: Json) -> None:
    before = deepcopy(body)
    said = attribute(body)
    assert body == before
    assert said != body
    assert without_attributions(said) == body
    assert attribute(said) == said


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"error": {"message": "m"}},
        {"object": "list", "data": []},
        {"choices": None},
        {"choices": [7, {}, {"message": None}, {"message": {"tool_calls": "x"}}]},
        {"choices": [{"message": {"tool_calls": [7]}, "text": "x"}]},
        {"output": [7, None, {}, {"type": 7}]},
        {"content": [7, None, {}, {"type": "text", "text": "x"}]},
    ],
)
def test_what_is_no_answer_or_an_odd_one_comes_back_as_it_is(body: Json) -> None:
    assert attribute(body) == body


def test_a_call_of_nothing_has_no_marks() -> None:
    for body in (
        completion({"content": "So", "tool_calls": [call("look", "{}")]}),
        response([call_item(0, "look", "{}")]),
        messages.message([messages.tool_use()]),
    ):
        assert not any(mark in json.dumps(attribute(body)["id"]) for mark in MARKS)
        assert attribute(body) == body
