"""Error bodies, in the form that both of OpenAI's APIs use."""

from __future__ import annotations

from typing import Any

from abridge.turn.events import Trouble
from abridge.wire.codec import Json, string

CUT = Trouble("upstream_error", "The connection to upstream ended before the answer did.")

TOO_LONG = Trouble("upstream_error", "The answer is longer than limits.event allows.")


def problem(
    message: str,
    *,
    kind: str = "server_error",
    param: str | None = None,
    code: str | None = None,
) -> Json:
    """Return `{"error": {"message", "type", "param", "code"}}`, as in the API reference."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def trouble_in(body: Any) -> Trouble | None:
    """Read an error body in this form or a similar one; return None if it is not one."""
    error = body.get("error") if isinstance(body, dict) else None
    message = string(error.get("message") if isinstance(error, dict) else error)
    return Trouble("upstream_error", message) if message else None
