"""Anthropic's Python client and its strict helpers over any upstream, on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic, beta_async_tool

from tests.clients.front import KEY, serve_abridge
from tests.clients.turns import turn
from tests.docs.pages import texts_of
from tests.end_to_end.translation.turn import ARGUMENTS, TOOL, WORDS, answer
from tests.support.streams import THOUGHT
from tests.support.upstream import Answer, Upstream

SUMMARY = "**Adding up**\n\nI add the numbers."
ASK: dict[str, Any] = {
    "model": "thinker-1",
    "max_tokens": 4096,
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "messages": [{"role": "user", "content": "Hi"}],
}
LOOK: dict[str, Any] = {
    "name": TOOL,
    "description": "Look somewhere.",
    "input_schema": {"type": "object", "properties": {"where": {"type": "string"}}},
}
CALL = (TOOL, ARGUMENTS)
APIS = pytest.mark.parametrize("api", ["chat", "responses", "messages"])


async def test_the_example_of_the_documentation_shows_the_summary_and_the_answer() -> None:
    (example,) = texts_of("docs/messages.md", "python")
    upstream = Upstream(answer("chat", stream=True))
    async with serve_abridge(upstream, entry={"api": "chat"}) as address:
        script = example.replace("http://127.0.0.1:8400", address.removesuffix("/v1"))
        assert script != example
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", script),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "NO_PROXY": "*"},
        )
        printed, _ = await process.communicate()
    assert process.returncode == 0
    assert printed.decode() == f"{SUMMARY}\n\n{WORDS}\n\n"


@asynccontextmanager
async def connect(upstream: Upstream, api: str, **tables: Any) -> AsyncIterator[AsyncAnthropic]:
    async with (
        serve_abridge(upstream, entry={"api": api}, **tables) as address,
        AsyncAnthropic(base_url=address.removesuffix("/v1"), api_key=KEY, max_retries=0) as client,
    ):
        yield client


def thoughts(message: Any) -> list[str]:
    return [block.thinking for block in message.content if block.type == "thinking"]


def texts(message: Any) -> list[str]:
    return [block.text for block in message.content if block.type == "text"]


def assert_reasoning_returned(upstream: Upstream) -> None:
    """Assert that upstream's last request has its first reasoning once, and no summary."""
    again = json.dumps(upstream.requests[-1].json, ensure_ascii=False)
    assert again.count(json.dumps(THOUGHT)) == 1
    assert json.dumps(SUMMARY) not in again


@APIS
class TestAnswers:
    async def test_plain_iteration(self, api: str) -> None:
        async with connect(Upstream(answer(api, stream=True)), api) as client:
            events = [event async for event in await client.messages.create(**ASK, stream=True)]
        kinds = [event.type for event in events]
        assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
        said = [event.delta for event in events if event.type == "content_block_delta"]
        assert (
            "".join(delta.thinking for delta in said if delta.type == "thinking_delta") == SUMMARY
        )
        assert "".join(delta.text for delta in said if delta.type == "text_delta") == WORDS

    async def test_the_strict_helper(self, api: str) -> None:
        async with (
            connect(Upstream(answer(api, stream=True)), api) as client,
            client.messages.stream(**ASK) as stream,
        ):
            pieces = [event.thinking async for event in stream if event.type == "thinking"]
            final = await stream.get_final_message()
        assert "".join(pieces) == SUMMARY
        assert (thoughts(final), texts(final)) == ([SUMMARY], [WORDS])
        assert final.stop_reason == "end_turn"
        assert final.usage.output_tokens > 0

    async def test_the_beta_helper(self, api: str) -> None:
        async with (
            connect(Upstream(answer(api, stream=True)), api) as client,
            client.beta.messages.stream(**ASK, betas=["interleaved-thinking-2025-05-14"]) as stream,
        ):
            final = await stream.get_final_message()
        assert (thoughts(final), texts(final)) == ([SUMMARY], [WORDS])

    async def test_a_whole_answer(self, api: str) -> None:
        async with connect(Upstream(answer(api, stream=False)), api) as client:
            message = await client.messages.create(**ASK)
        assert (thoughts(message), texts(message)) == ([SUMMARY], [WORDS])

    async def test_a_client_that_blocks(self, api: str) -> None:
        def ask(address: str) -> Any:
            with (
                anthropic.Anthropic(base_url=address, api_key=KEY, max_retries=0) as client,
                client.messages.stream(**ASK) as stream,
            ):
                return stream.get_final_message()

        upstream = Upstream(answer(api, stream=True))
        async with serve_abridge(upstream, entry={"api": api}) as address:
            message = await asyncio.to_thread(ask, address.removesuffix("/v1"))
        assert (thoughts(message), texts(message)) == ([SUMMARY], [WORDS])

    async def test_thinking_that_is_omitted_has_no_text(self, api: str) -> None:
        omitted = {"type": "adaptive", "display": "omitted"}
        async with (
            connect(Upstream(answer(api, stream=True)), api) as client,
            client.messages.stream(**{**ASK, "thinking": omitted}) as stream,
        ):
            final = await stream.get_final_message()
        assert thoughts(final) in ([""], [THOUGHT] if api == "messages" else [""])
        assert texts(final) == [WORDS]

    async def test_hidden_reasoning_does_not_get_through(self, api: str) -> None:
        async with (
            connect(
                Upstream(answer(api, stream=True)), api, reasoning={"expose": "summary"}
            ) as client,
            client.messages.stream(**ASK) as stream,
        ):
            final = await stream.get_final_message()
        assert (thoughts(final), texts(final)) == ([SUMMARY], [WORDS])


