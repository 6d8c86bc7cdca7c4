"""Build the response object, which repeats the parameters of the request."""

from __future__ import annotations

from typing import Any

from abridge.wire.api import Asked
from abridge.wire.codec import Json, objects
from abridge.wire.display import Display

DEFAULTS: Json = {
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

STATED: Json = {"background": False, "service_tier": "default"}
"""Fields that have the same value whatever the request says."""


def response_of(asked: Asked, display: Display, identity: str, model: str, created: int) -> Json:
    """Return a response that has just begun."""
    body = asked.body
    given = {key: body[key] for key in DEFAULTS if body.get(key) is not None}
    return {
        "id": identity,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "completed_at": None,
        "error": None,
        "incomplete_details": None,
        **DEFAULTS,
        **given,
        **STATED,
        "store": asked.stored,
        "model": model,
        "output": [],
        "reasoning": {
            "effort": _object(body.get("reasoning")).get("effort"),
            "summary": display.style if display.summary else None,
        },
        "text": {"format": {"type": "text"}, **_object(body.get("text"))},
        "tools": [_tool(tool) for tool in objects(body.get("tools"))],
        "usage": None,
    }


def _tool(tool: Json) -> Json:
    """Return a function with all its fields. It is strict unless the request says otherwise."""
    if tool.get("type") != "function":
        return tool
    return {"description": None, "parameters": None, "strict": True, **tool}


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
