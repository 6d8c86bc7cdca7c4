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
    return [reference.param for reference in find_object_references(body, checks_responses=True)]


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


@pytest.mark.parametrize(
    ("body", "param"),
    [
        *((body, next(iter(body))) for body in (
            {"Previous_Response_Id": "resp_1"},
            {"previous-response-id": "resp_1"},
            {"PREVIOUSRESPONSEID": "resp_1"},
            {"previous_response_id": ["resp_1"]},
            {"previous_response_id": {"id": "resp_1"}},
            {"cached_content": "cachedContents/1"},
            {"cachedContent": "cachedContents/1"},
            {"vector_store_id": "vs_1"},
            {"vectorStoreId": "mine"},
            {"assistant_id": "asst_1"},
            {"thread_id": "thread_1"},
            {"knowledge_id": 17},
            {"library_ids": ["mine"]},
            {"file_search_store_names": ["mine"]},
            {"Conversation": "conv_1"},
            {"conversation": [{"id": "conv_1"}]},
            {"prompt": ["pmpt_1"]},
            {"anything": "file-abc"},
            {"anything": "projects/p/locations/l/cachedContents/1"},
            {"anything": "projects/p/locations/l/models/1"},
            {"file_id": {"anything": "f"}},
        )),
        ({"extra_body": {"previous_response_id": "resp_1"}}, "extra_body.previous_response_id"),
        ({"extra_body": {"metadata": {"thread_id": "x"}}}, "extra_body.metadata.thread_id"),
        ({"extra_body": {"input": [{"id": "msg_1"}]}}, "extra_body.input[0].id"),
        (
            {"data_sources": [{"parameters": {"index_name": "secrets"}}]},
            "data_sources[0].parameters.index_name",
        ),
        ({"anything": [{"else": ["vs_1"]}]}, "anything[0].else[0]"),
        ({"agent": {"id": "mine"}}, "agent.id"),
        ({"audio": {"voice": {"id": "mine"}}}, "audio.voice.id"),
        ({"thread": {"previous_message_id": "msg_1"}}, "thread.previous_message_id"),
        ({"Metadata": {"thread_id": "x"}}, "Metadata.thread_id"),
        ({"tools": [{"type": "retrieval", "retrieval": {"knowledge_id": "x"}}]},
         "tools[0].retrieval.knowledge_id"),
        ({"tools": [{"type": "search", "parameters": {"index_name": "x"}}]},
         "tools[0].parameters.index_name"),
        ({"tools": [{"type": "connector", "connector_id": "mine"}]}, "tools[0].connector_id"),
        ({"messages": [{"tool_call_id": ["file-1"]}]}, "messages[0].tool_call_id"),
        ({"messages": [{"content": [{"type": "file", "file": {"id": "file-1"}}]}]},
         "messages[0].content[0].file.id"),
        ({"Input": [{"type": "item_reference", "id": "msg_1"}]}, "Input[0].id"),
        ({"input": {"id": "msg_1"}}, "input.id"),
        ({"input": [{"type": "item_reference", "id": ["msg_1"]}]}, "input[0].id"),
        ({"input": [{"type": "item_reference", "Id": "msg_1"}]}, "input[0].Id"),
        ({"input": [{"Type": "item_reference", "id": "msg_1", "role": "user"}]}, "input[0].Type"),
        ({"input": [{"type": ["item_reference"], "id": "msg_1"}]}, "input[0].type"),
        (
            {"input": [{"type": "reasoning", "id": "rs_1", "encrypted_content": "x",
                        "EncryptedContent": None}]},
            "input[0].EncryptedContent",
        ),
        ({"input": [{"type": "message", "item": "msg_1"}]}, "input[0].item"),
        ({"container": {"id": "c", "file_ids": ["f"]}}, "container.file_ids"),
        ({"prompt": {"variables": {"a": {"file_id": "f"}}}}, "prompt.variables.a.file_id"),
        ({"stop_token_ids": ["file-1"]}, "stop_token_ids"),
    ],
)  # fmt: skip
def test_what_is_not_known_to_be_harmless_may_name_an_object(
    body: dict[str, Any], param: str
) -> None:
    assert param in params(body)
    assert may_name_objects(json.dumps(body).encode())


@pytest.mark.parametrize(
    "body",
    [
        {"previous_response_id": "resp_1", "input": [{"type": "item_reference", "id": "msg_1"}]},
        {"previous_response_id": None, "conversation_id": None, "thread_id": "", "is_valid": True},
        {"input": [{"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f"}]},
        {"input": [{"type": "tool_search_call", "arguments": {"thread_id": "x"}}]},
        {"input": [{"type": "computer_call", "pending_safety_checks": [{"id": "sc_1"}]}]},
        {"input": "file-abc", "instructions": "vs_1", "user": "thread_1", "stop": ["file-"]},
        {"prompt_cache_key": "thread_1", "safety_identifier": "user_1", "session_id": "s"},
        {"messages": [{"id": "msg_1", "role": "user", "name": "conv_1", "content": "file-abc"}]},
        {"messages": [{"tool_calls": [{"id": "fc_1", "function": {"name": "file_search"}}]}]},
        {"messages": [{"tool_call_id": "fc_1", "content": [{"type": "text", "text": "vs_1"}]}]},
        {"messages": [{"content": [{"type": "tool_use", "id": "toolu_1", "caller": {
            "type": "code_execution_20250825", "tool_id": "srvtoolu_1"}}]}]},
        {"messages": [{"content": [{"type": "tool_result", "tool_use_id": "toolu_1"}]}]},
        {"messages": [{"reasoning_details": [{"id": "rs_1", "type": "reasoning.encrypted"}]}]},
        {"messages": [{"content": [{"type": "file", "file": {"filename": "a.pdf"}}]}]},
        {"metadata": {"user_id": "u", "thread_id": "thread_1", "index_name": "x"}},
        {"client_metadata": {"x-codex-installation-id": "1"}},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {
            "properties": {"index_name": {"type": "string", "default": "vs_1"}}}}}]},
        {"tools": [{"name": "f", "input_schema": {"properties": {"thread_id": {}}}}]},
        {"tools": [{"type": "namespace", "tools": [{"type": "function", "parameters": {
            "required": ["file_id"], "properties": {"file_id": {"type": "string"}}}}]}]},
        {"tools": [{"type": "mcp", "server_label": "x", "headers": {"X-Account-Id": "7"}}]},
        {"tools": [{"type": "mcp", "connector_id": "connector_gmail", "authorization": "x",
                    "allowed_tools": {"tool_names": ["get_id"]}}]},
        {"tools": [{"type": "mcp_toolset", "mcp_server_name": "x",
                    "configs": {"get_file_id": {"enabled": True}}}]},
        {"tool_choice": {"type": "file_search"}, "include": ["file_search_call.results"]},
        {"response_format": {"json_schema": {"name": "x", "schema": {"thread_id": {"a": 1}}}}},
        {"text": {"format": {"schema": {"properties": {"user_id": {"type": "string"}}}}}},
        {"plugins": [{"id": "file-parser", "pdf": {"engine": "native"}}]},
        {"stop_token_ids": [1, 2], "logit_bias": {"50256": -100}, "top_k": 5},
    ],
)  # fmt: skip
def test_what_clients_send_every_day_names_no_object(body: dict[str, Any]) -> None:
    assert params(body) == []


def test_who_may_use_a_response_is_checked_on_its_own_api_alone() -> None:
    body = {"previous_response_id": "resp_1", "input": [{"id": "msg_1"}]}
    found = [reference.param for reference in find_object_references(body)]
    assert sorted(found) == ["input[0].id", "previous_response_id"]


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
