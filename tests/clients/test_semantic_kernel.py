"""Semantic Kernel's Responses agent, whether responses are stored or not.

Beside `previous_response_id` it sends the question and all results of the run again.

Needs `pip install semantic-kernel`.
"""

from __future__ import annotations

from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.clients.front import connect
from tests.clients.rounds import ANSWER, BOTH, FOUND, QUESTION, assert_all_reasoning_returned
from tests.clients.rounds import entry as entry_of
from tests.clients.test_bridges import call_ids, result_ids
from tests.end_to_end.histories.chat_dialects import DeepSeek
from tests.end_to_end.histories.messages_provider import Anthropic
from tests.end_to_end.histories.provider import Provider
from tests.end_to_end.histories.responses_provider import Open
from tests.support.streams import (
    THOUGHT,
    call_item,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.support.upstream import Answer, Upstream

semantic_kernel = pytest.importorskip("semantic_kernel", reason="semantic-kernel is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of its own

CASES = pytest.mark.parametrize(
    ("kind", "stored"),
    [(DeepSeek, True), (DeepSeek, False), (Anthropic, True), (Anthropic, False), (Open, False)],
    ids=lambda one: one.name if isinstance(one, type) else "stored" if one else "sent",
)
SUMMARY = {"expose": "summary"}


def agent_of(official: AsyncOpenAI, model: str, *, stored: bool) -> Any:
    from semantic_kernel.agents import OpenAIResponsesAgent
    from semantic_kernel.functions import kernel_function

    class Eyes:
        @kernel_function(name="look", description="Look somewhere.")
        def look(self, where: str, depth: float) -> str:
            del where, depth
            return FOUND

    return OpenAIResponsesAgent(
        ai_model_id=model,
        client=official,
        plugins=[Eyes()],
        reasoning={"summary": "auto"},
        store_enabled=stored,
    )


async def run(agent: Any, *, stream: bool) -> str:
    if not stream:
        return str(await agent.get_response(QUESTION))
    return "".join([str(said) async for said in agent.invoke_stream(QUESTION)])


@BOTH
@CASES
async def test_three_rounds(kind: type[Provider], *, stored: bool, stream: bool) -> None:
    provider = kind()
    async with connect(provider, entry=entry_of(kind), reasoning=SUMMARY) as official:
        text = await run(agent_of(official, kind.model, stored=stored), stream=stream)
    assert text.endswith(ANSWER)
    assert_all_reasoning_returned(provider)
    for request in provider.requests:
        calls = call_ids(kind.api, request.json)
        assert result_ids(kind.api, request.json) == calls
        assert len(set(calls)) == len(calls)
        assert not stored or request.body.decode().count(QUESTION) == 1


async def test_an_upstream_that_stores_responses_resolves_its_own() -> None:
    calls = [call_item(number, "look", '{"where": "é", "depth": 1.0}') for number in range(2)]
    outputs = [[reasoning_item(number, THOUGHT), calls[number]] for number in range(2)]
    outputs.append([message_item(2, ANSWER)])
    upstream = Upstream(
        *(
            Answer(responses_stream(output, id=f"resp_{number}", store=True))
            for number, output in enumerate(outputs)
        )
    )
    async with connect(upstream, reasoning=SUMMARY) as official:
        assert await run(agent_of(official, "thinker-1", stored=True), stream=True) == ANSWER
    last = upstream.requests[2].json
    assert last["previous_response_id"] == "resp_1"
    assert [item.get("role") for item in last["input"]] == ["user", None, None]
    assert result_ids("responses", last) == [called["call_id"] for called in calls]
