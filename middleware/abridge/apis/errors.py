"""Translate an upstream's error body for a client of another API."""

from __future__ import annotations

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.json import dumps, parse_object


def translate_error(body: bytes, upstream: UpstreamApi, api: Api) -> bytes:
    """Return an error body in the shape of the client's API; anything else unchanged."""
    if upstream.read_error is api.upstream.read_error:
        return body
    error = upstream.read_error(parse_object(body) or {})
    if error is None:
        return body
    written = api.write_error(error.message, kind=error.kind, param=error.param, code=error.code)
    return dumps({**written, **({"request_id": error.request_id} if error.request_id else {})})
