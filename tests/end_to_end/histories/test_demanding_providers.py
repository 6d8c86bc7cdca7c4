"""Providers that require earlier reasoning, and clients that drop it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.end_to_end.histories.assertions import assert_due, assert_safe, demanded, everything
from tests.end_to_end.histories.clients import KINDS, THINKS, Client
from tests.end_to_end.histories.providers import PROVIDERS
from tests.end_to_end.histories.stage import stage

APIS = pytest.mark.parametrize("api", ["chat", "responses", "messages"])
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
STRICT = pytest.mark.parametrize("name", [n for n, kind in PROVIDERS.items() if kind.demands])
EVEN_EMPTY = pytest.mark.parametrize("name", ["deepseek", "kimi"])


SHOWN = [
    *(("chat", expose) for expose in ("auto", "both", "summary", "raw", "none")),
    *(("responses", expose) for expose in ("auto", "summary", "raw", "none")),
    *(("messages", expose) for expose in ("auto", "both", "summary", "raw", "none")),
]
"""On Responses, `auto` shows both."""


async def loop(client: Client) -> None:
    """Run three tool rounds and an answer."""
    await client.ask(rounds=3)
    assert len(client.serials) == 4
    assert client.history[-1] != client.history[-2]


@pytest.mark.matrix(2)
@BOTH
@STRICT
@pytest.mark.parametrize(("api", "expose"), SHOWN)
async def test_a_client_that_drops_everything_completes_three_rounds(
    api: str, name: str, expose: str, *, stream: bool
) -> None:
    provider = PROVIDERS[name]()
    client = Client(stage(provider, expose), provider, api, "keeps answers", stream)
    await loop(client)
    assert_due(client, demanded(PROVIDERS[name]))


READ = [
    (api, name)
    for api in ("chat", "responses", "messages")
    for name, kind in PROVIDERS.items()
    if kind.demands and not api == "messages" == kind.api
]
"""Clients of Messages itself have what Claude said, and drop it at their own risk."""


@pytest.mark.matrix(2)
@BOTH
@pytest.mark.parametrize(("api", "name"), READ)
@pytest.mark.parametrize("restore", ["altered", "always"])
async def test_a_client_without_summaries_completes_three_rounds(
    api: str, name: str, restore: str, *, stream: bool
) -> None:
    provider = PROVIDERS[name]()
    app = stage(provider, history={"restore": restore})
    client = Client(app, provider, api, "keeps answers", stream, more=thinking(api))
    await loop(client)
    assert_due(client, demanded(PROVIDERS[name]))


def thinking(api: str) -> dict[str, Any]:
    """Return fields that request reasoning without a summary."""
    if api == "responses":
        return {"reasoning": {"effort": "medium"}}
    if api == "messages":
        return {"thinking": {**THINKS, "display": "omitted"}}
    return {"reasoning_effort": "medium", "reasoning": None}


@pytest.mark.matrix(2)
@BOTH
@APIS
@EVEN_EMPTY
@pytest.mark.parametrize("keeps", KINDS)
@pytest.mark.parametrize("quiet", [(0,), (1,), (0, 1, 2)])
async def test_empty_reasoning_is_returned_too(
    api: str, name: str, keeps: str, quiet: tuple[int, ...], *, stream: bool
) -> None:
    provider = PROVIDERS[name](*quiet)
    client = Client(stage(provider), provider, api, keeps, stream)
    await loop(client)
    for sent in client.sent:
        script = [one for one in sent.body["messages"] if one["role"] == "assistant"]
        thoughts = [provider.ledger[serial].script.reasoning_text() for serial in sent.serials]
        assert [message["reasoning_content"] for message in script] == thoughts
        assert_safe(sent, provider)


@BOTH
@pytest.mark.parametrize(
    ("api", "name"),
    [
        (api, name)
        for api, name in READ
        if name in ("anthropic", "anthropic adaptive", "deepseek", "glm", "kimi")
    ],
)
async def test_forgotten_reasoning_ends_no_conversation(
    api: str, name: str, *, stream: bool
) -> None:
    """As after a restart."""
    provider = PROVIDERS[name]()
    client = Client(stage(provider), provider, api, "keeps answers", stream)
    client.question(rounds=3)
    await client.step()
    await client.step()
    later = client.fork(stage(provider))
    while await later.step():
        pass
    assert len(later.serials) == 4
    assert not provider.refusals
    for sent in later.sent:
        assert_safe(sent, provider)


@BOTH
@pytest.mark.parametrize("expose", ["auto", "none"])
@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
async def test_forgotten_thinking_comes_back_from_the_client_or_not_at_all(
    api: str, expose: str, *, stream: bool
) -> None:
    """A signature without the text it is for would be refused."""
    provider = PROVIDERS["anthropic"]()
    client = Client(stage(provider, expose), provider, api, stream=stream)
    client.more = thinking(api) if api == "chat" else {}
    await client.ask()
    later = client.fork(stage(provider, expose))
    await later.ask()
    assert not provider.refusals
    (returned,) = provider.returned_reasoning(later.sent[0].body)
    is_whole = expose == "auto" and api != "responses"  # where blanks around a summary are left out
    assert returned == (provider.due_reasoning([0])[0] if is_whole else [])


@pytest.mark.matrix(1)
@BOTH
@APIS
@pytest.mark.parametrize("name", PROVIDERS)
async def test_with_always_dropped_reasoning_is_restored(
    api: str, name: str, *, stream: bool
) -> None:
    """All of it, from any provider, sealed or in the clear."""
    provider = PROVIDERS[name]()
    app = stage(provider, "both", history={"restore": "always"})
    client = Client(app, provider, api, "keeps answers", stream)
    await client.ask(rounds=3)
    await client.ask(rounds=1)
    assert_due(client, everything)
