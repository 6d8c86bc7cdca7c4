"""Join the lists of several upstreams for `GET /models`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, TypeAlias

import httpx
from starlette.types import Scope

from abridge.apis.gemini.api import as_openais
from abridge.apis.json import as_object, dumps, parse_object, string
from abridge.apis.model_names import ModelRenames
from abridge.config.settings import Settings
from abridge.errors import NestedTooDeep
from abridge.http.asgi import json_start
from abridge.http.transport import HttpResponse
from abridge.sidecar.proxy.calls import (
    TRANSPORT_ERRORS,
    UpstreamCaller,
    classify_failure,
    log_failure,
)
from abridge.sidecar.proxy.errors import error_response
from abridge.sidecar.proxy.targets import UpstreamTarget

Listing: TypeAlias = list[tuple[str, bytes]]
"""Models: the name by which clients call each, empty if it has none, and its JSON."""

UNJOINABLE_HEADERS = (b"accept-encoding", b"if-none-match", b"if-modified-since")
"""Request headers that could lead to responses without a readable list."""


def is_models_request(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["method"] == "GET" and path.endswith("/models")


async def join_models(
    scope: Scope, targets: Iterable[UpstreamTarget], caller: UpstreamCaller, settings: Settings
) -> HttpResponse:
    """Return `{"object": "list", "data": [...]}` with the models of all upstreams, each name once,
    as clients say it and only if requests for it go to one of them.

    Leaves out upstreams that fail, or send more than `limits.body`. If none is left, returns a 502.
    """
    headers = [header for header in scope["headers"] if header[0] not in UNJOINABLE_HEADERS]
    scope = {**scope, "headers": headers}
    async with asyncio.TaskGroup() as tasks:
        listings = [
            tasks.create_task(_list_models(scope, target, caller, settings.limits.body))
            for target in targets
        ]
    lists = [models for task in listings if (models := task.result()) is not None]
    if not lists:
        return error_response(scope, 502, "upstream_unreachable", "No upstream listed its models.")
    content = b'{"object":"list","data":[%b]}' % b",".join(_each_name_once(lists, settings))
    return HttpResponse(200, json_start(200, content)["headers"], httpx.ByteStream(content))


async def _list_models(
    scope: Scope, target: UpstreamTarget, caller: UpstreamCaller, limit: int
) -> Listing | None:
    """Return the models of an upstream, None if it does not list any."""
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
    listing = parse_object(body) if response.status == 200 else None
    models = as_openais(listing).get("data") if listing is not None else None
    try:
        return _as_clients_say(models, target.renames) if isinstance(models, list) else None
    except NestedTooDeep as error:
        log_failure(error, target)
        return None


def _as_clients_say(models: list[Any], renames: ModelRenames) -> Listing:
    """Return the models under the names by which clients may call them. Raises NestedTooDeep."""
    return [
        (name, dumps({**model, "id": name} if name else model))
        for model in models
        for name in (renames.to_client(string(as_object(model).get("id"))))
    ]


def _each_name_once(lists: Iterable[Listing], settings: Settings) -> Iterator[bytes]:
    """Yield the models' JSON; of several by one name, the first. What has no name is kept."""
    seen: set[str] = set()
    for name, model in chain.from_iterable(lists):
        if name not in seen and settings.find_route(name or None):
            yield model
        seen.update(filter(None, [name]))


async def _read_limited(response: HttpResponse, limit: int) -> bytes:
    body = bytearray()
    async for chunk in response.body:
        body += chunk
        if len(body) > limit:
            raise httpx.RemoteProtocolError("The list is too long.")
    return bytes(body)
