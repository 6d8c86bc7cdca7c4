"""Test the errors of Messages: read for clients of OpenAI's APIs, and written for its own."""

from __future__ import annotations

import json

import pytest
from openai.types import shared

from abridge.apis.chat.api import CHAT
from abridge.apis.errors import translate_error
from abridge.apis.messages.api import MESSAGES
from abridge.apis.messages.errors import error_body
from tests.support.messages_checker import check_error


@pytest.mark.parametrize(
    ("given", "kind", "code"),
    [
        ("invalid_request_error", "invalid_request_error", None),
        ("authentication_error", "invalid_request_error", "invalid_api_key"),
        ("billing_error", "insufficient_quota", "insufficient_quota"),
        ("permission_error", "invalid_request_error", "permission_error"),
        ("not_found_error", "invalid_request_error", "not_found_error"),
        ("request_too_large", "invalid_request_error", "request_too_large"),
        ("rate_limit_error", "rate_limit_error", "rate_limit_exceeded"),
        ("api_error", "server_error", None),
        ("timeout_error", "server_error", "timeout_error"),
        ("overloaded_error", "server_error", "overloaded_error"),
        ("an error of tomorrow", "server_error", "an error of tomorrow"),
        (None, "server_error", None),
    ],
)
def test_types_are_mapped(given: str | None, kind: str, code: str | None) -> None:
    body = {"type": "error", "error": {"type": given, "message": "No."}, "request_id": "req_1"}
    translated = json.loads(translate_error(json.dumps(body).encode(), MESSAGES.upstream, CHAT))
    error = {"message": "No.", "type": kind, "param": None, "code": code}
    assert translated == {"error": error, "request_id": "req_1"}
    assert shared.ErrorObject.model_validate(translated["error"]).message == "No."


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"",
        b"[1]",
        b'{"error": {"message": "No.", "type": "x"}}',
        b'{"type": "error", "error": "No."}',
        b'{"type": "message", "content": []}',
    ],
)
def test_anything_else_is_left_as_it_is(body: bytes) -> None:
    assert translate_error(body, MESSAGES.upstream, CHAT) == body


def test_the_registry_row_translates_errors() -> None:
    assert (MESSAGES.name, MESSAGES.path) == ("messages", "/messages")
    assert MESSAGES.upstream.headers == {"anthropic-version": "2023-06-01"}


def test_a_refused_thread_is_told_as_clients_know_it() -> None:
    body = MESSAGES.write_error("No.", kind="invalid_request_error", param="thread")
    assert body["error"]["details"] == {"error_code": "thread_unsupported_request"}
    assert "details" not in MESSAGES.write_error("No.", param="messages")["error"]


@pytest.mark.parametrize(
    ("kind", "code", "status", "told"),
    [
        ("invalid_request_error", None, None, "invalid_request_error"),
        ("invalid_request_error", "invalid_value", 400, "invalid_request_error"),
        ("invalid_request_error", "invalid_api_key", 400, "authentication_error"),
        ("invalid_request_error", "model_not_found", 404, "not_found_error"),
        ("invalid_request_error", "body_too_large", 413, "request_too_large"),
        ("invalid_request_error", None, 403, "permission_error"),
        ("server_error", "insufficient_quota", 429, "billing_error"),
        ("rate_limit_error", None, None, "rate_limit_error"),
        ("server_error", "overloaded", 503, "overloaded_error"),
        ("server_error", "overloaded_error", None, "overloaded_error"),
        ("server_error", "upstream_timeout", None, "timeout_error"),
        ("server_error", "upstream_error", 502, "api_error"),
        ("an error of tomorrow", "of tomorrow", 500, "api_error"),
        ("BadRequestError", "400", 400, "invalid_request_error"),  # vLLM's
        ("server_error", None, 418, "invalid_request_error"),
    ],
)
def test_the_type_is_told_by_the_code_the_kind_and_the_status(
    kind: str, code: str | None, status: int | None, told: str
) -> None:
    body = error_body("No.", kind=kind, code=code, status=status)
    assert check_error(body) == {"type": told, "message": "No."}


def test_the_message_begins_with_the_field_at_fault() -> None:
    def message(text: str) -> object:
        return error_body(text, param="messages.0.content")["error"]["message"]

    assert message("Expected a list.") == "messages.0.content: Expected a list."
    assert message("messages.0.content is no list.") == "messages.0.content is no list."
