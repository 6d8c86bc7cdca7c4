"""The official clients have conversations compacted, and go on from what they get."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

import anthropic
import pytest
from anthropic import AsyncAnthropic, beta_async_tool

from tests.clients.front import KEY, connect, serve_abridge
from tests.docs.pages import texts_of
from tests.pipeline.test_compaction import LONG, SUMMARY, TASK, WORK, Model, completion
from tests.support.streams import chat_stream
from tests.support.upstream import Answer, ReceivedRequest

CHAT = {"api": "chat"}
DONE = Answer(chat_stream("", "Done."))
BETA = "compact-2026-09-04"


def sent(upstream: Model) -> str:
    return json.dumps(upstream.requests[-1].json["messages"])


async def test_the_example_of_the_documentation_goes_on_from_the_summary() -> None:
    (example,) = texts_of("docs/compaction.md", "python")
    upstream = Model(completion("They want Postgres 16."), completion("Half-way."))
    async with serve_abridge(upstream, entry=CHAT) as address:
        script = example.replace("http://127.0.0.1:8400/v1", address)
        assert script != example
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", script),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "NO_PROXY": "*"},
        )
        printed, _ = await process.communicate()
    assert (process.returncode, printed.decode().strip()) == (0, "Half-way.")
    assert "They want Postgres 16." in sent(upstream)
    assert "keep the table names" in sent(upstream)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
async def test_openais_client_reads_a_compacted_response() -> None:
    """It has no type for the user's messages among the output, which OpenAI's own answers have."""
    upstream = Model()
    async with connect(upstream, entry=CHAT) as client:
        compacted = await client.responses.compact(model="m", input=WORK)  # type: ignore[arg-type]
        assert compacted.object == "response.compaction"
        assert compacted.output[-1].type == "compaction"
        more: list[Any] = [*compacted.output, {"role": "user", "content": "Go on."}]
        answer = await client.responses.create(model="m", input=more)
    assert answer.output_text == "Done."
    assert SUMMARY in sent(upstream)
    assert LONG not in sent(upstream)


async def test_its_strict_helper_takes_a_stream_with_a_compaction() -> None:
    upstream = Model(completion(SUMMARY), DONE)
    items: list[Any] = [*WORK, {"role": "user", "content": "Go on."}]
    threshold: list[Any] = [{"type": "compaction", "compact_threshold": 1000}]
    async with connect(upstream, entry=CHAT) as client:
        asked = client.responses.stream(model="m", input=items, context_management=threshold)
        async with asked as stream:
            kinds = [event.type async for event in stream]
            final = await stream.get_final_response()
        trigger: list[Any] = [*items, {"type": "compaction_trigger"}]
        async with client.responses.stream(model="m", input=trigger) as stream:
            async for _ in stream:
                pass
            alone = await stream.get_final_response()
    assert "response.compaction.compacting" in kinds
    assert [item.type for item in final.output] == ["compaction", "message"]
    assert final.output_text == "Done."
    assert [item.type for item in alone.output] == ["compaction"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_anthropics_client_goes_on_from_its_block(*, stream: bool) -> None:
    upstream = Model()
    messages: list[Any] = [TASK, {"role": "assistant", "content": "It drops a token."}]
    ask: dict[str, Any] = {"model": "m", "max_tokens": 4000, "betas": [BETA]}
    compacting = {**ask, "messages": messages, "compaction": {"type": "summarize"}}
    async with serve_abridge(upstream, entry=CHAT) as address, anthropics(address) as client:
        if stream:
            async with client.beta.messages.stream(**compacting) as events:
                made = await events.get_final_message()
        else:
            made = await client.beta.messages.create(**compacting)
        assert made.stop_reason == "compaction"
        (block,) = made.content
        assert block.type == "compaction"
        assert block.content == SUMMARY
        more: list[Any] = [made.to_param(), {"role": "user", "content": "Go on."}]
        answer = await client.beta.messages.create(**ask, messages=more)
    assert answer.content[0].type == "text"
    assert SUMMARY in sent(upstream)


async def test_anthropics_tool_runner_compacts_between_its_turns() -> None:
    class Working(Model):
        def answer(self, request: ReceivedRequest) -> Answer:
            if request.json["messages"] == [TASK]:
                function = {"name": "look", "arguments": "{}"}
                call = {"id": "call_1", "type": "function", "function": function}
                return completion("", message={"tool_calls": [call]}, finish_reason="tool_calls")
            return super().answer(request)

    @beta_async_tool
    async def look() -> str:
        """Look."""
        return LONG

    upstream = Working()
    async with serve_abridge(upstream, entry=CHAT) as address, anthropics(address) as client:
        runner = client.beta.messages.tool_runner(
            model="m",
            max_tokens=4000,
            betas=[BETA],
            tools=[look],
            messages=[TASK],  # type: ignore[list-item]
        )
        kinds = []
        async for message in runner:
            kinds.append(message.stop_reason)
            if len(kinds) == 1:
                runner.compact_before_next_turn()
    assert kinds == ["tool_use", "compaction", "end_turn"]
    assert SUMMARY in sent(upstream)
    assert LONG not in sent(upstream)


async def test_anthropics_client_knows_the_error() -> None:
    block = {"type": "compaction", "content": "x", "signature": "abr1.k.x"}
    messages: list[Any] = [{"role": "assistant", "content": [block]}, TASK]
    async with serve_abridge(Model(), entry=CHAT) as address, anthropics(address) as client:
        with pytest.raises(anthropic.BadRequestError) as raised:
            await client.beta.messages.create(
                model="m", max_tokens=100, betas=[BETA], messages=messages
            )
    assert "compaction_signature_invalid" in json.dumps(raised.value.body)


def anthropics(address: str) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=address.removesuffix("/v1"), api_key=KEY, max_retries=0)
