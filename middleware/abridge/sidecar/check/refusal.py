"""Keep what a server says when it refuses a request: the cause is in there, and nowhere else."""

from __future__ import annotations

from contextlib import aclosing, suppress

import httpx

from abridge.apis.credentials import is_key_header
from abridge.apis.json import parse_object
from abridge.apis.openai import error_in
from abridge.sidecar.check.reach import read_chunks

MAX_CHARS = 300
"""Characters of a server's message that are printed."""


class ListeningTransport(httpx.AsyncBaseTransport):
    """Passes requests on. `said` is what the server's last error says, after a colon, empty if it
    says nothing."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport
        self.said = ""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._transport.handle_async_request(request)
        if response.is_success:
            return response
        body = bytearray()
        async with aclosing(response):
            with suppress(httpx.TransportError):  # the status is worth telling without it
                async for chunk in read_chunks(response):
                    body += chunk
        error = error_in(parse_object(bytes(body)))
        self.said = "" if error is None else f": {_as_line(error.message, request)}"
        return httpx.Response(response.status_code, content=bytes(body))


def _as_line(message: str, request: httpx.Request) -> str:
    """Return a message as a line to print, without the request's key: some servers repeat it."""
    for name, value in request.headers.raw:
        if is_key_header(name.lower()):
            message = message.replace(value.decode().rpartition(" ")[2], "***")
    printable = "".join(each if each.isprintable() else " " for each in message)
    return " ".join(printable.split())[:MAX_CHARS]
