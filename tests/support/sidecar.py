"""`abridge serve` in a process of its own, as users run it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from ssl import create_default_context
from tempfile import TemporaryDirectory

import httpx
from starlette.types import ASGIApp

import abridge
from tests.support.forking import Forked, forked
from tests.support.log_watch import find_secrets
from tests.support.servers import HANG, serve, soon

START = 60.0  # seconds; enough for several processes on a busy machine

HANG_UP = getattr(signal, "SIGHUP", signal.SIGTERM)
"""What a terminal sends at its end, on POSIX."""

IN_TERMINAL = (
    sys.executable,
    "-c",
    """
import fcntl, os, sys, termios
terminal, ours = os.openpty()
os.set_inheritable(terminal, True)  # it closes as the process ends
fcntl.ioctl(ours, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
""",
)
"""Prefix of a command that is to run in a terminal of its own."""

READ_EARLY = "PROMETHEUS_MULTIPROC_DIR"
"""Whether metrics are kept in files is decided as their library is imported."""

SOURCE = str(Path(abridge.__file__).parents[1])


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment, in which a child imports the same Abridge."""
    path = os.pathsep.join([SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **(more or {})}


@dataclass
class Sidecar:
    """`banner` are its first lines on stderr, until it listens; `output` is what follows."""

    process: asyncio.subprocess.Process | Forked
    banner: list[str] = field(default_factory=list)
    output: str = ""

    @property
    def url(self) -> str:
        (line,) = (line for line in self.banner if " listens on " in line)
        return line.rpartition(" ")[2]

    @property
    def metrics(self) -> str:
        return self.banner[-1].rpartition(" ")[2]

    @property
    def admin(self) -> str:
        return self.metrics.removesuffix("/metrics")

    def interrupt(self, number: signal.Signals = signal.SIGINT) -> None:
        """Signal the whole process group, as a terminal does on Ctrl-C, or SIGHUP at its end."""
        os.killpg(self.process.pid, number)

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    @property
    def workers(self) -> list[int]:
        """The process ids of its workers."""
        stats = Path("/proc").glob("[0-9]*/stat")
        children = [int(stat.parent.name) for stat in stats if _parent(stat) == self.process.pid]
        return [child for child in children if b"spawn_main" in _words(child)]

    async def wait_until_listening(self) -> None:
        """Wait until it reports that it listens."""
        assert self.process.stderr is not None
        while not re.match(r" *metrics +http", self.banner[-1] if self.banner else ""):
            line = (await self.process.stderr.readline()).decode()
            assert line, f"it did not start: {self.banner}"
            self.banner.append(json.loads(line)["message"] if line[0] == "{" else line.rstrip("\n"))

    async def until(self, words: str) -> None:
        """Wait until it has written these words."""
        assert self.process.stderr is not None
        while words not in self.output:
            line = (await soon(self.process.stderr.readline())).decode()
            assert line, f"it ended with this output:\n{self.output}"
            self.output += line

    async def end(self) -> int:
        """Wait for its end and return its exit code."""
        assert self.process.stderr is not None
        self.output += (await soon(self.process.stderr.read())).decode()
        return await soon(self.process.wait())


@asynccontextmanager
async def sidecar(
    *flags: str, prefix: tuple[str, ...] = (), **environ: str
) -> AsyncIterator[Sidecar]:
    """Run a sidecar and yield it once it listens; kill it at the end.

    `prefix` is a command that runs it in its own place, such as `prlimit`.
    """
    with TemporaryDirectory() as folder:
        env = environment({"TMPDIR": folder, **environ})
        async with _started(prefix, ("serve", "--port", "0", *flags), env) as process:
            assert process.stderr is not None
            running = Sidecar(process)
            try:
                async with asyncio.timeout(START):
                    await running.wait_until_listening()
                yield running
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
                running.output += (await process.stderr.read()).decode()
                assert not find_secrets(running.output)


@asynccontextmanager
async def _started(
    prefix: tuple[str, ...], words: tuple[str, ...], env: Mapping[str, str]
) -> AsyncIterator[asyncio.subprocess.Process | Forked]:
    if sys.platform == "linux" and not prefix and READ_EARLY not in env:
        async with forked(*words, env=env) as process:
            yield process
        return
    yield await asyncio.create_subprocess_exec(
        *(*prefix, sys.executable, "-m", "abridge", *words),
        stderr=asyncio.subprocess.PIPE,
        env=env,
        start_new_session=True,
    )


def _parent(stat: Path) -> int | None:
    with suppress(OSError):
        return int(stat.read_text().rpartition(")")[2].split()[1])
    return None


def _words(process: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process}/cmdline").read_bytes()
    return b""


@asynccontextmanager
async def client() -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that opens a connection a request, so that any worker may answer."""
    limits = httpx.Limits(max_keepalive_connections=0)
    tls = create_default_context()  # the library's own reads all roots
    async with httpx.AsyncClient(verify=tls, trust_env=False, timeout=HANG, limits=limits) as one:
        yield one


@asynccontextmanager
async def in_front_of(
    app: ASGIApp, *flags: str, prefix: tuple[str, ...] = (), **environ: str
) -> AsyncIterator[tuple[Sidecar, httpx.AsyncClient]]:
    """Run a sidecar whose upstream is this app; yield it with a client."""
    async with (
        serve(app, log_level="critical") as url,
        sidecar("--upstream", f"{url}/v1", *flags, prefix=prefix, **environ) as running,
        client() as session,
    ):
        yield running, session


async def status(client: httpx.AsyncClient, url: str) -> int:
    """Return the status; 0 if nothing listens, -1 if the connection breaks."""
    try:
        return (await client.get(url)).status_code
    except httpx.ConnectError:
        return 0
    except httpx.TransportError:
        return -1


async def until_status(client: httpx.AsyncClient, url: str, wanted: int) -> None:
    async with asyncio.timeout(HANG):
        while await status(client, url) != wanted:  # noqa: ASYNC110 -- another process
            await asyncio.sleep(0.02)


@asynccontextmanager
async def streaming(
    client: httpx.AsyncClient, url: str, body: object
) -> AsyncIterator[asyncio.Task[bytes]]:
    """Start a response and yield, after its first bytes, a task that returns all of it."""
    begun = asyncio.Event()

    async def read() -> bytes:
        data = b""
        async with client.stream("POST", f"{url}/v1/responses", json=body) as response:
            async for piece in response.aiter_bytes():
                data += piece
                begun.set()
        return data

    reading = asyncio.create_task(read())
    try:
        await soon(begun.wait())
        yield reading
    finally:
        reading.cancel()
