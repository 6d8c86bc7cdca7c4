"""Errors of upstream told in Abridge's own words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.errors import (
    UPSTREAM_FAILED,
    kept_headers,
    rewrite_error_body,
    whole_error,
)
from abridge.apis.openai import error_body
from abridge.apis.shapes import DropCount

RAW = "I thought of odd numbers"
EMPTY = {"message": UPSTREAM_FAILED, "type": "server_error", "param": None, "code": None}


def retold(status: int, body: Any) -> dict[str, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    written: dict[str, Any] = rewrite_error_body(status, data, error_body)["error"]
    return written


def test_type_param_and_code_are_kept_if_they_are_identifiers() -> None:
    error = {"type": "rate_limit_error", "param": "messages[0].content", "code": "slow_down"}
    written = retold(429, {"error": {**error, "message": RAW}})
    assert RAW not in str(written)
    assert written == {**error, "message": written["message"]}


@pytest.mark.parametrize("value", [RAW, "a" * 65, "", {"x": RAW}, [RAW], "é"])
def test_nothing_else_of_the_error_is_kept(value: Any) -> None:
    error = {"message": value, "type": value, "param": value, "code": value}
    written = retold(400, {"error": {**error, "failed_generation": RAW}, "choices": [RAW]})
    assert (written["type"], written["param"], written["code"]) == (
        "invalid_request_error",
        None,
        None,
    )
    assert RAW not in str(written)


def test_an_error_within_a_completion_keeps_identifiers_alone() -> None:
    drops = DropCount()
    told = whole_error({"code": {"x": RAW}, "type": RAW, "param": "a.b", "message": RAW}, drops)
    assert told == {**EMPTY, "param": "a.b"}
    assert drops.count == 2
    assert whole_error(RAW, drops) == EMPTY
    assert [whole_error(nothing, drops) for nothing in (None, {}, "", False)] == [None] * 4


def test_a_code_may_be_a_number() -> None:
    assert retold(400, {"error": {"message": RAW, "code": 1302}})["code"] == "1302"


@pytest.mark.parametrize("body", [RAW.encode(), b"", b"[]", b"\xff", {"error": RAW}, {"x": RAW}])
@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500, 503, 599])
def test_a_body_of_any_kind_becomes_an_error_of_its_status(status: int, body: Any) -> None:
    written = retold(status, body)
    assert written["message"].startswith(("Upstream ", "The request "))
    assert RAW not in str(written)
    assert (written["type"] == "server_error") is (status >= 500)


def test_headers_that_say_when_to_retry_are_kept() -> None:
    names = ("Retry-After", "x-ratelimit-remaining-tokens", "x-request-id", "vary")
    kept = [(name.encode(), b"1") for name in names]
    others = [(name, b"1") for name in (b"location", b"etag", b"x-said", b"x-request-id-so")]
    assert kept_headers([*others, *kept]) == kept
