"""Test which objects a request is found to name."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.apis.object_references import (
    OBJECT_FIELDS,
    find_object_references,
    loaded_id,
    may_name_objects,
)


def params(body: dict[str, Any]) -> list[str]:
    return [reference.param for reference in find_object_references(body)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ({"conversation": "conv_1"}, ["conversation"]),
        ({"conversation": {"id": "conv_1"}}, ["conversation"]),
        ({"conversation": None, "prompt": None, "container": {}}, []),
        ({"tools": [{"container": {"type": "auto"}}]}, []),
        ({"tools": [{"container": {"type": "auto", "file_ids": []}}]}, []),
        ({"tools": [{"vector_store_ids": ["vs"]}]}, ["tools[0].vector_store_ids"]),
        ({"input": [[{"output": {"file_id": "f"}}]]}, ["input[0][0].output.file_id"]),
        ({"tools": [{"parameters": {"properties": {"file_id": {"type": "string"}}}}]}, []),
        ({"tools": [{"parameters": {"examples": [{"file_id": "f"}]}}]}, []),
        ({"metadata": {"file_id": "f", "conversation": "c"}}, []),
        ({"messages": [{"content": "file_id"}], "input": "conversation"}, []),
        (
            {"messages": [{"content": [{"type": "document", "source": {"file_id": "f"}}]}]},
            ["messages[0].content[0].source.file_id"],
        ),
        ({"container": {"skills": [{"skill_id": "s"}]}}, ["container.skills[0].skill_id"]),
        ({"messages": [{"content": [{"type": "tool_use", "input": {"file_id": "f"}}]}]}, []),
        ({"type": "tool_use", "input": [{"file_id": "f"}]}, ["input[0].file_id"]),
        ({"mcp_servers": [{"type": "url", "url": "https://x", "name": "x"}]}, []),
    ],
)
def test_fields_that_name_an_object(body: dict[str, Any], found: list[str]) -> None:
    assert params(body) == found
    assert may_name_objects(json.dumps(body).encode()) or not found


names = st.sampled_from([*OBJECT_FIELDS, "content", "input"])
places = st.lists(names | st.integers(0, 2), max_size=8)


@given(places=places, name=st.sampled_from(sorted(OBJECT_FIELDS)))
def test_one_is_found_however_deep_it_is(places: list[str | int], name: str) -> None:
    body: Any = {name: "id"}
    for place in reversed(places):
        body = [{}] * place + [body] if isinstance(place, int) else {place: body}
    assert any(param.endswith(name) for param in params({"input": body}))


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ({"type": "reasoning", "id": "rs_1"}, "rs_1"),
        ({"type": "reasoning", "id": "rs_1", "encrypted_content": None}, "rs_1"),
        ({"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}, ""),
        ({"type": "reasoning", "summary": []}, ""),
        ({"type": "image_generation_call", "id": "ig_1", "result": ""}, "ig_1"),
        ({"type": "message", "id": "msg_1"}, ""),
        ({"type": ["reasoning"], "id": "rs_1"}, "rs_1"),
        ("rs_1", ""),
    ],
)
def test_items_that_upstream_would_load(item: Any, found: str) -> None:
    assert loaded_id(item) == found
