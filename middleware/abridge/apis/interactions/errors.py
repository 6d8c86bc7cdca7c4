"""The errors of the Interactions API, read in OpenAI's words."""

from __future__ import annotations

from functools import partial

from abridge.apis.gemini import errors
from abridge.apis.gemini.errors import ERROR_STATUSES, ErrorCodes

CODES: ErrorCodes = {
    **ERROR_STATUSES,  # of Google's front
    **dict.fromkeys(("invalid_request", "bad_request"), ("invalid_request_error", None)),
    **dict.fromkeys(("authentication", "unauthorized"), ERROR_STATUSES["unauthenticated"]),
    "forbidden": ERROR_STATUSES["permission_denied"],
    **dict.fromkeys(
        ("rate_limit_exceeded", "too_many_requests"), ERROR_STATUSES["resource_exhausted"]
    ),
    **{
        code: ("invalid_request_error", code)
        for code in (
            *("parameter_unknown", "model_not_found", "conflict", "payment_required"),
            *("content_blocked", "prohibited_content"),
        )
    },
}
"""Beside statuses, the API's own codes (ai.google.dev: gemini-api/docs/api-errors)."""

read_error = partial(errors.read_error, codes=CODES)
