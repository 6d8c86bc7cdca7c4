"""The errors of Responses: OpenAI's error body, in a stream a response that failed."""

from __future__ import annotations

from abridge.apis import sse
from abridge.apis.errors import read_detail
from abridge.apis.json import dumps
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail


def as_failed(response: Json, failure: ErrorDetail) -> Json:
    """Return the response as failed.

    `error.code` is `server_error`: the API's description allows no code of our own.
    """
    error = {"code": "server_error", "message": failure.message}
    return {**response, "status": "failed", "error": error}


def encode_error_body(body: Json, facts: Json) -> bytes:
    """Encode an error body as the only event of a stream in which no response had begun
    (`ResponseErrorEvent` of the API reference), with more facts in it."""
    told = {key: body["error"].get(key) for key in ("code", "message", "param")}
    event = {"type": "error", "sequence_number": 0, **told, **facts}
    return sse.encode_frame(dumps(event), "error")


UNDER_WAY = ("queued", "in_progress")

NO_ANSWERS = ("failed", "cancelled", *UNDER_WAY)
"""Statuses of responses that are no answer. Only clients of this API can ask for one later."""


def read_failure(response: Json) -> ErrorDetail:
    """Read why a response is no answer."""
    if (status := response.get("status")) in UNDER_WAY:
        return ErrorDetail("upstream_error", f"Upstream has not finished its response: {status}.")
    return read_detail(response)
