"""A real Redis server on loopback, where the machine has the program."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pytest

from tests.support.servers import HANG, Listener, Peer, listen

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")
READY = b"Ready to accept connections"
ATTEMPTS = 5


class Server:
    """A server without persistence, which can be killed and restarted at the same address.

    With a certificate (a file that holds its key too) it speaks TLS only.
    """

    def __init__(self, certificate: str | None = None, **settings: str) -> None:
        if PROGRAM is None:
            pytest.skip("no redis-server or valkey-server on this machine")
        self._certificate = certificate
        self._more_settings = settings
        self._folder = TemporaryDirectory(prefix="redis-")
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"redis://{self.address}/0"

    def __enter__(self) -> Self:
        for _ in range(ATTEMPTS):  # another process may take the port first
            self.port = free_port()
            with suppress(ChildProcessError):
                self.start()
                return self
        if self._certificate is not None:
            pytest.skip("this machine's redis-server speaks no TLS")
        raise ChildProcessError(f"{PROGRAM} does not start")

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._folder.cleanup()

    def start(self) -> None:
        """Start, and wait until it accepts connections."""
        self._process = subprocess.Popen(  # noqa: S603 -- found on this machine's own path
            (str(PROGRAM), *self._settings()), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if READY in line:
                return
        self.kill()
        raise ChildProcessError

    def kill(self) -> None:
        """Kill, as by `kill -9`."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def client(self, **options: Any) -> Any:
        """Return an ordinary client, to inspect the contents."""
        return self.client_at(self.port, **options)

    @staticmethod
    def client_at(port: int, **options: Any) -> Any:
        from redis import Redis

        return Redis("127.0.0.1", port, **options)

    def pass_time(self, seconds: float, namespace: str) -> None:
        """Age everything stored in a namespace."""
        with self.client() as client:
            for key in client.scan_iter(f"{namespace}:*"):
                left = client.pttl(key) - round(1000 * seconds)
                if left <= 0:
                    client.delete(key)
                    continue
                client.pexpire(key, left)
                if client.type(key) == b"zset":
                    for member in client.zrange(key, 0, -1):
                        client.zincrby(key, -seconds, member)

    def _settings(self) -> list[str]:
        settings = {"bind": "127.0.0.1", "dir": self._folder.name, "save": "", "appendonly": "no"}
        if self._certificate is None:
            settings["port"] = str(self.port)
        else:
            settings |= {"port": "0", "tls-port": str(self.port), "tls-auth-clients": "no"}
            settings |= dict.fromkeys(("tls-cert-file", "tls-key-file"), self._certificate)
        settings |= self._more_settings
        return [word for name, value in settings.items() for word in (f"--{name}", value)]


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Server]:
    """Run one server for all tests; each test uses a namespace of its own."""
    with Server() as server:
        yield server


class Cluster:
    """Three servers that share the slots."""

    def __init__(self, servers: Sequence[Server], bus_ports: Sequence[int]) -> None:
        self._servers = servers
        for number, server in enumerate(servers):
            with server.client() as client:
                shares = [16384 * step // len(servers) for step in (number, number + 1)]
                client.execute_command("CLUSTER ADDSLOTSRANGE", shares[0], shares[1] - 1)
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
        with servers[0].client() as client:
            for server, bus_port in zip(servers, bus_ports, strict=True):
                client.execute_command("CLUSTER MEET", "127.0.0.1", server.port, bus_port)

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(server.address for server in self._servers)

    @property
    def is_ok(self) -> bool:
        """True if each server knows of all slots."""
        infos = [server.client().execute_command("CLUSTER INFO") for server in self._servers]
        return all(info["cluster_state"] == "ok" for info in infos)

    def sizes(self) -> list[int]:
        """The number of keys on each server."""
        return [server.client().dbsize() for server in self._servers]

    def pass_time(self, seconds: float, namespace: str) -> None:
        for server in self._servers:
            server.pass_time(seconds, namespace)


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator[Cluster]:
    with ExitStack() as stack:
        buses = [free_port() for _ in range(3)]
        options = [{"cluster-enabled": "yes", "cluster-port": str(bus)} for bus in buses]
        servers = [stack.enter_context(Server(**each)) for each in options]
        cluster = Cluster(servers, buses)
        deadline = time.monotonic() + HANG
        while not cluster.is_ok:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield cluster


@contextmanager
def sentinel(folder: Path, primary: Server, *, patience: float = 0.3) -> Iterator[int]:
    """Run a sentinel that watches `main`, which alone decides; yield its port. A primary that is
    silent for `patience` seconds is down."""
    port = free_port()
    file = folder / "sentinel.conf"
    file.write_text(
        f"bind 127.0.0.1\nport {port}\ndir {folder}\n"
        f"sentinel monitor main 127.0.0.1 {primary.port} 1\n"
        f"sentinel down-after-milliseconds main {patience * 1000:.0f}\n"
    )
    process = subprocess.Popen(  # noqa: S603 -- found on this machine's own path
        (str(PROGRAM), str(file), "--sentinel"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    try:
        assert any(b"+monitor master main" in line for line in process.stdout)
        yield port
    finally:
        process.kill()
        process.communicate()


@asynccontextmanager
async def relay(server: Server, gate: asyncio.Event) -> AsyncIterator[Listener]:
    """Relay between a client and the server; answers wait for the gate."""

    async def script(peer: Peer) -> None:
        await forward(server, peer, gate)

    async with listen(script) as listener:
        yield listener


async def forward(server: Server, peer: Peer, gate: asyncio.Event | None = None) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    requests = asyncio.create_task(_copy(peer.reader, writer))
    try:
        await _copy(reader, peer.writer, gate)
    finally:
        requests.cancel()
        await asyncio.wait({requests})
        writer.close()


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event | None = None
) -> None:
    while data := await reader.read(1 << 16):
        if gate is not None:
            await gate.wait()
        writer.write(data)
        await writer.drain()
    writer.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
