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


def read_failure(response: Json) -> ErrorDetail:
    """Read why a response failed."""
    error = response.get("error")
    message = string(error.get("message")) if isinstance(error, dict) else ""
    return ErrorDetail("upstream_error", message)
