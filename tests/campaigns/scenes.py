"""The scenes of chaos: each takes something away for a while, and gives it back."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.campaigns.stage import Process, Stage, stage
from tests.support.redis_server import PROGRAM, Server
from tests.support.sidecar import environment

LIAR = "tests.campaigns.liar"
DAY = 86400.0
FEW_FILES = 100
"""How many files a process may open, where there are few."""

OTHERS = tuple(f"127.0.0.{last}" for last in range(2, 6))
"""Addresses of other clients, each with a share of its own."""


class Skipped(Exception):
    """This machine does not permit the scene."""


class Scene:
    """`hurt` takes something away on a running stage, `heal` gives it back. `fault` is that of
    upstream's scripts in the meantime; `bears` says that no user may notice, or nothing but
    `excused`."""

    excused: frozenset[str] = frozenset()

    def __init__(self, on: Stage, *, fault: str = "none", bears: bool = False) -> None:
        self.on = on
        self.fault = fault
        self.bears = bears

    async def hurt(self) -> None:
        """Take it away."""

    async def heal(self) -> None:
        """Give it back."""


class Killed(Scene):
    """A process is killed, and started again."""

    def __init__(self, on: Stage, victim: Process, *, bears: bool) -> None:
        super().__init__(on, bears=bears)
        self._victim = victim

    async def hurt(self) -> None:
        self._victim.kill()

    async def heal(self) -> None:
        await self._victim.start()


class Frozen(Killed):
    """A process is stopped, and goes on."""

    async def hurt(self) -> None:
        self._victim.freeze()

    async def heal(self) -> None:
        self._victim.thaw()


class Lying(Killed):
    """Something else listens where a process did."""

    async def hurt(self) -> None:
        self._victim.kill()
        self._liar = Process(LIAR, self._victim.port)
        await self._liar.start()

    async def heal(self) -> None:
        self._liar.kill()
        await self._victim.start()


class RedisScene(Scene):
    """Does something to Redis. Users notice nothing: what is not remembered is a miss."""

    def __init__(self, on: Stage, server: Server, manner: str) -> None:
        super().__init__(on, bears=True)
        self._server = server
        self._manner = manner

    async def hurt(self) -> None:
        if self._manner in ("killed", "lying"):
            self._server.kill()
        if self._manner == "lying":
            self._liar = Process(LIAR, self._server.port)
            await self._liar.start()
        if self._manner == "frozen":
            self._signal(signal.SIGSTOP)
        if self._manner == "full":
            self._limit("1mb")

    async def heal(self) -> None:
        if self._manner == "lying":
            self._liar.kill()
        if self._manner in ("killed", "lying"):
            await asyncio.to_thread(self._server.start)
        if self._manner == "frozen":
            self._signal(signal.SIGCONT)
        if self._manner == "full":
            self._limit("0")

    def _signal(self, number: signal.Signals) -> None:
        process = self._server._process
        assert process is not None
        process.send_signal(number)

    def _limit(self, memory: str) -> None:
        with self._server.client() as redis:
            redis.config_set("maxmemory-policy", "noeviction")
            redis.config_set("maxmemory", memory)


class HandlesSpent(Scene):
    """The sidecar may open few files, and idle clients take all that there are for clients."""

    excused = frozenset({"503"})

    async def hurt(self) -> None:
        host, port = self.on.running.url.removeprefix("http://").split(":")
        self._idle = [
            await asyncio.open_connection(host, int(port), local_addr=(address, 0))
            for address in OTHERS
            for _ in range(FEW_FILES // len(OTHERS))
        ]

    async def heal(self) -> None:
        for _, writer in self._idle:
            writer.close()


class WorkerKilled(Scene):
    """One worker of two is killed; the supervisor starts another."""

    async def hurt(self) -> None:
        os.kill(self.on.running.workers[0], signal.SIGKILL)


class WorkerFrozen(Scene):
    """One worker of two is stopped, and goes on if it still lives."""

    async def hurt(self) -> None:
        self._frozen = self.on.running.workers[0]
        os.kill(self._frozen, signal.SIGSTOP)

    async def heal(self) -> None:
        if self._frozen in self.on.running.workers:
            os.kill(self._frozen, signal.SIGCONT)


class ClockJumping(Scene):
    """The wall clock jumps ten days ahead, and then as far back."""

    def __init__(self, on: Stage, file: Path) -> None:
        super().__init__(on, bears=True)
        self._file = file

    async def hurt(self) -> None:
        self._file.write_text(str(10 * DAY))
        await asyncio.sleep(0.5)
        self._file.write_text(str(-10 * DAY))

    async def heal(self) -> None:
        self._file.write_text("0")


class DiskFull(Scene):
    """The file system of the temporary folder, with the workers' metrics, is full."""

    def __init__(self, on: Stage, folder: Path) -> None:
        super().__init__(on)
        self._file = folder / "filler"

    async def hurt(self) -> None:
        with self._file.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return

    async def heal(self) -> None:
        self._file.unlink()


