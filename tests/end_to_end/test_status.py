"""Each title of a summary in a field of its own, for status lines."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.pipeline.test_renaming import PATHS, answer_of, body_of
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.messages_checker import CHECKS
from tests.support.streams import THOUGHT, chat_stream
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream


def events_in(data: bytes) -> list[dict[str, Any]]:
    lines = [line[6:] for line in data.splitlines() if line.startswith(b"data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("client", list(PATHS))
@pytest.mark.parametrize("upstream", list(PATHS))
@pytest.mark.parametrize("asked", [True, False], ids=["on", "off"])
async def test_a_stream_tells_each_title_where_that_is_asked_for(
    client: str, upstream: str, *, asked: bool
) -> None:
    app = build_app(
        "sidecar",
        Upstream(answer_of(upstream, stream=True)),
        writer=Scripted("**Weighing it**\n\nI weigh it."),
        upstreams=[{"base_url": "http://upstream.test/v1", "api": upstream}],
        summary={"default": "auto", "status": asked},
    )
    thinking = {"thinking": {"type": "adaptive"}} if client == "messages" else {}
    got = await call(app, PATHS[client], body_of(client, stream=True, **thinking))
    CHECKS[client](got.data)
    told = [event for event in events_in(got.data) if "x_abridge" in event]
    assert [event["x_abridge"] for event in told] == [{"status": "Weighing it"}] * asked
    for event in told:
        kinds = {"responses": "response.in_progress", "messages": "ping", "chat": None}
        assert event.get("type") == kinds[client]
        assert client != "chat" or event["choices"] == []


@pytest.mark.parametrize("client", list(PATHS))
async def test_the_last_title_comes_before_an_answer_that_waited_for_it(client: str) -> None:
    app = build_app(
        "sidecar",
        Upstream(Answer(chat_stream(THOUGHT, "Paris."))),
        upstreams=[{"base_url": "http://upstream.test/v1", "api": "chat"}],
        summary={"default": "auto", "status": True},
    )
    thinking = {"thinking": {"type": "adaptive"}} if client == "messages" else {}
    got = await call(app, PATHS[client], body_of(client, stream=True, **thinking))
    assert b"x_abridge" in got.data.partition(b"Paris")[0]
    assert b"x_abridge" not in got.data.partition(b"Paris")[2]
