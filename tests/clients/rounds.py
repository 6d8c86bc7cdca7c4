"""A loop of three tool rounds, and the check that its provider got its reasoning back."""

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
    """Return the provider's settings."""
    return {"api": provider.api, "profile": provider.profile}


def assert_all_reasoning_returned(provider: Provider) -> None:
    """Assert that the provider got all its reasoning back unchanged, and no summary."""
    assert not provider.refusals
    assert [one.script.round for one in provider.ledger] == [0, 1, 2, 3]
    for request in provider.requests:
        turns = len(provider.turns(request.json))
        assert provider.returned_reasoning(request.json) == provider.due_reasoning(range(turns))
        sent = request.body.decode()
        assert not [mark for mark in (*OURS, Scripted().text[:10]) if mark in sent]
