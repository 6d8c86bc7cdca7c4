"""A server to check: an upstream or the summarizer's."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import httpx

from abridge.configure import secret
from abridge.wire.codec import Json, dumps
from abridge.wire.credential import Header, bearer

MOST = 4 << 20
"""Bytes read of a response."""

_REASON = re.compile(r"\[(.+)\]$")


@dataclass(slots=True, frozen=True)
class Place:
    base_url: str
    transport: httpx.AsyncBaseTransport
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        base_url: str,
        transport: httpx.AsyncBaseTransport,
        variable: str | None,
        named_by: str,
        shown: Callable[[bytes], Header] = bearer,
    ) -> Place:
        """Return a target with its API key. Raises SettingsError.

        The key is read from the environment variable `variable`, which the setting `setting`
        names; `make_header` turns it into a header.
        """
        if variable is None:
            return cls(base_url, transport)
        name, value = shown(secret(variable, named_by).encode())
        return cls(base_url, transport, {name.decode(): value.decode()})

    @asynccontextmanager
    async def asked(
        self, path: str, body: Json | None = None, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """Send a GET, or a POST if there is a body. Raises httpx.TransportError."""
        content = None if body is None else dumps(body)
        request = httpx.Request(
            "GET" if body is None else "POST",
            f"{self.base_url}{path}",
            headers={"content-type": "application/json", **self.headers, **(headers or {})},
            content=content,
        )
        response = await self.transport.handle_async_request(request)
        try:
            yield response
        finally:
            await response.aclose()


async def pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """Yield the body's chunks, up to `MAX_RESPONSE_BYTES` in total."""
    room = MOST
    async for piece in cast(httpx.AsyncByteStream, response.stream):
        yield piece[:room]
        room -= len(piece)
        if room <= 0:
            return


def cause(error: httpx.TransportError) -> str:
    """Describe an error, with the operating system's message if there is one."""
    if isinstance(error, httpx.TimeoutException):
        return "does not answer in time"
    bracketed = _REASON.search(str(error))
    reason = _refused(error) or (bracketed[1] if bracketed else str(error))
    told = "cannot be reached" if isinstance(error, httpx.ConnectError) else "breaks off"
    return f"{told}: {reason}"


def _refused(error: BaseException | None) -> str | None:
    while error is not None:
        if isinstance(error, ConnectionError) and error.errno:
            return os.strerror(error.errno)
        error = error.__cause__ or error.__context__
    return None
