"""The load generator: a job as JSON on stdin, its result as JSON on stdout.

It works close to the socket, sends the next request once the last is answered, and reads the
measured process's CPU clock itself, exactly when counting begins and ends.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import sub
from typing import Any, cast

import uvloop

from tests.benchmarks.processes import cpu, family, waited

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SENT = re.compile(rb'"p":"([\d.]+)"')
OVERLAP = 64  # bytes, more than any text that is searched for
LAST_CHUNK = b"0\r\n\r\n"


@dataclass(frozen=True)
class Job:
    """Post `body` to `path` on each connection, for `seconds` after `warm` seconds, or else `each`
    times; first requests are spread over `spread` seconds. `marks` are byte strings whose first
    occurrence is timed. `pid` is the process whose CPU is counted."""

    port: int
    path: str
    body: str
    script: str
    pid: int | None = None
    connections: int = 1
    seconds: float = 0.0
    warm: float = 0.0
    each: int = 0
    spread: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    marks: Mapping[str, str] = field(default_factory=dict)

    def request(self) -> bytes:
        body = self.body.encode()
        headers = {
            "host": f"127.0.0.1:{self.port}",
            "authorization": "Bearer sk-benchmark",
            "content-type": "application/json",
            "content-length": str(len(body)),
            "openai-script": self.script,
            **self.headers,
        }
        lines = [f"POST {self.path} HTTP/1.1", *(": ".join(pair) for pair in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass
class Tally:
    """Times in seconds: of answers, of stamped events in transit, of each answer's marks."""

    latencies: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    marks: list[dict[str, float]] = field(default_factory=list)
    failure: str = ""

    def clear(self) -> None:
        self.latencies, self.delays, self.marks = [], [], []


class Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, job: Job, tally: Tally) -> None:
        self._request = job.request()
        self._needles = {name: needle.encode() for name, needle in job.marks.items()}
        self._tally = tally
        self._left = job.each or sys.maxsize
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._fail("a connection was closed")

    def ask(self) -> None:
        self._head, self._tail, self._missing = b"", b"", -1
        self._marks: dict[str, float] = {}
        self._asked = time.monotonic()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._look(data)
        if self._missing < 0 and not self._read_head(data):
            return
        if self._missing:
            self._missing -= len(data)
            over = self._missing == 0
        else:
            over = self._tail.endswith(LAST_CHUNK)
        if over:
            self._answered()

    async def wait(self) -> None:
        await self._done

    def _read_head(self, data: bytes) -> bool:
        """Read the head; set `_missing` to the length of the body, 0 if chunked."""
        before = len(self._head)
        self._head += data
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return False
        if not self._head.startswith(b"HTTP/1.1 200"):
            self._fail(self._head.decode())
        length = LENGTH.search(self._head, 0, end + 2)
        self._missing = end + 4 + int(length[1]) - before if length else 0
        return True

    def _look(self, data: bytes) -> None:
        """Look for marks and stamps in this piece and across its seam with the last."""
        seen, now = self._tail + data, time.monotonic()
        last = 0
        for found in SENT.finditer(seen):
            last = found.end()
            self._tally.delays.append(now - float(found[1]))
        for name, needle in self._needles.items():
            if name not in self._marks and needle in seen:
                self._marks[name] = now - self._asked
        self._tail = seen[max(last, len(seen) - OVERLAP) :]

    def _answered(self) -> None:
        took = time.monotonic() - self._asked
        self._tally.latencies.append(took)
        if self._needles:
            self._tally.marks.append({**self._marks, "end": took})
        self._left -= 1
        if self._left:
            self.ask()
        elif not self._done.done():
            self._done.set_result(None)

    def _fail(self, why: str) -> None:
        self._tally.failure = why
        self._left = 1
        if not self._done.done():
            self._done.set_exception(RuntimeError(why))


async def run(job: Job) -> dict[str, Any]:
    loop, tally = asyncio.get_running_loop(), Tally()
    clients = []
    for _ in range(job.connections):
        made = await loop.create_connection(lambda: Client(job, tally), "127.0.0.1", job.port)
        clients.append(made[1])
    began, own_began, own_delays = _clocks(job), time.process_time(), list[float]()
    watching = asyncio.create_task(_watch_own_delays(own_delays))
    for place, client in enumerate(clients):
        loop.call_later(job.spread * place / job.connections, client.ask)
    if job.each:
        await asyncio.gather(*(client.wait() for client in clients))
    else:
        await asyncio.sleep(job.warm)
        tally.clear()
        began = _clocks(job)
        await asyncio.sleep(job.seconds)
    seconds, spent, kept_waiting = map(sub, _clocks(job), began)
    watching.cancel()
    return {
        "requests": len(tally.latencies),
        "seconds": seconds,
        "cpu": spent,
        "waited": kept_waiting,
        "latencies": tally.latencies,
        "delays": tally.delays,
        "marks": tally.marks,
        "own_cpu": time.process_time() - own_began,
        "own_delays": own_delays,
        "failure": tally.failure,
    }


async def _watch_own_delays(delays: list[float]) -> None:
    """Note how late this process itself is, a hundred times a second."""
    while True:
        due = time.monotonic() + 0.01
        await asyncio.sleep(0.01)
        delays.append(time.monotonic() - due)


def _clocks(job: Job) -> tuple[float, float, float]:
    """Return the time, and the CPU time that the measured process has used and waited for."""
    if not job.pid:
        return time.monotonic(), 0.0, 0.0
    return time.monotonic(), sum(map(cpu, family(job.pid))), waited(job.pid)


if __name__ == "__main__":
    json.dump(uvloop.run(run(Job(**json.load(sys.stdin)))), sys.stdout)
