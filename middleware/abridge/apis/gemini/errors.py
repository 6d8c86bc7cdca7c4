"""The errors of Gemini's API, which are Google's, read in OpenAI's words."""

from __future__ import annotations

from abridge.apis.api import ApiError
from abridge.apis.json import string
from abridge.core.conversation import Json

ERROR_STATUSES = {
    "INVALID_ARGUMENT": ("invalid_request_error", None),
    "FAILED_PRECONDITION": ("invalid_request_error", "failed_precondition"),
    "OUT_OF_RANGE": ("invalid_request_error", "out_of_range"),
    "UNAUTHENTICATED": ("invalid_request_error", "invalid_api_key"),
    "PERMISSION_DENIED": ("invalid_request_error", "permission_denied"),
    "NOT_FOUND": ("invalid_request_error", "not_found"),
    "RESOURCE_EXHAUSTED": ("rate_limit_error", "rate_limit_exceeded"),
}
"""OpenAI's error type and code for a status of Google's (google.rpc.Code). Any other is the
server's fault, and keeps its name as the code."""


def read_error(body: Json) -> ApiError | None:
    """Read an error body, `{"error": {"code", "message", "status"}}`; return None if it is not one.

    The code is the HTTP status, a number.
    """
    error = body.get("error")
    if not isinstance(error, dict):
        return None
    status = string(error.get("status"))
    kind, code = ERROR_STATUSES.get(status, ("server_error", status.lower() or None))
    return ApiError(string(error.get("message")), kind, code=code)
