"""Every client over every provider: reasoning returns byte for byte."""

from __future__ import annotations

import pytest

from tests.end_to_end.histories.assertions import (
    Due,
    assert_due,
    assert_hidden,
    demanded,
    everything,
)
from tests.end_to_end.histories.clients import KINDS, Client
from tests.end_to_end.histories.provider import Provider
from tests.end_to_end.histories.providers import PROVIDERS
from tests.end_to_end.histories.stage import stage

APIS = ("chat", "responses", "messages")
EXPOSED = {
    "chat": ("auto", "both", "summary"),
    "responses": ("auto", "summary"),
    "messages": ("auto", "both", "summary"),
}
"""On Responses, `auto` shows both."""
KEEPS = {
    "chat": [keeps for keeps in KINDS if keeps != "keeps standard fields"],
    "responses": list(KINDS),
    "messages": [keeps for keeps in KINDS if keeps != "keeps standard fields"],
}
"""On Chat Completions, the standard fields are the answer."""

BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def due(provider: type[Provider], api: str, keeps: str, expose: str) -> Due:
    """Return the reasoning that must return upstream.

    Abridge restores what it hid or replaced. What it showed and the client dropped stays dropped,
    except for providers that require it.
    """
    crossed = provider.api != api
    shown = expose == "both" or (expose == "auto" and api == "responses")
    touched = crossed or not (shown or provider.seals)
    if provider.summarizes and (provider.api, api, keeps, expose) == (
        *("chat", "chat"),
        *("keeps summaries", "both"),
    ):
        return demanded(provider)  # shown in upstream's own field, which the client dropped
    summed = keeps == "keeps summaries" or (api, keeps) == ("responses", "keeps standard fields")
    if (
        touched
        or keeps == "keeps everything"
        or (summed and not (provider.seals and api == "chat"))
    ):
        return everything
    return demanded(provider)


CASES = [
    (api, name, keeps, expose)
    for api in APIS
    for name in PROVIDERS
    for keeps in KEEPS[api]
    for expose in EXPOSED[api]
    if (name, api, keeps)
    != ("openai", "responses", "keeps summaries")  # refused by the provider itself
    and (keeps, expose) != ("keeps everything", "summary")  # see below
]


@pytest.mark.matrix(2)
@BOTH
@pytest.mark.parametrize(("api", "name", "keeps", "expose"), CASES)
async def test_two_questions(api: str, name: str, keeps: str, expose: str, *, stream: bool) -> None:
    provider = PROVIDERS[name]()
    client = Client(stage(provider, expose), provider, api, keeps, stream)
    await client.ask(rounds=2)
    await client.ask(rounds=1)
    assert len(client.serials) == 5
    assert_due(client, due(PROVIDERS[name], api, keeps, expose))


@pytest.mark.matrix(2)
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", [name for name, kind in PROVIDERS.items() if not kind.seals])
@pytest.mark.parametrize("expose", ["summary", "none"])
@pytest.mark.parametrize(
    ("stream", "learns"), [(True, True), (True, False), (False, False)], ids=str
)
async def test_hidden_reasoning_reaches_the_model_whole(
    api: str, name: str, expose: str, *, stream: bool, learns: bool
) -> None:
    provider = PROVIDERS[name]()
    profile = "auto" if learns else provider.profile
    client = Client(stage(provider, expose, entry={"profile": profile}), provider, api)
    client.stream = stream
    await client.ask(rounds=1)
    await client.ask()
    assert_hidden(client, vouched=not learns and expose == "summary")
    assert_due(client, everything)


@pytest.mark.matrix(1)
@pytest.mark.parametrize(
    ("api", "name", "keeps"), [case[:3] for case in CASES if case[3] == "auto"]
)
async def test_five_questions(api: str, name: str, keeps: str) -> None:
    provider = PROVIDERS[name]()
    client = Client(stage(provider), provider, api, keeps, stream=True)
    for rounds in (1, 0, 2, 0, 1):
        await client.ask(rounds)
    assert len(client.serials) == 9
    assert_due(client, due(PROVIDERS[name], api, keeps, "auto"))
