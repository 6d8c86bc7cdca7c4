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
from tempfile import TemporaryDirectory

import httpx

import abridge
from tests.support.log_watch import found
from tests.support.servers import HANG, soon

START = 60.0  # seconds, in which several processes start on a machine that has much else to do

SOURCE = str(Path(abridge.__file__).parents[1])


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, in which a child finds the same Abridge."""
    path = os.pathsep.join([SOURCE, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, **(more or {})}


@dataclass
class Sidecar:
    """`banner` is what it said when it listened, `said` what it said later, all on stderr."""

    process: asyncio.subprocess.Process
    banner: list[str] = field(default_factory=list)
    said: str = ""

    @property
    def url(self) -> str:
        return self.banner[0].rpartition(" ")[2]

    @property
    def metrics(self) -> str:
        return self.banner[-1].rpartition(" ")[2]

    @property
    def admin(self) -> str:
        return self.metrics.removesuffix("/metrics")

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """As Ctrl-C in a terminal does: everybody there hears it."""
        os.killpg(self.process.pid, signal.SIGINT)

    @property
    def workers(self) -> list[int]:
        """The ids of its workers' processes."""
        stats = Path("/proc").glob("[0-9]*/stat")
        children = [int(stat.parent.name) for stat in stats if _parent(stat) == self.process.pid]
        return [child for child in children if b"spawn_main" in _words(child)]

    async def listens(self) -> None:
        """Wait until it does, and has said so."""
        assert self.process.stderr is not None
        while not re.match(r" *metrics +http", self.banner[-1] if self.banner else ""):
            line = (await self.process.stderr.readline()).decode()
            assert line, f"it did not start: {self.banner}"
            self.banner.append(json.loads(line)["message"] if line[0] == "{" else line.rstrip("\n"))

    async def until(self, words: str) -> None:
        """Wait until it has said something with these words in it."""
        assert self.process.stderr is not None
        while words not in self.said:
            line = (await soon(self.process.stderr.readline())).decode()
            assert line, f"it ended, and said:\n{self.said}"
            self.said += line

    async def end(self) -> int:
        """Wait for its end; returns its exit code."""
        assert self.process.stderr is not None
        self.said += (await soon(self.process.stderr.read())).decode()
        return await soon(self.process.wait())


@asynccontextmanager
async def sidecar(*flags: str, **environ: str) -> AsyncIterator[Sidecar]:
    """A sidecar that listens; whatever becomes of it, it is gone at the end."""
    with TemporaryDirectory() as folder:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "abridge", "serve", "--port", "0", *flags),
            stderr=asyncio.subprocess.PIPE,
            env=environment({"TMPDIR": folder, **environ}),
            start_new_session=True,
        )
        assert process.stderr is not None
        running = Sidecar(process)
        try:
            async with asyncio.timeout(START):
                await running.listens()
            yield running
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            running.said += (await process.stderr.read()).decode()
            assert not found(running.said)


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
    """It connects anew for each request, so that any worker may have it."""
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(trust_env=False, timeout=HANG, limits=limits) as one:
        yield one


async def status(client: httpx.AsyncClient, url: str) -> int:
    """0 where nobody listens, -1 where somebody just stopped to."""
    try:
        return (await client.get(url)).status_code
    except httpx.ConnectError:
        return 0
    except httpx.TransportError:
        return -1


async def until_status(client: httpx.AsyncClient, url: str, wanted: int) -> None:
    async with asyncio.timeout(HANG):
        while await status(client, url) != wanted:  # noqa: ASYNC110 -- it is another process
            await asyncio.sleep(0.02)


@asynccontextmanager
async def streaming(
    client: httpx.AsyncClient, url: str, body: object
) -> AsyncIterator[asyncio.Task[bytes]]:
    """A response under way, whose first bytes are here; the task gives all of it."""
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
