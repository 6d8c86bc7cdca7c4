"""Test what clients may ask for at most."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from abridge.apis.effort import NOTHING_LOWERED, EffortLimits, LoweredEffort

LIMITS = EffortLimits("medium", 2000)
UPDATE = {"type": "configuration_update"}


@pytest.mark.parametrize(
    ("asked", "sent", "lowered"),
    [
        ({"reasoning_effort": "max"}, {"reasoning_effort": "medium"}, ("medium", None)),
        ({"reasoning": {"effort": "high"}}, {"reasoning": {"effort": "medium"}}, ("medium", None)),
        (
            {"reasoning": {"max_tokens": 9000, "exclude": True}},
            {"reasoning": {"max_tokens": 2000, "exclude": True}},
            (None, 2000),
        ),
        (
            {
                "thinking": {"type": "enabled", "budget_tokens": 2001},
                "output_config": {"effort": "xhigh"},
            },
            {
                "thinking": {"type": "enabled", "budget_tokens": 2000},
                "output_config": {"effort": "medium"},
            },
            ("medium", 2000),
        ),
        ({"thinking_budget": 4096}, {"thinking_budget": 2000}, (None, 2000)),
        ({"thinking_token_budget": -1}, {"thinking_token_budget": 2000}, (None, 2000)),
        ({"thinking_budget_tokens": -1}, {"thinking_budget_tokens": 2000}, (None, 2000)),
        ({"reasoning_budget_tokens": 2001}, {"reasoning_budget_tokens": 2000}, (None, 2000)),
        (
            {"chat_template_kwargs": {"thinking_budget": 2500, "reasoning_effort": "high"}},
            {"chat_template_kwargs": {"thinking_budget": 2000, "reasoning_effort": "medium"}},
            ("medium", 2000),
        ),
        (
            {"extra_body": {"google": {"thinking_config": {"thinking_budget": 8000}}}},
            {"extra_body": {"google": {"thinking_config": {"thinking_budget": 2000}}}},
            (None, 2000),
        ),
        (
            {"google": {"thinking_config": {"thinking_level": "high"}}},
            {"google": {"thinking_config": {"thinking_level": "medium"}}},
            ("medium", None),
        ),
        (
            {"generation_config": {"thinking_level": "high"}},
            {"generation_config": {"thinking_level": "medium"}},
            ("medium", None),
        ),
        ({"think": "high"}, {"think": "medium"}, ("medium", None)),
        (
            {"input": ["x", {**UPDATE, "reasoning": {"effort": "high"}}, {**UPDATE}]},
            {"input": ["x", {**UPDATE, "reasoning": {"effort": "medium"}}, {**UPDATE}]},
            ("medium", None),
        ),
        (
            {"messages": ["x", {"role": "system", "output_config": {"effort": "max"}}, {}]},
            {"messages": ["x", {"role": "system", "output_config": {"effort": "medium"}}, {}]},
            ("medium", None),
        ),
    ],
)
def test_what_is_above_is_lowered_in_every_spelling(
    asked: dict[str, Any], sent: dict[str, Any], lowered: tuple[str | None, int | None]
) -> None:
    body = copy.deepcopy(asked)
    assert LIMITS.lower(body) == LoweredEffort(*lowered)
    assert body == sent
    assert LIMITS.lower(body) == NOTHING_LOWERED


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reasoning_effort": "medium"},
        {"reasoning_effort": "none", "thinking_budget": 0},
        {"reasoning_effort": "utmost"},
        {"reasoning_effort": ["max"]},
        {"reasoning": "max"},
        {"reasoning": {"effort": None, "max_tokens": 2000}},
        {"thinking": {"budget_tokens": True}},
        {"thinking": {"budget_tokens": "9000"}},
        {"thinking_budget": 9000.0},
        {"think": True},
    ],
)
def test_everything_else_is_left_to_upstream(body: dict[str, Any]) -> None:
    before = copy.deepcopy(body)
    assert LIMITS.lower(body) == NOTHING_LOWERED
    assert body == before


def test_without_limits_nothing_is_lowered() -> None:
    body = {"reasoning_effort": "max", "thinking_budget": -1}
    assert EffortLimits().lower(body) == NOTHING_LOWERED


def test_no_field_gets_less_than_its_api_takes() -> None:
    body = {"reasoning_effort": "low", "output_config": {"effort": "high"}}
    assert EffortLimits("none").lower(body) == LoweredEffort("low")
    assert body == {"reasoning_effort": "none", "output_config": {"effort": "low"}}
