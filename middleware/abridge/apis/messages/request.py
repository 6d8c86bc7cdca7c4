"""Read a client's Messages body into a model request, and write one for upstream, with the
parameters that its model allows."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from abridge.apis.api import UpstreamOptions
from abridge.apis.json import as_object, nested_value, string
from abridge.apis.messages.messages import MessagesConversationBuilder, read_messages
from abridge.apis.messages.reasoning import (
    ThinkingParams,
    leave_out_foreign_thinking,
    read_thinking,
    write_thinking,
)
from abridge.apis.messages.tools import (
    forces_tool,
    read_tool_choice,
    read_tools,
    write_tool,
    write_tool_choice,
)
from abridge.apis.openai import read_schema
from abridge.apis.params import (
    NOT_SUPPORTED,
    check_object,
    check_string,
    invalid_value_error,
    read_extra,
    read_flag,
    read_params,
    require_object,
    unchanged,
    write_params,
)
from abridge.apis.shapes import (
    EXTENSION_FIELDS,
    DropCount,
    allow,
    conversation,
    fields,
    one_or_more,
)
from abridge.apis.tools import ToolNames, choose_tools
from abridge.core.conversation import Json
from abridge.core.model_request import (
    ModelRequest,
    OutputFormat,
    TranslatedRequest,
    unknown_parts,
)
from abridge.errors import RequestError
from abridge.providers.claude import ModelCapabilities, find_capabilities, has_to_ask
from abridge.providers.profile import FULL_THINKING

OWN_PARAM_FIELDS: Mapping[str, str] = {
    "context_edits": "context_management",
    "task_budget": "output_config.task_budget",
    **unchanged(
        *("container", "mcp_servers", "inference_geo", "thread", "cache_control"),
        *("speed", "compaction", "diagnostics", "fallbacks"),
        *("fallback_credit_token", "billing_policy", "user_profile_id"),
        *("workspace_id", "betas"),
    ),
}
"""The plain parameters that no other API has: their neutral names, and the fields of a request.

