"""The scripted upstream and summarizer model, written close to the socket to cost little.

A request's header `openai-script`, which Abridge forwards as all that begin so, names the script to
play, or else the first segment of its path does.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from functools import cache
from typing import cast

import uvloop

from tests.benchmarks.scripts import STAMP, Script, script

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
NAME = re.compile(rb"\r\nopenai-script: *([\w-]+)", re.IGNORECASE)
PLACE = re.compile(rb"\S+ /([\w-]+)")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n"
STAMPED = b'"p":"%017.6f"'


@cache
def written(name: str) -> list[tuple[float, bytes]]:
    """Return a script's steps as sent on the wire, with head and framing."""
    played = script(name)
    steps = _chunked(played) if played.stream else _measured(played)
    due, first = steps[0]
    return [(due, HEAD % played.kind + first), *steps[1:]]


def _measured(played: Script) -> list[tuple[float, bytes]]:
    return [
        (due, b"content-length: %d\r\n\r\n%b" % (len(data), data)) for due, data in played.steps
    ]


def _chunked(played: Script) -> list[tuple[float, bytes]]:
    steps = [(due, b"%x\r\n%b\r\n" % (len(data), data)) for due, data in played.steps]
    steps[0] = (steps[0][0], b"transfer-encoding: chunked\r\n\r\n" + steps[0][1])
    steps[-1] = (steps[-1][0], steps[-1][1] + b"0\r\n\r\n")
    return steps


class Upstream(asyncio.Protocol):
    """One connection with sequential requests."""

    def __init__(self) -> None:
        self._head = b""
        self._missing = 0
        self._name = ""
        self._next = 0
        self._began = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._head += data
            if not self._read_head():
                return
        if not self._missing:
            self._head = b""
            self._next, self._began = 0, time.monotonic()
            self._play()

    def _read_head(self) -> bool:
        end = self._head.find(b"\r\n\r\n")
        if end < 0:
            return False
        length = LENGTH.search(self._head, 0, end)
        name = NAME.search(self._head, 0, end) or PLACE.match(self._head)
        self._missing = int(length[1]) - (len(self._head) - end - 4) if length else 0
        self._name = name[1].decode() if name else ""
        return True

    def _play(self) -> None:
        """Write all that is due, and schedule the next piece."""
        steps, now = written(self._name), time.monotonic()
        while self._next < len(steps):
            due, data = steps[self._next]
            wait = self._began + due - now
            if wait > 0.0005:
                self._timer = asyncio.get_running_loop().call_later(wait, self._play)
                return
            if STAMP in data:
                data = data.replace(STAMP, STAMPED % time.monotonic())
            self._transport.write(data)
            self._next += 1


async def serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Upstream, "127.0.0.1", port, backlog=2048)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
