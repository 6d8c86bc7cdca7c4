"""The errors of Chat Completions: OpenAI's error body, in a stream as a chunk of its own."""

from __future__ import annotations

from abridge.apis import sse
from abridge.apis.json import dumps
from abridge.apis.openai import error_body
from abridge.core.events import ErrorDetail


def encode_error(error: ErrorDetail) -> bytes:
    """Encode the chunk that reports an error."""
    return sse.encode_frame(dumps(error_body(error.message, code=error.code)))
