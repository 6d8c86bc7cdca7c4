"""Abridge's own errors have the shape of the client's API."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from abridge.apis.chat.api import CHAT
from tests.support.asgi import Call, call
from tests.support.deployments import build_app
from tests.support.upstream import Answer, Upstream

PATH = "/v1/chat/completions"
BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}


def write_flat_error(
    message: str,
    *,
    kind: str = "server_error",
    param: str | None = None,
    code: str | None = None,
    status: int | None = None,
) -> dict[str, Any]:
    return {"flat": [message, kind, param, code]}


@pytest.fixture(autouse=True)
def api_with_flat_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = replace(CHAT, write_error=write_flat_error)
    monkeypatch.setattr("abridge.middleware.find_api", lambda *_: flat)


async def refuse(body: Any, *answers: Answer) -> tuple[Call, list[str | None]]:
    app = build_app(
        "sidecar",
        Upstream(*answers),
        reasoning={"expose": "none"},
    )
    received = await call(app, PATH, body)
    return received, json.loads(received.data)["flat"]


async def test_a_refused_request() -> None:
    received, (_, kind, param, code) = await refuse({**BODY, "reasoning": {"summary": "x"}})
    assert received.status == 400
    assert (kind, param, code) == ("invalid_request_error", "reasoning.summary", "invalid_value")


@pytest.mark.parametrize(
    "answer",
    [
        Answer([b"<html>"], headers={"content-type": "text/html"}),
        Answer([b"<html>"], headers={"content-type": "application/json"}),
    ],
    ids=["html", "no json"],
)
async def test_an_answer_that_cannot_be_read(answer: Answer) -> None:
    received, (_, kind, param, code) = await refuse(BODY, answer)
    assert received.status == 502
    assert (kind, param, code) == ("server_error", None, "upstream_error")


async def test_an_upstream_that_breaks_off() -> None:
    broken = Answer([b'{"id"', ConnectionError()], headers={"content-type": "application/json"})
    received, (_, kind, _, code) = await refuse(BODY, broken)
    assert received.status == 502
    assert (kind, code) == ("server_error", "upstream_broken")
