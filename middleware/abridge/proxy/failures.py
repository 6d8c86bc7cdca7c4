"""What goes wrong on the way to an upstream, in the words that a client and a log are told.

Before the response begins there is a status for it, and a body in the API's error shape; after
that, an exception. What upstream or the client said is in none of them.
"""

from __future__ import annotations

import logging

import httpx

from abridge.errors import UpstreamBroken
from abridge.proxy.place import Place
from abridge.wire.codec import dumps
from abridge.wire.problem import problem

TROUBLES: tuple[tuple[type[Exception], int, str, str], ...] = (
    (httpx.TimeoutException, 504, "upstream_timeout", "The upstream did not answer in time."),
    (httpx.ConnectError, 502, "upstream_unreachable", "The upstream could not be reached."),
    (httpx.LocalProtocolError, 400, "malformed", "The request cannot be forwarded as it is."),
    (httpx.InvalidURL, 400, "malformed", "The request cannot be forwarded as it is."),
    (httpx.TransportError, 502, "upstream_broken", "The upstream broke off before it answered."),
)
"""The first that fits: what happened, and the status, code and message that tell of it."""

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
    """A refusal that would not be one a little later."""
    response = refusal(503, code, message)
    response.headers["retry-after"] = "1"
    return response


def answer_to(error: Exception) -> httpx.Response:
    """What the client gets for one of `FAILURES`."""
    status, code, message = next(row[1:] for row in TROUBLES if isinstance(error, row[0]))
    return refusal(status, code, message)


def note(error: Exception, place: Place) -> None:
    _log.warning("upstream %s: %s: %s", place.name, type(error).__name__, error)


def broken(error: httpx.TransportError, place: Place) -> UpstreamBroken:
    """What is raised where the response has begun."""
    if isinstance(error, httpx.TimeoutException):
        message, code = "The upstream fell silent within its response.", "upstream_timeout"
    else:
        message, code = "The upstream broke off its response.", "upstream_broken"
    return UpstreamBroken(message, code=code, upstream=place.name)


def in_one_line(record: logging.LogRecord) -> bool:
    """A filter for a server's log, which takes what an app raises for a fault of the app's: that an
    upstream broke is worth a line and no traceback. uvicorn's logger is `uvicorn.error`."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, UpstreamBroken):
        record.msg, record.args = "upstream %s: %s", (error.upstream, error)
        record.exc_info = None
    return True
