"""Read a client's Chat Completions body into a `ModelRequest`, and write one for upstream."""

from __future__ import annotations

from collections.abc import Mapping

from abridge.apis.api import UpstreamOptions
from abridge.apis.chat.messages import ChatConversationBuilder, read_messages
from abridge.apis.chat.tools import read_tool_names, read_tools, write_tool
from abridge.apis.json import as_object, set_nested
from abridge.apis.openai import (
    nested,
    read_output_format,
    read_tool_choice,
    write_output_format,
    write_tools,
)
from abridge.apis.params import (
    CANNOT_DECLINE,
    check_string,
    model_body,
    read_extra,
    read_flag,
    read_params,
    read_string,
    unchanged,
    write_extra,
    write_params,
)
from abridge.apis.shapes import EXTENSION_FIELDS, allow, conversation, fields
from abridge.apis.summary_request import OWN_KEYS, native_style
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, TranslatedRequest, unknown_parts
from abridge.providers.profile import Profile

PARAM_FIELDS: Mapping[str, str] = {
    "max_tokens": "max_completion_tokens",
    "chat_moderation": "moderation",  # its results have another form than those of Responses
    **unchanged(
        *("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty"),
        *("seed", "stop", "n", "logit_bias", "logprobs", "top_logprobs"),
        *("verbosity", "parallel_tool_calls", "service_tier", "user"),
        *("safety_identifier", "metadata", "prompt_cache_key"),
        *("prompt_cache_retention", "prompt_cache_options", "store"),
        *("cache_control", "prediction", "modalities", "audio"),
        *("web_search_options", "functions", "function_call"),
    ),
}
"""The plain parameters: their neutral names, and the fields of a request.

See openai-openapi, `CreateChatCompletionRequest`; `top_k` is vLLM's and most others',
`cache_control` OpenRouter's.
"""

LEGACY_MAX_TOKENS = {"max_tokens": "max_tokens"}

REQUEST_FIELDS = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "response_format"),
        *("reasoning", "reasoning_effort", "stream", "stream_options"),
        *PARAM_FIELDS.values(),
        *LEGACY_MAX_TOKENS,
    }
)
"""Fields of a request that are read; all others go on unchanged."""

REQUEST_SHAPE = fields(
    {
        # the conversation, and what the model may call
        "messages": conversation,
        **allow("model", "tools", "tool_choice", "parallel_tool_calls"),
        **allow("functions", "function_call", "web_search_options"),
        # the answer's form and length
        **allow("n", "max_tokens", "max_completion_tokens", "response_format", "verbosity"),
        **allow("modalities", "audio", "prediction", "temperature", "top_p", "stream"),
        **allow("logprobs", "top_logprobs"),
        "stream_options": fields(
            allow("include_usage", "include_obfuscation", "continuous_usage_stats")
        ),
        # who asks, and how it is served
        **allow("user", "safety_identifier", "metadata", "store", "service_tier", "moderation"),
        **allow("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
        **EXTENSION_FIELDS,
    }
)
"""What goes upstream where reasoning is hidden: OpenAI's own but for `logit_bias`, and those of
other servers."""


def read_request(body: Json) -> ModelRequest:
    """Read a body. Raises RequestError if it is invalid."""
    reasoning = as_object(body.get("reasoning"))
    request = ModelRequest(
        model=check_string(body.get("model", ""), "model"),
        messages=list(read_messages(body)),
        tools=list(read_tools(body)),
        tool_choice=read_tool_choice(body, read_tool_names, nested),
        output_format=read_output_format(body.get("response_format"), "response_format", nested),
        effort=read_string(body, "reasoning_effort")
        or read_string(reasoning, "effort", "reasoning"),
        native_style=native_style(body),
        wants_state=True,
        stream=read_flag(body, "stream"),
        extra=read_extra(body, REQUEST_FIELDS),
    )
    request.param_names.update(
        format="response_format", effort="reasoning_effort", messages="messages"
    )
    read_params(body, LEGACY_MAX_TOKENS, request)
    read_params(body, PARAM_FIELDS, request)
    if others := read_extra(reasoning, ("effort", *OWN_KEYS)):
        request.extra["reasoning"] = others
    return request


def write_request(request: ModelRequest, options: UpstreamOptions) -> TranslatedRequest:
    """Write a body. A stream always asks for usage, even if the client did not."""
    profile = options.profile
    translated = TranslatedRequest(model_body(request), unknown_parts(request.messages))
    messages = ChatConversationBuilder(profile, translated.unsupported)
    messages.write(request.messages)
    translated.body["messages"] = messages.messages
    as_functions = "custom_tools" not in profile.supports
    write_tools(request, profile, translated, write_tool, nested, as_functions=as_functions)
    if request.output_format is not None:
        translated.body["response_format"] = write_output_format(request.output_format, nested)
    _write_effort(request, profile, translated)
    _write_params(request, profile, translated)
    if request.stream:
        translated.body["stream"] = True
        translated.body["stream_options"] = {"include_usage": True}
    write_extra(request, translated.body)
    return translated


def ask_for_usage(body: Json) -> bool:
    """Have a stream end with its usage. Return True if the client did not ask for that."""
    options = as_object(body.get("stream_options"))
    if body.get("stream") is not True or options.get("include_usage") is True:
        return False
    body["stream_options"] = {**options, "include_usage": True}
    return True


def _write_params(request: ModelRequest, profile: Profile, translated: TranslatedRequest) -> None:
    fields = {**PARAM_FIELDS, "max_tokens": profile.max_tokens_field}
    absent = set(profile.lacks.get("chat", ()))
    if not profile.cache_marks:
        absent.add("cache_control")
    if not request.params.get("store"):  # OpenAI accepts it for stored ones only
        absent.add("metadata")
    if not translated.tools:
        fields["parallel_tool_calls"] = ""
    known = {name: key for name, key in fields.items() if name not in absent}
    write_params(request, known, translated.body, translated)
    if "top_logprobs" in translated.body:
        set_nested(translated.body, "logprobs", value=True)


def _write_effort(request: ModelRequest, profile: Profile, translated: TranslatedRequest) -> None:
    """Write how much the model is to think: the budget where the provider takes one, else the
    effort."""
    if request.declines_reasoning:
        translated.body.update(profile.thinking_off)
        if not profile.thinking_off:
            translated.leave_out(request.param("thinking"), CANNOT_DECLINE)
        return
    fields = {} if request.budget is None else profile.budget_fields(request.budget)
    if not fields and request.effort is not None:
        fields = profile.thinking_fields(request.effort)
    translated.body.update(fields)
    if not fields and request.effort is not None:
        message = "This model's API cannot be told how much to think."
        translated.leave_out(request.param("effort"), message)
