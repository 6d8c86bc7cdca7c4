"""Names, limits and fallbacks of upstreams, for clients that speak WebSocket."""

from __future__ import annotations

import json

import pytest
from prometheus_client import CollectorRegistry

from abridge.sidecar.app import create_app
from tests.support.deployments import settings_for
from tests.support.servers import serve, unused_address
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream
from tests.support.websockets import opened, serving

OUTPUT = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]


@pytest.mark.parametrize("reasoning", [{"summary": "auto", "effort": "high"}, {"effort": "high"}])
async def test_a_fallback_answers_under_the_clients_name(reasoning: dict[str, str]) -> None:
    upstream = Upstream(Answer(responses_stream(OUTPUT, model="up/m")))
    async with serve(upstream) as address:
        upstreams = [
            {"name": "first", "base_url": unused_address(), "fallback": "second"},
            {
                "name": "second",
                "base_url": f"{address}/v1",
                "rename": {"*": "up/{}"},
                "effort_max": "low",
            },
        ]
        settings = settings_for(upstreams=upstreams, summarizer={"kind": "object"})
        registry = CollectorRegistry()
        app = create_app(settings, summarizer=Scripted(), registry=registry)
        async with serving(app, settings, registry) as running, opened(running.url) as client:
            await client.create(reasoning=reasoning)
            events = await client.answer()
        await app.aclose()
    models = {event["response"]["model"] for event in events if "response" in event}
    assert (events[-1]["type"], models) == ("response.completed", {"m"})
    (request,) = upstream.requests
    assert json.loads(request.body)["model"] == "up/m"
    assert json.loads(request.body)["reasoning"]["effort"] == "low"
