"""Whichever field a client returns reasoning in, the provider gets it in the field it reads."""

from __future__ import annotations

import pytest

from tests.end_to_end.histories.answers import TOOL, Call, Script, labels
from tests.end_to_end.histories.assertions import OURS, assert_due, everything
from tests.end_to_end.histories.clients import Client, Sent
from tests.end_to_end.histories.provider import Json, Provider
from tests.end_to_end.histories.providers import PROVIDERS
from tests.end_to_end.histories.stage import stage

PLACES = ("deepseek", "glm", "groq", "kimi", "minimax", "mistral", "vllm")
FIELDS = ("reasoning_content", "reasoning")
SCRIPTS = {
    "an answer": Script("anna", "blue", 0, text="So."),
    "a call": Script("anna", "blue", 0, calls=(Call("call_0x7Kq9ZtR4mP2s", TOOL, "{}"),)),
    "both": Script("anna", "blue", 0, text="So.", calls=(Call("call_0x7Kq9ZtR4mP2s", TOOL, "{}"),)),
}


def reasoning_fields(script: Script, *fields: str) -> list[Json]:
    """Return the answer and the results of its calls, as a client has them."""
    tools = [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": "{}"}}
        for one in script.calls
    ]
    message = {"role": "assistant", "content": script.text or None, "tool_calls": tools}
    thought = dict.fromkeys(fields, script.reasoning_text())
    results = [{"role": "tool", "tool_call_id": one.id, "content": "No."} for one in script.calls]
    returned = {key: value for key, value in message.items() if value or key == "content"}
    return [{**returned, **thought}, *results]


async def send(provider: Provider, messages: list[Json], **more: Json | None) -> Sent:
    """Send the request of a client that has this answer."""
    client = Client(stage(provider), provider, "chat", more=more)
    client.question()
    client.history += messages
    client.question()
    await client.step()
    assert not provider.refusals
    return client.sent[0]


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("more", [{}, {"reasoning": None}], ids=["summary", "no summary"])
async def test_reasoning_goes_where_its_provider_reads_it(
    name: str, field: str, script: str, more: dict[str, None]
) -> None:
    """It appears nowhere else."""
    provider, turn = PROVIDERS[name](), SCRIPTS[script]
    sent = await send(provider, reasoning_fields(turn, field), **more)
    assert provider.returned_reasoning(sent.body) == [
        provider.reasoning(provider.write_turn(turn, {}))
    ]
    assert labels(sent.text) == labels(turn.reasoning_text())


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("script", ["an answer", "both"])
async def test_an_answer_in_parts_stays_the_answer(name: str, script: str) -> None:
    provider, turn = PROVIDERS[name](), SCRIPTS[script]
    message, *results = reasoning_fields(turn, "reasoning_content")
    parts = [{"type": "text", "text": turn.text}]
    sent = await send(provider, [{**message, "content": parts}, *results])
    written = provider.write_turn(turn, {})
    assert list(map(provider.plain, provider.turns(sent.body))) == [provider.plain(written)]
    assert provider.returned_reasoning(sent.body) == [provider.reasoning(written)]


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("script", SCRIPTS)
async def test_repeated_reasoning_is_sent_in_the_field_that_is_read(name: str, script: str) -> None:
    provider, turn = PROVIDERS[name](), SCRIPTS[script]
    sent = await send(provider, reasoning_fields(turn, *FIELDS))
    ((returned_reasoning,),) = provider.returned_reasoning(sent.body)
    (wanted,) = provider.reasoning(provider.write_turn(turn, {}))
    assert returned_reasoning.items() >= wanted.items()


@pytest.mark.parametrize("name", ["anthropic", "deepseek", "minimax"])
async def test_a_copy_that_a_client_makes_is_a_summary_too(name: str) -> None:
    """LiteLLM's client keeps, and returns, a second one beside each field it does not know."""
    provider = PROVIDERS[name]()
    client = Client(stage(provider), provider, "chat")
    for _ in range(2):
        client.question(rounds=1)
        while await client.step():
            for message in client.history:
                if isinstance(summary := message.get("reasoning_content"), str):
                    copied = {"refusal": None, "reasoning_content": summary}
                    message["provider_specific_fields"] = copied
    for sent in client.sent:
        assert not [mark for mark in OURS if mark in sent.text]
    assert_due(client, everything)
