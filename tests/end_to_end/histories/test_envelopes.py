"""Envelopes that carry reasoning between processes without memory."""

from __future__ import annotations

from base64 import b64encode
from itertools import cycle, product
from typing import Any

import pytest

from tests.end_to_end.histories.answers import labels
from tests.end_to_end.histories.assertions import assert_due, assert_hidden, assert_safe, everything
from tests.end_to_end.histories.chat_dialects import Gemini
from tests.end_to_end.histories.clients import Client
from tests.end_to_end.histories.provider import Provider
from tests.end_to_end.histories.providers import PROVIDERS
from tests.end_to_end.histories.responses_provider import OpenAI
from tests.end_to_end.histories.stage import Summing, stage
from tests.support.deployments import ORIGIN, build_app

BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
APIS = ("chat", "responses", "messages")
OWN = [(kind.api, name) for name, kind in PROVIDERS.items()]
BRIDGED = [(api, name) for name in PROVIDERS for api in APIS if (api, name) not in OWN]
EACH = [one for one in OWN if not PROVIDERS[one[1]].seals]
CARRIED = [one for one in BRIDGED if not issubclass(PROVIDERS[one[1]], (Gemini, OpenAI))]
"""Gemini's signatures have no place on Responses, and what OpenAI seals is sealed."""
SEALED = [
    (api, name)
    for api, name in EACH + CARRIED
    if not (api == "messages" and PROVIDERS[name].summarizes)
]
"""On Messages, what is a summary already goes out as upstream signed it."""

KEYLESS = {"store": "none", "seal_keys_env": "SEAL"}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEAL", f"a:{b64encode(bytes(32)).decode()}")


async def carried(provider: Provider, api: str, *, stream: bool) -> Client:
    """Run a conversation of which every request is answered by another process."""
    replicas = cycle([stage(provider, "summary", history=KEYLESS) for _ in range(2)])
    client = Client(next(replicas), provider, api, stream=stream)
    for rounds in (2, 0):
        client.question(rounds)
        while await client.step():
            client.app = next(replicas)
        client.app = next(replicas)
    return client


@pytest.mark.matrix(1)
@pytest.mark.parametrize("history", [{}, {"seal_keys_env": "SEAL"}], ids=["store", "seals"])
@pytest.mark.parametrize(
    ("api", "name"), [*product(APIS, ["vllm", "vllm responses"]), ("messages", "anthropic")]
)
async def test_one_abridge_may_seal_in_front_of_another_that_does_not(
    api: str, name: str, history: dict[str, Any]
) -> None:
    provider = PROVIDERS[name]()
    upstreams = [{"base_url": f"{ORIGIN}/v1", "api": api}]
    behind = stage(provider, "summary")
    app = build_app("sidecar", behind, writer=Summing(), upstreams=upstreams, history=history)
    client = Client(app, provider, api, stream=True)
    await client.ask(rounds=2)
    await client.ask(rounds=1)
    assert not provider.refusals
    for sent in client.sent:
        assert_safe(sent, provider)
        due = provider.due_reasoning(sent.serials)
        assert labels(str(provider.returned_reasoning(sent.body))) == labels(str(due))


@pytest.mark.matrix(1)
@BOTH
@pytest.mark.parametrize(("api", "name"), EACH)
async def test_reasoning_survives_in_the_clients_envelopes(
    api: str, name: str, *, stream: bool
) -> None:
    client = await carried(PROVIDERS[name](), api, stream=stream)
    assert_hidden(client)
    assert_due(client, everything)


@pytest.mark.matrix(1)
@BOTH
@pytest.mark.parametrize(("api", "name"), CARRIED)
async def test_reasoning_survives_in_envelopes_of_another_api(
    api: str, name: str, *, stream: bool
) -> None:
    """Its text and signature survive unchanged."""
    provider = PROVIDERS[name]()
    client = await carried(provider, api, stream=stream)
    for sent in client.sent:
        for turn, serial in zip(provider.turns(sent.body), sent.serials, strict=True):
            written = provider.ledger[serial].written
            assert labels(str(turn)).keys() == labels(str(written)).keys()
            assert provider.ledger[serial].script.reasoning_text() in texts(turn)
        assert_safe(sent, provider)
    assert not provider.refusals


def texts(each: Any) -> str:
    """Return all texts inside a value."""
    if isinstance(each, dict):
        return "".join(map(texts, each.values()))
    return "".join(map(texts, each)) if isinstance(each, list) else str(each)


@pytest.mark.parametrize(("api", "name"), SEALED)
async def test_an_envelope_opens_for_its_tenant_only(api: str, name: str) -> None:
    """For another it is dropped with its summary; the conversation continues."""
    provider = PROVIDERS[name]()
    client = await carried(provider, api, stream=False)
    thief = client.fork(tenant="bert")
    thief.question()
    await thief.send()
    (sent,) = thief.sent
    assert not [label for label in labels(sent.text) if label.piece == "t"]
    assert_safe(sent, provider)
