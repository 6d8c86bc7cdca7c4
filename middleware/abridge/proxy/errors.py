"""The proxy's own errors, in the shape of the API that was called."""

from __future__ import annotations

import httpx
from starlette.types import Scope

from abridge.apis.api import Api
from abridge.apis.json import dumps
from abridge.apis.registry import find_api
from abridge.apis.responses.api import RESPONSES
from abridge.http.asgi import request_paths
from abridge.observability.record import RECORD, Record, new_request_id


def error_response(scope: Scope, status: int, code: str, message: str) -> httpx.Response:
    """Return an error, in OpenAI's shape where the path is no API's."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    record: Record | None = scope.get(RECORD)
    api = _find_api(scope, record)
    body = api.write_error(message, kind=kind, code=code, status=status)
    headers = {"content-type": "application/json"}
    if api.request_id_header:
        body["request_id"] = f"req_{new_request_id() if record is None else record.id}"
        headers[api.request_id_header.decode()] = body["request_id"]
    return httpx.Response(api.statuses.get(status, status), headers=headers, content=dumps(body))


def retry_later_response(scope: Scope, code: str, message: str) -> httpx.Response:
    """Return an error that asks the client to retry."""
    response = error_response(scope, 503, code, message)
    response.headers["retry-after"] = "1"
    return response


def _find_api(scope: Scope, record: Record | None) -> Api:
    """Return the API that was called. A request that was translated keeps OpenAI's shape, whose
    codes say more; the middleware translates it for the client."""
    api = find_api(*request_paths(scope))
    if api is None or (record is not None and record.api != api.name):
        return RESPONSES
    return api
