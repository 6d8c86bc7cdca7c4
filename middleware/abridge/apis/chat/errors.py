"""The errors of Chat Completions: OpenAI's error body, in a stream as a chunk of its own."""

from __future__ import annotations

from dataclasses import replace

from abridge.apis import sse
from abridge.apis.errors import read_detail
from abridge.apis.json import dumps, first_string, string
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


def respell_error(answer: Json) -> Json:
    """Return an answer that is an error of another form, as vLLM's and FastAPI's, as an error body.

    An answer with anything else in it stays as it is.
    """
    message = first_string(answer, "message", "detail")
    is_error = bool(message) or answer.get("object") == "error"
    if not is_error or any(answer.get(key) for key in ("error", "choices", "usage")):
        return answer
    return error_body(
        message,
        kind=string(answer.get("type")) or "server_error",
        param=answer.get("param"),
        code=answer.get("code"),
    )
