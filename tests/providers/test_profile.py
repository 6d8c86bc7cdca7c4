"""Test the effect of a profile on a request."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest

from abridge.providers.catalog import PROFILES
from abridge.providers.profile import Profile, matches_any


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
    body = deepcopy({"model": model, **SAMPLED, **asks})
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


@pytest.mark.parametrize(
    ("name", "model", "expected"),
    [
        ("anthropic", "claude-opus-4-1-20250805", True),
        ("anthropic", "claude-sonnet-4-20250514", True),
        ("anthropic", "claude-haiku-4-5", True),
        ("anthropic", "claude-sonnet-5-5", True),
        ("anthropic", "claude-fable-5", True),
        ("anthropic", "claude-mythos-preview", True),
        ("anthropic", "claude-3-7-sonnet-20250219", False),
        ("anthropic", "claude-3-opus-latest", False),
        ("anthropic", "gemini-2.5-pro", False),
        ("auto", "claude-opus-4-1@20250805", True),  # Vertex AI
        ("auto", "my-claude-sonnet-4", False),
        ("auto", "qwen3-8b-claude-sonnet-4-distill", False),
        ("auto", "claude-opus-4-5-distill-8b.gguf", False),
        ("auto", "deepseek-r1", False),
        ("auto", "gpt-5", False),
        ("auto", "", False),
        ("azure", "claude-opus-4-1", True),
        ("bedrock", "us.anthropic.claude-sonnet-4-20250514-v1:0", True),
        ("bedrock", "anthropic.claude-3-7-sonnet-20250219-v1:0", False),
        (
            "bedrock",
            "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-haiku-4-5-v1:0",
            True,
        ),
        ("bedrock", "openai.gpt-oss-120b-1:0", False),
        ("gemini", "gemini-2.5-flash-lite", True),
        ("gemini", "models/gemini-3.1-pro-preview", True),
        ("gemini", "gemini-flash-latest", True),
        ("gemini", "gemini-2.0-flash-thinking-exp", False),
        ("gemini", "gemma-3-27b-it", False),
        ("litellm", "anthropic/claude-sonnet-4-5", True),
        ("litellm", "vertex_ai/claude-opus-4@20250514", True),
        ("openrouter", "anthropic/claude-sonnet-4.5:thinking", True),
        ("openrouter", "anthropic/claude-3.7-sonnet:thinking", False),
        ("openrouter", "google/gemini-2.5-pro", True),
        ("openrouter", "deepseek/deepseek-r1@preset/claude-opus-4", False),
        ("openrouter", "anthropic/claude-opus-4" + "x" * 100_000, False),
        ("openrouter", "Google/Gemini-3-Flash", True),
        ("vllm", "claude-opus-4-1", False),  # whatever somebody called a model of their own
        ("ollama", "gemini-3-flash-preview:cloud", False),
    ],
)
def test_which_models_reason_in_summaries(name: str, model: str, *, expected: bool) -> None:
    assert PROFILES[name].reasons_in_summaries([model]) is expected


def test_models_reason_in_summaries_if_each_does() -> None:
    reasons = PROFILES["openrouter"].reasons_in_summaries
    assert reasons(["anthropic/claude-opus-4", "google/gemini-2.5-pro"])
    assert not reasons(["anthropic/claude-opus-4", "deepseek/deepseek-r1"])
    assert not reasons([])


@pytest.mark.parametrize(
    ("globs", "matches"),
    [
        ((), False),
        (("gpt-4*", "gpt-5"), True),
        (("gpt", "*-5x"), False),
        (["[a-g]pt-?"], True),
        (("GPT-5",), False),
    ],
)
def test_a_model_matches_if_one_of_the_globs_does(globs: Sequence[str], *, matches: bool) -> None:
    assert matches_any("gpt-5", globs) is matches
