"""Error bodies: each client gets its own API's shape, whatever API its upstream speaks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from abridge.apis.api import Api, ApiError
from abridge.apis.chat.api import CHAT
from abridge.apis.errors import translate_error
from abridge.apis.messages.api import MESSAGES
from abridge.apis.openai import read_error
from abridge.apis.responses.api import RESPONSES

OPENAI_BODY = {
    "error": {"message": "No.", "type": "invalid_request_error", "param": "n", "code": "c", "x": 1}
}
ANTHROPIC_BODY = {
    "type": "error",
    "error": {"type": "not_found_error", "message": "No."},
    "request_id": "req_1",
}


def write_flat_error(
    message: str,
    *,
    kind: str = "server_error",
    param: str | None = None,
    code: str | None = None,
    status: int | None = None,
) -> dict[str, Any]:
    return {"flat": [message, kind, param, code]}


FLAT = replace(
    CHAT, write_error=write_flat_error, upstream=replace(CHAT.upstream, read_error=lambda _: None)
)
"""A client API whose errors have a shape of their own."""


def encode(body: Any) -> bytes:
    return json.dumps(body).encode()


@pytest.mark.parametrize("client", [CHAT, RESPONSES], ids=lambda api: api.name)
@pytest.mark.parametrize("upstream", [CHAT, RESPONSES], ids=lambda api: api.name)
def test_an_error_in_the_clients_shape_stays_as_it_came(client: Api, upstream: Api) -> None:
    assert translate_error(encode(OPENAI_BODY), upstream.upstream, client) == encode(OPENAI_BODY)


def test_an_error_in_another_shape_is_written_in_the_clients() -> None:
    openai = json.loads(translate_error(encode(OPENAI_BODY), RESPONSES.upstream, FLAT))
    assert openai == {"flat": ["No.", "invalid_request_error", "n", "c"]}
    anthropic = json.loads(translate_error(encode(ANTHROPIC_BODY), MESSAGES.upstream, FLAT))
    expected = ["No.", "invalid_request_error", None, "not_found_error"]
    assert anthropic == {"flat": expected, "request_id": "req_1"}


def test_an_error_of_an_applications_framework_is_written_in_the_clients_shape() -> None:
    """FastAPI answers so to `HTTPException(429, "No.")`."""
    told = translate_error(b'{"detail": "No."}', CHAT.upstream, MESSAGES, 429, request_id="req_1")
    error = {"type": "rate_limit_error", "message": "No."}
    assert json.loads(told) == {"type": "error", "error": error, "request_id": "req_1"}


@pytest.mark.parametrize("body", [b"<html>", b'{"error": "No."}', b"[]", b"{}"])
def test_what_is_no_error_body_stays_as_it_came(body: bytes) -> None:
    assert translate_error(body, CHAT.upstream, FLAT) == body


def test_an_error_body_may_leave_out_all_but_the_message() -> None:
    assert read_error({"error": {"message": "No.", "code": 404}}) == ApiError("No.")
    assert read_error({"error": {}}) == ApiError("")
