"""Join the lists of several upstreams for `GET /models`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import cast

import httpx
from starlette.types import Scope

from abridge.apis.json import dumps, parse_object
from abridge.errors import NestedTooDeep
from abridge.proxy.calls import (
    TRANSPORT_ERRORS,
    UpstreamCaller,
    classify_failure,
    error_response,
    log_failure,
)
from abridge.proxy.targets import UpstreamTarget

UNJOINABLE_HEADERS = (b"accept-encoding", b"if-none-match", b"if-modified-since")
"""Request headers that could lead to responses without a readable list."""


def is_models_request(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["method"] == "GET" and path.endswith("/models")


async def join_models(
    scope: Scope, targets: Iterable[UpstreamTarget], caller: UpstreamCaller, limit: int
) -> httpx.Response:
    """Return `{"object": "list", "data": [...]}` with the models of all upstreams.

    Leaves out upstreams that fail, or send more than `limit` bytes. If none is left, returns a 502.
    """
    headers = [header for header in scope["headers"] if header[0] not in UNJOINABLE_HEADERS]
    scope = {**scope, "headers": headers}
    async with asyncio.TaskGroup() as tasks:
        listings = [
            tasks.create_task(_list_models(scope, target, caller, limit)) for target in targets
        ]
    lists = [models for task in listings if (models := task.result()) is not None]
    if not lists:
        return error_response(502, "upstream_unreachable", "No upstream listed its models.")
    content = b'{"object":"list","data":[%b]}' % b",".join(filter(None, lists))
    return httpx.Response(200, headers={"content-type": "application/json"}, content=content)


async def _list_models(
    scope: Scope, target: UpstreamTarget, caller: UpstreamCaller, limit: int
) -> bytes | None:
    """Return the models of an upstream, as JSON and without the brackets around them."""
    try:
        response = await caller.call(target, scope, b"")
        try:
            body = await _read_limited(response, limit)
        except TRANSPORT_ERRORS as error:
            caller.count_failure(target, classify_failure(error))
            raise
        finally:
            await response.aclose()
    except TRANSPORT_ERRORS as error:
        log_failure(error, target)
        return None
    listing = parse_object(body) if response.status_code == 200 else None
    models = listing.get("data") if listing is not None else None
    try:
        return dumps(models)[1:-1] if isinstance(models, list) else None
    except NestedTooDeep as error:
        log_failure(error, target)
        return None


async def _read_limited(response: httpx.Response, limit: int) -> bytes:
    body = bytearray()
    async for chunk in cast(httpx.AsyncByteStream, response.stream):
        body += chunk
        if len(body) > limit:
            raise httpx.RemoteProtocolError("The list is too long.")
    return bytes(body)
