"""Clients of Messages that write an answer in other messages than it came in."""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.end_to_end.histories.answers import Label, labels
from tests.end_to_end.histories.clients import THINKING, Client
from tests.end_to_end.histories.provider import Json, Provider
from tests.end_to_end.histories.providers import PROVIDERS
from tests.end_to_end.histories.stage import stage

BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize(
    "name", ["deepseek", "glm", "ollama responses", "openrouter", "vllm", "vllm responses"]
)
STORES: dict[str, Json] = {
    "sealed": {"store": "none", "seal_keys_env": "SEAL"},
    "remembered": {"store": "memory"},
}
LOST = ("split after calls", "remembered")
"""An upstream of another API knows the calls of one answer together."""

Reshape = Callable[[list[Json]], list[Json]]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEAL", f"a:{b64encode(bytes(32)).decode()}")


def split_calls(history: list[Json]) -> list[Json]:
    """Write each call in a message of its own, with its result after it."""
    split: list[Json] = []
    for message, following in pairwise([*history, {}]):
        if message["role"] == "user" and isinstance(message["content"], list):
            continue
        if message["role"] == "user":
            split.append(message)
            continue
        pending: list[Json] = []
        for block in message["content"]:
            pending.append(block)
            if block["type"] == "tool_use":
                result = [one for one in following["content"] if one["tool_use_id"] == block["id"]]
                split += [{"role": "assistant", "content": pending}]
                split += [{"role": "user", "content": result}]
                pending = []
        split += [{"role": "assistant", "content": pending}] if pending else []
    return split


def add_notes(history: list[Json]) -> list[Json]:
    """Add what Claude Code adds to messages of the user's, and takes out again."""
    note = {"type": "text", "text": "<system-reminder>\nIt is Monday.\n</system-reminder>\n"}
    return [
        {**message, "content": [*blocks(message), note]} if message["role"] == "user" else message
        for message in history
    ]


def add_nulls(history: list[Json]) -> list[Json]:
    """Add the fields that a client's own models have, without a value."""
    return [
        {**message, "content": [with_nulls(block) for block in blocks(message)]}
        for message in history
    ]


def with_nulls(block: Json) -> Json:
    return block if block["type"] in THINKING else {**block, "cache_control": None}


def blocks(message: Json) -> list[Json]:
    content: Any = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


SHAPES: dict[str, Reshape] = {
    "split after calls": split_calls,
    "with notes": add_notes,
    "with nulls": add_nulls,
}


async def converse(provider: Provider, held: str, *, stream: bool) -> Client:
    client = Client(stage(provider, "summary", history=STORES[held]), provider, "messages")
    client.stream = stream
    await client.ask(rounds=2)
    return client


@BOTH
@EACH
@pytest.mark.parametrize(
    ("shape", "held"),
    [(shape, held) for shape in SHAPES for held in STORES if (shape, held) != LOST],
)
async def test_reasoning_is_found_in_messages_of_another_shape(
    name: str, held: str, shape: str, *, stream: bool
) -> None:
    provider = PROVIDERS[name]()
    client = await converse(provider, held, stream=stream)
    client.history = SHAPES[shape](client.history)
    client.question()
    await client.send()
    assert not provider.refusals
    returned = texts_of(labels(client.sent[-1].text))
    written = [texts_of(labels(str(provider.ledger[serial].written))) for serial in client.serials]
    wanted = sum(written, Counter[Label]())
    if held == "remembered" and shape == "with notes":  # a text alone needs all before it alike
        wanted -= written[-1]
    assert returned.keys() == wanted.keys()
    assert returned <= wanted  # each of them once


def texts_of(found: Counter[Label]) -> Counter[Label]:
    """Return the labels of texts, without those of state, which its client has in the clear."""
    return Counter({label: count for label, count in found.items() if label.piece == "t"})


@BOTH
@EACH
async def test_earlier_thinking_may_be_left_out(name: str, *, stream: bool) -> None:
    """As Claude Code does: what is left is still in its place."""
    provider = PROVIDERS[name]()
    client = await converse(provider, "sealed", stream=stream)
    first = client.history[1]
    first["content"] = [block for block in first["content"] if block["type"] not in THINKING]
    client.question()
    await client.send()
    returned = {label.serial for label in labels(client.sent[-1].text)}
    assert returned == set(client.serials[1:])


@BOTH
@EACH
async def test_the_oldest_turns_may_be_left_out(name: str, *, stream: bool) -> None:
    """As where a client compacts a conversation: reasoning stays where what it answers does."""
    provider = PROVIDERS[name]()
    client = await converse(provider, "sealed", stream=stream)
    client.history = [{"role": "user", "content": "In conversation blue: …"}, *client.history[3:]]
    client.question()
    await client.send()
    returned = {label.serial for label in labels(client.sent[-1].text)}
    assert returned == set(client.serials[2:])


async def test_a_block_that_says_nothing_never_goes_upstream() -> None:
    """Also after a restart, without a wish, where nothing is remembered: Claude would refuse it."""
    provider = PROVIDERS["anthropic"]()
    client = Client(stage(provider, history={"store": "none"}), provider, "messages")
    nothing = {"type": "thinking", "thinking": "", "signature": ""}
    client.question()
    said = {"role": "assistant", "content": [nothing, {"type": "text", "text": "It is there."}]}
    client.history.append(said)
    client.more = {"thinking": {"type": "disabled"}}
    client.question()
    await client.send()
    assert not provider.refusals
    assert client.sent[0].body["messages"][1]["content"] == said["content"][1:]
