"""Any value in any field of a request: it is forwarded, or refused with a 400, never a fault."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import ASGIApp

from abridge.pipeline.prepare import TOO_DEEP
from tests.end_to_end.mutations import changed, places
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.matrix import some
from tests.support.nesting import nested_json
from tests.support.streams import completion, message_item, response
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

Json: TypeAlias = dict[str, Any]
Path: TypeAlias = tuple[str | int, ...]

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
KEY = {"authorization": "Bearer sk-anna-1234567890"}
SCHEMA: Json = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}
GRAMMAR = {"syntax": "lark", "definition": "start: /x/"}
BREAKPOINT = {"type": "ephemeral"}
TUNING: Json = {
    "temperature": 0.5,
    "top_p": 0.9,
    "top_k": 3,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.1,
    "top_logprobs": 2,
    "parallel_tool_calls": False,
    "service_tier": "default",
    "user": "u",
    "safety_identifier": "s",
    "metadata": {"k": "v"},
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "prompt_cache_options": {"mode": "x", "ttl": "y"},
    "store": False,
    "stream": False,
    "stream_options": {"include_usage": True},
    "moderation": {},
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "output_config": {"effort": "low"},
    "chat_template_kwargs": {"enable_thinking": True},
    "provider": {"order": ["x"]},
}
CHAT_BODY: Json = {
    "model": "m",
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}], "name": "dev"},
        {
            "role": "user",
            "name": "anna",
            "content": [
                {"type": "text", "text": "Hi", "cache_control": BREAKPOINT},
                {
                    "type": "image_url",
                    "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"},
                },
                {
                    "type": "file",
                    "file": {"file_data": "data:text/plain;base64,QQ==", "filename": "a"},
                },
                {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
            ],
        },
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "So."}, {"type": "refusal", "refusal": "No."}],
            "refusal": "No.",
            "reasoning": "I think.",
            "reasoning_content": "I think.",
            "reasoning_details": [
                {"type": "reasoning.text", "text": "I think.", "signature": "s", "index": 0},
                {"type": "reasoning.encrypted", "data": "opaque", "index": 1},
                {"type": "reasoning.summary", "summary": "So.", "index": 2},
            ],
            "thinking_blocks": [
                {"type": "thinking", "thinking": "I think.", "signature": "s"},
                {"type": "redacted_thinking", "data": "opaque"},
            ],
            "provider_specific_fields": {
                "reasoning_content": "x",
                "reasoning_details": [{"data": "y"}],
            },
            "extra_content": {"google": {"thought_signature": "s"}},
            "summary_error": {"code": "timeout"},
            "audio": {"id": "a"},
            "annotations": [],
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "f", "arguments": "{}"},
                    "extra_content": {"google": {"thought_signature": "s"}},
                    "reasoning": [{"type": "summary_text", "text": "So."}],
                    "reasoning_ref": "call_0",
                },
                {"id": "call_2", "type": "custom", "custom": {"name": "c", "input": "x"}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "7"}]},
        {"role": "tool", "tool_call_id": "call_2", "content": "8"},
        {"role": "user", "content": "And?"},
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
        },
        {
            "type": "custom",
            "custom": {"name": "c", "format": {"type": "grammar", "grammar": GRAMMAR}},
        },
        {"type": "function", "name": "flat", "parameters": SCHEMA},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "allowed_tools": {
            "mode": "required",
            "tools": [{"type": "function", "function": {"name": "f"}}],
        },
    },
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "a", "description": "d", "schema": SCHEMA, "strict": True},
    },
    "reasoning": {"effort": "low", "summary": "auto", "max_tokens": 9, "exclude": False},
    "reasoning_effort": "low",
    "max_tokens": 100,
    "max_completion_tokens": 100,
    "stop": ["x", "y"],
    "n": 1,
    "seed": 1,
    "logit_bias": {},
    "logprobs": True,
    "verbosity": "low",
    "prediction": {"type": "content", "content": "x"},
    "modalities": ["text"],
    "audio": {"voice": "v", "format": "wav"},
    "web_search_options": {},
    "functions": [],
    "function_call": "none",
    **TUNING,
}
RESPONSES_BODY: Json = {
    "model": "m",
    "instructions": "Be brief.",
    "input": [
        {"role": "developer", "content": "Be kind."},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Hi"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
                {"type": "input_file", "file_data": "data:text/plain;base64,QQ==", "filename": "a"},
                {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "So."}],
            "content": [{"type": "reasoning_text", "text": "I think."}],
            "encrypted_content": "opaque",
            "status": "completed",
            "summary_error": {"code": "timeout", "message": "x"},
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "<think>x</think>So.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "f",
            "namespace": "n",
            "arguments": "{}",
            "reasoning": [{"type": "summary_text", "text": "So."}],
        },
        {"type": "custom_tool_call", "call_id": "call_2", "name": "c", "input": "x"},
        {
            "type": "local_shell_call",
            "call_id": "call_3",
            "action": {"type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 1},
        },
        {
            "type": "tool_search_call",
            "call_id": "call_4",
            "execution": "client",
            "arguments": {"query": "x"},
        },
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "7"}],
        },
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "8"},
        {"type": "local_shell_call_output", "id": "call_3", "output": "9"},
        {
            "type": "tool_search_output",
            "call_id": "call_4",
            "execution": "client",
            "tools": [{"type": "function", "name": "g", "parameters": SCHEMA}],
        },
        {
            "type": "additional_tools",
            "role": "developer",
            "tools": [{"type": "function", "name": "h", "parameters": SCHEMA}],
        },
        {"role": "user", "content": "And?"},
    ],
    "tools": [
        {"type": "function", "name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
        {"type": "custom", "name": "c", "format": {"type": "grammar", **GRAMMAR}},
        {"type": "local_shell"},
        {"type": "tool_search", "execution": "client", "description": "d", "parameters": SCHEMA},
        {
            "type": "namespace",
            "name": "n",
            "description": "d",
            "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
        },
        {"type": "function", "function": {"name": "nested", "parameters": SCHEMA}},
        {"type": "web_search", "filters": {}},
    ],
    "tool_choice": {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "f"}, {"type": "namespace", "name": "n"}],
    },
    "text": {
        "format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True},
        "verbosity": "low",
    },
    "reasoning": {
        "effort": "low",
        "summary": "auto",
        "generate_summary": "auto",
        "context": "auto",
        "mode": "standard",
    },
    "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
    "max_output_tokens": 100,
    "max_tool_calls": 3,
    "truncation": "disabled",
    "context_management": [],
    "previous_response_id": None,
    "conversation": None,
    "prompt": None,
    "background": False,
    "client_metadata": {},
    "access_programs": [],
    **TUNING,
}
BODIES = {CHAT: CHAT_BODY, RESPONSES: RESPONSES_BODY}
LEAST: dict[str, Json] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    RESPONSES: {"model": "m", "input": [{"role": "user", "content": "Hi"}]},
}


PATHS = {path: [place for place in places(body) if place] for path, body in BODIES.items()}


def only(body: Json, least: Json, path: Path) -> Json:
    """Return the least body with the one field that a path begins with."""
    return {**least, path[0]: body[str(path[0])]}


MODELS = ("m", "claude-opus-4-6", "claude-sonnet-4-5", "claude-3-haiku", "gpt-5")
UPSTREAMS: dict[str, Json] = {
    "chat": {"api": "chat"},
    "chat, openai": {"api": "chat", "profile": "openai", "effort": "low", "verbosity": "low"},
    "chat, mistral": {"api": "chat", "profile": "mistral", "unsupported": "drop"},
    "responses": {"api": "responses", "unsupported": "drop"},
    "responses, openai": {"api": "responses", "profile": "openai"},
    "messages": {"api": "messages", "unsupported": "drop"},
    "messages, as it is": {"api": "messages"},
}
EXPOSURES = ("auto", "summary")


@cache
def app_for(name: str, expose: str) -> ASGIApp:
    message = {"content": "So.", "reasoning_content": "I think."}
    answers = {
        "chat": completion(message),
        "responses": response([message_item(0, "So.")]),
        "messages": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "So."}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    }
    upstream = Upstream(Answer.json(answers[UPSTREAMS[name]["api"]]))
    return build_app(
        "mounted",
        upstream,
        writer=Scripted(),
        upstreams=[UPSTREAMS[name]],
        reasoning={"expose": expose},
        history={"store": "memory", "keep": "all"},
    )


REFERENCES = {"conversation", "previous_response_id"}
"""What a request may name by an id that upstream does not have."""

odd_values = st.recursive(
    st.sampled_from([None, True, False, 0, -1, 1.5, 1e400, 10**30, "", " ", "x", "\ud800", "auto"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "text", "name", "content", "id"]), inner)
    ),
    max_leaves=4,
)


async def assert_answered(name: str, expose: str, endpoint: str, body: Json) -> None:
    answer = await call(app_for(name, expose), endpoint, body, KEY)
    names_what_is_not_there = answer.status == 404 and answer.json["error"]["param"] in REFERENCES
    assert answer.status in (200, 400) or names_what_is_not_there, answer.data
    if answer.status != 200:
        assert answer.json["error"]["message"]
        assert answer.json["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("name", UPSTREAMS)
@pytest.mark.parametrize("endpoint", BODIES)
@settings(max_examples=some(60), deadline=None)
@given(data=st.data())
async def test_an_odd_value_in_any_field_is_forwarded_or_refused(
    endpoint: str, name: str, data: st.DataObject
) -> None:
    body, expose = BODIES[endpoint], data.draw(st.sampled_from(EXPOSURES))
    chosen = data.draw(st.lists(st.sampled_from(PATHS[endpoint]), min_size=1, max_size=2))
    if data.draw(st.booleans()):
        body, chosen = only(body, LEAST[endpoint], chosen[0]), chosen[:1]
    body = {**body, "model": data.draw(st.sampled_from(MODELS))}
    odd = body
    for place in sorted(set(chosen), key=len, reverse=True):  # the inner one first
        odd = changed(odd, place, data.draw(odd_values))
    await assert_answered(name, expose, endpoint, odd)


@pytest.mark.parametrize("levels", [252, 253, 254, 255, 1020, 20_000])
@pytest.mark.parametrize("field", ["metadata", "tools", "unknown"])
@pytest.mark.parametrize("name", UPSTREAMS)
@pytest.mark.parametrize("endpoint", BODIES)
async def test_a_nested_value_is_forwarded_or_refused(
    endpoint: str, name: str, field: str, levels: int
) -> None:
    for expose in EXPOSURES:
        asked = {**LEAST[endpoint], "reasoning": {"summary": "auto"}, field: "nested here"}
        answer = await call(app_for(name, expose), endpoint, nested_json(asked, levels), KEY)
        assert answer.status in (200, 400), answer.data
        if levels > 1020:
            assert answer.json["error"]["code"] == "invalid_json"


@pytest.mark.parametrize("endpoint", BODIES)
async def test_a_body_nested_too_deep_to_be_written_anew_is_refused(endpoint: str) -> None:
    asked = {**LEAST[endpoint], "reasoning": {"summary": "auto"}, "unknown": "nested here"}
    name = next(iter(UPSTREAMS))
    for levels in (255, 600, 1000):
        answer = await call(app_for(name, "both"), endpoint, nested_json(asked, levels), KEY)
        error = answer.json["error"]
        assert (answer.status, error["code"], error["message"]) == (400, "invalid_json", TOO_DEEP)


@pytest.mark.parametrize("name", [name for name in UPSTREAMS if "chat" not in name])
@pytest.mark.parametrize("stop", [[["x"]], [None], [7], [{}], 7, {}, True])
async def test_a_stop_that_is_no_text_is_refused_by_name(name: str, stop: Any) -> None:
    body = {**LEAST[CHAT], "stop": stop}
    answer = await call(app_for(name, "auto"), CHAT, body, KEY)
    error = answer.json["error"]
    assert (answer.status, error["param"], error["code"]) == (400, "stop", "invalid_type")
