"""LangChain's Anthropic client over upstreams of every API.

Needs `pip install langchain-anthropic`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.front import KEY, serve_abridge
from tests.clients.turns import turn
from tests.end_to_end.translation.turn import ARGUMENTS, TOOL, WORDS, answer
from tests.support.streams import THOUGHT
from tests.support.upstream import Upstream

langchain = pytest.importorskip(
    "langchain_anthropic", reason="langchain-anthropic is not installed"
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of its own

SUMMARY = "**Adding up**\n\nI add the numbers."
APIS = pytest.mark.parametrize("api", ["chat", "responses", "messages"])
LOOK = {
    "name": TOOL,
    "description": "Look somewhere.",
    "input_schema": {"type": "object", "properties": {"where": {"type": "string"}}},
}


def model_at(address: str) -> Any:
    return langchain.ChatAnthropic(
        model="thinker-1",
        base_url=address.removesuffix("/v1"),
        api_key=KEY,
        max_tokens=4096,
        thinking={"type": "enabled", "budget_tokens": 2048},
        max_retries=0,
    )


def thoughts(message: Any) -> list[str]:
    return [block["thinking"] for block in message.content if block["type"] == "thinking"]


@APIS
async def test_a_whole_answer(api: str) -> None:
    upstream = Upstream(answer(api, stream=False))
    async with serve_abridge(upstream, entry={"api": api}) as address:
        message = await model_at(address).ainvoke("Hi")
    assert thoughts(message) == [SUMMARY]
    assert message.text == WORDS


@APIS
async def test_a_streamed_tool_loop(api: str) -> None:
    from langchain_core.messages import HumanMessage, ToolMessage

    upstream = Upstream(
        turn(api, "", (TOOL, ARGUMENTS)), turn(api, WORDS, thought="So it is.", first=2)
    )
    async with serve_abridge(upstream, entry={"api": api}) as address:
        model = model_at(address).bind_tools([LOOK])
        history = [HumanMessage("Where is it?")]
        while True:
            chunks = [chunk async for chunk in model.astream(history)]
            said = chunks[0]
            for chunk in chunks[1:]:
                said += chunk
            history.append(said)
            if not said.tool_calls:
                break
            history += [ToolMessage("Sky.", tool_call_id=call["id"]) for call in said.tool_calls]
    assert thoughts(history[1]) == [SUMMARY]
    assert history[1].tool_calls[0]["args"] == ARGUMENTS
    assert said.text == WORDS
    again = json.dumps(upstream.requests[-1].json, ensure_ascii=False)
    assert again.count(json.dumps(THOUGHT)) == 1
    assert json.dumps(SUMMARY) not in again
