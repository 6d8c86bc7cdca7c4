"""The errors of Chat Completions: OpenAI's error body, in a stream as a chunk of its own."""

from __future__ import annotations

from abridge.apis import sse
from abridge.apis.json import dumps, string
from abridge.apis.openai import error_body
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail


def encode_error(error: ErrorDetail) -> bytes:
    """Encode the chunk that reports an error."""
    return sse.encode_frame(dumps(error_body(error.message, code=error.code)))


def read_finish_error(choice: Json) -> ErrorDetail | None:
    """Read the error with which a choice finished; None if it did not finish with one."""
    if choice.get("finish_reason") != "error":
        return None
    error = choice.get("error")
    message = string(error.get("message")) if isinstance(error, dict) else ""
    return ErrorDetail("upstream_error", message)
