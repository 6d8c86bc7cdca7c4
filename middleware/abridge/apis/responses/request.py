"""Read a client's Responses body into a model request, and write one into upstream's body."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from abridge.apis.api import UpstreamOptions
from abridge.apis.effort import CONFIGURATION_UPDATE
from abridge.apis.json import entries, set_nested
from abridge.apis.openai import (
    flat,
    read_output_format,
    read_tool_choice,
    write_output_format,
    write_tools,
)
from abridge.apis.params import (
    CANNOT_DECLINE,
    check_string,
    iter_objects,
    model_body,
    read_extra,
    read_flag,
    read_object,
    read_params,
    read_string,
    require_list,
    unchanged,
    write_extra,
    write_params,
)
from abridge.apis.responses.messages import ResponsesConversationBuilder, read_messages
from abridge.apis.responses.tools import read_tool_names, read_tools, write_tool
from abridge.apis.shapes import EXTENSION_FIELDS, allow, conversation, fields, only
from abridge.apis.summary_request import OWN_KEYS, native_style
from abridge.apis.tools import ToolNames
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, TranslatedRequest, unknown_parts
from abridge.providers.profile import MODELS_WITHOUT_STATE, Profile, matches_any

PARAM_FIELDS: Mapping[str, str] = {
    "max_tokens": "max_output_tokens",
    "verbosity": "text.verbosity",
    "reasoning_context": "reasoning.context",
    "reasoning_mode": "reasoning.mode",
    "prewarm": "prompt_cache_options.prewarm",
    **unchanged(
        *("temperature", "top_p", "top_k", "presence_penalty", "frequency_penalty"),
        *("top_logprobs", "parallel_tool_calls", "max_tool_calls", "service_tier"),
        *("user", "safety_identifier", "metadata", "prompt_cache_key"),
        *("prompt_cache_retention", "prompt_cache_options", "truncation"),
        *("context_management", "moderation", "previous_response_id"),
        *("conversation", "prompt", "background", "client_metadata"),
        *("access_programs",),
    ),
}
"""The fields of plain parameters, by neutral name.

Source: openai-openapi, `CreateResponse`. The penalties are of Open Responses, `top_k` is vLLM's.
The last two are Codex's, and many chat servers reject them (litellm issue 29834).
"""

INCLUDE_ENCRYPTED, INCLUDE_LOGPROBS = "reasoning.encrypted_content", "message.output_text.logprobs"

REQUEST_FIELDS = frozenset(
    {
        *("model", "instructions", "input", "tools", "tool_choice", "text", "reasoning"),
        *("include", "store", "stream", "stream_options", *PARAM_FIELDS.values()),
    }
)

SAFE_INCLUDES = (
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "file_search_call.results",
    "message.input_image.image_url",
    INCLUDE_LOGPROBS,
    "reasoning.encrypted_content",
    "web_search_call.action.sources",
    "web_search_call.results",
)
"""Values of `include` (openai-openapi, `IncludeEnum`)."""

REQUEST_SHAPE = fields(
    {
        # the conversation, and what the model may call
        "input": conversation,
        **allow("model", "instructions", "previous_response_id", "conversation", "prompt"),
        **allow("tools", "tool_choice", "parallel_tool_calls", "max_tool_calls"),
        **allow("truncation", "context_management"),
        # the answer's form and length
        **allow("max_output_tokens", "temperature", "top_p", "stream", "background"),
        **allow("top_logprobs"),
        "text": fields(allow("format", "verbosity")),
        "include": only(*SAFE_INCLUDES),
        "stream_options": fields(allow("include_usage", "include_obfuscation")),
        # who asks, and how it is served
        **allow("user", "safety_identifier", "metadata", "store", "service_tier", "moderation"),
        **allow("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"),
        **allow("client_metadata", "access_programs"),
        **EXTENSION_FIELDS,
    }
)
"""What goes upstream where reasoning is hidden: OpenAI's own, and those of other servers."""


def read_request(body: Json) -> ModelRequest:
    """Read a request. Raises RequestError for what cannot be understood."""
    names = ToolNames()
    tools = read_tools(body, names)
    reasoning, text = read_object(body, "reasoning"), read_object(body, "text")
    request = ModelRequest(
        model=check_string(body.get("model", ""), "model"),
        messages=list(read_messages(body, names)),
        tools=tools,
        tool_choice=read_tool_choice(body, partial(read_tool_names, names), flat),
        output_format=read_output_format(text.get("format"), "text.format", flat),
        effort=read_string(reasoning, "effort", "reasoning"),
        native_style=native_style(body),
        stream=read_flag(body, "stream"),
        extra=read_extra(body, REQUEST_FIELDS),
    )
    request.param_names.update(format="text.format", effort="reasoning.effort", messages="input")
    read_params(body, PARAM_FIELDS, request)
    _read_include(body, request)
    _read_updates(body.get("input"), request)
    if unknown := read_extra(reasoning, ("effort", "context", "mode", *OWN_KEYS)):
        request.extra["reasoning"] = unknown
    if unknown := read_extra(text, ("format", "verbosity")):
        request.extra["text"] = unknown
    return request


