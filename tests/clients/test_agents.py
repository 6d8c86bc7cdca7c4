"""OpenAI's agents SDK through translation: it sees the summary, calls its tool, and ends.

Needs `pip install openai-agents`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from openai.types.shared import Reasoning

from tests.clients.front import connect
from tests.clients.rounds import ANSWER as ROUNDS_END
from tests.clients.rounds import BOTH, LOOPS, QUESTION, assert_all_reasoning_returned
from tests.clients.rounds import entry as entry_of
from tests.clients.turns import turn
from tests.end_to_end.histories.provider import Provider
from tests.end_to_end.translation.turn import ARGUMENTS, BRIDGES, TOOL, WORDS, answer
from tests.support.servers import until
from tests.support.streams import THOUGHT
from tests.support.upstream import Answer, Upstream

agents = pytest.importorskip("agents", reason="openai-agents is not installed")

SUMMARY = "**Adding up**\n\nI add the numbers."
EACH = pytest.mark.parametrize(("client", "api"), BRIDGES)
EXPOSED = pytest.mark.parametrize("expose", ["auto", "both", "summary"])
LOOK = (TOOL, ARGUMENTS)


@asynccontextmanager
async def agent(
    upstream: Upstream,
    client: str,
    api: str,
    *,
    profile: str = "auto",
    model: str = "thinker-1",
    **tables: Any,
) -> AsyncIterator[tuple[Any, list[str]]]:
    """Yield an agent with one tool, and the list of that tool's arguments."""
    looked: list[str] = []

    def look(where: str, depth: float = 0.0) -> str:
        """Look somewhere."""
        looked.append(where)
        return "forty-two"

    agents.set_tracing_disabled(disabled=True)
    entry = {"api": api, "profile": profile}
    async with connect(upstream, entry=entry, **tables) as official:
        if client == "responses":
            model_client = agents.OpenAIResponsesModel(model, official)
            summary_request = {"reasoning": Reasoning(summary="auto")}
        else:
            model_client = agents.OpenAIChatCompletionsModel(model, official)
            summary_request = {"extra_body": {"reasoning": {"summary": "auto"}}}
        settings = agents.ModelSettings(include_usage=True, **summary_request)
        tools = [agents.function_tool(look)]
        yield agents.Agent("Anna", model=model_client, model_settings=settings, tools=tools), looked


async def streamed(anna: Any, content: Any, **options: Any) -> tuple[Any, list[Any]]:
    """Return a run's result and the raw events of its stream."""
    result = agents.Runner.run_streamed(anna, content, **options)
    events = [event async for event in result.stream_events()]
    return result, [event.data for event in events if event.type == "raw_response_event"]


def summaries(result: Any) -> list[str]:
    """Return the summaries of a run, one a turn."""
    items = [item.raw_item for item in result.new_items if item.type == "reasoning_item"]
    return ["".join(part.text for part in item.summary) for item in items]


def assert_returned(upstream: Upstream) -> None:
    """Assert that upstream got its reasoning back and no summary."""
    again = json.dumps(upstream.requests[1].json, ensure_ascii=False)
    assert again.count(json.dumps(THOUGHT)) == 1
    assert json.dumps(SUMMARY) not in again


@EACH
@EXPOSED
async def test_a_tool_loop(client: str, api: str, expose: str) -> None:
    upstream = Upstream(
        answer(api, stream=False, text="", calls=True),
        answer(api, stream=False, thought="So it is."),
    )
    async with agent(upstream, client, api, reasoning={"expose": expose}) as (anna, looked):
        result = await agents.Runner.run(anna, "Hi")
    assert result.final_output == WORDS
    assert looked == ["here"]
    assert summaries(result) == [SUMMARY] * 2
    assert result.context_wrapper.usage.output_tokens == 2 * (70 + 5)
    assert_returned(upstream)


