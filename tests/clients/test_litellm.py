"""LiteLLM as a client of all three APIs, over providers that demand their reasoning back.

Needs `pip install litellm backoff fastapi mcp soundfile`: its proxy's, some of which its stream of
Messages imports.
"""

from __future__ import annotations

import json
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
    PARAMETERS,
    QUESTION,
    assert_all_reasoning_returned,
)
from tests.clients.rounds import entry as entry_of
from tests.end_to_end.histories.chat_dialects import DeepSeek
from tests.end_to_end.histories.messages_provider import Anthropic
from tests.end_to_end.histories.provider import Provider
from tests.support.summarizers import Scripted

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


@BOTH
@pytest.mark.parametrize("kind", [DeepSeek, Anthropic], ids=lambda kind: kind.name)
@pytest.mark.parametrize("interface", ["completion", "messages"])
async def test_three_rounds_over_messages(
    interface: str, kind: type[Provider], *, stream: bool
) -> None:
    if interface == "messages" and stream:
        for name in ("backoff", "fastapi", "soundfile"):
            pytest.importorskip(name, reason=f"{name}, which litellm imports, is not installed")
    provider = kind()
    text, history = "", list[Any]([{"role": "user", "content": QUESTION}])
    async with serve_abridge(provider, entry=entry_of(kind)) as address:
        at = {
            "model": f"anthropic/{kind.model}",
            "api_base": address.removesuffix("/v1"),
            "api_key": KEY,
            "num_retries": 0,
            "stream": stream,
            "max_tokens": 4096,
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "allowed_openai_params": ["thinking"],  # else only where it knows that a model thinks
        }
        send = _create if interface == "messages" else _complete_by_messages
        for _ in range(MOST):
            text, results = await send(at, history)
            if not results:
                break
            history += results
    assert text == ANSWER
    assert kind is Anthropic or Scripted().text[:10] in str(history)  # which summarizes itself
    assert_all_reasoning_returned(provider)


async def _complete(at: dict[str, Any], history: list[Any]) -> tuple[str, list[Any]]:
    summary_request = {"extra_body": {"reasoning": {"summary": "auto"}}}
    return await _complete_by_messages({**at, **summary_request}, history)


async def _complete_by_messages(at: dict[str, Any], history: list[Any]) -> tuple[str, list[Any]]:
    tools = [{"type": "function", "function": FUNCTION}]
    answer = await litellm.acompletion(messages=history, tools=tools, **at)
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


async def _create(at: dict[str, Any], history: list[Any]) -> tuple[str, list[Any]]:
    tool = {"name": FUNCTION["name"], "input_schema": PARAMETERS}
    answer = await litellm.anthropic.messages.acreate(messages=history, tools=[tool], **at)
    content = await _streamed_blocks(answer) if at["stream"] else answer["content"]
    history.append({"role": "assistant", "content": content})
    calls = [block["id"] for block in content if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": id_, "content": FOUND} for id_ in calls]
    texts = [block["text"] for block in content if block["type"] == "text"]
    return "".join(texts), [{"role": "user", "content": results}] if results else []


async def _streamed_blocks(answer: Any) -> list[dict[str, Any]]:
    """Return the blocks of a stream, which LiteLLM yields as the bytes of its events."""
    lines = b"".join([data async for data in answer]).splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]
    blocks: list[dict[str, Any]] = []
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append(event["content_block"])
        elif event["type"] == "content_block_delta":
            _extend(blocks[event["index"]], event["delta"])
    return [_with_input(block) for block in blocks]


def _extend(block: dict[str, Any], delta: dict[str, Any]) -> None:
    for key, value in delta.items():
        if key != "type":
            block[key] = block.get(key, "") + value


def _with_input(block: dict[str, Any]) -> dict[str, Any]:
    arguments = block.pop("partial_json", None)
    return block if arguments is None else {**block, "input": json.loads(arguments)}
