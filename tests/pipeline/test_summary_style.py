"""Test what of a summary's style upstream is told."""

from __future__ import annotations

import pytest

from abridge.core.styles import STYLES, SummaryStyle
from tests.pipeline.test_summary_language import PATHS, body_of, upstream_of
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.summarizers import Scripted


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("key", ["summary", "generate_summary"])
@pytest.mark.parametrize("stream", [True, False])
async def test_upstream_is_asked_for_a_style_that_openai_knows(
    style: SummaryStyle, key: str, *, stream: bool
) -> None:
    upstream, scripted = upstream_of("responses", stream=stream), Scripted()
    body = body_of("responses", stream=stream, effort="low", **{key: style})
    answer = await call(build_app("mounted", upstream, writer=scripted), PATHS["responses"], body)
    assert answer.status == 200
    assert upstream.requests[0].json["reasoning"] == {"effort": "low", key: STYLES[style].native}
    assert {passage.style for passage in scripted.requests} == {style}


async def test_a_chat_upstream_is_told_no_style() -> None:
    upstream = upstream_of("chat")
    app = build_app("mounted", upstream, writer=Scripted())
    await call(app, PATHS["chat"], body_of("chat", summary="title"))
    assert "reasoning" not in upstream.requests[0].json
