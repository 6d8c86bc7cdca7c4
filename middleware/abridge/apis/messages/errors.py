"""The errors of Messages: Anthropic's error body, read in OpenAI's words."""

from __future__ import annotations

from abridge.apis.api import ApiError
from abridge.apis.json import string
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail

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


def error_body(
    message: str,
    *,
    kind: str = "server_error",
    param: str | None = None,
    code: str | None = None,
) -> Json:
    """Return Anthropic's error body, `{"type": "error", "error": {"type", "message"}}`, for an
    error in OpenAI's words."""
    error_type = "invalid_request_error" if kind == "invalid_request_error" else "api_error"
    return {"type": "error", "error": {"type": error_type, "message": message}}


def read_error(body: Json) -> ApiError | None:
    """Read an error body; return None if it is not one."""
    error = body.get("error")
    if body.get("type") != "error" or not isinstance(error, dict):
        return None
    error_type = string(error.get("type"))
    kind = "invalid_request_error" if error_type in CLIENT_ERROR_TYPES else "server_error"
    kind, code = ERROR_TYPES.get(error_type, (kind, error_type or None))
    request_id = body.get("request_id") or ""
    return ApiError(string(error.get("message")), kind, code=code, request_id=request_id)


def read_error_event(event: Json) -> ErrorDetail:
    """Read an error event of a stream, or a body of the same shape."""
    error = event.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return ErrorDetail("upstream_error", string(message))
