"""The same behaviour mounted, as a sidecar and embedded in another app."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.asgi import Call, call
from tests.support.checker import check_chat, check_responses
from tests.support.deployments import PREFIX, Form, build_app
from tests.support.streams import (
    CHAT_USAGE,
    RESPONSES_USAGE,
    THOUGHT,
    call_item,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.streams import call as tool_call
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

OUTPUT = [reasoning_item(0, THOUGHT), message_item(1, "One hundred.")]
SUMMARY = "**Adding up**\n\nI add the numbers."
CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
RESPONSES = {"model": "m", "input": "Hi"}
SUMMARY_REQUEST = {"reasoning": {"summary": "auto"}}


async def chat(form: Form, upstream: Upstream, body: Any = None, **settings: Any) -> Call:
    app = build_app(form, upstream, writer=Scripted(), **settings)
    path = f"{PREFIX[form]}/v1/chat/completions"
    return await call(app, path, {**CHAT, **SUMMARY_REQUEST, **(body or {})})


async def responses(form: Form, upstream: Upstream, body: Any = None, **settings: Any) -> Call:
    app = build_app(form, upstream, writer=Scripted(), **settings)
    return await call(
        app, f"{PREFIX[form]}/v1/responses", {**RESPONSES, **SUMMARY_REQUEST, **(body or {})}
    )


async def test_responses_streamed(form: Form) -> None:
    upstream = Upstream(Answer(responses_stream(OUTPUT)))
    seen = check_responses((await responses(form, upstream, {"stream": True})).data)
    assert seen.summary == [SUMMARY]
    assert seen.raw == THOUGHT
    assert seen.text == "One hundred."
    assert seen.response["usage"]["total_tokens"] == RESPONSES_USAGE["total_tokens"] + 15


async def test_responses_whole(form: Form) -> None:
    upstream = Upstream(Answer.json(response(OUTPUT)))
    answer = await responses(form, upstream)
    item = answer.json["output"][0]
    assert item["summary"] == [{"type": "summary_text", "text": SUMMARY}]
    assert item["content"] == OUTPUT[0]["content"]
    assert answer.headers["x-abridge-summary"] == "model"
    assert answer.headers["server-timing"].startswith("summary;dur=")
    assert int(answer.headers["content-length"]) == len(answer.data)


async def test_chat_streamed(form: Form) -> None:
    upstream = Upstream(Answer(chat_stream(THOUGHT, "One hundred.")))
    seen = check_chat((await chat(form, upstream, {"stream": True})).data)
    assert seen.choices[0].fields["reasoning_content"] == SUMMARY
    assert seen.choices[0].text == "One hundred."
    assert seen.usage is not None
    assert seen.usage["total_tokens"] == CHAT_USAGE["total_tokens"] + 15


async def test_chat_whole(form: Form) -> None:
    body = completion({"content": "One hundred.", "reasoning": THOUGHT})
    answer = await chat(form, Upstream(Answer.json(body)))
    message = answer.json["choices"][0]["message"]
    assert message["reasoning"] == SUMMARY
    assert message["content"] == "One hundred."
    assert answer.json["usage"]["reasoning_summary"]["model"] == "mini"


async def test_traffic_without_a_summary_request_is_untouched(form: Form) -> None:
    for stream in (chat_stream(THOUGHT, "Hi"), responses_stream(OUTPUT)):
        upstream, scripted = Upstream(Answer(stream)), Scripted()
        app = build_app(form, upstream, writer=scripted)
        for path in ("/v1/chat/completions", "/v1/responses"):
            answer = await call(app, PREFIX[form] + path, {**CHAT, **RESPONSES, "stream": True})
            assert answer.data == b"".join(stream)
        assert not scripted.requests
        assert upstream.requests[0].json == {**CHAT, **RESPONSES, "stream": True}


async def test_the_summary_parameter_is_forwarded_only_where_the_api_has_it(
    form: Form,
) -> None:
    upstream = Upstream(Answer(responses_stream(OUTPUT)))
    await responses(form, upstream, {"stream": True})
    assert upstream.requests[0].json["reasoning"] == {"summary": "auto"}
    upstream = Upstream(Answer(chat_stream(THOUGHT, "Hi")))
    await chat(form, upstream, {"stream": True})
    assert "reasoning" not in upstream.requests[0].json
    await chat(form, upstream, {"stream": True, "reasoning": {"summary": "auto", "effort": "low"}})
    assert upstream.requests[1].json["reasoning"] == {"effort": "low"}


@pytest.mark.parametrize("expose", ["both", "summary", "raw", "none"])
async def test_exposure(form: Form, expose: str) -> None:
    settings = {"reasoning": {"expose": expose}}
    expected = expose in ("both", "raw"), expose in ("both", "summary")
    stream = {"stream": True}
    message = {"content": "Hi", "reasoning_content": THOUGHT}

    streamed = await responses(form, Upstream(Answer(responses_stream(OUTPUT))), stream, **settings)
    seen = check_responses(streamed.data)
    assert (seen.raw == THOUGHT, seen.summary == [SUMMARY]) == expected

    whole = await responses(form, Upstream(Answer.json(response(OUTPUT))), **settings)
    item = whole.json["output"][0]
    assert (bool(item["content"]), bool(item["summary"])) == expected

    streamed = await chat(form, Upstream(Answer(chat_stream(THOUGHT, "Hi"))), stream, **settings)
    fields = check_chat(streamed.data).choices[0].fields.values()
    assert (THOUGHT in fields, SUMMARY in fields) == expected

    whole = await chat(form, Upstream(Answer.json(completion(message))), **settings)
    values = whole.json["choices"][0]["message"].values()
    assert (THOUGHT in values, SUMMARY in values) == expected


class TestNextTurn:
    async def test_upstream_gets_its_own_reasoning_back_on_chat(self, form: Form) -> None:
        calls = [tool_call("add", '{"a": 1}')]
        first = Answer(chat_stream(THOUGHT, calls=calls, field="reasoning", finish="tool_calls"))
        upstream = Upstream(first, Answer(chat_stream("Again.", "Done.")))
        app = build_app(form, upstream, writer=Scripted())
        path = f"{PREFIX[form]}/v1/chat/completions"
        seen = check_chat((await call(app, path, {**CHAT, **SUMMARY_REQUEST, "stream": True})).data)
        assert seen.choices[0].fields["reasoning"] == SUMMARY
        message = {
            "role": "assistant",
            "content": None,
            "reasoning": seen.choices[0].fields["reasoning"],
            "tool_calls": [
                {
                    "id": "call_0",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a":1}'},
                }
            ],
        }
        tool = {"role": "tool", "tool_call_id": "call_0", "content": "2"}
        await call(app, path, {**CHAT, "messages": [*CHAT["messages"], message, tool]})
        sent = upstream.requests[1].json["messages"][1]
        assert sent == {**message, "reasoning": THOUGHT}

    async def test_upstream_gets_its_own_reasoning_back_on_responses(self, form: Form) -> None:
        output = [reasoning_item(0, THOUGHT), call_item(1, "add", "{}")]
        upstream = Upstream(Answer(responses_stream(output)), Answer(responses_stream(OUTPUT)))
        app = build_app(form, upstream, writer=Scripted(), reasoning={"expose": "summary"})
        path = f"{PREFIX[form]}/v1/responses"
        body = {**RESPONSES, **SUMMARY_REQUEST, "stream": True}
        seen = check_responses((await call(app, path, body)).data)
        returned = seen.response["output"]
        assert returned[0]["content"] == []
        result = {"type": "function_call_output", "call_id": "call_1", "output": "2"}
        user = {"role": "user", "content": "Hi"}
        await call(app, path, {**body, "input": [user, *returned, result]})
        # the first request's input was a string: the same turn in another form
        assert upstream.requests[1].json["input"] == [user, *output, result]
