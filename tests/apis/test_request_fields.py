"""What of a request goes upstream where reasoning is hidden."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.api import Api
from abridge.apis.chat.api import CHAT
from abridge.apis.messages.api import MESSAGES
from abridge.apis.registry import APIS
from abridge.apis.responses.api import RESPONSES
from abridge.apis.shapes import DropCount, rebuild
from tests.support.shared import OPENAPI

Json = dict[str, Any]
BOTH = pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
CONVERSATION = {api.name: api.conversation_field for api in APIS}


def kept(api: Api, body: Json) -> tuple[Json, int]:
    """Return what is kept of a body, and how much was dropped."""
    drops = DropCount()
    return rebuild(body, api.request_shape, drops), drops.count


def without_empty(value: Any) -> Any:
    """Return an object without empty ones in it."""
    if not isinstance(value, dict):
        return value
    return {key: inner for key in value if (inner := without_empty(value[key])) != {}}


REVEALING: tuple[Json, ...] = (
    {"prompt_logprobs": 1},
    {"logit_bias": {"151668": -100}},
    {"stop_token_ids": [151668]},
    {"bad_words": ["</think>"]},
    {"ignore_eos": True},
    {"echo": True},
    {"return_prompt_text": True},
    {"return_token_ids": True},
    {"return_tokens_as_token_ids": True},
    {"include_reasoning": False},
    {"separate_reasoning": False},
    {"reasoning_split": False},
    {"reasoning_format": "raw"},
    {"reasoning_format": "none"},
    {"reasoning_format": "deepseek-legacy"},
    {"reasoning": {"exclude": True}},
    {"thinking": {"output": "content"}},
    {"chat_template_kwargs": {"add_generation_prompt": False}},
    {"chat_template": "{{ messages }}"},
    {"continue_final_message": True},
    {"add_generation_prompt": False},
    {"skip_special_tokens": False},
    {"extra_body": {"google": {"thought_tag_marker": "b"}}},
    {"google": {"thinking_config": {"thought_tag_marker": "b"}}},
    {"stream_options": {"include_everything": True}},
    {"raw_output": True},
    {"debug": {"echo_upstream_body": True}},
    {"merge_reasoning_content_in_choices": True},
    {"prefix": True},
    {"detokenize": False},
    {"n_probs": 5},  # llama.cpp
    {"response_fields": ["content"]},
    {"return_hidden_states": True},  # SGLang
    {"custom_logit_processor": "x"},
    {"vllm_xargs": {"x": 1}},
    {"plugins": [{"id": "x"}]},  # OpenRouter
    {"api_base": "http://x"},  # LiteLLM
    {"extra_headers": {"x": "y"}},
    {"enable_response_messages": True},
    {"stop": "</think>"},
    {"stop": ["</thi"]},
    {"stop": "</THINK>"},
    {"stop": "So.</"},
    {"stop": "nk>So."},
    {"stop": "◁"},
    {"stop_sequences": ["</think>\n\n"]},
    {"stop": "[BEGIN FINAL RESPONSE]"},
    {"stop": ["assistantfinal"]},
    {"stop": "Here is my response:"},
    {"stop": "## Final Response"},
    {"stop": "FINAL ANSWER:"},
    {"anything_new": {"x": 1}},
)


@BOTH
@pytest.mark.parametrize("fields", REVEALING, ids=json.dumps)
def test_what_may_reveal_is_dropped_and_counted(api: Api, fields: Json) -> None:
    body, dropped = kept(api, {"model": "m", **fields})
    assert dropped == 1
    assert without_empty(body) == {"model": "m"}


HARMLESS: tuple[Json, ...] = (
    {"temperature": 0.2, "top_k": 20, "min_p": 0.1, "repetition_penalty": 1.1, "seed": 7},
    {"top_n_sigma": 1.0, "min_keep": 1},
    {"stop": ["\n\n", "Observation:", "<|im_end|>", "</s>", "</tool_call>", "###"]},
    {"stop": "STOP"},
    {"stop": ["Here is", "response:", "assistant", "## Final", "The answer:"]},
    {"stop_sequences": ["STOP"]},
    {"guided_json": {"type": "object"}, "structured_outputs": {"choice": ["a"]}},
    {"chat_template_kwargs": {"enable_thinking": False, "reasoning_effort": "low"}},
    {"reasoning": {"effort": "low", "max_tokens": 100, "enabled": True, "summary": "auto"}},
    {"thinking": {"type": "enabled", "budget_tokens": 2000}},
    {"enable_thinking": True, "reasoning_effort": "high", "thinking_budget": 100},
    {"thinking_token_budget": 9, "thinking_budget_tokens": 9, "reasoning_budget_tokens": 9},
    {"include_reasoning": True, "separate_reasoning": True, "reasoning_format": "parsed"},
    {"extra_body": {"google": {"thinking_config": {"include_thoughts": True}}}},
    {"provider": {"order": ["a"]}, "models": ["a", "b"], "transforms": ["middle-out"]},
    {"tools": [{"type": "function", "name": "f", "echo": True}], "metadata": {"echo": "x"}},
    {"temperature": None, "reasoning": None},
)


@BOTH
@pytest.mark.parametrize("fields", HARMLESS, ids=json.dumps)
def test_what_reveals_nothing_is_kept_as_it_is(api: Api, fields: Json) -> None:
    assert kept(api, fields) == (fields, 0)


def test_entries_of_lists_are_dropped_singly() -> None:
    assert kept(CHAT, {"stop": ["x", "</think>", "<", ">"]}) == ({"stop": ["x"]}, 3)
    include = ["message.output_text.logprobs", "reasoning.encrypted_content", "new"]
    assert kept(RESPONSES, {"include": include}) == ({"include": include[:2]}, 1)
    assert kept(RESPONSES, {"include": include[2:]}) == ({}, 1)
    assert kept(RESPONSES, {"include": []}) == ({}, 0)


@pytest.mark.parametrize("flag", ["dev-full-thinking-2025-05-14", "Dev-Full-Thinking, files-api"])
def test_the_flag_for_full_thinking_is_dropped(flag: str) -> None:
    other = "interleaved-thinking-2025-05-14"
    assert kept(MESSAGES, {"betas": [other, flag]}) == ({"betas": [other]}, 1)
    assert kept(MESSAGES, {"betas": flag}) == ({}, 1)


@BOTH
@pytest.mark.parametrize(
    "content",
    [
        "<think>\n",
        "Sure.\n<Thinking>",
        "`<think>",
        [{"type": "text", "text": "[THINK]"}],
        [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}], "closed": False}],
    ],
    ids=["text", "within", "after a backtick", "parts", "a chunk"],
)
def test_thinking_that_the_client_begins_is_dropped(api: Api, content: Any) -> None:
    field = CONVERSATION[api.name]
    user, begun = {"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}
    assert kept(api, {field: [user, begun, begun]}) == ({field: [user]}, 2)
    assert kept(api, {field: [user, begun, user]}) == ({field: [user, begun, user]}, 0)
    for role in ("user", "system", "tool"):
        assert kept(api, {field: [{"role": role, "content": content}]})[1] == 0
    sent = [user, begun]
    kept(api, {field: sent})
    assert sent == [user, begun]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("content", [None, "", []])
def test_a_message_of_nothing_but_reasoning_is_dropped(name: str, content: Any) -> None:
    user = {"role": "user", "content": "Hi"}
    begun = {"role": "assistant", "content": content, name: "First I"}
    assert kept(CHAT, {"messages": [user, begun]}) == ({"messages": [user]}, 1)
    for last in ({**begun, "content": "{"}, {**begun, "tool_calls": [{"id": "c"}]}):
        assert kept(CHAT, {"messages": [user, last]})[1] == 0
    assert kept(CHAT, {"messages": [user, begun, user]})[1] == 0


@pytest.mark.parametrize("status", ["incomplete", "in_progress", None])
def test_reasoning_that_a_server_may_continue_is_dropped(status: str | None) -> None:
    user, called = {"role": "user", "content": "Hi"}, {"type": "function_call", "name": "f"}
    begun = {"type": "reasoning", "summary": [], "status": status}
    assert kept(RESPONSES, {"input": [user, begun]}) == ({"input": [user]}, 1)
    assert kept(RESPONSES, {"input": [user, begun, called]})[1] == 0


@BOTH
@pytest.mark.parametrize(
    "conversation", ["Hi", None, [], 7, [None], [{"role": "assistant", "content": "{"}]]
)
def test_any_other_conversation_is_kept(api: Api, conversation: Any) -> None:
    body = {CONVERSATION[api.name]: conversation}
    assert kept(api, body) == (body, 0)


@pytest.mark.skipif(not OPENAPI.is_file(), reason="no API description")
@pytest.mark.parametrize(
    ("api", "schema", "revealing"),
    [
        (CHAT, "CreateChatCompletionRequest", {"logit_bias"}),
        (RESPONSES, "CreateResponse", set()),
    ],
    ids=["chat", "responses"],
)
def test_openais_own_fields_are_kept_but_for_those(
    api: Api, schema: str, revealing: set[str]
) -> None:
    schemas = json.loads(OPENAPI.read_text())["components"]["schemas"]

    def properties(node: Json) -> set[str]:
        if "$ref" in node:
            return properties(schemas[node["$ref"].rsplit("/", 1)[1]])
        inherited = [properties(part) for part in node.get("allOf", ())]
        return set(node.get("properties", ())).union(*inherited)

    names = properties(schemas[schema])
    assert len(names) > 20
    body, _ = kept(api, dict.fromkeys(names))
    assert names - body.keys() - {"stop", "include"} == revealing
