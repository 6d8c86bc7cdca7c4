"""Errors for the client of one request: body, status and headers as its API has them."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Message, Receive, Scope, Send

from abridge.apis.api import Api, UpstreamApi
from abridge.apis.credentials import Header
from abridge.apis.errors import (
    MayQuote,
    kept_headers,
    rewrite_error_body,
    translate_error,
    words_of_refusal,
)
from abridge.apis.json import dumps
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail
from abridge.errors import RequestError, UpstreamBroken
from abridge.http.asgi import (
    BODY_HEADERS,
    answering_upgrade,
    drop_headers,
    get_header,
    json_start,
    send_whole,
)
from abridge.observability.record import new_request_id

UPSTREAM_ID_HEADER = b"x-request-id"
"""The header in which most upstreams name a request, as OpenAI's APIs do."""


APPLICATION_FAILED = ErrorDetail("upstream_error", "The application failed while answering.")


@dataclass(slots=True, frozen=True)
class ErrorWriter:
    """Write errors for a client of `api`.

    `request_id` is Abridge's own for the request; `upstream` is the API of upstream's errors if it
    is another one. `may_quote` tells of a text whether it may repeat hidden reasoning; any may if
    nothing is known of the request.
    """

    api: Api
    request_id: str
    upstream: UpstreamApi | None = None
    may_quote: MayQuote = bool

    def write(self, message: str, status: int, *, code: str | None = None) -> tuple[Message, bytes]:
        """Return the start and the body of a response that reports an error of an answer."""
        return self._respond(status, self.api.write_error(message, code=code, status=status), [])

    def refuse(self, error: RequestError) -> tuple[Message, bytes]:
        """Return the start and the body of a response that refuses the request."""
        body = self.api.write_error(
            str(error), kind=error.kind, param=error.param, code=error.code, status=error.status
        )
        retry = [(b"retry-after", b"1")] if error.status == 503 else []
        return self._respond(error.status, body, [*retry, *error.headers])

    async def send_refusal(self, error: RequestError, send: Send) -> None:
        """Refuse the request."""
        await send_whole(send, *self.refuse(error))

    def retell(self, start: Message, body: bytes) -> tuple[Message, bytes]:
        """Return an error response of upstream's, without what may hold reasoning."""
        status = start["status"]
        words = words_of_refusal(status, body, self.may_quote)
        translated = self.translate(start, body)
        told = rewrite_error_body(status, translated, self.api.write_error, words=words)
        return self._respond(status, told, kept_headers(start["headers"]))

    def translate(self, start: Message, body: bytes) -> bytes:
        """Translate the body of an error response of upstream's, if its API is another one."""
        if self.upstream is None:
            return body
        named = "".join(value.decode("latin-1") for _, value in self.id_headers(start["headers"]))
        return translate_error(body, self.upstream, self.api, start["status"], request_id=named)

    def pass_on(self, start: Message, body: bytes) -> Message:
        """Return the start of an error response of upstream's, the body of which was translated."""
        length = (b"content-length", str(len(body)).encode())
        headers = [*drop_headers(start["headers"], BODY_HEADERS), length]
        status = self.api.statuses.get(start["status"], start["status"])
        return {**start, "status": status, "headers": [*headers, *self.id_headers(headers)]}

    def id_headers(self, headers: list[Header]) -> list[Header]:
        """Return the header that names the request, to be added to these of a response; none if the
        client's API has no such header, or the response has it."""
        name = self.api.request_id_header
        if not name or get_header(headers, name):
            return []
        given = get_header(headers, UPSTREAM_ID_HEADER)
        return [(name, given or f"req_{self.request_id}".encode())]

    def _respond(self, status: int, body: Json, headers: list[Header]) -> tuple[Message, bytes]:
        headers = [*headers, *self.id_headers(headers)]
        if name := self.api.request_id_header:
            body = {**body, "request_id": get_header(headers, name).decode("latin-1")}
        data = dumps(body)
        return json_start(self.api.statuses.get(status, status), data, headers), data


async def refuse(error: RequestError, api: Api, scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request without a record, or a WebSocket, in the error shape of an API."""
    if scope["type"] == "websocket":
        await receive()
        send = answering_upgrade(scope, send)
    await ErrorWriter(api, new_request_id()).send_refusal(error, send)


def error_of(failure: Exception) -> ErrorDetail:
    """Return what a client is told of an application's exception."""
    if isinstance(failure, UpstreamBroken):
        return ErrorDetail(failure.code, str(failure))
    return APPLICATION_FAILED
