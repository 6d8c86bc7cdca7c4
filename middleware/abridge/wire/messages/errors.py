"""Translates Anthropic's error bodies into the shape that both of OpenAI's APIs use."""

from __future__ import annotations

from abridge.wire.codec import dumps, read_object, string
from abridge.wire.problem import problem

TYPES = {
    "invalid_request_error": ("invalid_request_error", None),
    "authentication_error": ("invalid_request_error", "invalid_api_key"),
    "billing_error": ("insufficient_quota", "insufficient_quota"),
    "rate_limit_error": ("rate_limit_error", "rate_limit_exceeded"),
    "api_error": ("server_error", None),
}
"""OpenAI's error type and code for Anthropic's types."""

CLIENTS = ("permission_error", "not_found_error", "request_too_large", "conflict_error")
"""Types without an OpenAI code that are still the client's fault. Like all others not in
`ERROR_TYPES` they keep Anthropic's type as their code."""


def say_problem(body: bytes) -> bytes:
    """Return an error body in OpenAI's shape; anything else unchanged."""
    said = read_object(body) or {}
    error = said.get("error")
    if said.get("type") != "error" or not isinstance(error, dict):
        return body
    given = string(error.get("type"))
    kind = "invalid_request_error" if given in CLIENTS else "server_error"
    kind, code = TYPES.get(given, (kind, given or None))
    spelled = problem(string(error.get("message")), kind=kind, code=code)
    request = said.get("request_id")
    return dumps({**spelled, **({"request_id": request} if request else {})})
