"""Odd answers of each upstream to each client: each ends, is legal and hides reasoning."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from abridge.apis.display import Exposure
from tests.end_to_end.mutations import ODD, SECRET, STREAMS, WHOLE, answer, changed, places
from tests.end_to_end.recordings.recordings import chunks_of
from tests.end_to_end.translation.turn import ALL_UPSTREAMS, PATHS, UPSTREAMS, request_body
from tests.support.asgi import Call, call
from tests.support.checker import check_chat, check_responses
from tests.support.deployments import ORIGIN, build_app
from tests.support.matrix import some
from tests.support.openapi import event_faults, faults
from tests.support.shared import OPENAPI
from tests.support.summarizers import Scripted
from tests.support.upstream import Upstream


async def ask(
    client: str, upstream: str, odd: Any, expose: Exposure, *, stream: bool, attributes: bool
) -> Call:
    app = build_app(
        "mounted",
        Upstream(answer(odd, stream=stream)),
        writer=Scripted("All is well."),
        upstreams=[{"api": upstream, "base_url": f"{ORIGIN}/v1"}],
        reasoning={"expose": expose},
        attribution={"enabled": attributes},
    )
    return await call(app, PATHS[client], request_body(client, stream=stream))


def check(client: str, upstream: str, reply: Call, *, stream: bool) -> None:
    """Check that an answer which was translated is legal in the client's API."""
    if client in (upstream, "messages"):  # of Messages `tests/apis/test_odd_answers.py` shows it
        return
    if not stream:
        body = reply.json
        if reply.status == 502:
            assert body["error"]["message"]
            return
        assert reply.status == 200
        schema = "CreateChatCompletionResponse" if client == "chat" else "Response"
        assert not OPENAPI.is_file() or not faults(schema, body)
        return
    if client == "chat":
        seen = check_chat(reply.data)
        assert seen.done != (seen.error is not None)
    else:
        assert check_responses(reply.data).terminal is not None
    for event in chunks_of(reply.data) if OPENAPI.is_file() else ():
        if client == "responses":
            assert not event_faults(event), event
        elif "error" not in event:
            assert not faults("CreateChatCompletionStreamResponse", event), event


BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize(("client", "upstream"), list(product(UPSTREAMS, ALL_UPSTREAMS)))
EXPOSE = st.sampled_from(["both", "summary", "none"])


@BOTH
@EACH
@settings(max_examples=some(30), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(expose=EXPOSE, data=st.data())
async def test_odd_values_anywhere(
    client: str, upstream: str, expose: Exposure, data: st.DataObject, *, stream: bool
) -> None:
    odd = (STREAMS if stream else WHOLE)[upstream]
    for _ in range(data.draw(st.integers(1, 2))):
        odd = changed(odd, data.draw(st.sampled_from(list(places(odd)))), data.draw(ODD))
    attributes = data.draw(st.booleans())
    reply = await ask(client, upstream, odd, expose, stream=stream, attributes=attributes)
    assert reply.complete
    check(client, upstream, reply, stream=stream)
    if expose != "both":
        assert SECRET.encode() not in reply.data


@EACH
@settings(max_examples=some(30), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(expose=EXPOSE, data=st.data())
async def test_missing_repeated_or_reordered_events(
    client: str, upstream: str, expose: Exposure, data: st.DataObject
) -> None:
    frames = list(STREAMS[upstream])
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(frames) - 1))
        taken = [frames[place]] if data.draw(st.booleans()) else [frames.pop(place)]
        where = data.draw(st.integers(0, len(frames)))
        frames[where:where] = taken if data.draw(st.booleans()) else []
    reply = await ask(client, upstream, frames, expose, stream=True, attributes=False)
    assert reply.complete
    check(client, upstream, reply, stream=True)
    if expose != "both":
        assert SECRET.encode() not in reply.data
