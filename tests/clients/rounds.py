"""A loop of three rounds of tools, and what its provider has to have heard of it at its end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.end_to_end.histories.assertions import OURS
from tests.end_to_end.histories.chat_dialects import DeepSeek
from tests.end_to_end.histories.messages_provider import Anthropic
from tests.end_to_end.histories.provider import Provider
from tests.support.summarizers import Scripted

QUESTION = "In conversation blue: where is it? Take 3 rounds."
PARAMETERS = {
    "type": "object",
    "properties": {"where": {"type": "string"}, "depth": {"type": "number"}},
    "required": ["where", "depth"],
    "additionalProperties": False,
}
FUNCTION = {
    "name": "look",
    "description": "Look somewhere.",
    "parameters": PARAMETERS,
    "strict": True,
}
FOUND = "Nothing here."
ANSWER = "It is there, 3."
MOST = 6
"""More requests than a loop takes."""

LOOPS = pytest.mark.parametrize(
    ("client", "kind"),
    [(client, kind) for client in ("chat", "responses") for kind in (DeepSeek, Anthropic)],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def entry(provider: type[Provider]) -> dict[str, Any]:
    """The provider in the settings."""
    return {"api": provider.api, "profile": provider.profile}


def assert_heard(provider: Provider) -> None:
    """All that it thought in three rounds, as it said it, and no word of a summary."""
    assert not provider.refusals
    assert [one.script.round for one in provider.ledger] == [0, 1, 2, 3]
    for asked in provider.requests:
        turns = len(provider.turns(asked.json))
        assert provider.returned_reasoning(asked.json) == provider.due_reasoning(range(turns))
        sent = asked.body.decode()
        assert not [mark for mark in (*OURS, Scripted().text[:10]) if mark in sent]
