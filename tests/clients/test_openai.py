"""The official client and its strict helpers, against a real server on loopback.

Run with the newest release and the newest of the previous major.
"""

from __future__ import annotations

from typing import Any

import openai
import pytest

from tests.clients.front import connect
from tests.support.streams import (
    THOUGHT,
    call,
    call_item,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
    thinking,
)
from tests.support.upstream import Answer, Upstream

SUMMARY = "**Adding up**\n\nI add the numbers."
NATIVE = {"type": "summary_text", "text": "**Theirs**\n\nI add up."}
OUTPUT = [reasoning_item(0, thinking(4000)), message_item(1, "One hundred.")]
ASK = {"model": "thinker-1", "input": "Hi", "reasoning": {"summary": "auto"}}
MESSAGES = [{"role": "user", "content": "Hi"}]
CHAT = {
    "model": "thinker-1",
    "messages": MESSAGES,
    "extra_body": {"reasoning": {"summary": "auto"}},
}
TOOL = {
    "type": "function",
    "name": "add",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
}


def test_the_client_is_one_of_the_two_majors() -> None:
    assert openai.__version__.split(".")[0] in ("2", "3")


class TestResponses:
    async def test_the_strict_helper_with_a_native_summary(self) -> None:
        native = {**reasoning_item(0, ""), "summary": [NATIVE]}
        upstream = Upstream(Answer(responses_stream([native, message_item(1, "Hi")])))
        async with connect(upstream) as client, client.responses.stream(**ASK) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()
        assert final.output[0].summary[0].text == NATIVE["text"]  # type: ignore[union-attr]

    async def test_interleaved_reasoning_and_calls(self) -> None:
        output = [
            reasoning_item(0, THOUGHT),
            call_item(1, "add", '{"a": 1}'),
            reasoning_item(2, THOUGHT),
            call_item(3, "add", '{"a": 2}'),
        ]
        upstream = Upstream(Answer(responses_stream(output)))
        async with connect(upstream) as client, client.responses.stream(**ASK) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()
        assert [item.type for item in final.output] == ["reasoning", "function_call"] * 2

    async def test_an_invalid_summary_style_is_a_bad_request(self) -> None:
        async with connect(Upstream(Answer())) as client:
            with pytest.raises(openai.BadRequestError) as caught:
                await client.responses.create(**{**ASK, "reasoning": {"summary": "loud"}})
        assert caught.value.param == "reasoning.summary"

    async def test_a_language_can_be_named(self) -> None:
        ask = {**ASK, "reasoning": {"summary": "auto", "summary_language": "de"}}
        upstream = Upstream(Answer.json(response(OUTPUT)))
        async with connect(upstream) as client:
            answer = await client.responses.with_raw_response.create(**ask)
        assert answer.headers["x-abridge-summary-language"] == "de"
        assert upstream.requests[0].json["reasoning"] == {"summary": "auto"}

    @pytest.mark.parametrize("expose", ["auto", "summary"])
    async def test_a_two_round_tool_loop(self, expose: str) -> None:
        first = [reasoning_item(0, THOUGHT), call_item(1, "add", '{"a": 1}')]
        upstream = Upstream(Answer(responses_stream(first)), Answer(responses_stream(OUTPUT)))
        history: list[Any] = [{"role": "user", "content": "Hi"}]
        async with connect(upstream, reasoning={"expose": expose}) as client:
            for _ in range(2):
                async with client.responses.stream(
                    **{**ASK, "input": history, "tools": [TOOL]}
                ) as stream:
                    async for _ in stream:
                        pass
                    final = await stream.get_final_response()
                history += [item.to_dict() for item in final.output]
                history += [
                    {"type": "function_call_output", "call_id": item.call_id, "output": "2"}
                    for item in final.output
                    if item.type == "function_call"
                ]
        sent = upstream.requests[1].json["input"]
        assert sent[1] == first[0]
        assert SUMMARY not in upstream.requests[1].body.decode()
        assert final.output_text == "One hundred."


