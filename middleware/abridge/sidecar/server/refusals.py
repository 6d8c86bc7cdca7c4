"""What the server answers by itself to a request that it does not hand to the application.

Each function returns a new RequestError. `error_response` writes it as the API does that was
called, or as both of OpenAI's do where that is unknown.
"""

from __future__ import annotations

from urllib.parse import unquote

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from abridge.apis.registry import find_api
from abridge.apis.responses.api import RESPONSES
from abridge.errors import RequestError
from abridge.observability.record import new_request_id
from abridge.pipeline.answers.error_writer import ErrorWriter

MAX_HEAD = 64 << 10
"""Bytes of a request beside its body: its head, its trailers, and the framing of its chunks, beyond
what a chunk needs."""

MAX_LINE = 16 << 10
"""Bytes of the request's target, and of one header."""

MAX_PATH = 1 << 10
"""Characters of a path, from its end, in which the API is looked for."""

MAX_FIELDS = 256
"""Headers of one request."""


def malformed() -> RequestError:
    return RequestError("The request is not valid HTTP.", code="invalid_http_request")


def invalid(what: str, status: int = 400) -> RequestError:
    message = f"The request is not valid HTTP: invalid {what}."
    kind = "invalid_request_error"
    return RequestError(message, status=status, kind=kind, code="invalid_http_request")


def target_too_long() -> RequestError:
    message = f"The request target is longer than {MAX_LINE} bytes."
    return RequestError(message, status=414, code="uri_too_long")


def head_too_large() -> RequestError:
    return RequestError(
        f"The headers are larger than {MAX_HEAD} bytes, a header is larger than {MAX_LINE} bytes, "
        f"or there are more than {MAX_FIELDS}.",
        status=431,
        code="headers_too_large",
    )


def framing_too_large() -> RequestError:
    message = f"The framing of the request body is larger than {MAX_HEAD} bytes."
    return RequestError(message, code="invalid_http_request")


def late() -> RequestError:
    message = "The request did not arrive in time."
    return RequestError(message, status=408, code="request_timeout")


def too_many_connections() -> RequestError:
    message = "There are too many connections."
    return RequestError(message, status=503, code="too_many_connections")


def error_response(error: RequestError, target: bytes = b"") -> bytes:
    """Return a whole response with this error, after which the connection is closed. `target` is
    the request's, as far as it came."""
    path = target.partition(b"?")[0][-MAX_PATH:].decode("latin-1")
    api = find_api(unquote(path), path) or RESPONSES
    start, body = ErrorWriter(api, new_request_id()).refuse(error)
    lines = [STATUS_LINE[start["status"]].removesuffix(b"\r\n"), *map(b": ".join, start["headers"])]
    return b"\r\n".join([*lines, b"connection: close", b"", body])
