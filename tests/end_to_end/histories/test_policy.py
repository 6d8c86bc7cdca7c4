"""The earlier reasoning that is sent, by setting and by what a provider requires."""

from __future__ import annotations

import asyncio

import pytest

from tests.end_to_end.histories.assertions import Due, assert_due, assert_safe, demanded, everything
from tests.end_to_end.histories.clients import Client, Refused
from tests.end_to_end.histories.providers import PROVIDERS
from tests.end_to_end.histories.stage import stage

APIS = pytest.mark.parametrize("api", ["chat", "responses", "messages"])
SHOWN = pytest.mark.parametrize(
    ("api", "expose"),
    [("chat", "auto"), ("chat", "both"), ("responses", "auto"), ("messages", "auto")],
)
EACH = pytest.mark.parametrize("name", PROVIDERS)
KEEPS = pytest.mark.parametrize("keeps", ["keeps everything", "keeps answers"])


async def two_questions(api: str, name: str, keeps: str, expose: str, keep: str) -> Client:
    provider = PROVIDERS[name]()
    client = Client(stage(provider, expose, history={"keep": keep}), provider, api, keeps)
    await client.ask(rounds=2)
    await client.ask(rounds=1)
    return client


@pytest.mark.matrix(1)
@SHOWN
@EACH
@KEEPS
@pytest.mark.parametrize("keep", ["none", "tool_rounds", "all"])
async def test_what_is_kept_is_sent_and_what_is_required(
    api: str, name: str, keeps: str, expose: str, keep: str
) -> None:
    """Of `tool_rounds` that is the reasoning of those that are not finished."""
    client = await two_questions(api, name, keeps, expose, keep)
    insists = demanded(PROVIDERS[name])
    due: dict[str, Due] = {
        "none": insists,
        "tool_rounds": lambda entry, current: current or insists(entry, current),
        "all": everything,
    }
    assert_due(client, due[keep])


@pytest.mark.matrix(1)
@APIS
@EACH
async def test_with_never_nothing_is_restored(api: str, name: str) -> None:
    """What a client dropped is gone, even if its provider refuses."""
    provider = PROVIDERS[name]()
    client = Client(stage(provider, history={"restore": "never"}), provider, api, "keeps answers")
    client.question(rounds=1)
    await client.step()
    try:
        await client.step()
    except Refused:
        assert provider.refusals
    sent = client.sent[-1]
    assert "raw=" not in sent.text
    assert_safe(sent, provider)


@pytest.mark.matrix(1)
@APIS
@EACH
async def test_reasoning_that_a_client_returns_is_sent_once(api: str, name: str) -> None:
    """Even if the client has it in several fields."""
    provider = PROVIDERS[name]()
    client = Client(stage(provider, "both", history={"restore": "never"}), provider, api)
    try:
        await client.ask(rounds=1)
        await client.ask()
    except Refused:
        assert provider.refusals
    for sent in client.sent:
        assert_safe(sent, provider)


@APIS
@pytest.mark.parametrize("name", ["deepseek", "vllm", "openrouter", "vllm responses"])
async def test_nothing_outlives_its_time(api: str, name: str) -> None:
    provider = PROVIDERS[name]()
    app = stage(provider, "summary", history={"ttl": 0.001, "restore": "always"})
    client = Client(app, provider, api, "keeps answers")
    await client.ask(rounds=0)
    await asyncio.sleep(0.01)
    await client.ask(rounds=0)
    assert "raw=" not in client.sent[-1].text
    assert_safe(client.sent[-1], provider)
