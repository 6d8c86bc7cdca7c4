"""Pydantic AI as a client of all three APIs: it shows the summary, runs its tool, and ends; what it
returns brings upstream's reasoning back, and no summary.

Needs `pip install pydantic-ai-slim[anthropic,openai]`.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from tests.clients.front import KEY, serve_abridge
from tests.clients.turns import turn
from tests.end_to_end.translation.turn import ARGUMENTS, TOOL, WORDS
from tests.support.streams import thinking
from tests.support.upstream import Upstream

pydantic_ai = pytest.importorskip("pydantic_ai", reason="pydantic-ai is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of its own

SUMMARY = "**Adding up**\n\nI add the numbers."
LONG = thinking(4000)  # for several parts
CLIENTS = pytest.mark.parametrize("client", ["chat", "responses", "messages"])
APIS = pytest.mark.parametrize("api", ["chat", "responses", "messages"])


def model_of(client: str, address: str) -> tuple[Any, dict[str, Any]]:
    """Return the model that speaks an API, and the settings by which it asks for summaries."""
    if client == "messages":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        base_url = address.removesuffix("/v1")
        official = AsyncAnthropic(base_url=base_url, api_key=KEY, max_retries=0)
        provider = AnthropicProvider(anthropic_client=official)
        asking = {"anthropic_thinking": {"type": "enabled", "budget_tokens": 2048}}
        return AnthropicModel("thinker-1", provider=provider), {**asking, "max_tokens": 4096}
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(
        openai_client=AsyncOpenAI(base_url=address, api_key=KEY, max_retries=0)
    )
    if client == "responses":
        model = OpenAIResponsesModel("thinker-1", provider=provider)
        return model, {"openai_reasoning_summary": "detailed", "openai_store": False}
    model = OpenAIChatModel("thinker-1", provider=provider)
    return model, {"extra_body": {"reasoning": {"summary": "auto"}}}


@CLIENTS
@APIS
async def test_a_tool_loop(client: str, api: str) -> None:
    upstream = Upstream(
        turn(api, "", (TOOL, ARGUMENTS), thought=LONG),
        turn(api, WORDS, thought="So it is.", first=2),
    )
    looked: list[str] = []
    async with serve_abridge(upstream, entry={"api": api}) as address:
        model, settings = model_of(client, address)
        agent = pydantic_ai.Agent(model, model_settings=settings)

        @agent.tool_plain
        def look(where: str) -> str:
            """Look somewhere."""
            looked.append(where)
            return "Sky."

        async with agent.run_stream("Where is it?") as run:
            output = await run.get_output()
            messages = run.all_messages()
    assert (output, looked) == (WORDS, [ARGUMENTS["where"]])
    parts = [part for message in messages for part in message.parts]
    thoughts = [part.content for part in parts if part.part_kind == "thinking"]
    assert SUMMARY in "\n\n".join(thoughts)
    again = json.dumps(upstream.requests[-1].json, ensure_ascii=False)
    assert again.count(json.dumps(LONG, ensure_ascii=False)[1:-1]) == 1
    assert "**Adding up**" not in again
