"""The errors of Chat Completions: OpenAI's error body, in a stream as a chunk of its own."""

from __future__ import annotations

from dataclasses import replace

from abridge.apis import sse
from abridge.apis.errors import read_detail
from abridge.apis.json import dumps
from abridge.apis.openai import error_body
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail

BROKEN_REASONS = ("abort", "cancelled", "error", "insufficient_system_resource", "timeout")
"""Why a choice finishes that broke off: OpenRouter's, vLLM's, SGLang's and DeepSeek's words."""


def encode_error(error: ErrorDetail) -> bytes:
    return encode_error_body(error_body(error.message, code=error.code), {})


def encode_error_body(body: Json, facts: Json) -> bytes:
    """Encode an error body as a chunk, with more facts in its error."""
    return sse.encode_frame(dumps({"error": {**body["error"], **facts}}))


def read_finish_error(choice: Json) -> ErrorDetail | None:
    """Read the error with which a choice finished; None if it did not finish with one."""
    reason, error = choice.get("finish_reason"), read_detail(choice)
    if reason not in BROKEN_REASONS:
        return None
    return replace(error, message=error.message or f"The model's answer broke off: {reason}.")
