"""LiteLLM as a client, over providers that demand their reasoning back.

Needs `pip install litellm`.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.clients.front import KEY, serve_abridge
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

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches one
litellm = pytest.importorskip("litellm", reason="litellm is not installed")
litellm.telemetry = False

pytestmark = pytest.mark.filterwarnings("ignore")  # of its own


@BOTH
@LOOPS
async def test_three_rounds(client: str, kind: type[Provider], *, stream: bool) -> None:
    provider = kind()
    text, history = "", list[Any]([{"role": "user", "content": QUESTION}])
    async with serve_abridge(provider, entry=entry_of(kind)) as address:
        at = {"model": f"openai/{kind.model}", "api_base": address, "api_key": KEY}
        send = _respond if client == "responses" else _complete
        for _ in range(MOST):
            text, results = await send({**at, "num_retries": 0, "stream": stream}, history)
            if not results:
                break
            history += results
    assert text == ANSWER
    assert_all_reasoning_returned(provider)


async def _complete(at: dict[str, Any], history: list[Any]) -> tuple[str, list[Any]]:
    tools = [{"type": "function", "function": FUNCTION}]
    summary_request = {"extra_body": {"reasoning": {"summary": "auto"}}}
    answer = await litellm.acompletion(messages=history, tools=tools, **summary_request, **at)
    if at["stream"]:
        answer = litellm.stream_chunk_builder([chunk async for chunk in answer], messages=history)
    message = answer.choices[0].message
    history.append(message.model_dump(exclude_none=True))
    calls = [made.id for made in message.tool_calls or ()]
    return message.content, [
        {"role": "tool", "tool_call_id": id_, "content": FOUND} for id_ in calls
    ]


async def _respond(at: dict[str, Any], history: list[Any]) -> tuple[str, list[Any]]:
    tools = [{"type": "function", **FUNCTION}]
    summary_request = {"reasoning": {"summary": "auto"}, "store": False}
    answer = await litellm.aresponses(input=history, tools=tools, **summary_request, **at)
    if at["stream"]:
        answer = [event async for event in answer][-1].response
    output = [
        item if isinstance(item, dict) else item.model_dump(exclude_none=True)
        for item in answer.output
    ]
    history += output
    calls = [item["call_id"] for item in output if item["type"] == "function_call"]
    texts = [part["text"] for item in output for part in _content(item)]
    return "".join(texts), [
        {"type": "function_call_output", "call_id": id_, "output": FOUND} for id_ in calls
    ]


def _content(item: dict[str, Any]) -> list[dict[str, Any]]:
    return item["content"] if item["type"] == "message" else []