See anthropic-sdk-python, `message_create_params.py` in `types` and in `types/beta`.
"""

PARAM_FIELDS: Mapping[str, str] = {
    **unchanged("max_tokens", "temperature", "top_p", "top_k", "service_tier"),
    "stop": "stop_sequences",
    "user": "metadata.user_id",
    **OWN_PARAM_FIELDS,
}

REQUEST_FIELDS = frozenset(
    {
        *("model", "messages", "system", "tools", "tool_choice", "stream"),
        *("thinking", "output_config", "output_format", "metadata"),
        *PARAM_FIELDS.values(),
        "reasoning",
    }
)
"""Fields of a request that are read; all others go on unchanged."""

SUPPORTED_PARAMS = (*PARAM_FIELDS, "parallel_tool_calls", "safety_identifier")
"""The plain parameters, by neutral name, that this API supports in some form."""

SERVICE_TIERS = {"auto": "auto", "default": "standard_only", "priority": "auto"}

MAX_USER_CHARS = 64
"""The most characters in OpenAI's `user`; Claude Code's `user_id` has more
(github.com/BerriAI/litellm, issues on "Invalid 'user': string too long")."""

MIN_TOP_P = 0.95
"""Lowest top_p that thinking allows (Anthropic's guide to extended thinking)."""

TEMPERATURE_TOO_HIGH = "This upstream accepts a temperature of at most 1."

TEMPERATURE_OR_TOP_P = "This upstream accepts a temperature or top_p, not both."

SAMPLING_FIXED = "This model does not accept sampling parameters."

SAMPLING_FIXED_BY_THINKING = "A model that thinks does not accept sampling parameters."

SCHEMA_REQUIRED = "This upstream supports JSON only with a schema."

NO_STRUCTURED_OUTPUTS = "This model has no structured outputs."

THREAD_UNAVAILABLE = "Threads are not available here; send the whole conversation."

BLANK_STOP = "This upstream does not accept a blank stop sequence."


def refuse_thread(thread: Any, _: DropCount | None = None) -> Any:
    """The shape of `thread`, whatever the settings say of what upstream lacks: without it the next
    request, which has its new messages alone, would mean something else. Raises RequestError."""
    if thread is not None:
        raise RequestError(THREAD_UNAVAILABLE, param="thread", code="unsupported_parameter")
    return None


def _beta(flag: Any, drops: DropCount) -> Any:
    """A flag of Anthropic's, but not the one for full thinking, which is no summary any more."""
    is_full = FULL_THINKING.decode() in string(flag).lower()
    return drops.drop(flag) if is_full else flag


REQUEST_SHAPE = fields(
    {
        # the conversation, and what the model may call
        "messages": conversation,
        "thread": refuse_thread,
        **allow("model", "system", "tools", "tool_choice", "mcp_servers", "container"),
        **allow("cache_control", "context_management", "compaction"),
        # the answer's form and length
        **allow("max_tokens", "temperature", "top_p", "stream", "output_config", "output_format"),
        # who asks, and how it is served
        **allow("metadata", "service_tier", "speed", "inference_geo"),
        "betas": one_or_more(_beta),
        **allow("fallbacks", "fallback_credit_token", "billing_policy"),
        **allow("user_profile_id", "workspace_id"),
        **EXTENSION_FIELDS,
    }
)
"""What goes upstream where reasoning is hidden: Anthropic's own but for `diagnostics` and `thread`,
and those of other servers."""


def read_request(body: Json) -> ModelRequest:
    """Read a client's request. Raises RequestError if it is invalid."""
    refuse_thread(body.get("thread"))
    names = ToolNames()
    tools = list(read_tools(body, names))
    request = ModelRequest(
        model=check_string(body.get("model", ""), "model"),
        messages=list(read_messages(body, names)),
        tools=tools,
        tool_choice=read_tool_choice(body, tools, names),
        output_format=_read_output_format(body),
        wants_state=True,
        stream=read_flag(body, "stream"),
        extra=read_extra(body, REQUEST_FIELDS),
    )
    request.param_names.update(format="output_config.format", messages="messages")
    read_thinking(body, request)
    leave_out_foreign_thinking(body, request)
    read_params(body, PARAM_FIELDS, request)
    _adapt_params(body, request)
    return request


def _read_output_format(body: Json) -> OutputFormat | None:
    """Read the format of the answer; `output_format` is its old name."""
    nested = nested_value(body, "output_config.format")
    param = "output_format" if nested is None else "output_config.format"
    value = body.get("output_format") if nested is None else nested
    if value is None:
        return None
    kind = check_object(value, param).get("type")
    if kind != "json_schema":
        raise invalid_value_error(kind, f"{param}.type")
    require_object(value, "schema", param)
    return read_schema(value, param)


def _adapt_params(body: Json, request: ModelRequest) -> None:
    """Give the parameters that other APIs express in other ways the values they have there."""
    params = request.params
    if params.get("service_tier") == "standard_only":
        params["service_tier"] = "default"
    if len(user := params.get("user", "")) > MAX_USER_CHARS:
        params["user"] = blake2b(user.encode(errors="surrogatepass"), digest_size=32).hexdigest()
    choice = body.get("tool_choice")
    single = "disable_parallel_tool_use"
    if isinstance(choice, dict) and read_flag(choice, single, "tool_choice"):
        params["parallel_tool_calls"] = False
        request.param_names["parallel_tool_calls"] = f"tool_choice.{single}"


def write_request(request: ModelRequest, options: UpstreamOptions) -> TranslatedRequest:
    """Write a request. Anthropic's own parameters that the client sent (`extra`) are passed on,
    unless the request sets the same key."""
    params, translated = request.params, TranslatedRequest({}, unknown_parts(request.messages))
    capabilities = find_capabilities(request.model, options.profile.structured_outputs)
    allow_unsigned = options.profile.takes_unsigned(request.model)
    builder = MessagesConversationBuilder(
        request, capabilities, translated, allow_unsigned=allow_unsigned
    )
    _, chosen = choose_tools(request, translated, "one", as_functions=True)
    tools = [write_tool(tool, capabilities, translated) for tool in translated.tools.values()]
    choice = write_tool_choice(chosen, request, capabilities, translated) if tools else None
    max_tokens = params.get("max_tokens") or options.max_tokens
    thinking = write_thinking(
        request,
        capabilities,
        max_tokens,
        translated,
        forced=forces_tool(choice or {}),
        asks=options.summary_due and has_to_ask(request.model),
    )
    sampling = write_sampling(request, capabilities, translated, thinking=thinking.is_on)
    stops = _write_stops(request, translated)
    user = params.get("safety_identifier") or params.get("user")
    body = {
        "model": request.model,
        "max_tokens": max_tokens,
        "system": builder.system,
        "messages": builder.messages,
        "tools": tools,
        "tool_choice": choice,
        "thinking": thinking.config,
        "output_config": _write_output_config(request, capabilities, thinking, translated),
        "stop_sequences": stops,
        "metadata": {"user_id": user} if user else None,
        "service_tier": SERVICE_TIERS.get(params.get("service_tier", "")),
        "stream": request.stream,
        **sampling,
    }
    fields = {**dict.fromkeys(SUPPORTED_PARAMS, ""), **OWN_PARAM_FIELDS}
    if params.get("service_tier") not in SERVICE_TIERS:
        del fields["service_tier"]
    write_params(request, fields, body, translated, reason=NOT_SUPPORTED)
    required = {"messages", *sampling}
    sent = {key: value for key, value in body.items() if value or key in required}
    translated.body = {**request.extra, **sent}
    return translated


def write_sampling(
    request: ModelRequest,
    capabilities: ModelCapabilities,
    translated: TranslatedRequest,
    *,
    thinking: bool,
) -> Json:
    """Return the sampling parameters to send. Defaults are not sent."""
    written: Json = {}
    for name in ("temperature", "top_p", "top_k"):
        value = request.params.get(name)
        if value is None or (value == 1 and name != "top_k"):
            continue
        if name == "temperature" and value > 1:
            translated.leave_out(request.param(name), TEMPERATURE_TOO_HIGH, essential=True)
        elif not capabilities.sampling:
            translated.leave_out(request.param(name), SAMPLING_FIXED)
        elif thinking and not (name == "top_p" and value >= MIN_TOP_P):
            translated.leave_out(request.param(name), SAMPLING_FIXED_BY_THINKING)
        elif name == "top_p" and "temperature" in written:
            translated.leave_out(request.param(name), TEMPERATURE_OR_TOP_P)
        else:
            written[name] = value
    return written


def _write_stops(request: ModelRequest, translated: TranslatedRequest) -> list[str]:
    stops = request.params.get("stop", [])
    valid = [stop for stop in stops if stop.strip()]
    if len(valid) < len(stops):
        translated.leave_out(request.param("stop"), BLANK_STOP, essential=True)
    return valid


def _write_output_config(
    request: ModelRequest,
    capabilities: ModelCapabilities,
    thinking: ThinkingParams,
    translated: TranslatedRequest,
) -> Json:
    """Write the effort, and the format of the answer. What the client sent itself outranks both."""
    config: Json = {"effort": thinking.effort} if thinking.effort else {}
    requested, param = request.output_format, request.param("format", "response_format")
    if requested is not None and requested.schema is None:
        translated.leave_out(param, SCHEMA_REQUIRED, essential=True)
    elif requested is not None and not capabilities.structured_outputs:
        translated.leave_out(param, NO_STRUCTURED_OUTPUTS, essential=True)
    elif requested is not None:
        config["format"] = {"type": "json_schema", "schema": requested.schema}
    return config | as_object(request.extra.get("output_config"))