@EACH
@EXPOSED
async def test_a_tool_loop_that_streams(client: str, api: str, expose: str) -> None:
    """With two calls at once."""
    upstream = Upstream(turn(api, "", LOOK, LOOK), turn(api, WORDS, thought="So it is.", first=2))
    async with agent(upstream, client, api, reasoning={"expose": expose}) as (anna, looked):
        result, events = await streamed(anna, "Hi")
    assert result.final_output == WORDS
    assert looked == ["here"] * 2
    assert summaries(result) == [SUMMARY] * 2
    kind = "response.reasoning_summary_text.delta"
    assert "".join(event.delta for event in events if event.type == kind) == SUMMARY * 2
    assert result.context_wrapper.usage.output_tokens == 2 * (70 + 5)
    assert_returned(upstream)


@BOTH
@LOOPS
async def test_three_rounds_with_a_demanding_provider(
    client: str, kind: type[Provider], *, stream: bool
) -> None:
    provider = kind()
    options = {**entry_of(kind), "model": kind.model}
    async with agent(provider, client, **options) as (anna, looked):
        if stream:
            result, _ = await streamed(anna, QUESTION)
        else:
            result = await agents.Runner.run(anna, QUESTION)
    assert result.final_output == ROUNDS_END
    assert looked == ["é"] * 4
    assert_all_reasoning_returned(provider)


@EACH
async def test_a_conversation_continues(client: str, api: str) -> None:
    upstream = Upstream(turn(api, WORDS), turn(api, "Yes.", thought="So it is.", first=1))
    async with agent(upstream, client, api) as (anna, _):
        first, _ = await streamed(anna, "Hi")
        history = [*first.to_input_list(), {"role": "user", "content": "Sure?"}]
        second, _ = await streamed(anna, history)
    assert second.final_output == "Yes."
    again = upstream.requests[1].body.decode()
    assert WORDS in again
    assert "Sure?" in again
    assert json.dumps(SUMMARY) not in again


@pytest.mark.parametrize("api", ["chat", "messages"])
async def test_an_agent_may_send_only_what_is_new(api: str) -> None:
    upstream = Upstream(turn(api, "", LOOK), turn(api, WORDS, thought="So it is.", first=1))
    async with agent(upstream, "responses", api) as (anna, looked):
        result, _ = await streamed(anna, "Hi", auto_previous_response_id=True)
    assert result.final_output == WORDS
    assert looked == ["here"]
    assert_returned(upstream)


@pytest.mark.parametrize("api", ["chat", "messages"])
async def test_a_missing_response_is_an_error(api: str) -> None:
    """An agent that relies on a stored response gets an error at its second turn."""
    upstream = Upstream(turn(api, "", LOOK), turn(api, WORDS, first=1))
    nowhere: Any = {"history": {"store": "none"}}
    async with agent(upstream, "responses", api, **nowhere) as (anna, looked):
        with pytest.raises(openai.BadRequestError) as caught:
            await streamed(anna, "Hi", auto_previous_response_id=True)
    assert caught.value.param == "previous_response_id"
    assert looked == ["here"]
    assert len(upstream.requests) == 1


@EACH
async def test_a_broken_upstream_fails_the_run(client: str, api: str) -> None:
    frames = list(turn(api, WORDS).steps)
    upstream = Upstream(Answer([*frames[:-5], ConnectionError("gone")]))
    async with agent(upstream, client, api) as (anna, _):
        with pytest.raises((openai.APIError, agents.AgentsException, RuntimeError)):
            await streamed(anna, "Hi")


@EACH
async def test_a_run_that_is_cancelled_stops_upstream(client: str, api: str) -> None:
    frames = list(turn(api, WORDS).steps)
    upstream = Upstream(Answer([*frames[:-5], asyncio.Event()]))
    async with agent(upstream, client, api) as (anna, _):
        result = agents.Runner.run_streamed(anna, "Hi")
        async for event in result.stream_events():
            if event.type == "raw_response_event":
                result.cancel()
        await until(lambda: upstream.left == 1)
        assert upstream.left == 1
