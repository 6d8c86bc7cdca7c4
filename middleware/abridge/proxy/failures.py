"""What goes wrong on the way to an upstream, in the words that a client and a log are told.

Before the response begins there is a status for it, and a body in the API's error shape; after
that, an exception. What upstream or the client said is in none of them.
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
    """What happened, and the status, code and message that tell of it."""

    error: type[Exception]
    status: int
    code: str
    message: str

    @property
    def cause(self) -> str:
        """In a word, for the metrics."""
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
"""The first that fits is what happened."""

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


def failure_of(error: Exception) -> Failure:
    """What one of `FAILURES` is."""
    return next(failure for failure in FAILED if isinstance(error, failure.error))


def note(error: Exception, place: Place) -> None:
    _log.warning("upstream %s: %s: %s", place.name, type(error).__name__, error)


def broken(failure: Failure, place: Place) -> UpstreamBroken:
    """What is raised where the response has begun."""
    silent = failure is TIMEOUT
    message = "fell silent within its response" if silent else "broke off its response"
    return UpstreamBroken(f"The upstream {message}.", code=failure.code, upstream=place.name)


def in_one_line(record: logging.LogRecord) -> bool:
    """A filter for a server's log, which takes what an app raises for a fault of the app's: that an
    upstream broke is worth a line and no traceback. uvicorn's logger is `uvicorn.error`."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, UpstreamBroken):
        record.msg, record.args = "upstream %s: %s", (error.upstream, error)
        record.exc_info = None
    return True
