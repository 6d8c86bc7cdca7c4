"""Similar conversations never share reasoning."""

from __future__ import annotations

import asyncio

import pytest

from tests.end_to_end.histories.assertions import assert_due, assert_safe, everything
from tests.end_to_end.histories.clients import Client, Refused
from tests.end_to_end.histories.provider import Entry
from tests.end_to_end.histories.providers import PROVIDERS
from tests.end_to_end.histories.stage import stage

APIS = pytest.mark.parametrize("api", ["chat", "responses", "messages"])
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
ALTERED = [name for name, kind in PROVIDERS.items() if not kind.seals]
EACH = pytest.mark.parametrize("name", ALTERED)
DISTINGUISHABLE = pytest.mark.parametrize("name", [n for n in ALTERED if PROVIDERS[n].distinct])


async def turn_by_turn(*clients: Client, rounds: int = 0) -> None:
    """Let the clients send requests in turn until all are answered."""
    for client in clients:
        client.question(rounds)
    going = list(clients)
    while going:
        going = [client for client in going if await client.step()]


def hiding(name: str, api: str, *, stream: bool = False) -> Client:
    """Return a client that has no reasoning."""
    provider = PROVIDERS[name]()
    return Client(stage(provider, "summary"), provider, api, "keeps answers", stream)


@pytest.mark.matrix(1)
@APIS
@DISTINGUISHABLE
@pytest.mark.parametrize("at_once", [True, False])
async def test_two_identical_conversations(api: str, name: str, *, at_once: bool) -> None:
    """They differ only in call ids and reasoning."""
    one = hiding(name, api, stream=at_once)
    other = one.fork()
    if at_once:
        await asyncio.gather(one.ask(rounds=2), other.ask(rounds=2))
    else:
        await turn_by_turn(one, other, rounds=2)
    await turn_by_turn(one, other, rounds=1)
    for client in (one, other):
        assert_due(client, everything)


@pytest.mark.matrix(1)
@APIS
@EACH
async def test_equal_call_ids_in_other_conversations(api: str, name: str) -> None:
    blue = hiding(name, api)
    green = blue.fork(conversation="green")
    await turn_by_turn(blue, green, rounds=2)
    await turn_by_turn(green, blue, rounds=1)
    for client in (blue, green):
        assert_due(client, everything)


@pytest.mark.matrix(1)
@BOTH
@pytest.mark.matrix(1)
@APIS
@EACH
async def test_two_credentials(api: str, name: str, *, stream: bool) -> None:
    anna = hiding(name, api, stream=stream)
    bert = anna.fork(tenant="bert")
    await turn_by_turn(anna, bert, rounds=2)
    await asyncio.gather(bert.ask(rounds=1), anna.ask(rounds=1))
    for client in (anna, bert):
        assert_due(client, everything)


@pytest.mark.matrix(1)
@APIS
@EACH
@pytest.mark.parametrize("theft", [{"tenant": "bert"}, {"more": {"model": "another"}}])
async def test_a_history_sent_by_another_tenant_or_to_another_model(
    api: str, name: str, theft: dict[str, str]
) -> None:
    """Neither gets the reasoning restored."""
    anna = hiding(name, api)
    await anna.ask(rounds=1)
    other = anna.fork(**theft)
    other.question()
    try:
        await other.send()
    except Refused:
        assert anna.provider.refusals
    (sent,) = other.sent
    assert "raw=" not in sent.text
    assert_safe(sent, anna.provider)


@pytest.mark.matrix(1)
@APIS
@EACH
@pytest.mark.parametrize("keeps_first", [True, False])
async def test_a_request_sent_twice(api: str, name: str, *, keeps_first: bool) -> None:
    """The client continues from either answer; from the last if they are identical."""
    client = hiding(name, api)
    keeps_first = keeps_first and client.provider.distinct
    client.question(rounds=2)
    for _ in range(3):
        await client.again(keeps_first=keeps_first)
    await client.ask(rounds=1)
    assert_due(client, everything)


@pytest.mark.matrix(1)
@APIS
@EACH
async def test_an_answer_repeated_with_other_reasoning(api: str, name: str) -> None:
    client = hiding(name, api)
    for _ in range(3):
        await client.ask()
    assert_due(client, everything)


@pytest.mark.matrix(1)
@APIS
@EACH
async def test_a_conversation_that_forks(api: str, name: str) -> None:
    trunk = hiding(name, api)
    await trunk.ask(rounds=1)
    branch = trunk.fork(conversation="green")
    await turn_by_turn(trunk, branch, rounds=2)
    await turn_by_turn(branch, trunk)
    for client in (trunk, branch):
        assert_due(client, everything)


@pytest.mark.matrix(1)
@APIS
@DISTINGUISHABLE
async def test_an_edited_question(api: str, name: str) -> None:
    """Turns with calls are still recognized; turns of text alone are not."""
    client = hiding(name, api)
    await client.ask(rounds=2)
    edited = client.fork()
    edited.edit("where is it", "where was it")
    await edited.ask(rounds=1)
    before = set(client.serials)

    def due(entry: Entry, current: bool) -> bool:  # noqa: FBT001 -- a Due
        return bool(entry.script.calls) or entry.script.serial not in before

    assert_due(edited, due)


@APIS
async def test_an_edited_question_before_calls_without_unique_ids(api: str) -> None:
    client = hiding("kimi", api)
    await client.ask(rounds=2)
    client.edit("where is it", "where was it")
    client.question()
    await client.send()
    assert "raw=" not in client.sent[-1].text
    assert_safe(client.sent[-1], client.provider)


@pytest.mark.matrix(1)
@APIS
@DISTINGUISHABLE
@pytest.mark.parametrize("word", ["Looking", "It is there"])
async def test_an_edited_answer_stays_edited(api: str, name: str, word: str) -> None:
    """It is no longer the model's, so its reasoning is not restored."""
    client = hiding(name, api)
    await client.ask(rounds=2)
    client.edit(word, "Edited")
    client.question()
    await client.send()
    sent = client.sent[-1]
    returned_reasoning = client.provider.returned_reasoning(sent.body)
    assert [text for text, _ in sent.plain_turns if text.startswith("Edited")]
    assert_safe(sent, client.provider)
    first, second, _ = client.provider.due_reasoning(client.serials)
    assert returned_reasoning in ([first, second, []], [first, [], []])
