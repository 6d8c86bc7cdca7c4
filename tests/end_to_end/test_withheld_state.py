"""Test that upstream gets opaque state back that its client was never shown, where reasoning is
hidden and nobody vouches that the state is encrypted: out of the store, over two turns."""

from __future__ import annotations

import pytest

from tests.support.asgi import call
from tests.support.checker import check_responses
from tests.support.deployments import ORIGIN, build_app
from tests.support.streams import call_item, reasoning_item, response, responses_stream
from tests.support.upstream import Answer, Upstream

STATE = "8JKjTx0r7OQ9n1uVdW3kZp5yH2sLbXcEaMgRfYtB4wI="
KEY = {"authorization": "Bearer sk-anna-1234"}


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_upstream_gets_its_state_back_that_the_client_never_saw(*, stream: bool) -> None:
    items = [
        {**reasoning_item(0, ""), "content": [], "encrypted_content": STATE},
        call_item(1, "look", '{"city": "Paris"}'),
    ]
    answer = Answer(responses_stream(items)) if stream else Answer.json(response(items))
    upstream = Upstream(answer)
    app = build_app(
        "sidecar",
        upstream,
        upstreams=[{"api": "responses", "base_url": f"{ORIGIN}/v1", "profile": "vllm"}],
        reasoning={"expose": "none"},
    )
    body = {"model": "m", "stream": stream}
    reply = await call(app, "/v1/responses", {**body, "input": "Hi"}, KEY)
    assert STATE.encode() not in reply.data
    shown = (check_responses(reply.data).response if stream else reply.json)["output"]
    question = {"role": "user", "content": "Hi"}
    result = {"type": "function_call_output", "call_id": items[1]["call_id"], "output": "Rain."}
    await call(app, "/v1/responses", {**body, "input": [question, *shown, result]}, KEY)
    states = [item.get("encrypted_content") for item in upstream.requests[1].json["input"]]
    assert [state for state in states if state] == [STATE]
