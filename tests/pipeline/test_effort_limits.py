"""Test what upstream hears of an effort that clients may not ask for, and what clients hear."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipeline.test_renaming import PATHS, answer_of, body_of
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

LIMITS = {"effort_max": "medium", "budget_max": 2000}
CHAT = {"reasoning_effort": "high"}
RESPONSES = {"reasoning": {"effort": "xhigh"}}
MESSAGES = {"thinking": {"type": "enabled", "budget_tokens": 8000}}


@pytest.mark.parametrize(
    ("api", "asked", "sent", "said"),
    [
        ("chat", CHAT, {"reasoning_effort": "medium"}, {"x-abridge-effort": "medium"}),
        (
            "responses",
            RESPONSES,
            {"reasoning": {"effort": "medium"}},
            {"x-abridge-effort": "medium"},
        ),
        (
            "messages",
            MESSAGES,
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            {"x-abridge-budget": "2000"},
        ),
        ("chat", {"reasoning_effort": "low"}, {"reasoning_effort": "low"}, {}),
        ("chat", {}, {}, {}),
    ],
)
@pytest.mark.parametrize("summary", ["auto", "off"])
@pytest.mark.parametrize("stream", [True, False])
async def test_what_is_lowered_is_said(
    api: str,
    asked: dict[str, Any],
    sent: dict[str, Any],
    said: dict[str, str],
    summary: str,
    *,
    stream: bool,
) -> None:
    upstream = Upstream(answer_of(api, stream=stream))
    app = build_app("mounted", upstream, writer=Scripted(), upstreams=[LIMITS])
    body = body_of(api, stream=stream, **asked)
    answer = await call(app, PATHS[api], body, {"x-abridge-summary": summary})
    received = upstream.requests[0].json
    assert {
        key: received[key]
        for key in ("reasoning_effort", "reasoning", "thinking")
        if key in received
    } == sent
    assert {name: value for name, value in answer.headers.items() if name in said} == said
    assert ("x-abridge-effort" in answer.headers) == ("x-abridge-effort" in said)


async def test_an_error_says_it_as_well() -> None:
    upstream = Upstream(Answer.json({"error": {"message": "no"}}, status=400))
    app = build_app("mounted", upstream, upstreams=[LIMITS])
    answer = await call(app, PATHS["chat"], body_of("chat", **CHAT))
    assert (answer.status, answer.headers["x-abridge-effort"]) == (400, "medium")


@pytest.mark.parametrize("upstream_api", ["chat", "responses", "messages"])
async def test_limits_hold_for_translated_requests(upstream_api: str) -> None:
    upstream = Upstream(answer_of(upstream_api, stream=False))
    limits = {"effort_max": "low", "api": upstream_api, "base_url": "http://upstream.test/v1"}
    app = build_app("sidecar", upstream, upstreams=[limits])
    asked = {"reasoning": {"effort": "high"}}
    answer = await call(
        app, PATHS["responses"], body_of("responses", **asked, model="claude-opus-4-6")
    )
    assert answer.headers["x-abridge-effort"] == "low"
    received = upstream.requests[0].json
    efforts = (
        received.get("reasoning_effort"),
        (received.get("reasoning") or {}).get("effort"),
        (received.get("output_config") or {}).get("effort"),
    )
    assert [effort for effort in efforts if effort] == ["low"]


async def test_a_budget_that_follows_from_an_effort_is_limited() -> None:
    upstream = Upstream(answer_of("messages", stream=False))
    limits = {"budget_max": 2000, "api": "messages", "base_url": "http://upstream.test/v1"}
    app = build_app("sidecar", upstream, upstreams=[limits])
    asked = body_of("chat", reasoning_effort="high", model="claude-3-7-sonnet-latest")
    answer = await call(app, PATHS["chat"], asked)
    assert upstream.requests[0].json["thinking"]["budget_tokens"] == 2000
    assert answer.headers["x-abridge-budget"] == "2000"
