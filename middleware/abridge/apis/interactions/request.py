"""Write a request for the Interactions API."""

from __future__ import annotations

from abridge.apis.api import UpstreamOptions
from abridge.apis.gemini.api import MODELS_PREFIX
from abridge.apis.gemini.request import (
    COMPATIBLE_FIELDS,
    begin_request,
    given_thinking,
    leave_out_extra,
)
from abridge.apis.interactions.messages import InteractionsConversationBuilder
from abridge.apis.interactions.reasoning import write_thinking
from abridge.apis.interactions.tools import write_tools
from abridge.apis.json import objects, string
from abridge.apis.params import write_params
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, OutputFormat, TranslatedRequest

PARAM_FIELDS = {
    "max_tokens": "max_output_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "seed": "seed",
    "stop": "stop_sequences",
    "parallel_tool_calls": "",
}
"""Fields of `generation_config` by neutral names (google-genai, `GenerationConfig`). `write_tools`
sees to `parallel_tool_calls`."""

EXTRA_FIELDS = ("safety_settings", "labels")
"""The API's own fields that a client may send. Not those that name an object of the account's, as
`cached_content` does, or have Google keep the answer."""

SAFETY_SETTINGS = "safetySettings"
"""The first of them as generateContent has it."""


def write_request(request: ModelRequest, _options: UpstreamOptions) -> TranslatedRequest:
    """Write a request, which no option concerns."""
    translated, capabilities = begin_request(request)
    builder = InteractionsConversationBuilder(request, capabilities, translated)
    tools, choice = write_tools(request, translated)
    own = {} if request.effort else _own_thinking(request.extra)
    config = own or write_thinking(request, capabilities, translated)
    write_params(request, PARAM_FIELDS, config, translated)
    if choice is not None:
        config["tool_choice"] = choice
    body = {
        "model": request.model.removeprefix(MODELS_PREFIX),
        "system_instruction": builder.instructions,
        "input": builder.contents,
        "tools": tools,
        "response_format": _write_format(request.output_format),
        "generation_config": config,
        "safety_settings": _write_safety(request.extra.get(SAFETY_SETTINGS)),
        **{key: request.extra[key] for key in EXTRA_FIELDS if key in request.extra},
    }
    translated.body = {key: value for key, value in body.items() if value or key == "input"}
    translated.body |= {"store": False, **({"stream": True} if request.stream else {})}
    known = (*EXTRA_FIELDS, SAFETY_SETTINGS, *(COMPATIBLE_FIELDS if own else ()))
    leave_out_extra(request.extra, translated, *known)
    return translated


def _own_thinking(extra: Json) -> Json:
    """Return the level that a client sent in Google's own words."""
    level = given_thinking(extra).get("thinking_level")
    return {"thinking_level": level, "thinking_summaries": "auto"} if level else {}


def _write_format(requested: OutputFormat | None) -> Json:
    if requested is None:
        return {}
    schema = {"schema": requested.schema} if requested.schema is not None else {}
    return {"type": "text", "mime_type": "application/json", **schema}


def _write_safety(settings: object) -> list[Json]:
    """Write settings that are in generateContent's words, such as `HARM_CATEGORY_HARASSMENT` and
    `BLOCK_NONE`."""
    return [
        {
            "type": string(setting.get("category")).lower().removeprefix("harm_category_"),
            "threshold": string(setting.get("threshold")).lower(),
        }
        for setting in objects(settings)
    ]
