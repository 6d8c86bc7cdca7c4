"""Errors, in the shape that both APIs give them."""

from __future__ import annotations

from abridge.wire.codec import Json


def problem(
    message: str,
    *,
    kind: str = "server_error",
    param: str | None = None,
    code: str | None = None,
) -> Json:
    """`{"error": {"message", "type", "param", "code"}}`, as the API reference has it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
