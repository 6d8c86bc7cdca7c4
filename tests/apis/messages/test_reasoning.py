"""Ask a model to think, and to say so, where a summary is due that its client left open."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.messages.api import MESSAGES
from abridge.apis.messages.reasoning import MIN_TOKENS_TO_ASK, ask_to_think
from abridge.core.conversation import Json
from abridge.core.model_request import Message, ModelRequest, TextPart, Tool, ToolChoice
from abridge.providers.catalog import PROFILES

ADAPTIVE, BUDGET, OLD = "claude-opus-4-8", "claude-sonnet-4-5", "claude-3-haiku"
SHOWN = {"type": "adaptive", "display": "summarized"}
HELLO = {"role": "user", "content": "Hi"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "7"}
IN_A_LOOP = [
    HELLO,
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [RESULT]},
]


def request_body(model: str, **fields: Any) -> Json:
    return {"model": model, "max_tokens": 10_000, "messages": [HELLO], **fields}


def thinking(model: str, **fields: Any) -> Any:
    """Return the thinking that a request goes with."""
    body = request_body(model, **fields)
    before = copy.deepcopy(body)
    assert ask_to_think(body) is (body != before)
    asked = body.pop("thinking", None)
    before.pop("thinking", None)
    assert body == before
    return asked


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        (ADAPTIVE, SHOWN),
        (f"anthropic/{ADAPTIVE}", SHOWN),
        (BUDGET, {"type": "enabled", "budget_tokens": 2000}),
        (OLD, None),
        ("deepseek-v4", None),
        ("", None),
    ],
)
def test_a_model_is_asked_that_thinks_only_then(model: str, asked: Any) -> None:
    assert thinking(model) == asked


@pytest.mark.parametrize("model", [ADAPTIVE, BUDGET])
@pytest.mark.parametrize(
    "fields",
    [
        {"max_tokens": MIN_TOKENS_TO_ASK - 1},
        {"max_tokens": None},
        {"tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "tool", "name": "look"}},
        {"messages": [HELLO, {"role": "assistant", "content": "{"}]},
    ],
)
def test_no_model_is_asked_where_thinking_does_not_fit(model: str, fields: Json) -> None:
    assert thinking(model, **fields) is None


@pytest.mark.parametrize("fields", [{"temperature": 0.2}, {"top_p": 0.5}, {"top_k": 1}])
def test_what_the_client_set_of_sampling_stays(fields: Json) -> None:
    assert thinking(BUDGET, **fields) is None
    assert thinking("claude-opus-4-6", **fields) is None


def test_sampling_as_it_is_anyway_does_not_matter() -> None:
    assert thinking(BUDGET, temperature=1.0, top_p=1, top_k=None) is not None


def test_a_round_of_calls_that_began_without_thinking_ends_so() -> None:
    """With a fixed budget upstream refuses it; a model that adapts begins in the middle."""
    assert thinking(BUDGET, messages=IN_A_LOOP) is None
    assert thinking(ADAPTIVE, messages=IN_A_LOOP) == SHOWN


@pytest.mark.parametrize(
    ("model", "given", "asked"),
    [
        (ADAPTIVE, {"type": "adaptive"}, SHOWN),
        (ADAPTIVE, {"type": "adaptive", "display": "omitted"}, SHOWN),
        (ADAPTIVE, SHOWN, SHOWN),
        (
            BUDGET,
            {"type": "enabled", "budget_tokens": 2000},
            {"type": "enabled", "budget_tokens": 2000},
        ),
        (
            BUDGET,
            {"type": "enabled", "budget_tokens": 2000, "display": "omitted"},
            {"type": "enabled", "budget_tokens": 2000, "display": "summarized"},
        ),
        (
            ADAPTIVE,
            {"type": "adaptive", "display": "updates"},
            {"type": "adaptive", "display": "updates"},
        ),
        (ADAPTIVE, {"type": "disabled"}, {"type": "disabled"}),
        (ADAPTIVE, "odd", "odd"),
    ],
)
def test_thinking_that_the_client_asked_for_is_shown(model: str, given: Any, asked: Any) -> None:
    assert thinking(model, thinking=given) == asked


def written(model: str, *, due: bool = True, **fields: Any) -> Json:
    """Return the body for a client of another API, which asks for nothing."""
    messages = fields.pop("messages", [Message("user", [TextPart("Hi")])])
    options = UpstreamOptions(PROFILES["auto"], summary_due=due)
    return MESSAGES.upstream.write_request(
        ModelRequest(model=model, messages=messages, **fields), options
    ).body


def test_clients_of_other_apis_have_it_asked_for_them() -> None:
    assert written(ADAPTIVE)["thinking"] == SHOWN
    assert written(BUDGET)["thinking"]["type"] == "enabled"


@pytest.mark.parametrize(
    "fields",
    [
        {"due": False},
        {"model": OLD},
        {"model": "deepseek-v4"},
        {"params": {"max_tokens": MIN_TOKENS_TO_ASK - 1}},
        {"params": {"temperature": 0.5}},
        {"tool_choice": ToolChoice("required")},
        {"messages": [Message("user", [TextPart("Hi")]), Message("assistant", [TextPart("{")])]},
    ],
)
def test_unless_nothing_is_due_or_it_does_not_fit(fields: Json) -> None:
    assert "thinking" not in written(**{"model": BUDGET, "tools": [Tool("look")], **fields})
