"""The errors of the Interactions API, read in OpenAI's words."""

from __future__ import annotations

from abridge.apis.api import ApiError
from abridge.apis.gemini.errors import ERROR_STATUSES
from abridge.apis.json import string
from abridge.core.conversation import Json

CODES = {
    **{status.lower(): known for status, known in ERROR_STATUSES.items()},
    **dict.fromkeys(("invalid_request", "bad_request"), ("invalid_request_error", None)),
    **dict.fromkeys(("authentication", "unauthorized"), ERROR_STATUSES["UNAUTHENTICATED"]),
    "forbidden": ERROR_STATUSES["PERMISSION_DENIED"],
    **dict.fromkeys(
        ("rate_limit_exceeded", "too_many_requests"), ERROR_STATUSES["RESOURCE_EXHAUSTED"]
    ),
    **{
        code: ("invalid_request_error", code)
        for code in (
            *("parameter_unknown", "model_not_found", "conflict", "payment_required"),
            *("content_blocked", "prohibited_content"),
        )
    },
}
"""OpenAI's error type and code for a code (ai.google.dev: gemini-api/docs/api-errors). Any other is
the server's fault, and stays the code."""


def read_error(body: Json) -> ApiError | None:
    """Read an error body, `{"error": {"code", "message"}}`; return None if it is not one.

    The code may be an address that ends with it. Errors of Google's front have a `status`, as those
    of generateContent, and a number as code.
    """
    error = body.get("error")
    if not isinstance(error, dict):
        return None
    code = (string(error.get("status")) or string(error.get("code"))).rpartition("/")[2].lower()
    kind, known = CODES.get(code, ("server_error", code or None))
    return ApiError(string(error.get("message")), kind, code=known)
