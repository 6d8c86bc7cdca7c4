"""Start `abridge` in processes that are forked from one which has imported it: most of a start is
imports.

Each has a session, an environment and standard streams of its own. What reads the environment as it
is imported must be started anew.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache

IMPORTED = (
    "abridge.http.connections",
    "abridge.sidecar.cli.serving",
    "abridge.websocket",
    "abridge.summarizers.extractive",
    "uvicorn.loops.uvloop",
)
"""What `abridge serve` imports, some of it late."""

MOST = 1 << 20
"""Bytes of the words and the environment of a process."""


@dataclass
class Forked:
    """A process, with what is used of asyncio's."""

    pid: int
    stderr: asyncio.StreamReader
    _end: asyncio.StreamReader
    returncode: int | None = None

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    async def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(await self._end.readline())
        return self.returncode


@asynccontextmanager
async def forked(*words: str, env: Mapping[str, str]) -> AsyncIterator[Forked]:
    """Run `python -m abridge` with these words."""
    ours, theirs = socket.socketpair()
    read_errors, errors = os.pipe()
    request = json.dumps([words, dict(env)]).encode()
    socket.send_fds(_parent(env["PYTHONPATH"]), [request], [theirs.fileno(), errors])
    theirs.close()
    os.close(errors)
    end, writer = await asyncio.open_connection(sock=ours)
    stderr = asyncio.StreamReader()
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stderr), os.fdopen(read_errors, "rb")
    )
    try:
        yield Forked(int(await end.readline()), stderr, end)
    finally:
        pipe.close()
        writer.close()
        await writer.wait_closed()


@cache
def _parent(path: str) -> socket.socket:
    """Return the socket of the process that forks; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for each in (ours, theirs):
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MOST)
    process = subprocess.Popen(  # noqa: S603 -- this module
        (sys.executable, "-m", __name__, str(theirs.fileno())),
        pass_fds=[theirs.fileno()],
        env={**os.environ, "PYTHONPATH": path},
    )
    theirs.close()
    atexit.register(process.wait)
    atexit.register(ours.close)
    return ours


class Parent:
    """What runs in that process."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._ends: dict[int, socket.socket] = {}
        self._woken, self._wakes = socket.socketpair()
        self._wakes.setblocking(False)
        signal.set_wakeup_fd(self._wakes.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> Sequence[str] | None:
        """Fork as asked; return a child's words in the child, and none at the end."""
        while True:
            ready, _, _ = select.select([self._control, self._woken], [], [])
            if self._woken in ready:
                self._woken.recv(4096)
                self._report_ends()
            if self._control in ready:
                request, files, _, _ = socket.recv_fds(self._control, MOST, 2)
                if not request:
                    return None
                if words := self._fork(request, *files):
                    return words

    def _fork(self, request: bytes, end: int, errors: int) -> Sequence[str] | None:
        pid = os.fork()
        if pid:
            os.close(errors)
            self._ends[pid] = socket.socket(fileno=end)
            return None
        os.setsid()
        os.write(end, b"%d\n" % os.getpid())
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(errors, 2)
        for each in (end, errors):
            os.close(each)
        for one in (self._control, self._woken, self._wakes, *self._ends.values()):
            one.close()
        words, environ = json.loads(request)
        os.environ.clear()
        os.environ.update(environ)
        tempfile.tempdir = None
        return list(words)

    def _report_ends(self) -> None:
        while self._ends:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._ends.pop(pid) as end:
                end.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))

    def kill_all(self) -> None:
        for pid in self._ends:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


def main() -> None:
    """Run until the socket's other end is closed, as it is however that process ends: so what ends
    a whole group of processes leaves nothing here behind."""
    ends = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    before = {each: signal.signal(each, signal.SIG_IGN) for each in ends}
    for module in IMPORTED:
        importlib.import_module(module)
    gc.freeze()
    parent = Parent(socket.socket(fileno=int(sys.argv[1])))
    words = parent.run()
    if words is None:
        parent.kill_all()
        return
    for each, handler in before.items():
        signal.signal(each, handler)
    sys.argv = ["abridge", *words]
    runpy.run_module("abridge", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
