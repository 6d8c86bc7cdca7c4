"""The scripted providers alone: they refuse what real ones refuse."""

from __future__ import annotations

from typing import Any

import pytest

from tests.end_to_end.histories.assertions import assert_due, everything
from tests.end_to_end.histories.clients import Client, Refused
from tests.end_to_end.histories.messages_provider import Anthropic
from tests.end_to_end.histories.providers import PROVIDERS
from tests.support.asgi import call

DIRECT = [name for name, kind in PROVIDERS.items() if kind.api != "messages"]
TRAPS = ("mistral", "ollama responses", "openrouter", "openrouter summaries")
"""Their streams are more than plain clients can put together."""

REFUSED = {
    "deepseek": "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "gemini": "Function call is missing a thought_signature in functionCall parts.",
    "gemini aloud": "Function call is missing a thought_signature in functionCall parts.",
    "kimi": "reasoning_content is missing in assistant tool call message at index 1",
}


@pytest.mark.parametrize(
    ("name", "stream"),
    [(name, False) for name in DIRECT] + [(name, True) for name in DIRECT if name not in TRAPS],
)
async def test_a_client_that_returns_everything_is_answered(name: str, *, stream: bool) -> None:
    provider = PROVIDERS[name]()
    client = Client(provider, provider, provider.api, stream=stream)
    await client.ask(rounds=3)
    await client.ask(rounds=1)
    assert_due(client, everything)


@pytest.mark.parametrize("name", REFUSED)
async def test_a_client_that_drops_demanded_reasoning_is_refused(name: str) -> None:
    provider = PROVIDERS[name]()
    with pytest.raises(Refused, match=REFUSED[name]):
        await Client(provider, provider, provider.api, "keeps answers").ask(rounds=1)


async def test_glm_complains_of_what_was_changed() -> None:
    provider = PROVIDERS["glm"]()
    client = Client(provider, provider, "chat")
    client.question(rounds=2)
    await client.step()
    client.edit("I go by", "I went by")
    await client.step()
    assert provider.complaints


async def test_openrouter_complains_of_details_in_another_order() -> None:
    provider = PROVIDERS["openrouter"]()
    client = Client(provider, provider, "chat")
    client.question(rounds=2)
    await client.step()
    client.history[1]["reasoning_details"].reverse()
    await client.step()
    assert provider.complaints


async def test_groq_refuses_the_other_field() -> None:
    provider = PROVIDERS["groq"]()
    client = Client(provider, provider, "chat")
    client.question(rounds=1)
    await client.step()
    client.history[1]["reasoning_content"] = client.history[1].pop("reasoning")
    with pytest.raises(Refused, match="property 'reasoning_content' is unsupported"):
        await client.step()


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "an id it never gave": ({"id": "rs_mine"}, "Item with id 'rs_mine' not found"),
    "nothing but an id": (
        {"encrypted_content": None},
        "not persisted when `store` is set to false",
    ),
    "the clear text": ({"content": [{"type": "reasoning_text", "text": "I"}]}, "array too long"),
    "another seal": ({"encrypted_content": "gAAAAAmine=="}, "gAAA...ne== could not be verified"),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_openai_refuses_what_it_did_not_make(change: str) -> None:
    provider = PROVIDERS["openai"]()
    client = Client(provider, provider, "responses")
    client.question(rounds=1)
    await client.step()
    fields, message = CHANGES[change]
    client.history[1] |= fields
    with pytest.raises(Refused, match=message):
        await client.step()


async def test_openai_refuses_a_call_without_its_reasoning_and_reasoning_without_a_call() -> None:
    provider = PROVIDERS["openai"]()
    client = Client(provider, provider, "responses")
    client.question(rounds=1)
    await client.step()
    alone = client.fork()
    del client.history[1]
    with pytest.raises(Refused, match="without its required 'reasoning' item: 'rs_"):
        await client.step()
    del alone.history[2:4]
    with pytest.raises(Refused, match="without its required following item"):
        await alone.step()


BLOCKS: dict[str, tuple[Any, str]] = {
    "missing": (lambda thought, _: [], "must start with a thinking block"),
    "changed": (lambda thought, _: [{**thought, "thinking": "So."}], "Invalid `signature`"),
    "in another order": (lambda thought, veiled: [veiled, thought], "cannot be modified"),
    "not whole": (lambda thought, _: [thought], "cannot be modified"),
    "as it was": (lambda thought, veiled: [thought, veiled], ""),
}


@pytest.mark.parametrize("change", BLOCKS)
async def test_anthropic_refuses_blocks_that_are_not_as_they_were(change: str) -> None:
    provider = Anthropic()
    history: list[Any] = [{"role": "user", "content": "In conversation blue: take 2 rounds."}]
    body = {"model": "claude-opus-4-5", "thinking": {"type": "enabled"}, "messages": history}
    for _ in range(2):
        content = (await call(provider, "/v1/messages", body)).json["content"]
        uses = [block["id"] for block in content if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": use, "content": "No."} for use in uses]
        history += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": results},
        ]
    made, message = BLOCKS[change]
    thought, veiled, *answer = history[3]["content"]
    history[3]["content"] = [*made(thought, veiled), *answer]
    reply = await call(provider, "/v1/messages", body)
    assert reply.status == (400 if message else 200)
    assert message in reply.data.decode()
