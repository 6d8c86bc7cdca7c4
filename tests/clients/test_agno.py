"""Agno as a client of Chat Completions and of Responses, over providers that demand their
reasoning back.

It renames calls whose ids do not begin as those of the API do. It sends the whole conversation or,
to a model whose name it takes for a reasoning model's, only what is new beside
`previous_response_id`.

Needs `pip install agno`.
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

agno = pytest.importorskip("agno.agent", reason="agno is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of its own

KINDS = pytest.mark.parametrize("kind", [DeepSeek, Anthropic], ids=lambda kind: kind.name)
SENDS = pytest.mark.parametrize("sends", ["chat", "items", "reasoning", "new"])
"""What it sends: messages; items without reasoning; items with it; only what is new."""


def model_of(sends: str, name: str, official: AsyncOpenAI) -> Any:
    from agno.models.openai import OpenAIChat, OpenAIResponses

    at: dict[str, Any] = {"async_client": official}
    if sends == "chat":
        return OpenAIChat(id=name, extra_body={"reasoning": {"summary": "auto"}}, **at)
    if sends == "items":
        return OpenAIResponses(id=name, reasoning_summary="auto", **at)
    return OpenAIResponses(id="gpt-5", reasoning_summary="auto", store=sends == "new", **at)


def look(where: str, depth: float) -> str:
    """Look somewhere."""
    del where, depth
    return FOUND


@BOTH
@KINDS
@SENDS
async def test_three_rounds(sends: str, kind: type[Provider], *, stream: bool) -> None:
    provider = kind()
    async with connect(provider, entry=entry_of(kind)) as official:
        model = model_of(sends, kind.model, official)
        agent = agno.Agent(model=model, tools=[look], telemetry=False)
        if stream:
            events = [event async for event in agent.arun(QUESTION, stream=True)]
            text = "".join(event.content or "" for event in events if event.event == "RunContent")
        else:
            text = (await agent.arun(QUESTION)).content
    assert text.endswith(ANSWER)
    assert_all_reasoning_returned(provider)


@pytest.mark.parametrize(("before", "after"), [("chat", "items"), ("items", "chat")])
@KINDS
async def test_a_conversation_moves_to_the_other_api(
    before: str, after: str, kind: type[Provider]
) -> None:
    """Its calls are renamed for it, with their results."""
    from agno.models.message import Message

    provider = kind()
    async with connect(provider, entry=entry_of(kind)) as official:
        first, second = (
            agno.Agent(model=model_of(sends, kind.model, official), tools=[look], telemetry=False)
            for sends in (before, after)
        )
        done = (await first.arun(QUESTION.replace("3", "1"))).messages
        text = (await second.arun([*done, Message(role="user", content="Sure?")])).content
    assert text == "It is there, 2."
    assert not provider.refusals
    last = provider.requests[-1].json
    made = [call.id for call in provider.ledger[0].script.calls]
    assert call_ids(kind.api, last) == result_ids(kind.api, last)
    assert not set(made) & set(call_ids(kind.api, last))
    assert provider.returned_reasoning(last)[:1] == provider.due_reasoning([0])
