"""The processes of soak and chaos: `abridge serve`, its upstream and its summarizer."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.campaigns.secret import leaks
from tests.support.metrics_text import Metrics, scrape
from tests.support.redis_server import free_port
from tests.support.servers import HANG
from tests.support.sidecar import Sidecar, client, environment, sidecar

MODELS = ("shown", "hidden", "as-chat", "as-responses")
"""The models, each with an upstream of its own in the settings; `as-` is the API it speaks."""

HIDDEN = ("hidden", "as-chat")
"""The models whose reasoning is hidden."""

GAUGES = ("streams_open", "requests_in_flight", "held_bytes", "summarizer_in_flight")

CONFIG = """
[server]
workers = {workers}
drain = 5
[summary]
default = "auto"
grace = 1
first_token = 0.5
[summarizer]
kind = "model"
model = "small"
base_url = "{summarizer}/summarizer/v1"
timeout = 2
breaker_seconds = 1
[history]
store = "{store}"
bytes = "1 MiB"
seal_keys_env = "CAMPAIGN_KEYS"
[limits]
connect = 2
idle = 4
headers = 4
{limits}
"""

UPSTREAM = """
[[upstreams]]
name = "{name}"
models = ["{name}"]
base_url = "{url}/v1"
api = "{api}"
[upstreams.reasoning]
expose = "{expose}"
"""


class Process:
    """A scripted server of its own process, which can be killed, frozen and started again."""

    def __init__(self, module: str = "tests.campaigns.upstream", port: int = 0) -> None:
        self._module = module
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port or free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start, and wait until it listens."""
        self._spawn()
        until = time.monotonic() + HANG
        while time.monotonic() < until:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                return
            await asyncio.sleep(0.05)
        raise TimeoutError(f"{self._module} does not listen")

    def _spawn(self) -> None:
        command = [sys.executable, "-m", self._module, str(self.port)]
        self._process = subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


class Log:
    """Reads what a sidecar writes, lest it blocks. `faults` are the lines that must not be."""

    def __init__(self, running: Sidecar) -> None:
        self._stderr = running.process.stderr
        self.faults: Counter[str] = Counter()
        self.last = ""

    async def read(self) -> None:
        assert self._stderr is not None
        while line := await self._stderr.readline():
            self.last = line.decode(errors="replace").strip()
            if b"Traceback" in line or leaks(line):
                self.faults[self.last[:200]] += 1


class Stage:
    """`running` is the sidecar; `upstream` and `summarizer` are what it calls."""

    def __init__(self, running: Sidecar, upstream: Process, summarizer: Process) -> None:
        self.running = running
        self.upstream = upstream
        self.summarizer = summarizer
        self.log = Log(running)

    @property
    def pids(self) -> dict[str, int]:
        """The measured processes, by name."""
        workers = {f"worker {place}": pid for place, pid in enumerate(self.running.workers)}
        ours = {"abridge": self.running.process.pid, **workers}
        return {**ours, "upstream": self.upstream.pid, "load": os.getpid()}

    async def metrics(self) -> Metrics:
        async with client() as session:
            return await scrape(session, self.running.metrics)

    async def busy(self) -> dict[str, float]:
        """Return the gauges that are not zero."""
        metrics = await self.metrics()
        return {name: value for name in GAUGES if (value := metrics.total(name))}


@asynccontextmanager
async def stage(
    *,
    workers: int = 1,
    store: str = "memory",
    limits: str = "",
    prefix: tuple[str, ...] = (),
    **environ: str,
) -> AsyncIterator[Stage]:
    """Start all processes, and end them; `prefix` is a command that runs the sidecar."""
    upstream, summarizer = Process(), Process()
    with TemporaryDirectory() as folder:
        try:
            await upstream.start()
            await summarizer.start()
            config = Path(folder) / "abridge.toml"
            tables = CONFIG.format(
                workers=workers, summarizer=summarizer.url, store=store, limits=limits
            )
            config.write_text(tables + "".join(_upstream(name, upstream.url) for name in MODELS))
            environ["CAMPAIGN_KEYS"] = f"a:{'A' * 43}="
            flags = ("--config", str(config), "--admin-port", "0")
            async with sidecar(*flags, prefix=prefix, **environ) as running:
                made = Stage(running, upstream, summarizer)
                reading = asyncio.create_task(made.log.read())
                try:
                    yield made
                finally:
                    reading.cancel()
                    await asyncio.wait([reading])
        finally:
            for process in (upstream, summarizer):
                process.kill()


def _upstream(name: str, url: str) -> str:
    expose = "summary" if name in HIDDEN else "auto"
    api = name.removeprefix("as-") if name.startswith("as-") else "same"
    return UPSTREAM.format(name=name, url=url, api=api, expose=expose)
