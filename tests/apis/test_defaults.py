"""The effort and verbosity of the settings, for requests that leave them open."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.apis.effort import RequestDefaults
from abridge.apis.registry import APIS
from abridge.providers.catalog import PROFILES
from abridge.providers.profile import ApiName

CLIENT_APIS = {api.name: api for api in APIS}

LOW = RequestDefaults(effort="low", verbosity="high")
OFF = RequestDefaults(effort="none")


@pytest.mark.parametrize(
    ("defaults", "api", "name", "body", "filled"),
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
        (RequestDefaults(effort="high"), "messages", "auto", {"output_config": {"format": {}}}, {
            "output_config": {"effort": "high", "format": {}}
        }),
        (RequestDefaults(effort="minimal"), "messages", "auto", {}, {
            "output_config": {"effort": "low"}
        }),
        (OFF, "messages", "auto", {}, {"thinking": {"type": "disabled"}}),
    ],
)  # fmt: skip
def test_what_a_client_leaves_open_is_filled(
    defaults: RequestDefaults, api: ApiName, name: str, body: dict[str, Any], filled: dict[str, Any]
) -> None:
    names = defaults.fill(body, CLIENT_APIS[api], PROFILES[name])
    assert names == tuple(key for key in ("effort", "verbosity") if getattr(defaults, key))
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
        ("messages", "auto", {"output_config": {"effort": "high"}}),
        ("messages", "auto", {"thinking": {"type": "adaptive"}}),
    ],
)
def test_what_a_client_sets_stays(api: ApiName, name: str, body: dict[str, Any]) -> None:
    before = dict(body)
    assert LOW.fill(body, CLIENT_APIS[api], PROFILES[name]) == ()
    assert body == before


def test_the_profile_stays_as_it_is() -> None:
    row, body = PROFILES["vllm"], dict[str, Any]()
    OFF.fill(body, CLIENT_APIS["chat"], row)
    body["chat_template_kwargs"]["enable_thinking"] = True
    assert row.thinking_off["chat_template_kwargs"] == {"enable_thinking": False}


def test_without_defaults_nothing_is_filled() -> None:
    body: dict[str, Any] = {}
    assert RequestDefaults().fill(body, CLIENT_APIS["chat"], PROFILES["auto"]) == ()
    assert body == {}


@pytest.mark.parametrize(
    ("defaults", "name", "unsupported"),
    [
        (LOW, "openai", False),
        (LOW, "qwen", True),
        (OFF, "qwen", False),
        (LOW, "minimax", True),
        (RequestDefaults(verbosity="low"), "qwen", False),
    ],
)
def test_an_effort_without_a_field_is_unsupported(
    defaults: RequestDefaults, name: str, *, unsupported: bool
) -> None:
    assert defaults.has_unsupported_effort(PROFILES[name]) is unsupported
