"""The deltas that Abridge writes say little of their text by their size."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.json import dumps
from abridge.apis.sse import frame_data
from tests.end_to_end.translation.turn import CLIENTS, PATHS, WORDS, answer, request_body
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.streams import pieces
from tests.support.summarizers import Scripted
from tests.support.upstream import Upstream

OFF = {"stream_options": {"include_obfuscation": False}}


async def stream(client: str, upstream: str, expose: str, **fields: Any) -> list[dict[str, Any]]:
    app = build_app(
        "sidecar",
        Upstream(answer(upstream, stream=True)),
        writer=Scripted(),
        upstreams=[{"base_url": "http://upstream.test/v1", "api": upstream}],
        reasoning={"expose": expose},
    )
    reply = await call(app, PATHS[client], {**request_body(client, stream=True), **fields})
    data = [frame_data(frame + b"\n\n") for frame in reply.data.split(b"\n\n") if frame]
    return [json.loads(each) for each in data if each is not None and each[:1] == b"{"]


def texts(event: dict[str, Any]) -> list[str]:
    """Return the texts of a delta."""
    if isinstance(event.get("delta"), str):
        return [event["delta"]]
    deltas = [choice["delta"] for choice in event.get("choices", ())]
    return [text for delta in deltas for text in delta.values() if text]


def size(text: str) -> int:
    return len(dumps(text)) - len('""')


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", CLIENTS)
@pytest.mark.parametrize("expose", ["auto", "summary"])
class TestDeltas:
    async def test_each_that_abridge_writes_is_filled_up(
        self, client: str, upstream: str, expose: str
    ) -> None:
        events = [event for event in await stream(client, upstream, expose) if texts(event)]
        all_are_written = client != upstream or expose == "summary"
        written = [event for event in events if all_are_written or "obfuscation" in event]
        for event in written:
            assert (sum(map(size, texts(event))) + len(event["obfuscation"])) % 16 == 0
        assert any("summar" in event.get("type", "") for event in written) or client == "chat"
        assert written

    async def test_none_is_where_the_client_wants_none(
        self, client: str, upstream: str, expose: str
    ) -> None:
        events = await stream(client, upstream, expose, **OFF)
        assert any(map(texts, events))
        assert not any("obfuscation" in event for event in events)


@pytest.mark.parametrize("api", CLIENTS)
async def test_what_passes_as_upstream_wrote_it_has_what_upstream_gave_it(api: str) -> None:
    events = await stream(api, api, "both")
    said = [event for event in events if set(texts(event)) & set(pieces(WORDS))]
    assert said
    assert not any("obfuscation" in event for event in said)
