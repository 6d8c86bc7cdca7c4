"""Servers on loopback: a real one for an ASGI app, and scripted ones that exchange raw bytes."""

from __future__ import annotations

import asyncio
import gc
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
import uvicorn
import uvloop
from starlette.types import ASGIApp

HANG = 60.0  # seconds, after which a test has hung, however busy the machine is

LOOPS: Mapping[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}


T = TypeVar("T")


def pytest_asyncio_loop_factories(config: Any, item: Any) -> Mapping[str, Any]:
    """Run the tests of a conftest on both event loops, and each on one of them without `--matrix`.

    A clock that is put forward is asyncio's own.
    """
    if config.getoption("--matrix"):
        return LOOPS
    own = "clock" in item.fixturenames or zlib.crc32(item.name.encode()) % 2
    name = "asyncio" if own else "uvloop"
    return {name: LOOPS[name]}


@pytest.fixture(autouse=True)
async def no_leaks() -> AsyncIterator[None]:
    """Assert that no test of a conftest leaves a task or an open connection behind."""
    yield
    assert asyncio.all_tasks() == {asyncio.current_task()}
    gc.collect()  # an unclosed resource warns, and a warning is an error


async def soon(something: Awaitable[T]) -> T:
    """Await something, failing if it hangs."""
    async with asyncio.timeout(HANG):
        return await something


async def until(condition: Callable[[], bool]) -> None:
    """Poll until `condition` holds."""
    async with asyncio.timeout(HANG):
        while not condition():  # noqa: ASYNC110 -- there is no event to wait for
            await asyncio.sleep(0.01)


async def stalled(count: Callable[[], int]) -> int:
    """Wait until `count` has stopped growing."""
    before = -1
    while before < count():
        before = count()
        await asyncio.sleep(0.1)
    return before


@asynccontextmanager
async def serve(app: ASGIApp, **options: Any) -> AsyncIterator[str]:
    """Serve `app` with uvicorn and yield its address; abort what still runs at the end."""
    defaults = {"lifespan": "off", "server_header": False, "date_header": False}
    config = uvicorn.Config(app, log_config=None, **{**defaults, **options})
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await server.startup(sockets=[listener])
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            for opened in server.servers:
                opened.close()
            for connection in list(server.server_state.connections):
                connection.transport.abort()
            await until(lambda: not server.server_state.tasks)
            await server.lifespan.shutdown()


@dataclass(frozen=True)
class Request:
    """A request as received: the lines of its head, and its body without framing."""

    lines: list[bytes]
    body: bytes

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        return [tuple(line.split(b": ", 1)) for line in self.lines[1:]]  # type: ignore[misc]

    def all(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.headers if key.lower() == name]


class Peer:
    """One end of a connection, read and written as bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def head(self) -> list[bytes]:
        return (await self.reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")

    async def request(self) -> Request:
        lines = await self.head()
        head = Request(lines, b"")
        if head.all(b"transfer-encoding") == [b"chunked"]:
            return Request(lines, await self.chunks())
        length = int((head.all(b"content-length") or [b"0"])[0])
        return Request(lines, await self.reader.readexactly(length))

    response = request

    async def chunk(self) -> bytes:
        size = int(await self.reader.readline(), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2]

    async def chunks(self) -> bytes:
        body = b""
        while chunk := await self.chunk():
            body += chunk
        return body

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes = b"ok", *headers: bytes, status: bytes = b"200 OK") -> None:
        lines = [b"HTTP/1.1 " + status, *headers, b"content-length: %d" % len(body), b"", body]
        await self.send(b"\r\n".join(lines))

    async def left(self) -> None:
        """Wait until the other end has closed, discarding what it still sends."""
        with suppress(ConnectionError):
            while await self.reader.read(1 << 16):
                pass

    def reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.writer.transport.abort()

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


def chunk(data: bytes) -> bytes:
    """Frame a chunk of a body; the empty one ends the body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


Script = Callable[[Peer], Awaitable[None]]


@dataclass
class Listener:
    """A server that plays one script a connection, then repeats the last."""

    scripts: tuple[Script, ...]
    url: str = ""
    connections: int = 0
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = self.scripts[min(self.connections, len(self.scripts) - 1)]
        self.connections += 1
        self.tasks.append(asyncio.create_task(self.play(script, Peer(reader, writer))))

    async def play(self, script: Script, peer: Peer) -> None:
        try:
            await script(peer)
        finally:
            await peer.close()


@asynccontextmanager
async def listen(*scripts: Script, **options: Any) -> AsyncIterator[Listener]:
    """Play the scripts; raise their errors at the end, but for disconnects."""
    listener = Listener(scripts)
    server = await asyncio.start_server(listener.accept, "127.0.0.1", 0, **options)
    scheme = "https" if "ssl" in options else "http"
    listener.url = f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield listener
    finally:
        server.close()
        for task in listener.tasks:
            task.cancel()
        ends = await asyncio.gather(*listener.tasks, return_exceptions=True)
    for end in ends:
        left = (asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError)
        if isinstance(end, BaseException) and not isinstance(end, left):
            raise end


@asynccontextmanager
async def connect(url: str) -> AsyncIterator[Peer]:
    host, _, port = url.removeprefix("http://").partition(":")
    peer = Peer(*await asyncio.open_connection(host, int(port)))
    try:
        yield peer
    finally:
        await peer.close()


@contextmanager
def refusing_address() -> Iterator[str]:
    """Yield an address that refuses connections. It is kept from other servers, as those of tests
    that run beside this one."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def unused_address() -> str:
    """Return an address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        return f"http://127.0.0.1:{closed.getsockname()[1]}"
