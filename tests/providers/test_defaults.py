"""The effort and verbosity of settings, put where a client says none (OLS-08)."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.providers.catalog import PROFILES
from abridge.providers.defaults import RequestDefaults
from abridge.providers.profile import ApiName

LOW = RequestDefaults(effort="low", verbosity="high")
OFF = RequestDefaults(effort="none")


@pytest.mark.parametrize(
    ("preset", "api", "name", "body", "filled"),
    [
        (LOW, "chat", "auto", {}, {"reasoning_effort": "low", "verbosity": "high"}),
        (
            LOW,
            "responses",
            "auto",
            {},
            {"reasoning": {"effort": "low"}, "text": {"verbosity": "high"}},
        ),
        (
            LOW,
            "responses",
            "auto",
            {"reasoning": {"summary": "auto"}, "text": {"format": {"type": "text"}}},
            {
                "reasoning": {"summary": "auto", "effort": "low"},
                "text": {"format": {"type": "text"}, "verbosity": "high"},
            },
        ),
        (OFF, "chat", "deepseek", {}, {"thinking": {"type": "disabled"}}),
        (OFF, "responses", "deepseek", {}, {"reasoning": {"effort": "none"}}),
        (
            OFF,
            "chat",
            "vllm",
            {"chat_template_kwargs": {"other": 1}},
            {"chat_template_kwargs": {"other": 1, "enable_thinking": False}},
        ),
        (LOW, "chat", "openai", {"reasoning": {"summary": "auto"}}, {
            "reasoning": {"summary": "auto"}, "reasoning_effort": "low", "verbosity": "high"
        }),
        (LOW, "chat", "auto", {"reasoning_effort": None, "verbosity": None}, {
            "reasoning_effort": "low", "verbosity": "high"
        }),
        (RequestDefaults(verbosity="low"), "chat", "qwen", {}, {"verbosity": "low"}),
    ],
)  # fmt: skip
def test_ols_08_what_a_client_leaves_unsaid_is_said(
    preset: RequestDefaults, api: ApiName, name: str, body: dict[str, Any], filled: dict[str, Any]
) -> None:
    said = preset.fill(body, api, PROFILES[name])
    assert said == tuple(key for key in ("effort", "verbosity") if getattr(preset, key))
    assert body == filled


@pytest.mark.parametrize(
    ("api", "name", "body"),
    [
        ("chat", "auto", {"reasoning_effort": "high", "verbosity": "low"}),
        ("chat", "auto", {"reasoning": {"effort": "high"}, "verbosity": "low"}),
        ("chat", "deepseek", {"thinking": {"type": "enabled"}, "verbosity": "low"}),
        ("chat", "qwen", {"enable_thinking": True, "verbosity": "low"}),
        (
            "chat",
            "vllm",
            {"chat_template_kwargs": {"enable_thinking": True}, "verbosity": "low"},
        ),
        ("responses", "auto", {"reasoning": {"effort": "none"}, "text": {"verbosity": "low"}}),
    ],
)
def test_ols_08_what_a_client_says_wins(api: ApiName, name: str, body: dict[str, Any]) -> None:
    before = dict(body)
    assert LOW.fill(body, api, PROFILES[name]) == ()
    assert body == before


def test_the_profile_stays_as_it_is() -> None:
    row, body = PROFILES["vllm"], dict[str, Any]()
    OFF.fill(body, "chat", row)
    body["chat_template_kwargs"]["enable_thinking"] = True
    assert row.thinking_off["chat_template_kwargs"] == {"enable_thinking": False}


def test_without_a_preset_nothing_is_said() -> None:
    body: dict[str, Any] = {}
    assert RequestDefaults().fill(body, "chat", PROFILES["auto"]) == ()
    assert body == {}


@pytest.mark.parametrize(
    ("preset", "name", "unsayable"),
    [
        (LOW, "openai", False),
        (LOW, "qwen", True),
        (OFF, "qwen", False),
        (LOW, "minimax", True),
        (RequestDefaults(verbosity="low"), "qwen", False),
    ],
)
def test_an_effort_for_which_there_is_no_field_can_be_told(
    preset: RequestDefaults, name: str, *, unsayable: bool
) -> None:
    assert preset.has_unsupported_effort(PROFILES[name]) is unsayable
