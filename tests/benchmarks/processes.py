"""Start processes on loopback, pin them to a core and measure them from outside. Linux only."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MEASURED, BESIDE = 0, 1
"""The core of the measured process, and the core of all others."""

FILES = 16384
PATIENCE = 90.0  # seconds until a server must listen

COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}
"""Has Python keep compiled modules, as it does for users: compiling them takes memory and CPU."""


@dataclass(frozen=True)
class Server:
    """A process that listens on `port`."""

    process: subprocess.Popen[bytes]
    port: int

    @property
    def pid(self) -> int:
        return self.process.pid

    def memory(self) -> int:
        """Resident bytes, of all its processes."""
        statm = [Path(f"/proc/{each}/statm").read_text().split() for each in family(self.pid)]
        return sum(int(pages) for _, pages, *_ in statm) * resource.getpagesize()


def family(pid: int) -> list[int]:
    """Return a process and those it has started."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for file in files for child in file.read_text().split()]
    return [pid, *(each for child in children for each in family(child))]


def cpu(pid: int) -> float:
    """Seconds of CPU, user and system, of all threads of a process.

    This is clock_getcpuclockid(3): the scheduler's own count, where /proc knows ticks of 10 ms.
    """
    return time.clock_gettime(~pid << 3 | 2)


def waited(pid: int) -> float:
    """Return how many seconds a process's first thread was ready but waited for its core."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def serving(
    command: Sequence[str], port: int, core: int, environ: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """Run `command` until the end of the block, which begins when it listens on `port`."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            env={**os.environ, **COMPILED, **(environ or {})},
            preexec_fn=lambda: prepare(core),
        )
        try:
            if not _listens(process, port):
                output.seek(0)
                raise RuntimeError(f"{command} does not listen:\n{output.read().decode()}")
            yield Server(process, port)
        finally:
            process.kill()
            process.wait()


def module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", name, *arguments]


def prepare(core: int) -> None:
    """Prepare a child process: pin it to a core, if there are several, and raise its file limit."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[core % len(cores)]})


def _listens(process: subprocess.Popen[bytes], port: int) -> bool:
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return True
    return False
