"""Failures of calls to upstreams, as error responses, exceptions and log lines.

Before the response has begun, a failure becomes a status and a body in the API's error shape; after
that, an exception. Neither contains anything that upstream or the client sent.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

import httpx

from abridge.errors import UpstreamBroken
from abridge.proxy.place import Place
from abridge.wire.codec import dumps
from abridge.wire.problem import problem


class Failure(NamedTuple):
    """An exception, and the status, code and message it is reported with."""

    error: type[Exception]
    status: int
    code: str
    message: str

    @property
    def cause(self) -> str:
        """The metric label."""
        return self.code.removeprefix("upstream_")


TIMEOUT = Failure(
    httpx.TimeoutException, 504, "upstream_timeout", "The upstream did not answer in time."
)
BROKEN = Failure(
    httpx.TransportError, 502, "upstream_broken", "The upstream broke off before it answered."
)
UNREACHABLE = Failure(
    httpx.ConnectError, 502, "upstream_unreachable", "The upstream could not be reached."
)
MALFORMED = "The request cannot be forwarded as it is."
FAILED = (
    TIMEOUT,
    UNREACHABLE,
    Failure(httpx.LocalProtocolError, 400, "malformed", MALFORMED),
    Failure(httpx.InvalidURL, 400, "malformed", MALFORMED),
    BROKEN,
)
"""In order of precedence: the first entry whose exception type matches counts."""

FAILURES = (httpx.TransportError, httpx.InvalidURL)

_log = logging.getLogger("abridge.proxy")


def refusal(status: int, code: str, message: str) -> httpx.Response:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return httpx.Response(
        status,
        headers={"content-type": "application/json"},
        content=dumps(problem(message, kind=kind, code=code)),
    )


def later(code: str, message: str) -> httpx.Response:
    """Return a 503 that asks the client to retry."""
    response = refusal(503, code, message)
    response.headers["retry-after"] = "1"
    return response


def failure_of(error: Exception) -> Failure:
    """Classify one of `TRANSPORT_ERRORS`."""
    return next(failure for failure in FAILED if isinstance(error, failure.error))


def note(error: Exception, place: Place) -> None:
    _log.warning("upstream %s: %s: %s", place.name, type(error).__name__, error)


def broken(failure: Failure, place: Place) -> UpstreamBroken:
    """Return the exception to raise if the response has already begun."""
    silent = failure is TIMEOUT
    message = "fell silent within its response" if silent else "broke off its response"
    return UpstreamBroken(f"The upstream {message}.", code=failure.code, upstream=place.name)


def in_one_line(record: logging.LogRecord) -> bool:
    """Filter a server's log: log a broken upstream in one line, without a traceback.

    A server logs every exception that its app raises as the app's own fault. uvicorn's logger is
    `uvicorn.error`.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, UpstreamBroken):
        record.msg, record.args = "upstream %s: %s", (error.upstream, error)
        record.exc_info = None
    return True
