"""Test the demo's scripted model: it answers on both APIs as a model server does."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.sidecar.demo.model import scripted_model
from abridge.sidecar.demo.script import ANSWER, LATER_ANSWER, NOTE, QUESTION, THINKING
from tests.support.asgi import call
from tests.support.checker import check_chat, check_responses

RESPONSES, CHAT = "/v1/responses", "/v1/chat/completions"
MODEL = scripted_model(0)


def request_body(path: str, *texts: str, **more: Any) -> dict[str, Any]:
    """Return a request with a conversation whose turns are the user's and the model's in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts)]
    return {"model": "scripted", ("input" if path == RESPONSES else "messages"): messages, **more}


async def answer(path: str, body: dict[str, Any]) -> str:
    whole = (await call(MODEL, path, body)).json
    if path == CHAT:
        return str(whole["choices"][0]["message"]["content"])
    return str(whole["output"][1]["content"][0]["text"])


async def test_it_streams_responses() -> None:
    sent = await call(MODEL, RESPONSES, request_body(RESPONSES, QUESTION, stream=True))
    assert sent.headers["content-type"].startswith("text/event-stream")
    seen = check_responses(sent.data)
    assert (seen.raw, seen.text) == (THINKING, ANSWER)
    assert seen.summary == []
    assert seen.kinds[-1] == "response.completed"


async def test_it_streams_chat() -> None:
    options = {"include_usage": True}
    body = request_body(CHAT, QUESTION, stream=True, stream_options=options)
    seen = check_chat((await call(MODEL, CHAT, body)).data)
    choice = seen.choices[0]
    assert choice.fields == {"reasoning_content": THINKING, "content": ANSWER}
    assert (choice.role, choice.finish) == ("assistant", "stop")
    assert seen.done
    assert seen.usage is not None


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, "odd"])
async def test_a_chat_stream_reports_usage_only_on_request(options: Any) -> None:
    body = request_body(CHAT, QUESTION, stream=True, stream_options=options)
    assert check_chat((await call(MODEL, CHAT, body)).data).usage is None


async def test_streamed_and_whole_answers_agree() -> None:
    whole = (await call(MODEL, RESPONSES, request_body(RESPONSES, QUESTION))).json
    streamed = check_responses(
        (await call(MODEL, RESPONSES, request_body(RESPONSES, QUESTION, stream=True))).data
    )
    assert [item["content"] for item in whole["output"]] == [
        item["content"] for item in streamed.response["output"]
    ]
    assert whole["usage"] == streamed.response["usage"]
    chat = (await call(MODEL, CHAT, request_body(CHAT, QUESTION))).json
    assert chat["choices"][0]["message"]["reasoning_content"] == THINKING
    assert chat["usage"]["total_tokens"] == whole["usage"]["total_tokens"]


async def test_usage_adds_up() -> None:
    usage = (await call(MODEL, RESPONSES, request_body(RESPONSES, QUESTION))).json["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert 0 < usage["output_tokens_details"]["reasoning_tokens"] < usage["output_tokens"]


@pytest.mark.parametrize("path", [RESPONSES, CHAT])
async def test_the_demo_question_gets_its_scripted_answer(path: str) -> None:
    assert await answer(path, request_body(path, QUESTION)) == ANSWER


@pytest.mark.parametrize("path", [RESPONSES, CHAT])
async def test_any_other_question_gets_a_note_that_no_ai_answers(path: str) -> None:
    answered = await answer(path, request_body(path, "How are you?"))
    assert "no AI" in NOTE
    assert answered.startswith(NOTE)
    assert answered.endswith(ANSWER)


@pytest.mark.parametrize("path", [RESPONSES, CHAT])
async def test_a_later_turn_gets_the_closing_answer(path: str) -> None:
    answered = await answer(path, request_body(path, QUESTION, ANSWER, "Thanks! And for eight?"))
    assert answered == LATER_ANSWER
    assert "no AI" in answered


async def test_previous_response_id_counts_as_a_later_turn() -> None:
    body = {"model": "scripted", "input": "And for eight?", "previous_response_id": "resp_1"}
    assert await answer(RESPONSES, body) == LATER_ANSWER


async def test_no_previous_response_is_the_first_turn() -> None:
    """Some clients say so by a null."""
    body = {"model": "scripted", "input": QUESTION, "previous_response_id": None}
    assert await answer(RESPONSES, body) == ANSWER


async def test_content_may_come_in_parts() -> None:
    parts = [{"type": "input_text", "text": QUESTION}]
    body = {"model": "scripted", "input": [{"role": "user", "content": parts}]}
    assert await answer(RESPONSES, body) == ANSWER


@pytest.mark.parametrize("body", [{}, {"input": None}, {"messages": [1, {"content": [2]}]}])
async def test_odd_requests_are_answered(body: dict[str, Any]) -> None:
    assert (await call(MODEL, CHAT, body)).status == 200


@pytest.mark.parametrize("body", [b"", b"[]", b"{"])
async def test_an_invalid_request_is_refused(body: bytes) -> None:
    refused = await call(MODEL, RESPONSES, body)
    assert refused.status == 400
    assert refused.json["error"]["type"] == "invalid_request_error"


async def test_it_lists_itself() -> None:
    listed = await call(MODEL, "/v1/models", b"", method="GET")
    assert [model["id"] for model in listed.json["data"]] == ["scripted"]
