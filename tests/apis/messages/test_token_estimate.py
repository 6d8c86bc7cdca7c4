"""The estimate of a request's tokens: its documented rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.token_counters import estimate_tokens

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def document(**source: Any) -> dict[str, Any]:
    return {"type": "document", "source": source}


def user(*blocks: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(blocks)}]}


@pytest.mark.parametrize(
    ("request_body", "tokens"),
    [
        ({}, 0),
        ({"messages": []}, 0),
        ({"system": "x" * 40}, 10),
        ({"system": [{"type": "text", "text": "x" * 40}]}, 10),
        ({"messages": [{"role": "user", "content": "x" * 40}]}, 14),
        (user({"type": "text", "text": "x" * 40}), 14),
        (user({"type": "text", "text": "中" * 16}), 14),
        (user(IMAGE), 1604),
        (user(document(type="base64", data="A" * 320_000)), 10_004),
        (user(document(type="base64", data="A")), 1504),
        (user(document(type="url", url="https://example.com/a.pdf")), 1504),
        (user(document(type="text", data="x" * 40)), 14),
        (user(document(type="content", content=[{"type": "text", "text": "x" * 40}])), 14),
        (user({"type": "tool_result", "tool_use_id": "a", "content": "x" * 40}), 14),
        (user({"type": "tool_result", "tool_use_id": "a", "content": [IMAGE]}), 1604),
        (user({"type": "tool_use", "id": "a", "name": "look", "input": {"at": "sky"}}), 11),
        (user({"type": "thinking", "thinking": "x" * 400, "signature": "y" * 400}), 4),
        (user({"type": "redacted_thinking", "data": "y" * 400}), 4),
        ({"tools": [{"name": "look", "input_schema": {"type": "object"}}]}, 20),
    ],
)
def test_what_each_kind_of_content_counts(request_body: dict[str, Any], tokens: int) -> None:
    assert estimate_tokens(request_body) == tokens


def test_blocks_within_blocks_are_counted_to_a_depth() -> None:
    block: Any = "x" * 400
    for _ in range(1000):
        block = [{"type": "tool_result", "content": block}]
    assert estimate_tokens({"messages": [{"role": "user", "content": block}]}) == 4


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(
                ["type", "content", "text", "source", "data", "input", "messages", "tools"]
            ),
            inner | st.sampled_from(["text", "image", "document", "tool_use", "content"]),
        )
    ),
)


@given(st.dictionaries(st.sampled_from(["system", "messages", "tools"]), JSON))
def test_any_request_has_an_estimate(request_body: dict[str, Any]) -> None:
    assert estimate_tokens(request_body) >= 0
