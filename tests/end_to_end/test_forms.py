"""The same behaviour mounted, as a sidecar and embedded in another app."""

from __future__ import annotations

from typing import Any

import pytest

from tests.end_to_end.translation.turn import CLIENTS, PATHS, WORDS, answer, read_answer
from tests.end_to_end.translation.turn import request_body as body_of
from tests.support.asgi import Call, call
from tests.support.deployments import PREFIX, Form, build_app
from tests.support.streams import THOUGHT
from tests.support.summarizers import Scripted
from tests.support.upstream import Upstream

SUMMARY = "**Adding up**\n\nI add the numbers."
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize("client", CLIENTS)


async def ask(
    form: Form, client: str, upstream: Upstream, body: dict[str, Any], **tables: Any
) -> Call:
    app = build_app(form, upstream, writer=Scripted(), **tables)
    return await call(app, PREFIX[form] + PATHS[client], body)


@BOTH
@EACH
@pytest.mark.parametrize("expose", ["both", "summary", "raw", "none"])
async def test_exposure(form: Form, client: str, expose: str, *, stream: bool) -> None:
    upstream = Upstream(answer(client, stream=stream))
    exposing = {"reasoning": {"expose": expose}}
    reply = await ask(form, client, upstream, body_of(client, stream=stream), **exposing)
    received = read_answer(client, reply, stream=stream)
    shown = {received.summary, received.raw}  # alone, raw stays in upstream's own field
    assert received.text == WORDS
    assert (SUMMARY in shown) == (expose in ("both", "summary"))
    assert (THOUGHT in shown) == (expose in ("both", "raw"))
    assert received.usage is not None
    assert received.usage["total_tokens"] == 81 + (15 if SUMMARY in shown else 0)


@EACH
async def test_a_whole_answer_says_what_was_made(form: Form, client: str) -> None:
    upstream = Upstream(answer(client, stream=False))
    reply = await ask(form, client, upstream, body_of(client, stream=False))
    assert reply.json["usage"]["reasoning_summary"]["model"] == "mini"
    assert reply.headers["x-abridge-summary"] == "model"
    assert reply.headers["server-timing"].startswith("summary;dur=")
    assert int(reply.headers["content-length"]) == len(reply.data)


@EACH
async def test_traffic_without_a_summary_request_is_untouched(form: Form, client: str) -> None:
    sent, body = answer(client, stream=True), body_of(client, stream=True, summary=None)
    upstream = Upstream(sent)
    reply = await ask(form, client, upstream, body)
    assert reply.data == b"".join(step for step in sent.steps if isinstance(step, bytes))
    assert upstream.requests[0].json == body


@pytest.mark.parametrize(
    ("client", "wish", "sent"),
    [
        ("responses", {"summary": "auto"}, {"summary": "auto"}),
        ("chat", {"summary": "auto"}, None),
        ("chat", {"summary": "auto", "effort": "low"}, {"effort": "low"}),
    ],
)
async def test_the_summary_parameter_is_forwarded_only_where_the_api_has_it(
    form: Form, client: str, wish: dict[str, str], sent: dict[str, str] | None
) -> None:
    upstream = Upstream(answer(client, stream=True))
    await ask(form, client, upstream, body_of(client, stream=True, reasoning=wish))
    assert upstream.requests[0].json.get("reasoning") == sent
