"""The official client relies on stored responses, whether upstream stores them or Abridge."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI

from tests.clients.front import connect
from tests.clients.test_bridges import (
    ASK,
    RESPONSES,
    SUMMARY,
    assert_reasoning_in_request,
    call_ids,
    result_ids,
    upstream_settings,
)
from tests.clients.turns import turn
from tests.end_to_end.translation.turn import ARGUMENTS, TOOL, WORDS, answer
from tests.support.streams import THOUGHT, message_item, reasoning_item, response
from tests.support.upstream import Answer, Upstream

BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
LOOK = (TOOL, ARGUMENTS)


async def final(client: AsyncOpenAI, *, stream: bool, **ask: Any) -> Any:
    if not stream:
        return await client.responses.create(**{**ASK, **ask})
    async with client.responses.stream(**{**ASK, **ask}) as events:
        async for _ in events:
            pass
        return await events.get_final_response()


@RESPONSES
async def test_a_tool_loop_that_sends_only_what_is_new(api: str) -> None:
    upstream = Upstream(turn(api, "", LOOK, LOOK), turn(api, WORDS, first=2))
    async with connect(upstream, **upstream_settings(api)) as client:
        first = await final(client, stream=True)
        assert first.store is True
        outputs = [
            {"type": "function_call_output", "call_id": item.call_id, "output": "forty-two"}
            for item in first.output
            if item.type == "function_call"
        ]
        more = {"input": outputs, "previous_response_id": first.id}
        second = await final(client, stream=True, **more)
    assert second.previous_response_id == first.id
    assert second.output_text == WORDS
    again = upstream.requests[1]
    assert SUMMARY not in again.body.decode()
    assert call_ids(api, again.json) == result_ids(api, again.json) != []
    assert_reasoning_in_request(api, again.json)


@BOTH
@RESPONSES
async def test_a_response_can_be_retrieved_listed_and_deleted(api: str, *, stream: bool) -> None:
    upstream = Upstream(answer(api, stream=stream), answer(api, stream=stream, text="Yes."))
    async with connect(upstream, **upstream_settings(api)) as client:
        first = await final(client, stream=stream, tools=[])
        more = {"input": "Sure?", "previous_response_id": first.id}
        second = await final(client, stream=stream, tools=[], **more)
        retrieved = await client.responses.retrieve(second.id)
        assert [item.id for item in retrieved.output] == [item.id for item in second.output]
        assert (retrieved.id, retrieved.usage, retrieved.output_text) == (
            second.id,
            second.usage,
            "Yes.",
        )
        items = [item async for item in client.responses.input_items.list(second.id, limit=1)]
        assert [getattr(item, "role", item.type) for item in items] == [
            *("user", "assistant", "reasoning", "user")
        ]
        assert len({item.id for item in items}) == 4
        await client.responses.delete(second.id)
        for identity in (second.id, "resp_1"):
            with pytest.raises(openai.NotFoundError, match="not found"):
                await client.responses.retrieve(identity)
        with pytest.raises(openai.BadRequestError, match="synchronous"):
            await client.responses.cancel(first.id)
    assert len(upstream.requests) == 2


@RESPONSES
async def test_a_missing_response_is_an_error(api: str) -> None:
    async with connect(Upstream(answer(api, stream=False)), **upstream_settings(api)) as client:
        first = await final(client, stream=False)
        other = client.with_options(api_key="sk-bert-5678")
        for request_body, identity in ((client, "resp_1"), (other, first.id)):
            with pytest.raises(openai.BadRequestError) as caught:
                await final(request_body, stream=False, previous_response_id=identity)
            assert caught.value.code == "previous_response_not_found"
            assert caught.value.param == "previous_response_id"
        with pytest.raises(openai.NotFoundError):
            await other.responses.retrieve(first.id)


async def test_a_response_stored_upstream_has_its_summary() -> None:
    output = [reasoning_item(0, THOUGHT), message_item(1, WORDS)]
    upstream = Upstream(Answer.json(response(output, store=True)))
    async with connect(upstream, reasoning={"expose": "summary"}) as client:
        first = await final(client, stream=False)
        retrieved = await client.responses.retrieve(first.id)
    assert retrieved.to_dict() == first.to_dict()
    assert "odd numbers" not in str(retrieved)
    assert SUMMARY in str(retrieved.to_dict()["output"]).replace("\\n", "\n")


@BOTH
@RESPONSES
async def test_a_conversation_is_kept(api: str, *, stream: bool) -> None:
    upstream = Upstream(answer(api, stream=stream), answer(api, stream=stream, text="Yes."))
    async with connect(upstream, **upstream_settings(api)) as client:
        conversations = client.conversations
        kept = await conversations.create(items=[{"role": "user", "content": "Listen."}])
        first = await final(client, stream=stream, tools=[], conversation=kept.id)
        more = {"input": "Sure?", "conversation": {"id": kept.id}}
        second = await final(client, stream=stream, tools=[], **more)
        assert second.conversation is not None
        assert second.conversation.id == kept.id
        items = [item async for item in conversations.items.list(kept.id, limit=2, order="asc")]
        roles = [getattr(item, "role", item.type) for item in items]
        assert roles == ["user", *(["user", "reasoning", "assistant"] * 2)]
        assert [item.id for item in items[2:4]] == [item.id for item in first.output]
        first_id, second_id = [item.id or "" for item in items[:2]]
        await conversations.items.delete(first_id, conversation_id=kept.id)
        found = await conversations.items.retrieve(second_id, conversation_id=kept.id)
        assert found == items[1]
        updated = await conversations.update(kept.id, metadata={"topic": "sums"})
        assert await conversations.retrieve(kept.id) == updated
        assert (await conversations.delete(kept.id)).deleted
        with pytest.raises(openai.NotFoundError, match="not found"):
            await conversations.retrieve(kept.id)
    assert WORDS in upstream.requests[1].body.decode()
