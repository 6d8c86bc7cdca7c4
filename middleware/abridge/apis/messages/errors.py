"""Translates Anthropic's error bodies into the shape that both of OpenAI's APIs use."""

from __future__ import annotations

from abridge.apis.json import dumps, parse_object, string
from abridge.apis.openai import error_body

ERROR_TYPES = {
    "invalid_request_error": ("invalid_request_error", None),
    "authentication_error": ("invalid_request_error", "invalid_api_key"),
    "billing_error": ("insufficient_quota", "insufficient_quota"),
    "rate_limit_error": ("rate_limit_error", "rate_limit_exceeded"),
    "api_error": ("server_error", None),
}
"""OpenAI's error type and code for Anthropic's types."""

CLIENT_ERROR_TYPES = ("permission_error", "not_found_error", "request_too_large", "conflict_error")
"""Types without an OpenAI code that are still the client's fault. Like all others not in
`ERROR_TYPES` they keep Anthropic's type as their code."""


def translate_error(body: bytes) -> bytes:
    """Return an error body in OpenAI's shape; anything else unchanged."""
    parsed = parse_object(body) or {}
    error = parsed.get("error")
    if parsed.get("type") != "error" or not isinstance(error, dict):
        return body
    error_type = string(error.get("type"))
    kind = "invalid_request_error" if error_type in CLIENT_ERROR_TYPES else "server_error"
    kind, code = ERROR_TYPES.get(error_type, (kind, error_type or None))
    translated = error_body(string(error.get("message")), kind=kind, code=code)
    request_id = parsed.get("request_id")
    return dumps({**translated, **({"request_id": request_id} if request_id else {})})
