"""The proxy's own errors, in the shape of the API that was called."""

from __future__ import annotations

import httpx
from starlette.types import Scope

from abridge.apis.api import Api
from abridge.apis.registry import find_api
from abridge.apis.responses.api import RESPONSES
from abridge.errors import RequestError
from abridge.http.asgi import request_paths
from abridge.http.transport import HttpResponse
from abridge.observability.record import RECORD, Record, new_request_id
from abridge.pipeline.answers.error_writer import ErrorWriter


def error_response(scope: Scope, status: int, code: str, message: str) -> HttpResponse:
    """Return an error, in OpenAI's shape where the path is no API's."""
    record: Record | None = scope.get(RECORD)
    request_id = new_request_id() if record is None else record.id
    error = RequestError(message, status=status, code=code)
    start, body = ErrorWriter(_find_api(scope, record), request_id).refuse(error)
    return HttpResponse(start["status"], start["headers"], httpx.ByteStream(body))


def _find_api(scope: Scope, record: Record | None) -> Api:
    """Return the API that was called. A request that was translated keeps OpenAI's shape, whose
    codes say more; the middleware translates it for the client."""
    api = find_api(*request_paths(scope))
    if api is None or (record is not None and record.api != api.name):
        return RESPONSES
    return api
