"""Test that hiding hides the thinking of every sample, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.support.hiding import ANSWER, PROFILES_TRIED, THINKING, said, samples, shown, spoken
from tests.support.matrix import each_in_turn
from tests.support.streams import call

CLIENTS = (CHAT, RESPONSES, MESSAGES)
SIZES = (None, 1, 7, 1000)
UNPARSED = [name for name in PROFILES_TRIED if not PROFILES[name].parses_text]
TEXTS = {one["name"]: one for one in samples("legitimate") if one["kind"] == "text"}
CALLS = {one["name"]: one for one in samples("legitimate") if one["kind"] == "call"}
THOUGHTS = {one["name"]: one for one in samples("thinking-in-text")}
LONG = " ".join(["word"] * 60_000) + " the last word"


def text_of(sample: dict[str, Any]) -> str:
    return LONG if "…" in sample["text"] else sample["text"]


def turns_of(
    table: dict[str, Any], profile: str, client: Api, *, of: int
) -> Iterator[tuple[str, Any, int | None]]:
    """Yield the samples whose turn it is, with their names and the sizes of pieces to stream in."""
    turn = PROFILES_TRIED.index(profile) + CLIENTS.index(client)
    for name, sample in each_in_turn(table.items(), turn, of):
        for size in (None, 1000) if "…" in sample.get("text", "") else SIZES:
            yield name, sample, size


EACH_CLIENT = pytest.mark.parametrize("client", CLIENTS, ids=lambda api: api.name)


@pytest.mark.parametrize("profile", PROFILES_TRIED)
@EACH_CLIENT
def test_a_legitimate_text_stays_as_it_is(profile: str, client: Api) -> None:
    for name, sample, size in turns_of(TEXTS, profile, client, of=3):
        text = text_of(sample)
        out = shown({"content": text}, client=client, profile=profile, size=size)
        assert text in said(out, streamed=size is not None), (name, size)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("profile", PROFILES_TRIED)
@EACH_CLIENT
def test_a_legitimate_call_stays_as_it_is(name: str, profile: str, client: Api) -> None:
    sample = CALLS[name]
    message = {"tool_calls": [call(sample["function"], sample["arguments"])]}
    for size in (None, 1):
        out = shown(message, client=client, profile=profile, finish="tool_calls", size=size)
        texts = said(out, streamed=size is not None)
        arguments = json.loads(sample["arguments"])
        assert sample["function"] in texts
        assert all(value in texts for value in arguments.values())


@pytest.mark.parametrize("profile", UNPARSED)
@EACH_CLIENT
def test_thinking_in_a_text_is_hidden_and_the_answer_is_not(profile: str, client: Api) -> None:
    for name, sample, size in turns_of(THOUGHTS, profile, client, of=2):
        text, finish = spoken(sample), sample["finish"]
        out = shown({"content": text}, client=client, profile=profile, finish=finish, size=size)
        texts = said(out, streamed=size is not None)
        assert THINKING not in texts, (name, size)
        assert (ANSWER in texts) == (ANSWER in text), (name, size)
