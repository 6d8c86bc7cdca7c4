"""Test the history of a Responses request: where upstream reads its reasoning."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.responses.history import ResponsesHistory
from abridge.providers.catalog import PROFILES
from tests.support.streams import call_item, reasoning_item

QUESTION = {"role": "user", "content": "Hi"}
CALL = call_item(1, "look", "{}")
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "Sky."}
RAW = reasoning_item(0, "I look.")
SUMMARY = {"summary": [{"type": "summary_text", "text": "Looking."}]}
SEALED = {"encrypted_content": "gAAAAAB"}


def place(reasoning: dict[str, Any], profile: str) -> tuple[str, list[Any]]:
    """Return what became of reasoning before a call, and that turn."""
    history = ResponsesHistory({"input": [QUESTION, dict(reasoning), CALL, OUTPUT]})
    (turn,) = (turn for turn in history.turns if turn.calls)
    placement = history.place_reasoning(turn, PROFILES[profile])
    return placement, history.body()["input"][1:-1]


@pytest.mark.parametrize("profile", ["openai", "azure"])
@pytest.mark.parametrize("more", [SUMMARY, SEALED])
def test_where_raw_reasoning_is_refused_it_is_left_out(profile: str, more: dict[str, Any]) -> None:
    assert place(RAW, profile) == ("dropped", [CALL])
    rest = {key: RAW[key] for key in RAW if key != "content"} | more
    assert place({**RAW, **more}, profile) == ("dropped", [rest, CALL])


@pytest.mark.parametrize("profile", ["auto", "vllm", "openai"])
@pytest.mark.parametrize("more", [SUMMARY, SEALED])
def test_other_reasoning_stays(profile: str, more: dict[str, Any]) -> None:
    kept = {**RAW, "content": [], **more}
    assert place(kept, profile) == ("unchanged", [kept, CALL])
    if profile != "openai":
        assert place({**RAW, **more}, profile) == ("unchanged", [{**RAW, **more}, CALL])
