"""Every recording over every pair of APIs: what the client is told is what upstream said.

Whatever differs stands in `meant.py`, with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from tests.end_to_end.recordings.meant import TOLD_OTHERWISE, may_be_missing
from tests.end_to_end.recordings.recordings import Recording, all_recordings, bodies_of
from tests.end_to_end.recordings.told import Told, told
from tests.end_to_end.translation.turn import PATHS, request_body
from tests.support.asgi import Call, call
from tests.support.deployments import ORIGIN, build_app
from tests.support.shared import needs_recordings
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

pytestmark = needs_recordings

EVERY = {recording.name: recording for recording in all_recordings()}
WAYS = {
    "without a summary": (None, "both"),
    "with a summary": ("auto", "both"),
    "hidden behind a summary": ("auto", "summary"),
    "hidden": ("auto", "none"),
}
"""Whether the client asks for a summary, and what is shown."""


async def replay(recording: Recording, client: str, way: str) -> Call:
    summary, expose = WAYS[way]
    played = Answer([recording.data], headers={"content-type": recording.content_type})
    app = build_app(
        "sidecar",
        Upstream(played),
        writer=Scripted(),
        upstreams=[{"api": recording.api, "base_url": f"{ORIGIN}/v1"}],
        reasoning={"expose": expose},
    )
    wish = {"thinking": {"type": "adaptive"}} if client == "messages" and summary else {}
    body = request_body(client, stream=recording.streamed, summary=summary, **wish)
    return await call(app, PATHS[client], body, {"x-abridge-usage": "separate"})


def differences(said: Told, heard: Told) -> set[str]:
    """Return the fields that differ. Of two failed answers nothing else is compared."""
    if said.finish == heard.finish == "failed":
        return set()
    names = [field.name for field in fields(Told)]
    return {name for name in names if getattr(said, name) != getattr(heard, name)}


@pytest.mark.matrix(1)
@pytest.mark.parametrize("client", PATHS)
@pytest.mark.parametrize("name", EVERY)
async def test_the_client_is_told_what_upstream_said(name: str, client: str) -> None:
    recording = EVERY[name]
    said = told(recording, recording.data, str(recording.api))
    meant, _ = TOLD_OTHERWISE.get(name, (set(), ""))
    for way in WAYS:
        reply = await replay(recording, client, way)
        heard = told(recording, reply.data, client)
        assert differences(said, heard) <= meant, (way, said, heard)


@pytest.mark.parametrize("name", TOLD_OTHERWISE)
async def test_what_is_meant_to_differ_differs(name: str) -> None:
    recording, found = EVERY[name], set[str]()
    said = told(recording, recording.data, str(recording.api))
    for client in PATHS:
        reply = await replay(recording, client, "hidden")
        found |= differences(said, told(recording, reply.data, client))
    assert found == TOLD_OTHERWISE[name][0]


SAME_API = [name for name, recording in EVERY.items() if recording.api in PATHS]


@pytest.mark.parametrize("name", SAME_API)
async def test_without_a_summary_the_same_api_gets_the_same_bytes(name: str) -> None:
    recording = EVERY[name]
    reply = await replay(recording, str(recording.api), "without a summary")
    assert reply.data == recording.data


@pytest.mark.matrix(1)
@pytest.mark.parametrize("way", ["with a summary", "hidden behind a summary", "hidden"])
@pytest.mark.parametrize("name", SAME_API)
async def test_beside_reasoning_no_value_is_missing(name: str, way: str) -> None:
    recording = EVERY[name]
    api = str(recording.api)
    reply = await replay(recording, api, way)
    heard = set(values(bodies_of(reply.data, streamed=recording.streamed)))
    missing = set(values(bodies_of(recording.data, streamed=recording.streamed))) - heard
    hidden = way != "with a summary"
    assert not [each for each in missing if not may_be_missing(api, each[0], hidden=hidden)]


def values(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value that says something, with its path; `*` stands for any place in a list."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from values(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for inner in value:
            yield from values(inner, f"{path}.*" if path else "")
    elif value is not None and value != "":
        yield path, json.dumps(value)
