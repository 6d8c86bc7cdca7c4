"""Test translating a request's plain parameters."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from abridge.apis.api import UpstreamOptions
from abridge.apis.chat import request as chat
from abridge.apis.messages import request as messages
from abridge.apis.params import PARAMS
from abridge.apis.responses import request as responses
from abridge.errors import RequestError
from abridge.providers.catalog import PROFILES
from tests.apis.translation import (
    HELLO,
    Json,
    chat_request,
    messages_request,
    refused_param,
    responses_request,
    to_chat,
    to_messages,
    to_responses,
    unfit,
)

TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}

SAME: dict[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.9,
    "user": "u",
    "service_tier": "flex",
    "presence_penalty": 0.5,
    "frequency_penalty": -0.5,
    "top_k": 40,
}
OPENAI: dict[str, Any] = {
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "prompt_cache_retention": "24h",
    "prompt_cache_options": {"ttl": "30m"},
}


@pytest.mark.parametrize(("key", "value"), SAME.items())
def test_parameters_with_the_same_name_on_both_apis(key: str, value: Any) -> None:
    request_fields = to_responses(chat_request(**{key: value}))
    assert (request_fields.body[key], request_fields.unsupported) == (value, [])
    request_fields = to_chat(responses_request(**{key: value}))
    assert (request_fields.body[key], request_fields.unsupported) == (value, [])


@pytest.mark.parametrize(("stop", "read"), [("END", ["END"]), (["END"], ["END"]), ("", None)])
def test_one_stop_sequence_is_a_list_of_one_and_an_empty_one_none(stop: Any, read: Any) -> None:
    question = chat_request(stop=stop)
    assert question.params.get("stop") == read
    assert to_messages(question).body.get("stop_sequences") == read


@pytest.mark.parametrize(("key", "value"), OPENAI.items())
def test_parameters_of_openai_alone_are_not_sent_to_other_providers(key: str, value: Any) -> None:
    question = responses_request(**{key: value})
    assert to_chat(question, "openai").body[key] == value
    written = to_chat(question, "vllm")
    assert key not in written.body
    assert unfit(written) == {key: False}
    assert to_responses(chat_request(**{key: value})).body[key] == value


@pytest.mark.parametrize(
    ("written_body", "request_fields"),
    [
        ({"max_tokens": 100}, {"max_output_tokens": 100}),
        ({"max_completion_tokens": 100}, {"max_output_tokens": 100}),
        ({"max_tokens": 1, "max_completion_tokens": 100}, {"max_output_tokens": 100}),
        ({"verbosity": "low"}, {"text": {"verbosity": "low"}}),
        ({"reasoning_effort": "high"}, {"reasoning": {"effort": "high"}}),
        ({"reasoning": {"effort": "high"}}, {"reasoning": {"effort": "high"}}),
        ({"reasoning": {"summary": "auto"}}, {"reasoning": {"summary": "auto"}}),
        ({"reasoning": {"max_tokens": 9}}, {"reasoning": {"max_tokens": 9}}),
        ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}),
        ({"metadata": {"a": "b"}}, {"metadata": {"a": "b"}}),
        ({"store": True}, {"store": True}),
        (
            {"logprobs": True, "top_logprobs": 3},
            {
                "include": ["reasoning.encrypted_content", "message.output_text.logprobs"],
                "top_logprobs": 3,
            },
        ),
        ({"response_format": {"type": "text"}}, {}),
        (
            {"response_format": {"type": "json_object"}},
            {"text": {"format": {"type": "json_object"}}},
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "n",
                        "description": "d",
                        "schema": SCHEMA,
                        "strict": True,
                    },
                },
                "verbosity": "low",
            },
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "n",
                        "description": "d",
                        "schema": SCHEMA,
                        "strict": True,
                    },
                    "verbosity": "low",
                }
            },
        ),
        ({"chat_template_kwargs": {"x": 1}}, {"chat_template_kwargs": {"x": 1}}),
    ],
)
def test_a_chat_request_to_responses(written_body: Json, request_fields: Json) -> None:
    written = to_responses(chat_request(**written_body))
    always = {
        "model": "m",
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "input": [{"type": "message", **HELLO}],
    }
    assert written.body == {**always, **request_fields}
    assert written.unsupported == []


@pytest.mark.parametrize(
    ("written_body", "request_fields"),
    [
        ({"max_output_tokens": 100}, {"max_completion_tokens": 100}),
        ({"text": {"verbosity": "low"}}, {"verbosity": "low"}),
        ({"reasoning": {"effort": "high", "summary": "auto"}}, {"reasoning_effort": "high"}),
        ({"reasoning": {"effort": "none"}}, {"reasoning_effort": "none"}),
        ({"reasoning": {"context": "auto", "mode": "standard"}}, {}),
        (
            {"stream": True, "stream_options": {"include_obfuscation": False}},
            {"stream": True, "stream_options": {"include_usage": True}},
        ),
        ({"include": ["reasoning.encrypted_content"]}, {}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
        ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"top_logprobs": 0}, {}),
        ({"text": {"format": {"type": "text"}}}, {}),
        (
            {"text": {"format": {"type": "json_object"}}},
            {"response_format": {"type": "json_object"}},
        ),
        (
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "n",
                        "description": "d",
                        "schema": SCHEMA,
                        "strict": False,
                    }
                }
            },
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {
                        "name": "n",
                        "description": "d",
                        "schema": SCHEMA,
                        "strict": False,
                    },
                }
            },
        ),
        ({"parallel_tool_calls": False}, {}),
        ({"chat_template_kwargs": {"x": 1}}, {"chat_template_kwargs": {"x": 1}}),
    ],
)
def test_a_responses_request_to_chat(written_body: Json, request_fields: Json) -> None:
    written = to_chat(responses_request(**written_body), "openai")
    assert written.body == {"model": "m", "messages": [HELLO], **request_fields}
    assert written.unsupported == []


def test_unknown_keys_of_an_object_are_passed_on_in_it() -> None:
    reasoning = {"effort": "high", "exclude": True}
    question = responses_request(reasoning=reasoning, text={"verbosity": "low", "tone": "kind"})
    assert question.extra == {"reasoning": {"exclude": True}, "text": {"tone": "kind"}}
    assert to_responses(question).body["reasoning"] == reasoning
    written = to_chat(question)
    assert written.body["reasoning_effort"] == "high"
    assert written.body["reasoning"] == {"exclude": True}


def test_a_known_field_wins_over_an_unknown_one() -> None:
    question = chat_request(instructions="x", store_=1)
    question.extra["store"] = True
    body = to_responses(question).body
    assert (body["store"], body["instructions"], body["store_"]) == (False, "x", 1)


def test_the_profile_names_the_field_of_the_token_limit() -> None:
    assert to_chat(responses_request(max_output_tokens=9), "vllm").body["max_tokens"] == 9


def test_a_limit_below_openais_minimum_is_raised() -> None:
    question = chat_request(max_tokens=1)
    assert to_responses(question, "openai").body["max_output_tokens"] == 16


def test_the_effort_is_in_the_profiles_field() -> None:
    question = responses_request(reasoning={"effort": "none"})
    assert to_chat(question, "deepseek").body["thinking"] == {"type": "disabled"}
    question = responses_request(reasoning={"effort": "high"})
    assert unfit(to_chat(question, "qwen")) == {"reasoning.effort": False}


def test_a_summary_that_is_raw_is_not_requested() -> None:
    question = chat_request(reasoning={"summary": "auto"})
    assert "reasoning" not in to_responses(question, "ollama").body


@pytest.mark.parametrize("model", ["gpt-4.1-mini", "openai/gpt-4o", "gpt-5-chat-latest"])
def test_encrypted_content_is_not_requested_of_models_that_refuse_it(model: str) -> None:
    assert "include" not in to_responses(chat_request(model=model)).body


@pytest.mark.parametrize(
    ("key", "value", "matters"),
    [
        ("stop", ["."], True),
        ("logit_bias", {"1": 1}, True),
        ("n", 2, True),
        ("modalities", ["text", "audio"], True),
        ("audio", {"voice": "alloy", "format": "wav"}, True),
        ("web_search_options", {"search_context_size": "low"}, True),
        ("functions", [{"name": "f"}], True),
        ("seed", 1, False),
        ("prediction", {"type": "content", "content": "x"}, False),
    ],
)
def test_what_responses_cannot_carry(key: str, value: Any, matters: bool) -> None:  # noqa: FBT001
    written = to_responses(chat_request(**{key: value}))
    assert unfit(written) == {key: matters}
    assert key not in written.body


@pytest.mark.parametrize(
    ("fields", "param", "matters"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id", True),
        ({"conversation": "conv_1"}, "conversation", True),
        ({"prompt": {"id": "pmpt_1"}}, "prompt", True),
        ({"background": True}, "background", True),
        ({"truncation": "auto"}, "truncation", False),
        ({"max_tool_calls": 3}, "max_tool_calls", False),
        ({"metadata": {"a": "b"}}, "metadata", False),
        ({"reasoning": {"mode": "pro"}}, "reasoning.mode", False),
        ({"include": ["file_search_call.results"]}, "include", False),
        ({"client_metadata": {"session_id": "s"}}, "client_metadata", False),
        ({"access_programs": {}}, "access_programs", False),
        ({"context_management": [{"type": "compaction"}]}, "context_management", False),
    ],
)
def test_what_chat_cannot_carry(fields: Json, param: str, matters: bool) -> None:  # noqa: FBT001
    written = to_chat(responses_request(**fields))
    assert unfit(written) == {param: matters}
    assert written.body == {"model": "m", "messages": [HELLO]}


IDLE = {
    "truncation": "disabled",
    "store": True,
    "background": False,
    "service_tier": "auto",
    "metadata": {},
    "top_logprobs": 0,
    **dict.fromkeys(("temperature", "tools", "tool_choice", "text", "reasoning", "include")),
    **dict.fromkeys(("previous_response_id", "prompt", "stream", "whatever", "instructions")),
}


def test_a_request_that_wants_no_answer_gets_none() -> None:
    """A model that knows neither field would answer instead."""
    options = {"mode": "explicit", "prewarm": True}
    written = to_chat(responses_request(prompt_cache_options=options))
    assert unfit(written)["prompt_cache_options.prewarm"]
    asked = messages_request(compaction={"type": "summarize"})
    assert unfit(to_chat(asked)) == unfit(to_responses(asked)) == {"compaction": True}


def test_defaults_and_nulls_are_left_out() -> None:
    written = to_chat(responses_request(**IDLE))
    assert (written.body, written.unsupported) == ({"model": "m", "messages": [HELLO]}, [])
    fields: Json = {
        "n": 1,
        "logprobs": False,
        "presence_penalty": 0,
        "stop": None,
        "store": False,
        "modalities": ["text"],
        "logit_bias": {},
        "functions": [],
        "stream": False,
        "response_format": None,
        "tool_choice": None,
    }
    written = to_responses(chat_request(**fields))
    assert written.unsupported == []
    assert set(written.body) == {"model", "input", "store", "include"}


def test_a_boolean_is_no_number() -> None:
    """bool is a number in Python, but not on the wire."""
    assert unfit(to_responses(chat_request(n=True))) == {"n": True}


@pytest.mark.parametrize("fields", [chat.PARAM_FIELDS, responses.PARAM_FIELDS])
def test_every_field_has_a_meaning(fields: Json) -> None:
    assert fields.keys() <= PARAMS.keys()


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "messages"),
        ({"messages": "x"}, "messages"),
        ({"messages": ["x"]}, "messages[0]"),
        ({"messages": [{"role": "narrator"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [1]}]}, "messages[0].content[0]"),
        ({"messages": [HELLO], "tools": {}}, "tools"),
        ({"messages": [HELLO], "tools": [{"type": "function"}]}, "tools[0].name"),
        ({"messages": [HELLO], "tools": [{"function": {}}]}, "tools[0].function.name"),
        (
            {"messages": [HELLO], "tools": [{"function": {"name": "f", "parameters": 1}}]},
            "tools[0].function.parameters",
        ),
        ({"messages": [HELLO], "tool_choice": "any"}, "tool_choice"),
        (
            {
                "messages": [HELLO],
                "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": []}},
            },
            "tool_choice.allowed_tools.mode",
        ),
        ({"messages": [HELLO], "response_format": {"type": "x"}}, "response_format.type"),
        ({"messages": [HELLO], "stream": "yes"}, "stream"),
        ({"messages": [HELLO], "reasoning": {"summary": "long"}}, "reasoning.summary"),
    ],
)
def test_a_chat_request_that_cannot_be_read_names_its_field(body: Json, param: str) -> None:
    assert refused_param(lambda: chat.read_request(body)) == param


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": 1}, "input"),
        ({"input": [1]}, "input[0]"),
        ({"input": [{"role": "narrator", "content": ""}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": 1}]}, "input[0].content"),
        ({"input": "x", "tools": [{}]}, "tools[0].type"),
        ({"input": "x", "tools": [{"type": "function"}]}, "tools[0].name"),
        ({"input": "x", "tools": [{"type": "custom"}]}, "tools[0].name"),
        ({"input": "x", "tools": [{"type": "namespace", "name": "n"}]}, "tools[0].tools"),
        (
            {"input": "x", "tools": [{"type": "namespace", "name": "n", "tools": [{}]}]},
            "tools[0].tools[0].type",
        ),
        ({"input": "x", "tool_choice": {"type": "function"}}, "tool_choice.name"),
        ({"input": "x", "tool_choice": {"type": "allowed_tools", "tools": []}}, "tool_choice.mode"),
        ({"input": "x", "text": "x"}, "text"),
        ({"input": "x", "text": {"format": {"type": "x"}}}, "text.format.type"),
        ({"input": "x", "include": "x"}, "include"),
        ({"input": [{"type": "local_shell_call"}]}, "input[0].action"),
    ],
)
def test_a_responses_request_that_cannot_be_read_names_its_field(body: Json, param: str) -> None:
    assert refused_param(lambda: responses.read_request(body)) == param


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"input": 5}, "'input': expected a string or an array."),
        ({"input": [{"role": "user", "content": 5}]}, "expected a string or an array."),
        ({"input": "x", "tool_choice": 5}, "'tool_choice': expected a string or an object."),
        ({"input": "x", "tools": "y"}, "'tools': expected an array."),
        ({"input": "x", "text": "y"}, "'text': expected an object."),
        ({"input": "x", "background": "yes"}, "Invalid type for 'background': 'yes'."),
        (
            {"input": "x", "tool_choice": "foo"},
            "Invalid value: 'foo'. Supported values are: ",
        ),
        ({"input": "x", "reasoning": {"summary": True}}, "Invalid value: true. Supported"),
        ({"input": "x", "reasoning": {"summary": 1}}, "Invalid value: 1. Supported"),
    ],
)
def test_the_error_says_all_that_a_field_takes(body: Json, words: str) -> None:
    with pytest.raises(RequestError) as caught:
        responses.read_request(body)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (chat.read_request, {"messages": [{"role": "user", "content": 5}]}),
        (messages.read_request, {"messages": [{"role": "user", "content": 5}]}),
    ],
)
def test_so_it_does_of_a_messages_content(read: Any, body: Json) -> None:
    with pytest.raises(RequestError, match="content': expected a string or an array"):
        read(body)


def test_a_missing_field_is_reported() -> None:
    with pytest.raises(RequestError, match="Missing required parameter: 'messages'") as caught:
        chat.read_request({})
    assert caught.value.code == "missing_required_parameter"
    assert responses.read_request({"prompt": {"id": "p"}}).messages == []


NOT_THAT: dict[str, Any] = {
    "max_completion_tokens": "many",
    "max_tokens": 0,
    "temperature": "hot",
    "top_p": True,
    "stop": [1],
    "top_logprobs": 2.5,
    "parallel_tool_calls": "no",
    "service_tier": 1,
    "user": 7,
    "model": 5,
    "reasoning_effort": 3,
}


@pytest.mark.parametrize("field", NOT_THAT)
def test_an_invalid_value_is_refused_by_the_clients_name_for_it(field: str) -> None:
    assert (
        refused_param(lambda: chat.read_request({"messages": [HELLO], field: NOT_THAT[field]}))
        == field
    )


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("max_output_tokens", {"max_output_tokens": -1}),
        ("reasoning.effort", {"reasoning": {"effort": 3}}),
        ("text.format.schema", {"text": {"format": {"type": "json_schema", "schema": 3}}}),
    ],
)
def test_on_responses_too(param: str, fields: Json) -> None:
    assert refused_param(lambda: responses_request(**fields)) == param


def test_a_missing_model_is_not_sent_as_an_empty_one() -> None:
    """Some upstreams have a default model, and none with an empty name."""
    question = chat.read_request({"messages": [HELLO]})
    options = UpstreamOptions(PROFILES["auto"])
    for write in (chat.write_request, responses.write_request):
        assert "model" not in write(question, options).body


@pytest.mark.parametrize("kind", ["disabled", "between_tools"])
def test_a_client_that_wants_no_thinking_gets_none_where_that_can_be_said(kind: str) -> None:
    question = messages_request(thinking={"type": kind})
    assert to_responses(question, "openai").body["reasoning"] == {"effort": "none"}
    assert to_chat(question, "openai").body["reasoning_effort"] == "none"
    for written in to_responses(question), to_chat(question):
        assert unfit(written) == {"thinking": False}


class TestConfigurationUpdates:
    """Items of the input that change the effort and the format from there on."""

    JSON_FORMAT: ClassVar[Json] = {"type": "json_object"}

    def updated(self, *updates: Json, **fields: Any) -> Json:
        items = [{"type": "configuration_update", **update} for update in updates]
        return to_chat(responses_request(HELLO, *items, HELLO, **fields), "openai").body

    def test_the_last_one_outranks_the_request(self) -> None:
        efforts = [{"reasoning": {"effort": effort}} for effort in ("high", "minimal")]
        body = self.updated(*efforts, {"text": {"format": self.JSON_FORMAT}})
        assert (body["reasoning_effort"], body["response_format"]) == ("minimal", self.JSON_FORMAT)
        assert len(body["messages"]) == 2

    def test_what_none_of_them_changes_stays(self) -> None:
        fields = {"reasoning": {"effort": "low"}, "text": {"format": self.JSON_FORMAT}}
        body = self.updated({"reasoning": {"effort": None}}, {}, **fields)
        assert (body["reasoning_effort"], body["response_format"]) == ("low", self.JSON_FORMAT)

    def test_one_may_return_to_plain_text(self) -> None:
        update = {"text": {"format": {"type": "text"}}}
        assert "response_format" not in self.updated(update, text={"format": self.JSON_FORMAT})

    @pytest.mark.parametrize(
        ("update", "param"),
        [
            ({"reasoning": 1}, "input[1].reasoning"),
            ({"reasoning": {"effort": 1}}, "input[1].reasoning.effort"),
            ({"text": {"format": {"type": "xml"}}}, "input[1].text.format.type"),
        ],
    )
    def test_errors_name_the_item(self, update: Json, param: str) -> None:
        assert refused_param(lambda: self.updated(update)) == param

    def test_what_cannot_be_sent_is_named_by_the_item(self) -> None:
        update = {"type": "configuration_update", "text": {"format": self.JSON_FORMAT}}
        written = to_messages(responses_request(HELLO, update))
        assert unfit(written) == {"input[1].text.format": True}
