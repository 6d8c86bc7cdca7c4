"""The response object: as the client is shown upstream's, and as one begins that is translated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from abridge.apis.api import RequestEcho
from abridge.apis.display import Display
from abridge.apis.json import objects, string
from abridge.apis.responses.envelopes import EnvelopeSealer
from abridge.apis.responses.reasoning import LANE, as_shown, is_reasoning, without_raw_content
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json
from abridge.core.events import NO_SUMMARY, ResponseEnded

TRANSCRIPT_FIELDS = ("input_messages", "output_messages")
"""Fields with all that the model read, earlier reasoning included, and wrote, in its own format
(vLLM's `enable_response_messages`)."""


def snapshot(response: Json, display: Display) -> Json:
    """Return the response so far, with no more of its reasoning than is shown."""
    return _show_response(response, display, lambda _, item: as_shown(item, NO_SUMMARY, display))


def show_final(
    response: Json,
    end: ResponseEnded,
    ids: Mapping[int, str],
    display: Display,
    envelopes: EnvelopeSealer,
) -> Json:
    """Return the final response: its items as they were shown, and all of the usage.

    `ids` are those of the streamed reasoning items, by output index. Other items are known by their
    position.
    """
    indexes_by_id = {item_id: output_index for output_index, item_id in ids.items() if item_id}

    def show_item(place: int, item: Json) -> Json:
        number = indexes_by_id.get(string(item.get("id")), -1 if ids.get(place) else place)
        summary = end.summaries.get((LANE, number), NO_SUMMARY)
        return as_shown(item, summary, display, envelopes.get_blob(number, item))

    shown = _show_response(response, display, show_item)
    RESPONSES_USAGE.add_share(shown, end.share, merged=display.merge_usage)
    return shown


def _show_response(
    response: Json, display: Display, show_item: Callable[[int, Json], Json]
) -> Json:
    """Return the response with its reasoning items as `show_item` returns them.

    `reasoning.summary` is the style in effect (openai-openapi, `Response.reasoning`).
    """
    shown: Json = {}
    reasoning, output = response.get("reasoning"), response.get("output")
    style = display.style if display.show_summary else None
    is_different = isinstance(reasoning, dict) and reasoning.get("summary") != style
    if isinstance(reasoning, dict) and is_different and not display.is_plain:
        shown["reasoning"] = {**reasoning, "summary": style}
    if isinstance(output, list):
        shown["output"] = [
            show_item(index, item) if is_reasoning(item) else without_raw_content(item, display)
            for index, item in enumerate(output)
        ]
    if not display.show_raw:
        shown.update(dict.fromkeys(filter(response.get, TRANSCRIPT_FIELDS)))
    return {**response, **shown}


PARAM_DEFAULTS: Json = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "safety_identifier": None,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "truncation": "disabled",
}
"""Values of the parameters that the request does not set. Which of them a response must have:
openresponses, `ResponseResource`."""

FIXED_FIELDS: Json = {"background": False, "service_tier": "default"}
"""Fields that have the same value whatever the request says."""


def new_response(
    echo: RequestEcho, display: Display, response_id: str, model: str, created: int
) -> Json:
    """Return a response that has just begun."""
    body = echo.body
    requested = {key: body[key] for key in PARAM_DEFAULTS if body.get(key) is not None}
    return {
        "id": response_id,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        **PARAM_DEFAULTS,
        **requested,
        **FIXED_FIELDS,
        "store": echo.stored,
        "model": model,
        "output": [],
        "reasoning": {
            "effort": _as_object(body.get("reasoning")).get("effort"),
            "summary": display.style if display.show_summary else None,
        },
        "text": {"format": {"type": "text"}, **_as_object(body.get("text"))},
        "tools": [_fill_tool(tool) for tool in objects(body.get("tools"))],
        "usage": None,
    }


def _fill_tool(tool: Json) -> Json:
    """Return a function with all its fields. It is strict unless the request says otherwise."""
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": True, **tool}


def _as_object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
