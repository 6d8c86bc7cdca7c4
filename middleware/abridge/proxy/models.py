"""Join the lists of several upstreams for `GET /models`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import httpx
from starlette.types import Scope

from abridge.proxy.asking import Asking
from abridge.proxy.failures import FAILURES, failure_of, note, refusal
from abridge.proxy.place import Place
from abridge.wire.codec import dumps, read_object

NOT_FOR_LISTS = (b"accept-encoding", b"if-none-match", b"if-modified-since")
"""Request headers that could lead to responses without a readable list."""


def asks_for_models(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["method"] == "GET" and path.endswith("/models")


async def all_models(
    scope: Scope, places: Iterable[Place], asking: Asking, limit: int
) -> httpx.Response:
    """Return `{"object": "list", "data": [...]}` with the models of all upstreams.

    Leaves out upstreams that fail, or send more than `limit` bytes. If none is left, returns a 502.
    """
    headers = [header for header in scope["headers"] if header[0] not in NOT_FOR_LISTS]
    scope = {**scope, "headers": headers}
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(_models(scope, place, asking, limit)) for place in places]
    lists = [models for task in asked if (models := task.result()) is not None]
    if not lists:
        return refusal(502, "upstream_unreachable", "No upstream listed its models.")
    joined = {"object": "list", "data": [model for models in lists for model in models]}
    return httpx.Response(200, headers={"content-type": "application/json"}, content=dumps(joined))


async def _models(scope: Scope, place: Place, asking: Asking, limit: int) -> list[Any] | None:
    try:
        response = await asking.ask(place, scope, b"")
        try:
            body = await _read(response, limit)
        except FAILURES as error:
            asking.failed(place, failure_of(error))
            raise
        finally:
            await response.aclose()
    except FAILURES as error:
        note(error, place)
        return None
    listing = read_object(body) if response.status_code == 200 else None
    models = listing.get("data") if listing is not None else None
    return models if isinstance(models, list) else None


async def _read(response: httpx.Response, limit: int) -> bytes:
    body = bytearray()
    async for piece in cast(httpx.AsyncByteStream, response.stream):
        body += piece
        if len(body) > limit:
            raise httpx.RemoteProtocolError("The list is too long.")
    return bytes(body)
