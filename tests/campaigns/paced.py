"""Streams of Chat Completions that pause between their pieces, for `reload` and `fleet`: what
upstream says, and what a client reads in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import random
from typing import Any

import httpx
from starlette.types import Send

from tests.support.asgi import say, start
from tests.support.streams import DONE, chunk


@dataclass(frozen=True)
class Shape:
    """A stream: so many pieces of reasoning, as many of text, and the pause between two, on average
    in seconds."""

    pieces: int
    pause: float

    @property
    def seconds(self) -> float:
        return 2 * self.pieces * self.pause


async def answer(
    send: Send, shape: Shape, forms: tuple[str, str], usage: Mapping[str, object], **words: str
) -> None:
    """Stream an answer. `forms` are those of a piece of the reasoning and of one of the text, which
    name the `piece` and `words`."""
    await start(send)
    for field, form in zip(("reasoning_content", "content"), forms, strict=True):
        for piece in range(shape.pieces):
            await say(send, chunk({field: form.format(piece=piece, **words)}), more=True)
            await asyncio.sleep(2 * shape.pause * random())
    await say(send, chunk({}, finish="stop"), more=True)
    await say(send, chunk(usage=usage), more=True)
    await say(send, DONE)


def client_for(patience: float) -> httpx.AsyncClient:
    """Return a client for any number of streams, each by a connection of its own, which gives up
    after so many seconds without a byte."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    return httpx.AsyncClient(trust_env=False, timeout=patience, limits=limits)


HEAD = (
    "POST {path} HTTP/1.0\r\nhost: {host}\r\nauthorization: Bearer {key}\r\n"
    "content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
)


@dataclass
class Answer:
    """What a client read of a stream."""

    status: int = 0
    replica: str = ""  # the address that answered, if a proxy names it
    text: str = ""
    summary: str = ""
    raw: str = ""  # the raw reasoning beside a summary
    ended: bool = False

    async def read(self, response: httpx.Response) -> None:
        self.status = response.status_code
        async for line in response.aiter_lines():
            self._read_line(line.encode())

    async def ask(self, url: str, path: str, key: str, body: bytes) -> None:
        """Ask by HTTP/1.0, whose bodies end with the connection: thousands of streams at once leave
        no time for a whole client. Raises OSError, also for what is no answer."""
        host, _, port = url.rpartition("/")[2].partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        try:
            head = HEAD.format(path=path, host=f"{host}:{port}", key=key, length=len(body))
            writer.write(head.encode() + body)
            self.status = int((await reader.readline()).split()[1])
            while (line := await reader.readline()).strip():
                name, _, value = line.decode().partition(":")
                if name.lower() == "x-replica":
                    self.replica = value.strip().rpartition(", ")[2]
            async for line in reader:
                self._read_line(line.rstrip())
        except (IndexError, ValueError) as error:
            raise ConnectionError from error
        finally:
            writer.close()

    def _read_line(self, line: bytes) -> None:
        self.ended = self.ended or line == b"data: [DONE]"
        if line.startswith(b"data: {"):
            self._add(json.loads(line[6:]))

    def _add(self, found: dict[str, Any]) -> None:
        for choice in found.get("choices", ()):
            delta = choice["delta"]
            self.text += delta.get("content") or ""
            self.summary += delta.get("reasoning_content") or ""
            self.raw += delta.get("reasoning") or ""