# Where they play

Play = Callable[[], AbstractAsyncContextManager[Scene]]


def plain(make: Callable[[Stage], Scene], workers: int = 1) -> Play:
    @asynccontextmanager
    async def play() -> AsyncIterator[Scene]:
        async with stage(workers=workers, store="memory" if workers == 1 else "none") as on:
            yield make(on)

    return play


def with_redis(manner: str) -> Play:
    @asynccontextmanager
    async def play() -> AsyncIterator[Scene]:
        if PROGRAM is None:
            raise Skipped("no redis-server")
        with Server() as server:
            async with stage(store=server.url) as on:
                yield RedisScene(on, server, manner)

    return play


@asynccontextmanager
async def with_few_files() -> AsyncIterator[Scene]:
    """Let the sidecar open few files."""
    prlimit = shutil.which("prlimit")
    if prlimit is None:
        raise Skipped("no prlimit")
    async with stage(prefix=(prlimit, f"--nofile={FEW_FILES}:{FEW_FILES}")) as on:
        yield HandlesSpent(on, bears=True)


SHIFTED_CLOCK = """
import time
real = time.time
def shifted():
    with open({file!r}) as file:
        return real() + float(file.read() or 0)
time.time = shifted
"""


@asynccontextmanager
async def with_clock() -> AsyncIterator[Scene]:
    """Have the sidecar read the wall clock through a file that shifts it."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "shift"
        file.write_text("0")
        (Path(folder) / "sitecustomize.py").write_text(SHIFTED_CLOCK.format(file=str(file)))
        path = os.pathsep.join([folder, environment()["PYTHONPATH"]])
        async with stage(PYTHONPATH=path) as on:
            yield ClockJumping(on, file)


@asynccontextmanager
async def with_small_disk() -> AsyncIterator[Scene]:
    """Give two workers a temporary folder on a file system of 2 MiB."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    with TemporaryDirectory() as folder:
        options = ("-t", "tmpfs", "-o", "size=2m", "none", folder)
        if mount is None or umount is None or not await _runs(mount, *options):
            raise Skipped("no file system may be mounted")
        try:
            async with stage(workers=2, store="none", TMPDIR=folder) as on:
                yield DiskFull(on, Path(folder))
        finally:
            await _runs(umount, "-l", folder)


async def _runs(*command: str) -> bool:
    quiet = subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    return await process.wait() == 0


SCENES: dict[str, Play] = {
    "upstream-killed": plain(lambda on: Killed(on, on.upstream, bears=False)),
    "upstream-frozen": plain(lambda on: Frozen(on, on.upstream, bears=False)),
    "upstream-lying": plain(lambda on: Lying(on, on.upstream, bears=False)),
    "upstream-slow": plain(lambda on: Scene(on, fault="stall", bears=True)),
    "upstream-garbage": plain(lambda on: Scene(on, fault="garbage")),
    "summarizer-killed": plain(lambda on: Killed(on, on.summarizer, bears=True)),
    "summarizer-frozen": plain(lambda on: Frozen(on, on.summarizer, bears=True)),
    "summarizer-lying": plain(lambda on: Lying(on, on.summarizer, bears=True)),
    "redis-killed": with_redis("killed"),
    "redis-frozen": with_redis("frozen"),
    "redis-full": with_redis("full"),
    "redis-lying": with_redis("lying"),
    "handles-spent": with_few_files,
    "disk-full": with_small_disk,
    "worker-killed": plain(WorkerKilled, workers=2),
    "worker-frozen": plain(WorkerFrozen, workers=2),
    "clock-jumps": with_clock,
}
