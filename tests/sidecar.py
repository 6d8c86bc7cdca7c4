"""`abridge serve` in a process of its own, as users run it."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import abridge
from tests.planted import found
from tests.servers import soon

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
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "abridge.cli", "serve", "--port", "0", *flags),
        stderr=asyncio.subprocess.PIPE,
        env=environment(environ),
    )
    assert process.stderr is not None
    running = Sidecar(process)
    try:
        while not re.match(r"  metrics +http", running.banner[-1] if running.banner else ""):
            line = (await soon(process.stderr.readline())).decode()
            assert line, f"it did not start: {running.banner}"
            running.banner.append(line.rstrip("\n"))
        yield running
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        running.said += (await process.stderr.read()).decode()
        assert not found(running.said)
