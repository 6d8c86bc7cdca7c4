"""The errors of Gemini's API, which are Google's, read in OpenAI's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from abridge.apis.api import ApiError
from abridge.apis.json import first_string, string
from abridge.core.conversation import Json

ErrorCodes: TypeAlias = Mapping[str, tuple[str, str | None]]
"""OpenAI's error type and code for a word of Google's. Any other is the server's fault, and stays
the code."""

ERROR_STATUSES: ErrorCodes = {
    "invalid_argument": ("invalid_request_error", None),
    "failed_precondition": ("invalid_request_error", "failed_precondition"),
    "out_of_range": ("invalid_request_error", "out_of_range"),
    "unauthenticated": ("invalid_request_error", "invalid_api_key"),
    "permission_denied": ("invalid_request_error", "permission_denied"),
    "not_found": ("invalid_request_error", "not_found"),
    "resource_exhausted": ("rate_limit_error", "rate_limit_exceeded"),
}
"""By the status (google.rpc.Code), in small letters."""


def read_error(body: Json, codes: ErrorCodes = ERROR_STATUSES) -> ApiError | None:
    """Read an error body, `{"error": {"code", "message", "status"}}`; return None if it is not one.

    The code is the HTTP status, a number, unless there is no status: then it is a word, or an
    address that ends with one.
    """
    error = body.get("error")
    if not isinstance(error, dict):
        return None
    code = first_string(error, "status", "code").rpartition("/")[2].lower()
    kind, known = codes.get(code, ("server_error", code or None))
    return ApiError(string(error.get("message")), kind, code=known)
