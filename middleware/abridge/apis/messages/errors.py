"""The errors of Messages: Anthropic's error body, read in OpenAI's words."""

from __future__ import annotations

from collections.abc import Mapping

from abridge.apis import sse
from abridge.apis.api import ApiError
from abridge.apis.json import dumps, string
from abridge.core.conversation import Json

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


TYPES_BY_CODE: Mapping[str, str] = {
    **{code: error_type for error_type, (_, code) in ERROR_TYPES.items() if code},
    "model_not_found": "not_found_error",
    "not_found": "not_found_error",
    "upstream_timeout": "timeout_error",
}
"""Anthropic's error type for the codes and kinds of OpenAI's APIs, and of Abridge's own errors."""

TYPES_BY_STATUS: Mapping[int, str] = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Anthropic's error type for a status (Anthropic API reference, Errors)."""

DETAILS_BY_PARAM: Mapping[str | None, Json] = {
    "thread": {"error_code": "thread_unsupported_request"}
}
"""What an error says beside its message, by the field at fault. Anthropic's clients then send the
whole conversation instead (`ThreadUnsupportedRequestErrorDetails` of anthropic-sdk-python)."""

COMPACTION_CODE = "compaction_"
"""Begins the codes of errors about compactions, which Anthropic tells in the details."""

SPECIFIC_TYPES = frozenset({*TYPES_BY_STATUS.values(), *CLIENT_ERROR_TYPES})
"""Types that say what is wrong, whichever API they were told in."""


def error_body(
    message: str,
    *,
    kind: str = "server_error",
    param: str | None = None,
    code: str | None = None,
    status: int | None = None,
) -> Json:
    """Return Anthropic's error body, `{"type": "error", "error": {"type", "message"}}`, for an
    error in OpenAI's words.

    The field at fault has no place of its own, so the message begins with it.
    """
    if param is not None and param not in message:
        message = f"{param}: {message}"
    error: Json = {"type": _error_type(kind, code, status), "message": message}
    if param in DETAILS_BY_PARAM:
        error["details"] = DETAILS_BY_PARAM[param]
    elif code is not None and code.startswith(COMPACTION_CODE):
        error["details"] = {"error_code": code}
    return {"type": "error", "error": error}


def _error_type(kind: str, code: str | None, status: int | None) -> str:
    """Return the type that the code tells, else the kind, else the status."""
    for word in (code or "", kind):
        told = TYPES_BY_CODE.get(word, word)
        if told in SPECIFIC_TYPES:
            return told
    is_client_error = kind == "invalid_request_error" or 400 <= (status or 0) < 500
    default = "invalid_request_error" if is_client_error else "api_error"
    return TYPES_BY_STATUS.get(status or 0, default)


def encode_error_body(body: Json, facts: Json) -> bytes:
    """Encode an error body as the event of a stream, with more facts in its error."""
    event = {**body, "error": {**body["error"], **facts}}
    return sse.encode_frame(dumps(event), "error")


def read_error(body: Json) -> ApiError | None:
    """Read an error body; return None if it is not one."""
    error = body.get("error")
    if body.get("type") != "error" or not isinstance(error, dict):
        return None
    error_type = string(error.get("type"))
    kind = "invalid_request_error" if error_type in CLIENT_ERROR_TYPES else "server_error"
    kind, code = ERROR_TYPES.get(error_type, (kind, error_type or None))
    request_id = string(body.get("request_id"))
    return ApiError(string(error.get("message")), kind, code=code, request_id=request_id)
