"""The errors of Responses: OpenAI's error body, in a stream a response that failed."""

from __future__ import annotations

from abridge.apis.json import string
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail


def as_failed(response: Json, failure: ErrorDetail) -> Json:
    """Return the response as failed.

    `error.code` is `server_error`: the API's description allows no code of our own.
    """
    error = {"code": "server_error", "message": failure.message}
    return {**response, "status": "failed", "error": error}


NO_ANSWERS = ("failed", "cancelled", "queued", "in_progress")
"""Statuses of responses that are no answer. Only clients of this API can ask for one later."""


def read_failure(response: Json) -> ErrorDetail:
    """Read why a response is no answer."""
    if (status := response.get("status")) in ("queued", "in_progress"):
        return ErrorDetail("upstream_error", f"Upstream has not finished its response: {status}.")
    error = response.get("error")
    message = string(error.get("message")) if isinstance(error, dict) else ""
    return ErrorDetail("upstream_error", message)
