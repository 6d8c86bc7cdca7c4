"""Test translating Google's errors for clients of the other APIs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.chat.api import CHAT
from abridge.apis.errors import translate_error
from abridge.apis.gemini.api import GEMINI


def translate(body: Any) -> Any:
    return json.loads(translate_error(json.dumps(body).encode(), GEMINI, CHAT))


@pytest.mark.parametrize("wrap", [lambda body: body, lambda body: [body]], ids=["object", "list"])
@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        ("INVALID_ARGUMENT", "invalid_request_error", None),
        ("FAILED_PRECONDITION", "invalid_request_error", "failed_precondition"),
        ("UNAUTHENTICATED", "invalid_request_error", "invalid_api_key"),
        ("PERMISSION_DENIED", "invalid_request_error", "permission_denied"),
        ("NOT_FOUND", "invalid_request_error", "not_found"),
        ("RESOURCE_EXHAUSTED", "rate_limit_error", "rate_limit_exceeded"),
        ("UNAVAILABLE", "server_error", "unavailable"),
        ("INTERNAL", "server_error", "internal"),
        (None, "server_error", None),
    ],
)
def test_statuses_are_mapped(status: Any, kind: str, code: str | None, wrap: Any) -> None:
    body = {"error": {"code": 400, "message": "No.", "status": status, "details": []}}
    error = {"message": "No.", "type": kind, "param": None, "code": code}
    assert translate(wrap(body)) == {"error": error}


@pytest.mark.parametrize("body", [{"detail": "No."}, [1, 2], [], "No.", {"error": "No."}])
def test_what_is_no_error_of_googles_stays_as_it_came(body: Any) -> None:
    assert translate(body) == body
