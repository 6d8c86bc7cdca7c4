"""The connections to upstreams of one event loop: made when they are needed, kept while idle."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from functools import cache
from typing import TypeAlias
from urllib.parse import urlsplit

import httpx
from aiohappyeyeballs import AddrInfoType, start_connection
from cachetools import TTLCache

from abridge.caches import LOOKUPS
from abridge.http.connections import CLOSED_MESSAGE, UpstreamConnection
from abridge.http.forward_proxy import DEFAULT_PORTS, ForwardProxy

KEEP_ALIVE = 4.0  # seconds; uvicorn and vLLM close idle connections after five

NEXT_ADDRESS = 0.25  # seconds after which another address is tried beside one (RFC 8305, section 5)

LOOKUP_LIFETIME = 10.0  # seconds

CONNECT_ERRORS = (
    *(OSError, RuntimeError),
    ValueError,  # the name is invalid
    *(httpx.ReadError, httpx.RemoteProtocolError),  # a proxy answers no CONNECT
)

Address: TypeAlias = tuple[str, int]
"""Host and port."""


class ConnectionPool:
    """Connections without a limit, each kept for `KEEP_ALIVE` while idle.

    `tls` replaces the default context, `connect_timeout` is in seconds.
    """

    def __init__(self, tls: ssl.SSLContext | None, connect_timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._tls = tls
        self._connect_timeout = connect_timeout
        self._open: dict[UpstreamConnection, str] = {}  # with their origins
        self._idle: dict[str, list[tuple[UpstreamConnection, float]]] = {}  # with since when
        self._sweep: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._lookups: TTLCache[Address, asyncio.Task[deque[AddrInfoType]]] = TTLCache(
            LOOKUPS, LOOKUP_LIFETIME, self._loop.time
        )

    async def acquire(
        self, origin: str, proxy: ForwardProxy | None, *, fresh: bool
    ) -> UpstreamConnection:
        """Connect to an origin, by a proxy if there is one: to one of HTTPS, through a tunnel.

        With `fresh`, the origin's idle connections are closed: one of them was found dead. Raises
        httpx.ConnectError or httpx.ConnectTimeout.
        """
        if fresh:
            for idle, _ in self._idle.pop(origin, ()):
                idle.disconnect()
        connection = self._take_idle(origin)
        if connection is None:
            connection = await self._connect(origin, proxy)
            self._open[connection] = origin
            if self._is_closed:
                connection.disconnect()
                raise httpx.ConnectError(f"Cannot connect to {origin} [The pool was closed]")
        return connection

    async def close(self) -> None:
        """Close all connections, and wait until they are."""
        if self._sweep is not None:
            self._sweep.cancel()
        if self._loop.is_closed():
            return
        self._is_closed = True
        closing = [*self._open]
        for connection in closing:
            connection.disconnect()
        if closing:
            await asyncio.wait([connection.closed.wait() for connection in closing])

    # Idle connections

    def _take_idle(self, origin: str) -> UpstreamConnection | None:
        """Return the one that was used last."""
        kept = self._idle.get(origin, [])
        while kept:
            connection, since = kept.pop()
            if connection.is_open and self._loop.time() - since < KEEP_ALIVE:
                return connection
            connection.disconnect()
        return None

    def _keep(self, connection: UpstreamConnection) -> None:
        kept = self._idle.setdefault(self._open[connection], [])
        kept.append((connection, self._loop.time()))
        if self._sweep is None:
            self._sweep = self._loop.call_later(KEEP_ALIVE, self._close_old)

    def _close_old(self) -> None:
        oldest = self._loop.time() - KEEP_ALIVE
        for origin, kept in [*self._idle.items()]:
            for connection, since in kept:
                if since <= oldest:
                    connection.disconnect()
            self._idle[origin] = [each for each in kept if each[1] > oldest]
        self._idle = {origin: kept for origin, kept in self._idle.items() if kept}
        again = self._loop.call_later(KEEP_ALIVE, self._close_old) if self._idle else None
        self._sweep = again

    def _forget(self, connection: UpstreamConnection) -> None:
        self._open.pop(connection, None)

    # New connections

    async def _connect(self, origin: str, proxy: ForwardProxy | None) -> UpstreamConnection:
        try:
            async with asyncio.timeout(self._connect_timeout):
                return await self._connect_to(origin, proxy)
        except TimeoutError as error:
            raise httpx.ConnectTimeout("Connecting took too long.") from error
        except CONNECT_ERRORS as error:
            reason = getattr(error, "strerror", None) or str(error) or CLOSED_MESSAGE
            raise httpx.ConnectError(f"Cannot connect to {origin} [{reason}]") from error

    async def _connect_to(self, origin: str, proxy: ForwardProxy | None) -> UpstreamConnection:
        """Connect to an address where TLS works, if there is one."""
        address = _address(origin)
        found = await self._look_up(address if proxy is None else _address(proxy.url))
        while True:
            connection = await self._open_connection(found)
            try:
                if origin.startswith("https:"):
                    if proxy is not None:
                        await self._open_tunnel(connection, address, proxy)
                    name = address[0].rstrip(".")  # certificates lack a dot at the end
                    await connection.start_tls(self._tls or _default_tls(), name)
            except BaseException as error:
                connection.disconnect()
                del found[0]
                if not (found and isinstance(error, CONNECT_ERRORS)):
                    raise
            else:
                return connection

    async def _open_connection(self, found: list[AddrInfoType]) -> UpstreamConnection:
        """Open one without TLS: as uvloop opens one with it, a failure closes the socket twice, and
        the second time may be another's."""
        link = await start_connection(found, happy_eyeballs_delay=NEXT_ADDRESS, loop=self._loop)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        _, connection = await self._loop.create_connection(
            lambda: UpstreamConnection(self._keep, self._forget), sock=link
        )
        return connection

    async def _look_up(self, address: Address) -> list[AddrInfoType]:
        """Return the addresses of a host, another one first each time, so that all get requests."""
        lookup = self._lookups.get(address)
        if lookup is None or (lookup.done() and (lookup.cancelled() or lookup.exception())):
            lookup = self._lookups[address] = self._loop.create_task(self._ask(address))
        found = await asyncio.shield(lookup)
        found.rotate(-1)
        return [*found]

    async def _ask(self, address: Address) -> deque[AddrInfoType]:
        """Look a host up. An IP address is one already, and needs no thread for that."""
        host, port = address
        try:
            found = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST
            )
        except socket.gaierror:
            found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return deque(found)

    async def _open_tunnel(
        self, connection: UpstreamConnection, address: Address, proxy: ForwardProxy
    ) -> None:
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        lines = [f"CONNECT {host}:{address[1]} HTTP/1.1", f"Host: {host}:{address[1]}"]
        lines += (f"{name}: {value}" for name, value in proxy.headers.items())
        data = "".join(f"{line}\r\n" for line in [*lines, ""]).encode()
        connection.send_request(data, idle_timeout=self._connect_timeout, is_head=True)
        status = (await connection.read_head()).status
        if not httpx.codes.is_success(status):
            raise httpx.ConnectError(f"The proxy refuses to connect: {status}")


def _address(url: str) -> Address:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]


@cache
def _default_tls() -> ssl.SSLContext:
    """Return a context that verifies against the system's roots: it takes 20 ms to make."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
