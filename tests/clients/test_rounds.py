"""The official client over providers that demand their reasoning back: three tool rounds."""

from __future__ import annotations

from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.clients.front import connect
from tests.clients.rounds import (
    ANSWER,
    BOTH,
    FOUND,
    FUNCTION,
    LOOPS,
    MOST,
    QUESTION,
    assert_all_reasoning_returned,
)
from tests.clients.rounds import entry as entry_of
from tests.end_to_end.histories.provider import Provider

RETURNS = pytest.mark.parametrize("returns", ["everything", "answers"])


async def respond(client: AsyncOpenAI, history: list[Any], model: str, *, stream: bool) -> Any:
    request: dict[str, Any] = {
        "model": model,
        "input": history,
        "tools": [{"type": "function", **FUNCTION}],
        "reasoning": {"summary": "auto"},
        "store": False,
    }
    if not stream:
        return await client.responses.create(**request)
    async with client.responses.stream(**request) as events:
        return await events.get_final_response()


async def complete(client: AsyncOpenAI, history: list[Any], model: str, *, stream: bool) -> Any:
    request: dict[str, Any] = {
        "model": model,
        "messages": history,
        "tools": [{"type": "function", "function": FUNCTION}],
        "extra_body": {"reasoning": {"summary": "auto"}},
    }
    if not stream:
        return (await client.chat.completions.create(**request)).choices[0].message
    async with client.chat.completions.stream(**request) as events:
        return (await events.get_final_completion()).choices[0].message


@BOTH
@LOOPS
@RETURNS
async def test_three_rounds(
    client: str, kind: type[Provider], returns: str, *, stream: bool
) -> None:
    provider = kind()
    history: list[Any] = [{"role": "user", "content": QUESTION}]
    async with connect(provider, entry=entry_of(kind)) as official:
        for _ in range(MOST):
            if client == "responses":
                answer = await respond(official, history, kind.model, stream=stream)
                said, done = answer.output_text, _take_items(answer, history, returns)
            else:
                answer = await complete(official, history, kind.model, stream=stream)
                said, done = answer.content, _take_message(answer, history, returns)
            if done:
                break
    assert said == ANSWER
    assert_all_reasoning_returned(provider)


def _take_items(response: Any, history: list[Any], returns: str) -> bool:
    output = [item.to_dict() for item in response.output]
    returned = [item for item in output if returns == "everything" or item["type"] != "reasoning"]
    calls = [item["call_id"] for item in output if item["type"] == "function_call"]
    results = [{"type": "function_call_output", "call_id": id_, "output": FOUND} for id_ in calls]
    history += [*returned, *results]
    return not calls


def _take_message(message: Any, history: list[Any], returns: str) -> bool:
    said = message.to_dict()
    standard = ("role", "content", "tool_calls")
    returned = {key: said[key] for key in said if returns == "everything" or key in standard}
    calls = [made.id for made in message.tool_calls or ()]
    results = [{"role": "tool", "tool_call_id": id_, "content": FOUND} for id_ in calls]
    history += [returned, *results]
    return not calls