def wants_state(body: Json) -> bool:
    """Return whether reasoning must come with opaque state: requested, or `store` is false."""
    return INCLUDE_ENCRYPTED in entries(body.get("include")) or body.get("store") is False


def _read_include(body: Json, request: ModelRequest) -> None:
    included = [] if body.get("include") is None else require_list(body, "include")
    request.wants_state = INCLUDE_ENCRYPTED in included
    if INCLUDE_LOGPROBS in included:
        request.params["logprobs"] = True
        request.param_names["logprobs"] = "include"
    if others := [name for name in included if name not in (INCLUDE_ENCRYPTED, INCLUDE_LOGPROBS)]:
        request.params["include"] = others
        request.param_names["include"] = "include"


def _read_updates(items: Any, request: ModelRequest) -> None:
    """Read what items of the input change: each holds until a later one, and outranks the request's
    own fields, which clients leave as they were, so that a cached prefix stays the same."""
    updates = iter_objects(items if isinstance(items, list) else None, "input")
    for item, param in updates:
        if item.get("type") != CONFIGURATION_UPDATE:
            continue
        reasoning, text = (read_object(item, key, param) for key in ("reasoning", "text"))
        if effort := read_string(reasoning, "effort", f"{param}.reasoning"):
            request.effort = effort
            request.param_names["effort"] = f"{param}.reasoning.effort"
        if (format_ := text.get("format")) is not None:
            name = request.param_names["format"] = f"{param}.text.format"
            request.output_format = read_output_format(format_, name, flat)


def write_request(request: ModelRequest, options: UpstreamOptions) -> TranslatedRequest:
    """Write a request for upstream.

    The client keeps the history itself, so upstream is to store nothing unless the client asks for
    it, and to return the state it would store.
    """
    profile = options.profile
    body = model_body(request)
    translated = TranslatedRequest(body, unknown_parts(request.messages))
    writer = ResponsesConversationBuilder(profile, translated)
    writer.write(request.messages)
    body["input"] = writer.items
    write_tools(request, profile, translated, write_tool, flat)
    if request.output_format is not None:
        set_nested(body, "text.format", write_output_format(request.output_format, flat))
    _write_effort(request, profile, translated)
    if request.native_style is not None and not profile.summary_is_raw:
        set_nested(body, "reasoning.summary", request.native_style)
    _write_params(request, profile, translated)
    body["store"] = bool(request.params.get("store"))
    if include := _write_include(request):
        body["include"] = include
    if request.stream:
        body["stream"] = True
    write_extra(request, body)
    return translated


def _write_effort(request: ModelRequest, profile: Profile, translated: TranslatedRequest) -> None:
    """Write how much the model is to think. An effort turns thinking off, if anything does."""
    effort = request.effort
    if request.declines_reasoning:
        effort = profile.thinking_off.get("reasoning_effort")
        if effort is None:
            translated.leave_out(request.param("thinking"), CANNOT_DECLINE)
    if effort is not None:
        set_nested(translated.body, "reasoning.effort", effort)


def _write_params(request: ModelRequest, profile: Profile, translated: TranslatedRequest) -> None:
    fields = {**PARAM_FIELDS, "store": "", "logprobs": "", "include": ""}  # written elsewhere
    if not translated.tools:
        fields["parallel_tool_calls"] = ""
    lacks = profile.lacks.get("responses", ())
    known = {name: key for name, key in fields.items() if name not in lacks}
    write_params(request, known, translated.body, translated)
    max_tokens = translated.body.get("max_output_tokens")
    if isinstance(max_tokens, int):
        translated.body["max_output_tokens"] = max(max_tokens, profile.min_output_tokens)


def _write_include(request: ModelRequest) -> list[str]:
    model = request.model.rpartition("/")[2]
    has_state = not matches_any(model, MODELS_WITHOUT_STATE)
    encrypted = [INCLUDE_ENCRYPTED] if request.wants_state and has_state else []
    logprobs = [INCLUDE_LOGPROBS] if request.params.get("logprobs") else []
    return [*encrypted, *logprobs, *request.params.get("include", ())]
