"""Test what addresses of upstreams are taken for mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from abridge.config.addresses import find_own_addresses, other_addresses
from abridge.config.settings import Settings
from abridge.config.warnings import settings_warnings


def settings(base_url: str, **tables: Any) -> Settings:
    upstream = tables.pop("upstream", {})
    return Settings.model_validate({"upstreams": [{"base_url": base_url, **upstream}], **tables})


@pytest.mark.parametrize(
    ("base_url", "upstream", "suggested"),
    [
        ("http://vllm:8000", {}, "http://vllm:8000/v1"),
        ("http://vllm:8000/", {"api": "messages"}, "http://vllm:8000/v1"),
        ("https://gemini", {"api": "gemini"}, "https://gemini/v1beta"),
        ("https://gemini", {"api": "interactions"}, "https://gemini/v1beta"),
        ("https://api.deepseek.com", {}, None),
        ("http://vllm:8000/v1", {}, None),
        ("http://gateway/openai", {}, None),
    ],
)
def test_an_address_without_a_path_is_told(
    base_url: str, upstream: dict[str, Any], suggested: str | None
) -> None:
    lines = list(settings_warnings(settings(base_url, upstream=upstream)))
    assert len(lines) == (suggested is not None)
    for line in lines:
        assert line.startswith(f"upstreams[0].base_url: is {base_url.rstrip('/')}, without a path")
        assert line.endswith(f"if it answers 404, set {suggested}")


def test_so_is_that_of_a_summarizer_and_of_a_review() -> None:
    tables = {
        "summarizer": {"kind": "model", "model": "small", "base_url": "http://small"},
        "review": {"base_url": "http://guard/v1"},
        "reasoning": {"expose": "raw"},
    }
    keys = [
        line.partition(": is http")[0]
        for line in settings_warnings(settings("http://u/v1", **tables))
    ]
    assert "summarizer.base_url" in keys
    assert not any(key.startswith("upstreams") for key in keys)


@pytest.mark.parametrize(
    ("base_url", "others"),
    [
        ("http://u", ["http://u/v1", "http://u/v1beta"]),
        ("http://u/api", ["http://u/api/v1", "http://u/api/v1beta", "http://u/v1"]),
        ("http://u/v1", ["http://u"]),
        ("http://u/v1/v1", ["http://u", "http://u/v1"]),
        ("http://u/openai/v1", ["http://u/openai", "http://u/v1"]),
    ],
)
def test_where_else_an_api_may_be(base_url: str, others: list[str]) -> None:
    found = other_addresses(base_url)
    assert [url for url in found if url in others] == others
    assert base_url not in found
    assert len(found) <= 4


@pytest.mark.parametrize(
    ("base_url", "server", "own"),
    [
        ("http://127.0.0.1:8400/v1", {}, True),
        ("http://localhost:8400/v1", {}, True),
        ("http://127.0.0.1:8401/v1", {}, False),
        ("http://127.0.0.1:8401/v1", {"port": 8401}, True),
        ("http://127.0.0.1:9/v1", {"admin_port": 9}, True),
        ("http://127.0.0.2:8400/v1", {}, False),
        ("http://[::1]:8400/v1", {"host": "localhost"}, True),
        ("http://[::1]:8400/v1", {"host": "::"}, True),
        ("http://127.0.0.1:8400/v1", {"host": "0.0.0.0"}, True),  # noqa: S104 -- only a setting
        ("http://0.0.0.0:8400/v1", {"host": "0.0.0.0"}, True),  # noqa: S104 -- only a setting
        ("http://10.0.0.1:8400/v1", {"host": "10.0.0.1"}, True),
        ("http://model:8400/v1", {"host": "0.0.0.0"}, False),  # noqa: S104 -- only a setting
        ("http://localhost/v1", {"port": 80}, True),
        ("https://localhost/v1", {"port": 443}, True),
        ("http://localhost/v1", {"port": 0}, False),
    ],
)
def test_its_own_address_is_found(base_url: str, server: dict[str, Any], *, own: bool) -> None:
    lines = list(find_own_addresses(settings(base_url, server=server)))
    assert len(lines) == own
    assert all(line.startswith("upstreams[0].base_url: is Abridge's own address") for line in lines)