class TestChat:
    async def test_a_language_can_be_named(self) -> None:
        extra = {"reasoning": {"summary": "auto", "summary_language": "de"}}
        upstream = Upstream(Answer.json(completion({"reasoning": THOUGHT, "content": "Hi."})))
        async with connect(upstream) as client:
            answer = await client.chat.completions.with_raw_response.create(
                **{**CHAT, "extra_body": extra}
            )
        assert answer.headers["x-abridge-summary-language"] == "de"
        assert "reasoning" not in upstream.requests[0].json

    @pytest.mark.parametrize("expose", ["auto", "both", "summary", "raw", "none"])
    @pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
    async def test_the_strict_helper(self, field: str, expose: str) -> None:
        upstream = Upstream(Answer(chat_stream(THOUGHT, "One hundred.", field=field)))
        async with (
            connect(upstream, reasoning={"expose": expose}, chat={"details": True}) as client,
            client.chat.completions.stream(**CHAT) as stream,
        ):
            async for _ in stream:
                pass
            final = await stream.get_final_completion()
        message = final.choices[0].message
        assert message.content == "One hundred."
        assert message.role == "assistant"
        shown = message.to_dict()
        assert (SUMMARY in shown.values()) == (expose in ("auto", "both", "summary"))
        assert (THOUGHT in shown.values()) == (expose in ("both", "raw"))
        assert final.usage is not None

    async def test_the_strict_helper_with_several_choices(self) -> None:
        streams = [chat_stream(THOUGHT, f"Answer {number}.", usage=None) for number in range(2)]
        mixed = [
            frame.replace(b'"index": 0', f'"index": {number}'.encode())
            for pair in zip(*streams, strict=True)
            for number, frame in enumerate(pair)
        ][:-1]
        async with (
            connect(Upstream(Answer(mixed))) as client,
            client.chat.completions.stream(**CHAT, n=2) as stream,
        ):
            async for _ in stream:
                pass
            final = await stream.get_final_completion()
        assert [choice.message.content for choice in final.choices] == ["Answer 0.", "Answer 1."]


async def test_errors_come_as_upstream_sent_them() -> None:
    error = {"error": {"message": "slow down", "type": "rate_limit", "param": None, "code": "rl"}}
    upstream = Upstream(Answer.json(error, 429, **{"retry-after": "3"}))
    async with connect(upstream) as client:
        with pytest.raises(openai.RateLimitError) as caught:
            await client.responses.create(**ASK)
    assert caught.value.code == "rl"
    assert caught.value.response.headers["retry-after"] == "3"


async def test_the_list_of_models_passes() -> None:
    listing = {"object": "list", "data": [{"id": "thinker-1", "object": "model"}]}
    upstream = Upstream(Answer.json(listing))
    async with connect(upstream) as client:
        models = [model.id async for model in client.models.list()]
    assert models == ["thinker-1"]


class TestWebSocket:
    async def test_a_conversation_on_one_connection(self) -> None:
        upstream = Upstream(
            Answer(chat_stream(THOUGHT, calls=[call("add", "{}")], finish="tool_calls")),
            Answer(chat_stream(THOUGHT, "One hundred.")),
        )
        served = {"server": {"websockets": True}}
        async with connect(upstream, entry={"api": "chat"}, **served) as client:
            if not hasattr(client.responses, "connect"):
                pytest.skip("this release has no WebSockets")
            async with client.responses.connect() as connection:
                await connection.response.create(**ASK, tools=[TOOL], store=False)
                first = await self.completed(connection)
                (called,) = [item for item in first.output if item.type == "function_call"]
                output = {"call_id": called.call_id, "output": "100"}
                await connection.response.create(
                    **{**ASK, "input": [{"type": "function_call_output", **output}]},
                    tools=[TOOL],
                    store=False,
                    previous_response_id=first.id,
                )
                second = await self.completed(connection)
        assert second.output_text == "One hundred."
        assert second.output[0].summary[0].text == SUMMARY
        messages = upstream.requests[1].json["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant", "tool"]
        assert messages[1]["reasoning_content"] == THOUGHT

    async def completed(self, connection: Any) -> Any:
        async for event in connection:
            assert event.type != "error", event
            if event.type == "response.completed":
                return event.response
        raise AssertionError("the connection was closed")
