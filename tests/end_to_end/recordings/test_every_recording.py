"""Every recording over every pair of APIs: what the client is told is what upstream said.

Whatever differs stands in `meant.py`, with its reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import count, product
from typing import Any

import pytest
from starlette.types import ASGIApp

from tests.end_to_end.recordings.meant import TOLD_OTHERWISE, may_be_missing
from tests.end_to_end.recordings.recordings import Recording, all_recordings, bodies_of
from tests.end_to_end.recordings.told import Told, told
from tests.end_to_end.translation.turn import PATHS, request_body
from tests.support.asgi import Call, call
from tests.support.deployments import ORIGIN, build_app
from tests.support.matrix import batches
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
MODELS = count()
"""One for each replay: what is learned of a model's answers holds for its next ones."""


@cache
def staged(api: str, expose: str) -> tuple[ASGIApp, Upstream]:
    """Return an application that many recordings are replayed with, and its upstream."""
    upstream = Upstream()
    app = build_app(
        "sidecar",
        upstream,
        writer=Scripted(),
        upstreams=[{"api": api, "base_url": f"{ORIGIN}/v1"}],
        reasoning={"expose": expose},
    )
    return app, upstream


async def replay(recording: Recording, client: str, way: str) -> Call:
    summary, expose = WAYS[way]
    app, upstream = staged(str(recording.api), expose)
    upstream.answers = [Answer([recording.data], headers={"content-type": recording.content_type})]
    wish = {"thinking": {"type": "adaptive"}} if client == "messages" and summary else {}
    model = f"thinker-{next(MODELS)}"
    body = request_body(client, model=model, stream=recording.streamed, summary=summary, **wish)
    return await call(app, PATHS[client], body, {"x-abridge-usage": "separate"})


def differences(said: Told, heard: Told) -> set[str]:
    """Return the fields that differ. Of two failed answers nothing else is compared."""
    if said.finish == heard.finish == "failed":
        return set()
    names = [field.name for field in fields(Told)]
    return {name for name in names if getattr(said, name) != getattr(heard, name)}


def pairs(name: str, *, many: bool) -> Iterator[tuple[str, str]]:
    """Yield clients and ways: all of them, or one over the same API and one over another, each
    its turn."""
    api, number = EVERY[name].api, list(EVERY).index(name)
    for clients in (
        [each for each in PATHS if each == api],
        [each for each in PATHS if each != api],
    ):
        each = list(product(clients, WAYS))
        yield from each if many else each[number % (len(each) or 1) :][:1]


@pytest.mark.parametrize("names", batches(EVERY))
async def test_the_client_is_told_what_upstream_said(
    names: list[str], request: pytest.FixtureRequest
) -> None:
    for name in names:
        for client, way in pairs(name, many=request.config.getoption("--matrix")):
            await check_replay(name, client, way)


async def check_replay(name: str, client: str, way: str) -> None:
    recording = EVERY[name]
    said = told(recording, recording.data, str(recording.api))
    meant, _ = TOLD_OTHERWISE.get(name, (set(), ""))
    reply = await replay(recording, client, way)
    heard = told(recording, reply.data, client)
    assert differences(said, heard) <= meant, (name, client, way, said, heard)
    if client != recording.api:
        return
    assert way != "without a summary" or reply.data == recording.data, name
    assert not missing(recording, reply.data, hidden=way.startswith("hidden")), (name, way)


def missing(recording: Recording, data: bytes, *, hidden: bool) -> list[tuple[str, str]]:
    """Return the values, beside reasoning, of which a client of the same API hears nothing."""
    said, heard = (
        set(values(bodies_of(each, streamed=recording.streamed))) for each in (recording.data, data)
    )
    api = str(recording.api)
    return [each for each in said - heard if not may_be_missing(api, each[0], hidden=hidden)]


@pytest.mark.parametrize("name", TOLD_OTHERWISE)
async def test_what_is_meant_to_differ_differs(name: str) -> None:
    recording, found = EVERY[name], set[str]()
    said = told(recording, recording.data, str(recording.api))
    for client in PATHS:
        reply = await replay(recording, client, "hidden")
        found |= differences(said, told(recording, reply.data, client))
    assert found == TOLD_OTHERWISE[name][0]


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