@APIS
class TestTools:
    async def test_a_loop_that_returns_what_it_got(self, api: str) -> None:
        upstream = Upstream(turn(api, "", CALL), turn(api, WORDS, thought="So it is.", first=2))
        async with connect(upstream, api) as client:
            async with client.messages.stream(**ASK, tools=[LOOK]) as stream:
                first = await stream.get_final_message()
            (call,) = [block for block in first.content if block.type == "tool_use"]
            assert (first.stop_reason, call.input) == ("tool_use", ARGUMENTS)
            found = {"type": "tool_result", "tool_use_id": call.id, "content": "Sky."}
            history = [
                *ASK["messages"],
                {"role": "assistant", "content": first.content},
                {"role": "user", "content": [found]},
            ]
            again = {**ASK, "messages": history}
            async with client.messages.stream(**again, tools=[LOOK]) as stream:
                last = await stream.get_final_message()
        assert texts(last) == [WORDS]
        assert_reasoning_returned(upstream)

    async def test_the_tool_runner(self, api: str) -> None:
        looked: list[str] = []

        @beta_async_tool
        async def look(where: str) -> str:
            """Look somewhere.

            Args:
                where: The place.
            """
            looked.append(where)
            return "Sky."

        upstream = Upstream(turn(api, "", CALL), turn(api, WORDS, thought="So it is.", first=2))
        async with connect(upstream, api) as client:
            thread = {"thread": False} if api == "messages" else {}  # upstream would hold it
            runner = client.beta.messages.tool_runner(**ASK, tools=[look], stream=True, **thread)
            messages = [await stream.get_final_message() async for stream in runner]
        assert looked == [ARGUMENTS["where"]]
        assert texts(messages[-1]) == [WORDS]
        assert_reasoning_returned(upstream)

    async def test_where_reasoning_is_hidden_a_thread_becomes_a_whole_conversation(
        self, api: str
    ) -> None:
        @beta_async_tool
        async def look(where: str) -> str:
            """Look somewhere."""
            return where

        upstream = Upstream(turn(api, "", CALL), turn(api, WORDS, thought="So it is.", first=2))
        async with connect(upstream, api, reasoning={"expose": "summary"}) as client:
            runner = client.beta.messages.tool_runner(**ASK, tools=[look], stream=True)
            messages = [await stream.get_final_message() async for stream in runner]
        assert texts(messages[-1]) == [WORDS]
        assert_reasoning_returned(upstream)


@APIS
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, anthropic.BadRequestError),
        (401, anthropic.AuthenticationError),
        (429, anthropic.RateLimitError),
        (500, anthropic.InternalServerError),
    ],
)
async def test_errors_are_the_clients_own(
    api: str, status: int, error: type[anthropic.APIStatusError]
) -> None:
    told = {"message": "No.", "type": "invalid_request_error"}
    body = {"type": "error", "error": told} if api == "messages" else {"error": told}
    async with connect(Upstream(Answer.json(body, status)), api) as client:
        with pytest.raises(error) as raised:
            await client.messages.create(**ASK)
    assert raised.value.body["type"] == "error"  # type: ignore[index,call-overload]
    assert "No." in str(raised.value)


class TestOtherEndpoints:
    async def test_tokens_are_counted_by_upstream(self) -> None:
        upstream = Upstream(Answer.json({"input_tokens": 12}))
        async with connect(upstream, "messages") as client:
            count = await client.messages.count_tokens(
                model="m", messages=ASK["messages"], tools=[LOOK]
            )
        assert count.input_tokens == 12

    async def test_an_estimate_says_that_it_is_one(self) -> None:
        async with connect(Upstream(), "chat") as client:
            raw = await client.messages.with_raw_response.count_tokens(
                model="m", messages=ASK["messages"]
            )
        assert (await raw.parse()).input_tokens > 0
        assert raw.headers["x-abridge-estimate"] == "true"

    async def test_models_are_listed_and_described(self) -> None:
        model = {"id": "org/m", "object": "model", "created": 1_700_000_000, "owned_by": "x"}
        upstream = Upstream(Answer.json({"object": "list", "data": [model]}), Answer.json(model))
        async with connect(upstream, "chat") as client:
            listed = [found async for found in client.models.list(limit=1)]
            found = await client.models.retrieve("org/m")
        assert [one.id for one in listed] == ["org/m"]
        assert (found.display_name, found.created_at.year) == ("org/m", 2023)
