"""Test warnings about surprising settings: one line each, naming the key."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.config.settings import Settings
from abridge.config.warnings import settings_warnings

U = "http://127.0.0.1:8000/v1"
SMALL = {"kind": "model", "base_url": "http://127.0.0.1:8001/v1", "model": "small"}
REVIEW = {"kind": "moderations", "base_url": "http://127.0.0.1:8002/v1"}
HIDING = {"reasoning": {"expose": "summary"}, "summarizer": SMALL}

KEYS = {"seal_keys_env": "KEYS"}
MEMORY = {"history": KEYS}
KEYED = {"keys_file": "keys.jsonl"}
NO_KEY = {"credential": "none"}
OPEN = {"host": "0.0.0.0", "page": True}  # noqa: S104 -- nothing listens
UNSHARED = {"history": {"store": "none", "keep": "none"}}
SEALED = {"store": "none", "seal_keys_env": "KEYS"}


def warned_keys(settings: dict[str, Any], **upstream: Any) -> list[str]:
    known = {**settings, "upstreams": [{"base_url": U, **upstream}]}
    return [line.partition(":")[0] for line in settings_warnings(Settings.model_validate(known))]


@pytest.mark.parametrize(
    ("settings", "upstream", "keys"),
    [
        ({}, {}, []),
        ({"summarizer": SMALL}, {}, []),
        ({"summary": {"language": "de"}}, {}, ["summary.language"]),
        ({"summary": {"language": "reasoning"}}, {}, []),
        ({"summary": {"language": "de"}}, {"summary": {"language": "auto"}}, []),
        ({}, {"summary": {"language": "de"}}, ["summary.language"]),
        ({"summary": {"language": "de"}, "summarizer": SMALL}, {}, []),
        ({"summarizer": {**SMALL, "model": "Qwen/Qwen3-8B"}}, {}, ["summarizer.profile"]),
        ({"summarizer": {**SMALL, "model": "Qwen3-8B", "profile": "vllm"}}, {}, []),
        ({"summarizer": {**SMALL, "model": "qwen3-4b-instruct-2507"}}, {}, []),
        (
            {"summarizer": {**SMALL, "model": "qwen3", "extra_body": {"enable_thinking": False}}},
            {},
            [],
        ),
        ({"summarizer": {**SMALL, "base_url": U}}, {}, ["summarizer.base_url"]),
        ({"summarizer": {"kind": "upstream"}}, {}, ["summarizer.kind"]),
        ({"summarizer": {**SMALL, "kind": "extractive"}}, {}, ["summarizer.base_url"]),
        ({"summarizer": {"model": "small"}}, {}, ["summarizer.model"]),
        (
            {"summarizer": {**SMALL, "kind": "upstream"}},
            {},
            ["summarizer.kind", "summarizer.base_url"],
        ),
        ({"summarizer": {"profile": "vllm", "timeout": 5}}, {}, []),
        ({"review": REVIEW}, {}, ["review.kind"]),
        ({"review": REVIEW, "reasoning": {"expose": "both"}}, {}, ["review.kind"]),
        ({**HIDING, **MEMORY, "review": REVIEW}, {}, []),
        ({"review": {**REVIEW, "kind": "none"}}, {}, ["review.base_url"]),
        ({"server": KEYED}, {}, ["upstreams[0].api_key_env"]),
        ({"server": KEYED}, NO_KEY, []),
        ({"server": KEYED}, {"api_key_env": "UPSTREAM_KEY"}, []),
        ({"server": {**KEYED, **OPEN}}, NO_KEY, []),
        ({"history": {"store": "none"}}, {}, []),
        ({"history": {"store": "none"}}, {"profile": "deepseek"}, ["history.store"]),
        ({"history": {"store": "none"}}, {"api": "messages"}, ["history.store"]),
        ({"history": SEALED}, {"profile": "deepseek"}, []),
        (
            {"history": SEALED, "chat": {"envelope": "none"}},
            {"profile": "deepseek"},
            ["history.store"],
        ),
        ({"history": {"restore": "never"}}, {"profile": "deepseek"}, ["history.restore"]),
        ({"history": {"restore": "never"}}, {"profile": "vllm"}, []),
        (HIDING, {}, ["history.seal_keys_env"]),
        ({**HIDING, **MEMORY}, {}, []),
        ({**HIDING, "history": {"keep": "none"}}, {}, []),
        ({**HIDING, "history": {"store": "none", "seal_keys_env": "K"}}, {}, ["history.store"]),
        ({**HIDING, "history": {"store": "none", "keep": "none"}}, {}, []),
        ({**HIDING, "server": {"host": "0.0.0.0"}, **MEMORY}, {}, ["history.anonymous"]),  # noqa: S104 -- only a setting
        ({**HIDING, "history": {**KEYS, "anonymous": False}}, {}, ["history.anonymous"]),
        ({**HIDING, "server": {"host": "::"}, "history": {**KEYS, "anonymous": True}}, {}, []),
        ({"server": {"workers": 2}, "history": {"store": "none"}}, {}, ["server.workers"]),
        ({"server": {"workers": 2}}, {}, ["server.workers", "server.workers"]),
        (
            {"server": {"workers": 2}},
            {"profile": "deepseek"},
            ["history.store", "server.workers", "server.workers"],
        ),
        ({"server": {"workers": 2}, "history": {"store": "none", "keep": "none"}}, {}, []),
        ({"server": {"workers": 2}, "history": {**KEYS, "store": "redis://r"}}, {}, []),
        ({"server": {"page": True}}, {}, []),
        ({"server": {"page": True, "host": "10.0.0.1"}}, {}, ["server.page"]),
        ({"server": {"host": "10.0.0.1"}}, {"api_key_env": "KEY"}, ["server.host"]),
        ({"server": {"host": "::"}}, {"api_key_env": "KEY"}, ["server.host"]),
        ({"server": {"host": "::"}}, {}, []),
        ({"server": {"host": "127.0.0.1"}}, {"api_key_env": "KEY"}, []),
        ({"server": {"host": "::", "keys_file": "keys"}}, {"api_key_env": "KEY"}, []),
    ],
)
def test_each_surprise_names_its_key(
    settings: dict[str, Any], upstream: dict[str, Any], keys: list[str]
) -> None:
    assert warned_keys(settings, **upstream) == keys


@pytest.mark.parametrize(
    ("upstream", "name"),
    [
        ({"models": ["claude-*"]}, "claude-*"),
        ({"models": ["thinker", "claude-sonnet-4-5"]}, "claude-sonnet-4-5"),
        ({"rename": {"sonnet": "claude-sonnet-4-5"}}, "claude-sonnet-4-5"),
        ({"rename": {"my-*": "anthropic/claude-{}"}}, "anthropic/claude-*"),
        ({"models": ["claude-*"], "rename": {"claude-*": "thinker"}}, None),
        ({"models": ["claude-3-5-haiku", "claude-local"]}, None),
        ({"models": ["claude-opus-4-5-distill-GGUF"]}, None),
        ({"models": ["claude-*"], "profile": "vllm"}, None),
        ({"models": ["claude-*"], "profile": "openrouter"}, None),
        ({"models": ["claude-*"], "api": "messages"}, None),
        ({"models": ["claude-*"], "reasoning": {"kind": "raw"}}, None),
        ({"models": ["claude-*"], "reasoning": {"kind": "summary"}}, None),
        ({"models": ["*"]}, None),
    ],
)
def test_a_name_of_claudes_that_nothing_else_bears_out_is_told(
    upstream: dict[str, Any], name: str | None
) -> None:
    settings = Settings.model_validate({"upstreams": [{"base_url": U, **upstream}]})
    told = [line for line in settings_warnings(settings) if line.startswith("reasoning.kind: ")]
    assert len(told) == (name is not None)
    assert all(
        f"the model {name} of upstream 'default' is taken for Claude" in line for line in told
    )


def test_where_reasoning_is_hidden_a_name_of_claudes_makes_no_summary() -> None:
    assert warned_keys({**HIDING, **MEMORY}, models=["claude-*"]) == []


@pytest.mark.parametrize(
    ("first", "second", "keys"),
    [
        ({}, {}, ["upstreams[0].credential", "upstreams[1].credential"]),
        ({"credential": "client"}, {}, ["upstreams[1].credential"]),
        ({"credential": "client"}, {"credential": "none"}, []),
        ({"credential": "none"}, {"api_key_env": "KEY"}, []),
    ],
)
def test_of_several_upstreams_each_says_whether_it_gets_the_clients_credential(
    first: dict[str, Any], second: dict[str, Any], keys: list[str]
) -> None:
    entries = [
        {"name": "a", "base_url": U, "models": ["a*"], **first},
        {"name": "b", "base_url": U, **second},
    ]
    lines = settings_warnings(Settings.model_validate({"upstreams": entries}))
    assert [line.partition(":")[0] for line in lines] == keys


@pytest.mark.parametrize(
    ("expose", "warns"), [({}, True), ({"expose": "both"}, True), ({"expose": "none"}, False)]
)
def test_a_fallback_that_shows_what_is_hidden_is_told(
    expose: dict[str, Any], *, warns: bool
) -> None:
    entries = [
        {"name": "a", "credential": "none", "fallback": "b", "reasoning": {"expose": "none"}},
        {"name": "b", "credential": "none", "reasoning": expose},
    ]
    settings = {"upstreams": [{"base_url": U, **entry} for entry in entries], **MEMORY}
    lines = list(settings_warnings(Settings.model_validate(settings)))
    assert any(line.startswith("upstreams[].fallback: 'a' hides") for line in lines) is warns


@pytest.mark.parametrize(
    ("first", "second", "unreachable"),
    [
        (["*"], ["*"], ["*"]),
        (["*"], ["gpt-*", "o3"], ["gpt-*", "o3"]),
        (["gpt-*"], ["gpt-5*", "o3"], ["gpt-5*"]),
        (["gpt-*"], ["gpt-[45]", "gpt-?"], ["gpt-[45]", "gpt-?"]),
        (["gpt-5*"], ["gpt-*"], []),
        (["*a*"], ["x[ab]y"], []),
        (["gpt-?"], ["gpt-*", "gpt-5", "gpt-?"], ["gpt-?"]),
        (["gpt-5"], ["GPT-5"], []),
    ],
)
def test_globs_that_an_earlier_upstream_leaves_nothing_are_told(
    first: list[str], second: list[str], unreachable: list[str]
) -> None:
    entries = [
        {"name": "a", "base_url": U, "credential": "none", "models": first},
        {"name": "b", "base_url": U, "credential": "none", "models": second},
    ]
    lines = list(settings_warnings(Settings.model_validate({"upstreams": entries})))
    start = "upstreams[1].models: upstream 'a', which comes first, takes every model that "
    assert [
        line.removeprefix(start).partition(" of upstream 'b' matches")[0] for line in lines
    ] == [repr(glob) for glob in unreachable]
    entries[0]["fallback"] = "b"
    assert list(settings_warnings(Settings.model_validate({"upstreams": entries}))) == []
