"""NEW-05: the official client and its strict helpers, over upstreams of every API.

Run with the newest release and the newest of the previous major.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from tests.clients.front import connect
from tests.clients.turns import turn
from tests.end_to_end.translation.turn import ARGUMENTS, BRIDGES, TOOL, UPSTREAMS, WORDS, answer
from tests.support.servers import until
from tests.support.streams import (
    DONE,
    THOUGHT,
    call,
    call_item,
    chat_stream,
    chunk,
    pieces,
    reasoning_item,
    responses_stream,
    thinking,
)
from tests.support.upstream import Answer, Upstream

SUMMARY = "**Adding up**\n\nI add the numbers."
PARAMETERS = {
    "type": "object",
    "properties": {"where": {"type": "string"}},
    "required": ["where"],
    "additionalProperties": False,
}
FUNCTION = {"name": TOOL, "parameters": PARAMETERS, "strict": True}
MESSAGES = [{"role": "user", "content": "Hi"}]
ASK: dict[str, Any] = {
    "model": "thinker-1",
    "input": MESSAGES,
    "reasoning": {"summary": "auto"},
    "tools": [{"type": "function", **FUNCTION}],
}
CHAT: dict[str, Any] = {
    "model": "thinker-1",
    "messages": MESSAGES,
    "extra_body": {"reasoning": {"summary": "auto"}},
    "tools": [{"type": "function", "function": FUNCTION}],
}
USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}

EVERY = pytest.mark.parametrize("api", UPSTREAMS)
RESPONSES, COMPLETIONS = (
    pytest.mark.parametrize("api", [upstream for client, upstream in BRIDGES if client == api])
    for api in ("responses", "chat")
)
LOOK = (TOOL, ARGUMENTS)
SILENT = {
    "chat": chat_stream(THOUGHT, calls=[call(TOOL, "")], finish="tool_calls"),
    "responses": responses_stream([reasoning_item(0, THOUGHT), call_item(1, TOOL, "")]),
    "messages": list(turn("messages", "", (TOOL, {})).steps),
}
"""Turns with a call without arguments, which some servers leave out."""


class Place(BaseModel):
    where: str


def upstream_settings(api: str) -> dict[str, Any]:
    return {"entry": {"api": api}}


class TestResponses:
    @EVERY
    async def test_plain_iteration(self, api: str) -> None:
        answer = turn(api, WORDS, thought=thinking(4000))
        answer.steps = [step for each in answer.steps for step in (each, 0.0)]  # no single burst
        async with connect(Upstream(answer), **upstream_settings(api)) as client:
            stream = await client.responses.create(**ASK, stream=True)
            events = [event async for event in stream]
        kinds = [event.type for event in events]
        assert kinds.count("response.reasoning_summary_part.added") == 3
        assert kinds.index("response.reasoning_summary_part.done") < max(
            place for place, kind in enumerate(kinds) if kind == "response.reasoning_text.delta"
        )
        assert kinds[-1] == "response.completed"
        assert [event.sequence_number for event in events] == list(range(len(events)))

    @EVERY
    @pytest.mark.parametrize("expose", ["auto", "both", "summary", "raw", "none"])
    async def test_the_strict_helper(self, api: str, expose: str) -> None:
        upstream = Upstream(turn(api, WORDS))
        async with (
            connect(upstream, **upstream_settings(api), reasoning={"expose": expose}) as client,
            client.responses.stream(**ASK) as stream,
        ):
            texts = [event.delta async for event in stream if "output_text.delta" in event.type]  # type: ignore[union-attr]
            final = await stream.get_final_response()
        assert "".join(texts) == final.output_text == WORDS
        item = final.output[0]
        assert item.type == "reasoning"
        shown = [part.text for part in item.summary]
        assert shown == ([SUMMARY] if expose in ("auto", "both", "summary") else [])
        raw = [part.text for part in item.content or ()]
        assert raw == ([THOUGHT] if expose in ("auto", "both", "raw") else [])
        assert final.usage is not None
        assert final.usage.output_tokens_details.reasoning_tokens == 50

    @EVERY
    async def test_not_streamed(self, api: str) -> None:
        async with connect(Upstream(answer(api, stream=False)), **upstream_settings(api)) as client:
            final = await client.responses.create(**ASK)
        assert final.output_text == WORDS
        assert final.output[0].summary[0].text == SUMMARY  # type: ignore[union-attr]
        assert final.usage is not None
        assert final.usage.total_tokens == final.usage.input_tokens + 70 + 5

    @RESPONSES
    @pytest.mark.parametrize("expose", ["auto", "summary"])
    async def test_a_tool_loop_with_parallel_calls(self, api: str, expose: str) -> None:
        """Everything is sent back unchanged; upstream gets its own reasoning in its own API."""
        upstream = Upstream(turn(api, "Let me see.", LOOK, LOOK), turn(api, WORDS, first=2))
        history: list[Any] = list(MESSAGES)
        async with connect(
            upstream, **upstream_settings(api), reasoning={"expose": expose}
        ) as client:
            first = await self.loop(client, history)
            assert [item.type for item in first] == ["reasoning", "message"] + ["function_call"] * 2
            await self.loop(client, history)
        assert history[-1]["content"][0]["text"] == WORDS
        again = upstream.requests[1]
        assert SUMMARY not in json.dumps(again.json, ensure_ascii=False)
        assert call_ids(api, again.json) == result_ids(api, again.json) != []
        assert_reasoning_in_request(api, again.json)

    @RESPONSES
    async def test_a_call_without_arguments_is_recognized(self, api: str) -> None:
        upstream = Upstream(Answer(SILENT[api]), turn(api, WORDS, first=2))
        history: list[Any] = list(MESSAGES)
        async with connect(upstream, **upstream_settings(api)) as client:
            output = await self.loop(client, history)
            assert output[-1].arguments == "{}"
            await self.loop(client, history)
        assert_reasoning_in_request(api, upstream.requests[1].json)

    async def loop(self, client: AsyncOpenAI, history: list[Any]) -> list[Any]:
        async with client.responses.stream(**{**ASK, "input": history}, store=False) as stream:
            async for _ in stream:
                pass
            final = await stream.get_final_response()
        history += [item.to_dict() for item in final.output]
        history += [
            {"type": "function_call_output", "call_id": item.call_id, "output": "forty-two"}
            for item in final.output
            if item.type == "function_call"
        ]
        return final.output

    @RESPONSES
    async def test_an_answer_is_parsed(self, api: str) -> None:
        upstream = Upstream(turn(api, json.dumps(ARGUMENTS)))
        ask = {**ASK, "model": "claude-opus-4-5"}  # the first to support schemas
        async with (
            connect(upstream, **upstream_settings(api)) as client,
            client.responses.stream(**ask, text_format=Place) as stream,
        ):
            final = await stream.get_final_response()
        assert final.output_parsed == Place(**ARGUMENTS)
        body = upstream.requests[0].json
        form = body["output_config"] if api == "messages" else body["response_format"]
        assert "where" in json.dumps(form)

    @EVERY
    async def test_a_stream_cut_short_is_no_completed_response(self, api: str) -> None:
        frames = list(turn(api, WORDS).steps)
        upstream = Upstream(Answer([*frames[:-5], ConnectionError("gone")]))
        async with connect(upstream, **upstream_settings(api)) as client:
            with pytest.raises(RuntimeError, match=r"response\.completed"):
                async with client.responses.stream(**ASK) as stream:
                    await stream.get_final_response()

    async def test_interleaved_long_calls(self) -> None:
        arguments = [json.dumps({"where": str(number) * 9000}) for number in range(2)]
        turns = zip(*(pieces(text, 100) for text in arguments), strict=True)
        frames = [chunk({"tool_calls": [call(TOOL, "", number) for number in range(2)]})]
        frames += [
            chunk({"tool_calls": [{"index": number, "function": {"arguments": text}}]})
            for texts in turns
            for number, text in enumerate(texts)
        ]
        upstream = Upstream(Answer([*frames, chunk({}, finish="tool_calls"), DONE]))
        async with (
            connect(upstream, **upstream_settings("chat")) as client,
            client.responses.stream(**ASK) as stream,
        ):
            final = await stream.get_final_response()
        assert [item.arguments for item in final.output] == arguments  # type: ignore[union-attr]


class TestChat:
    @EVERY
    async def test_plain_iteration(self, api: str) -> None:
        async with connect(Upstream(turn(api, WORDS)), **upstream_settings(api)) as client:
            stream = await client.chat.completions.create(**CHAT, **USAGE, stream=True)
            chunks = [chunk async for chunk in stream]
        deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
        texts = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
        assert texts == SUMMARY
        assert "".join(delta.content or "" for delta in deltas) == WORDS
        assert chunks[-1].usage is not None
        assert chunks[-1].usage.completion_tokens == 75

    @EVERY
    @pytest.mark.parametrize("expose", ["auto", "both", "summary", "raw", "none"])
    async def test_the_strict_helper(self, api: str, expose: str) -> None:
        async with (
            connect(
                Upstream(turn(api, WORDS)),
                **upstream_settings(api),
                reasoning={"expose": expose},
                chat={"details": True},
            ) as client,
            client.chat.completions.stream(**CHAT, **USAGE) as stream,
        ):
            async for _ in stream:
                pass
            final = await stream.get_final_completion()
        message = final.choices[0].message
        assert message.content == WORDS
        assert message.role == "assistant"
        assert final.choices[0].finish_reason == "stop"
        shown = message.to_dict()
        assert (SUMMARY in shown.values()) == (expose in ("auto", "both", "summary"))
        assert (THOUGHT in shown.values()) == (expose in ("both", "raw"))
        assert final.usage is not None

    @EVERY
    async def test_not_streamed(self, api: str) -> None:
        async with connect(Upstream(answer(api, stream=False)), **upstream_settings(api)) as client:
            final = await client.chat.completions.create(**CHAT)
        message = final.choices[0].message
        assert message.content == WORDS
        assert message.to_dict()["reasoning_content"] == SUMMARY
        assert final.usage is not None
        assert final.usage.completion_tokens == 75

    @EVERY
    @pytest.mark.parametrize("expose", ["auto", "both", "summary"])
    async def test_a_tool_loop_with_parallel_calls(self, api: str, expose: str) -> None:
        upstream = Upstream(turn(api, "Let me see.", LOOK, LOOK), turn(api, WORDS, first=2))
        history: list[Any] = list(MESSAGES)
        async with connect(
            upstream, **upstream_settings(api), reasoning={"expose": expose}
        ) as client:
            await self.loop(client, history)
            message = await self.loop(client, history)
        assert message.content == WORDS
        again = upstream.requests[1]
        assert SUMMARY not in json.dumps(again.json, ensure_ascii=False)
        assert call_ids(api, again.json) == result_ids(api, again.json) != []
        assert_reasoning_in_request(api, again.json)

    async def loop(self, client: AsyncOpenAI, history: list[Any]) -> Any:
        async with client.chat.completions.stream(**{**CHAT, "messages": history}) as stream:
            async for _ in stream:
                pass
            message = (await stream.get_final_completion()).choices[0].message
        history.append(message.to_dict())
        history += [
            {"role": "tool", "tool_call_id": made.id, "content": "forty-two"}
            for made in message.tool_calls or ()
        ]
        return message

    @COMPLETIONS
    async def test_a_call_without_arguments_is_recognized(self, api: str) -> None:
        upstream = Upstream(Answer(SILENT[api]), turn(api, WORDS, first=2))
        history: list[Any] = list(MESSAGES)
        async with connect(upstream, **upstream_settings(api)) as client:
            message = await self.loop(client, history)
            assert message.tool_calls[0].function.arguments == "{}"
            await self.loop(client, history)
        assert_reasoning_in_request(api, upstream.requests[1].json)

    @COMPLETIONS
    async def test_an_answer_is_parsed(self, api: str) -> None:
        upstream = Upstream(turn(api, json.dumps(ARGUMENTS)))
        ask = {**CHAT, "model": "claude-opus-4-5"}
        async with (
            connect(upstream, **upstream_settings(api)) as client,
            client.chat.completions.stream(**ask, response_format=Place) as stream,
        ):
            final = await stream.get_final_completion()
        assert final.choices[0].message.parsed == Place(**ARGUMENTS)
        body = upstream.requests[0].json
        form = body["output_config"] if api == "messages" else body["text"]
        assert "where" in json.dumps(form)

    @EVERY
    async def test_a_stream_cut_short_raises(self, api: str) -> None:
        frames = list(turn(api, WORDS).steps)
        upstream = Upstream(Answer([*frames[:-5], ConnectionError("gone")]))
        async with connect(upstream, **upstream_settings(api)) as client:
            stream = await client.chat.completions.create(**CHAT, stream=True)
            with pytest.raises(openai.APIError, match="broke off"):
                async for _ in stream:
                    pass


def call_ids(api: str, body: Any) -> list[str]:
    """Return the ids of the calls in a request."""
    if api == "responses":
        return [item["call_id"] for item in body["input"] if item.get("type") == "function_call"]
    assistant = [message for message in body["messages"] if message["role"] == "assistant"]
    if api == "chat":
        return [made["id"] for message in assistant for made in message.get("tool_calls") or ()]
    blocks = [block for message in assistant for block in message["content"]]
    return [block["id"] for block in blocks if block["type"] == "tool_use"]


def result_ids(api: str, body: Any) -> list[str]:
    """Return the ids of the calls whose results are in a request."""
    if api == "responses":
        items = body["input"]
        return [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    if api == "chat":
        messages = body["messages"]
        return [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    blocks = [
        block
        for message in body["messages"]
        if message["role"] == "user" and isinstance(message["content"], list)
        for block in message["content"]
    ]
    return [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]


def assert_reasoning_in_request(api: str, body: Any) -> None:
    """Assert that the first turn's reasoning is in the request, once and in its place."""
    if api == "responses":
        items = [item for item in body["input"] if item["type"] == "reasoning"]
        assert [item["content"] for item in items] == [
            [{"type": "reasoning_text", "text": THOUGHT}]
        ]
    else:
        (first,) = [message for message in body["messages"] if message["role"] == "assistant"]
        if api == "chat":
            assert first["reasoning_content"] == THOUGHT
        else:
            thought = {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln0000"}
            assert first["content"][0] == thought


EACH = pytest.mark.parametrize(("client_api", "api"), BRIDGES)


async def ask(client: AsyncOpenAI, client_api: str) -> Any:
    if client_api == "chat":
        return await client.chat.completions.create(**CHAT, stream=True)
    return await client.responses.create(**ASK, stream=True)


@EACH
async def test_when_the_client_leaves_upstream_stops(client_api: str, api: str) -> None:
    frames = list(turn(api, WORDS).steps)
    upstream = Upstream(Answer([*frames[:-5], asyncio.Event()]))
    async with connect(upstream, entry={"api": api}) as client:
        stream = await ask(client, client_api)
        await anext(aiter(stream))
        await stream.close()
        await until(lambda: upstream.left == 1)
        assert upstream.left == 1


@EACH
@pytest.mark.parametrize(
    ("status", "kind"), [(429, openai.RateLimitError), (500, openai.InternalServerError)]
)
async def test_errors_come_in_the_clients_shape(
    client_api: str, api: str, status: int, kind: type[openai.APIStatusError]
) -> None:
    error = {"type": "some_error", "message": "Slow down."}
    own = {"type": "error", "error": error} if api == "messages" else {"error": error}
    upstream = Upstream(Answer.json(own, status, **{"retry-after": "3"}))
    async with connect(upstream, entry={"api": api}) as client:
        with pytest.raises(kind, match=r"Slow down\.") as caught:
            await ask(client, client_api)
    assert caught.value.response.headers["retry-after"] == "3"


@pytest.mark.matrix(1)
@EACH
async def test_a_long_stream_stays_whole(client_api: str, api: str) -> None:
    """Five thousand characters of reasoning, and as many of an answer."""
    text = thinking(5_000)
    upstream = Upstream(turn(api, text, thought=text))
    async with connect(upstream, entry={"api": api}) as client:
        if client_api == "chat":
            async with client.chat.completions.stream(**CHAT) as stream:
                message = (await stream.get_final_completion()).choices[0].message
            assert message.content == text
        else:
            async with client.responses.stream(**ASK) as stream_:
                final = await stream_.get_final_response()
            assert final.output_text == text
            assert "".join(part.text for part in final.output[0].content or ()) == text  # type: ignore[union-attr,misc]
