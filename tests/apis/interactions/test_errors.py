"""Test errors of the Interactions API, as clients of OpenAI's see them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.chat.api import CHAT
from abridge.apis.errors import translate_error
from abridge.apis.interactions.api import INTERACTIONS


def translate(body: Any) -> Any:
    return json.loads(translate_error(json.dumps(body).encode(), INTERACTIONS, CHAT))


@pytest.mark.parametrize(
    ("given", "kind", "code"),
    [
        ("invalid_request", "invalid_request_error", None),
        ("parameter_unknown", "invalid_request_error", "parameter_unknown"),
        ("authentication", "invalid_request_error", "invalid_api_key"),
        ("permission_denied", "invalid_request_error", "permission_denied"),
        ("model_not_found", "invalid_request_error", "model_not_found"),
        ("prohibited_content", "invalid_request_error", "prohibited_content"),
        ("rate_limit_exceeded", "rate_limit_error", "rate_limit_exceeded"),
        ("too_many_requests", "rate_limit_error", "rate_limit_exceeded"),
        ("https://ai.google.dev/errors/invalid_request", "invalid_request_error", None),
        ("gateway_timeout", "server_error", "gateway_timeout"),
        (None, "server_error", None),
    ],
)
def test_codes_are_mapped(given: Any, kind: str, code: str | None) -> None:
    error = {"message": "No.", "type": kind, "param": None, "code": code}
    assert translate({"error": {"code": given, "message": "No."}}) == {"error": error}


def test_errors_with_a_status_are_googles_others() -> None:
    given = {"code": 429, "message": "No.", "status": "RESOURCE_EXHAUSTED"}
    assert translate({"error": given})["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize("body", [{"detail": "No."}, [1, 2], "No.", {"error": "No."}])
def test_what_is_no_error_stays_as_it_came(body: Any) -> None:
    assert translate(body) == body
