"""Call upstreams, and report the calls that fail.

Before the response has begun, a failure becomes an error response (`errors.py`); after
that, an exception. Neither contains anything that upstream or the client sent. Responses and
failures are counted, and failures logged.
"""

from __future__ import annotations

import logging
from functools import partial
from time import monotonic
from typing import NamedTuple

import httpx
from starlette.types import Scope

from abridge.config.addresses import suggest_version
from abridge.errors import UpstreamBroken, UpstreamUnavailable
from abridge.http.asgi import get_header
from abridge.http.transport import HttpResponse, Transport, send_by
from abridge.observability.metrics import Metrics
from abridge.pipeline.health import Attempt
from abridge.sidecar.proxy.response_heads import ResponseHeads, UnwritableHead
from abridge.sidecar.proxy.targets import LoopError, UpstreamTarget


class Failure(NamedTuple):
    """An exception, and the status, code and message it is reported with."""

    error_type: type[Exception] | tuple[type[Exception], ...]
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
    httpx.TransportError, 502, "upstream_broken", "The upstream broke off before answering."
)

UNREACHABLE = Failure(
    httpx.ConnectError, 502, "upstream_unreachable", "The upstream could not be reached."
)

MALFORMED_MESSAGE = "The request cannot be forwarded as it is."

FAILURE_TABLE = (
    TIMEOUT,
    UNREACHABLE,
    Failure(LoopError, 508, "upstream_loop", "The upstream leads back to Abridge itself."),
    Failure((httpx.LocalProtocolError, httpx.InvalidURL), 400, "malformed", MALFORMED_MESSAGE),
    Failure(
        UnwritableHead, 502, "upstream_broken", "The upstream's response headers are malformed."
    ),
    BROKEN,
)
"""In order of precedence: the first entry whose exception type matches counts."""

TRANSPORT_ERRORS = (httpx.TransportError, httpx.InvalidURL)

CONNECTION_ERRORS = (httpx.NetworkError, httpx.ConnectTimeout, httpx.RemoteProtocolError)
"""Those of a connection that was not made, or that broke before the response began."""

FIRST_ANSWERS = 3
"""If so many of an upstream's first answers are 404, its address is probably wrong."""

BUSY_STATUSES = frozenset({429, 503, 529})
"""Statuses of an upstream that cannot answer now (529: Anthropic's `overloaded_error`)."""

DOWN_STATUSES = BUSY_STATUSES - {429}
"""Those that do not depend on whose request it is: a limit may be one client's own."""

_log = logging.getLogger(__name__)


class UpstreamCaller:
    """Sends requests by the transport it owns, and records metrics."""

    def __init__(
        self, transport: httpx.AsyncBaseTransport, metrics: Metrics, heads: ResponseHeads
    ) -> None:
        self._transport = transport
        self._send = (
            transport.send if isinstance(transport, Transport) else partial(send_by, transport)
        )
        self._metrics = metrics
        self._heads = heads
        self._not_found: dict[str, int] = {}  # of upstreams, how many answers were 404 alone
        self._found: set[str] = set()  # upstreams that answered otherwise, or were reported

    async def call(
        self, target: UpstreamTarget, scope: Scope, body: bytes | httpx.AsyncByteStream
    ) -> HttpResponse:
        """Return the response as soon as its headers are in. Raises one of `TRANSPORT_ERRORS`."""
        started = monotonic()
        try:
            response = await self._send(target.build_request(scope, body))
            try:
                response.headers = self._heads.headers_for_client(scope, response)
            except UnwritableHead:
                await response.aclose()
                raise
        except TRANSPORT_ERRORS as error:
            self.count_failure(target, classify_failure(error))
            raise
        self._metrics.upstream_seconds.labels(target.name).observe(monotonic() - started)
        self._metrics.upstream_responses.labels(target.name, response.status).inc()
        if target.name not in self._found and scope["method"] == "POST":
            self._note_answer(target, response.status)
        return response

    def _note_answer(self, target: UpstreamTarget, status: int) -> None:
        """Say once of an upstream that its first answers were 404 alone."""
        count = self._not_found[target.name] = self._not_found.get(target.name, 0) + 1
        if status == 404 and count < FIRST_ANSWERS:
            return
        self._found.add(target.name)
        if status == 404:
            log_not_found(target)

    async def attempt(
        self, target: UpstreamTarget, scope: Scope, body: bytes, attempt: Attempt
    ) -> HttpResponse:
        """Like `call`, and note whether upstream is up. Where another one is asked if this one
        cannot answer, raises UpstreamUnavailable for connection errors and busy responses; not
        for silence, in which upstream may be at work."""
        try:
            response = await self.call(target, scope, body)
        except (*CONNECTION_ERRORS, httpx.TimeoutException) as error:
            attempt.note(is_up=False)
            if not (attempt.moves_on and isinstance(error, CONNECTION_ERRORS)):
                raise
            log_failure(error, target)
            raise UpstreamUnavailable(classify_failure(error).cause) from None
        attempt.note(is_up=response.status not in DOWN_STATUSES)
        if response.status not in BUSY_STATUSES or not attempt.moves_on:
            return response
        await response.aclose()
        retry_after = get_header(response.headers, b"retry-after")
        raise UpstreamUnavailable(str(response.status), retry_after)

    def count_failure(self, target: UpstreamTarget, failure: Failure) -> None:
        """Count a missing or incomplete response."""
        self._metrics.upstream_failures.labels(target.name, failure.cause).inc()

    async def aclose(self) -> None:
        await self._transport.aclose()


def classify_failure(error: Exception) -> Failure:
    """Classify one of `TRANSPORT_ERRORS`."""
    return next(failure for failure in FAILURE_TABLE if isinstance(error, failure.error_type))


def log_not_found(target: UpstreamTarget) -> None:
    """Say what is probably wrong with the address of an upstream."""
    base_url = target.origin + target.base_path.decode()
    with_version = suggest_version(base_url)
    advice = (
        "check base_url, the models' names, and whether it has the API that clients use; `abridge "
        "check --probe` helps"
    )
    if with_version is not None:
        advice = f"set base_url to {with_version} if its API is there"
    _log.warning(
        "upstream %s: answered 404 to each of its first %d requests, at %s: %s",
        *(target.name, FIRST_ANSWERS, base_url, advice),
    )


def log_failure(error: Exception, target: UpstreamTarget) -> None:
    _log.warning("upstream %s: %s: %s", target.name, type(error).__name__, str(error))


def upstream_broken_error(failure: Failure, target: UpstreamTarget) -> UpstreamBroken:
    """Return the exception to raise if the response has already begun."""
    timed_out = failure is TIMEOUT
    message = "fell silent in the middle of its response" if timed_out else "broke off its response"
    return UpstreamBroken(f"The upstream {message}.", code=failure.code, upstream=target.name)


def log_in_one_line(record: logging.LogRecord) -> bool:
    """Filter a server's log: log a broken upstream in one line, without a traceback.

    A server logs every exception that its app raises as the app's own fault. uvicorn's logger is
    `uvicorn.error`.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, UpstreamBroken):
        record.msg, record.args = "upstream %s: %s", (error.upstream, error)
        record.exc_info = None
    return True
