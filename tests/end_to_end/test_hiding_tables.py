"""Test that hiding hides the thinking of every sample, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.responses.api import RESPONSES
from abridge.providers.catalog import PROFILES
from tests.support.hiding import ANSWER, PROFILES_TRIED, THINKING, said, samples, shown, spoken
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


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("profile", PROFILES_TRIED)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda api: api.name)
def test_a_legitimate_text_stays_as_it_is(name: str, profile: str, client: Api) -> None:
    text = text_of(TEXTS[name])
    for size in SIZES if len(text) < len(LONG) else (None, 1000):
        out = shown({"content": text}, client=client, profile=profile, size=size)
        assert text in said(out, streamed=size is not None)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("profile", PROFILES_TRIED)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda api: api.name)
def test_a_legitimate_call_stays_as_it_is(name: str, profile: str, client: Api) -> None:
    sample = CALLS[name]
    message = {"tool_calls": [call(sample["function"], sample["arguments"])]}
    for size in (None, 1):
        out = shown(message, client=client, profile=profile, finish="tool_calls", size=size)
        texts = said(out, streamed=size is not None)
        arguments = json.loads(sample["arguments"])
        assert sample["function"] in texts
        assert all(value in texts for value in arguments.values())


@pytest.mark.parametrize("name", THOUGHTS)
@pytest.mark.parametrize("profile", UNPARSED)
@pytest.mark.parametrize("client", CLIENTS, ids=lambda api: api.name)
def test_thinking_in_a_text_is_hidden_and_the_answer_is_not(
    name: str, profile: str, client: Api
) -> None:
    sample = THOUGHTS[name]
    text = spoken(sample)
    for size in SIZES:
        out = shown(
            {"content": text}, client=client, profile=profile, finish=sample["finish"], size=size
        )
        texts = said(out, streamed=size is not None)
        assert THINKING not in texts
        assert (ANSWER in texts) == (ANSWER in text)
