"""Write a request for Gemini's own API."""

from __future__ import annotations

from abridge.apis.api import UpstreamOptions
from abridge.apis.gemini.messages import GeminiConversationBuilder
from abridge.apis.gemini.reasoning import write_thinking
from abridge.apis.gemini.tools import write_tools
from abridge.apis.json import as_object
from abridge.apis.params import NOT_SUPPORTED, check_string, write_params
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, OutputFormat, TranslatedRequest, unknown_parts
from abridge.providers.gemini import GeminiCapabilities, find_capabilities

PARAM_FIELDS = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "stop": "stopSequences",
    "parallel_tool_calls": "",
}
"""Fields of `generationConfig` by neutral names (ai.google.dev: api/generate-content,
`GenerationConfig`). `write_tools` sees to `parallel_tool_calls`."""

EXTRA_FIELDS = ("safetySettings", "labels")
"""Gemini's own fields that a client may send: it refuses any field that it does not know. Not
`cachedContent`, which names an object of the account's."""

COMPATIBLE_FIELDS = ("google", "extra_body")
"""Where clients of Google's endpoint for OpenAI's clients say what they want of Gemini alone
(ai.google.dev: gemini-api/docs/openai)."""

THINKING_FIELDS = {"thinking_budget": "thinkingBudget", "thinking_level": "thinkingLevel"}


def begin_request(request: ModelRequest) -> tuple[TranslatedRequest, GeminiCapabilities]:
    """Begin a request for either of Google's APIs. Raises RequestError without a model, whose
    capabilities it returns."""
    check_string(request.model or None, "model")
    translated = TranslatedRequest({}, unknown_parts(request.messages))
    return translated, find_capabilities(request.model)


def leave_out_extra(extra: Json, translated: TranslatedRequest, *known: str) -> None:
    """Leave out the fields of a client's own that Google does not know."""
    for key in extra:
        if key not in known:
            translated.leave_out(key, NOT_SUPPORTED)


def write_request(request: ModelRequest, _options: UpstreamOptions) -> TranslatedRequest:
    """Write a request, which no option concerns."""
    translated, capabilities = begin_request(request)
    builder = GeminiConversationBuilder(request, capabilities, translated)
    tools, choice = write_tools(request, translated)
    own = {} if request.effort else _own_thinking(request.extra)
    thinking = own or write_thinking(request, capabilities, translated)
    config: Json = _write_format(request.output_format)
    write_params(request, PARAM_FIELDS, config, translated)
    config["thinkingConfig"] = thinking
    body = {
        "systemInstruction": builder.system_instruction,
        "contents": builder.contents,
        "tools": [{"functionDeclarations": tools}] if tools else None,
        "toolConfig": choice,
        "generationConfig": {key: value for key, value in config.items() if value != {}},
        **{key: request.extra.get(key) for key in EXTRA_FIELDS},
    }
    translated.body = {key: value for key, value in body.items() if value or key == "contents"}
    leave_out_extra(request.extra, translated, *EXTRA_FIELDS, *(COMPATIBLE_FIELDS if own else ()))
    return translated


def given_thinking(extra: Json) -> Json:
    """Return the config of thinking that a client sent in Google's own words, and nothing else in
    them."""
    body = as_object(extra.get("extra_body"))
    google = as_object((body if body.keys() == {"google"} else extra).get("google"))
    return as_object(google.get("thinking_config")) if len(google) == 1 else {}


def _own_thinking(extra: Json) -> Json:
    """Write the client's own config; what is shown of the thoughts is decided elsewhere."""
    given = given_thinking(extra)
    written = {key: given[name] for name, key in THINKING_FIELDS.items() if name in given}
    thinks = bool(written) and written.get("thinkingBudget") != 0
    return {**({"includeThoughts": True} if thinks else {}), **written}


def _write_format(requested: OutputFormat | None) -> Json:
    if requested is None:
        return {}
    schema = {"responseJsonSchema": requested.schema} if requested.schema is not None else {}
    return {"responseMimeType": "application/json", **schema}
