"""Test the effect of a profile on a request."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile


@pytest.mark.parametrize(
    ("name", "effort", "expected"),
    [
        ("auto", "low", {"reasoning_effort": "low"}),
        ("auto", "none", {"reasoning_effort": "none"}),
        ("deepseek", "none", {"thinking": {"type": "disabled"}}),
        ("deepseek", "max", {"reasoning_effort": "max"}),
        ("qwen", "none", {"enable_thinking": False}),
        ("qwen", "high", {}),
    ],
)
def test_the_effort_is_in_the_providers_field(
    name: str, effort: str, expected: dict[str, Any]
) -> None:
    assert PROFILES[name].thinking_fields(effort) == expected


def test_the_effort_is_nested_where_the_provider_nests_it() -> None:
    expected = Profile("p", effort_field="output_config.effort").thinking_fields("high")
    assert expected == {"output_config": {"effort": "high"}}


SAMPLED = {"temperature": 0.2, "top_p": 0.9, "frequency_penalty": 1, "stop": ["x"], "seed": 7}
SAMPLERS = ("temperature", "top_p", "frequency_penalty")
THINKS = {"reasoning_effort": "low"}
THINKS_THERE = {"reasoning": {"effort": "low"}}


@pytest.mark.parametrize(
    ("name", "model", "asks", "dropped"),
    [
        ("auto", "gpt-5", THINKS, ()),
        ("openai", "gpt-4.1", {}, ()),
        ("openai", "o3", {}, (*SAMPLERS, "stop")),
        ("openai", "o1-pro", {}, SAMPLERS),
        ("openai", "gpt-5-mini", {}, (*SAMPLERS, "stop")),
        ("openai", "GPT-5", {}, (*SAMPLERS, "stop")),
        ("azure", "openai/gpt-5", {}, (*SAMPLERS, "stop")),
        ("openai", "gpt-5-chat-latest", {}, ()),
        ("openai", "gpt-5.2-pro", {}, SAMPLERS),
        ("openai", "gpt-5.2", {}, ()),
        ("openai", "gpt-5.2", {"reasoning_effort": "none"}, ()),
        ("openai", "gpt-5.2", THINKS, SAMPLERS),
        ("openai", "gpt-5.2", THINKS_THERE, SAMPLERS),
        ("openai", "gpt-5.5", {}, SAMPLERS),
        ("openai", "gpt-5.5", {"reasoning": {"summary": "auto"}}, SAMPLERS),
        ("openai", "gpt-5.5", {"reasoning": {"effort": "none"}}, ()),
        ("openai", "gpt-5.6-sol", {"reasoning_effort": "none"}, ()),
        ("moonshot", "kimi-k2.6", {}, SAMPLERS),
        ("moonshot", "kimi-k2-thinking", {}, ()),
        ("xai", "grok-4-fast-reasoning", {}, ("frequency_penalty", "stop")),
        ("xai", "grok-4-fast-reasoning", THINKS, ("frequency_penalty", "stop", "reasoning_effort")),
        (
            "xai",
            "grok-4.20-0309-reasoning",
            THINKS_THERE,
            ("frequency_penalty", "stop", "reasoning.effort"),
        ),
        ("xai", "grok-3-mini", THINKS, ("frequency_penalty", "stop")),
        ("xai", "grok-4-fast-non-reasoning", {}, ()),
        ("groq", "openai/gpt-oss-120b", {"logprobs": True, "n": 2}, ("logprobs",)),
        ("cerebras", "zai-glm-4.7", {}, ("frequency_penalty",)),
        ("anthropic", "claude-sonnet-4-5", {}, ()),
        ("anthropic", "claude-sonnet-4-5", {"thinking": {"type": "enabled"}}, ("temperature",)),
        ("anthropic", "claude-sonnet-4-5", {"thinking": {"type": "disabled"}}, ()),
        ("anthropic", "claude-opus-4-7", {}, ("temperature", "top_p")),
        ("deepseek", "deepseek-v4-pro", THINKS, ()),
    ],
)
def test_fields_that_a_reasoning_model_rejects_are_removed(
    name: str, model: str, asks: dict[str, Any], dropped: tuple[str, ...]
) -> None:
    body = {"model": model, **SAMPLED, **asks}
    assert set(PROFILES[name].drop_rejected(body, model)) == set(dropped)
    remaining = {**SAMPLED, **asks}.keys() - {field.partition(".")[0] for field in dropped}
    assert body.keys() == {"model", *remaining}


def test_siblings_of_a_nested_field_stay() -> None:
    body = {"reasoning": {"effort": "low", "summary": "auto"}}
    assert PROFILES["xai"].drop_rejected(body, "grok-4") == ("reasoning.effort",)
    assert body == {"reasoning": {"summary": "auto"}}


def test_a_null_is_no_parameter() -> None:
    body = {"temperature": None, "reasoning": "low"}
    assert PROFILES["openai"].drop_rejected(body, "o3") == ()
    assert PROFILES["xai"].drop_rejected(body, "grok-4") == ()
    assert body == {"temperature": None, "reasoning": "low"}
