"""Responses to a client, complete or not."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from tests.support.servers import Peer, Request


@dataclass(frozen=True)
class Reply:
    """What came back: nothing, or a head and as much of the body as came; `complete` tells whether
    that is all of it."""

    head: Request | None = None
    body: bytes = b""
    complete: bool = False

    @property
    def status(self) -> int:
        return int(self.head.lines[0].split()[1]) if self.head is not None else 0

    def header(self, name: bytes) -> bytes | None:
        found = self.head.all(name) if self.head is not None else []
        return found[0] if found else None

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def reply(peer: Peer) -> Reply:
    """Read a response, complete or not."""
    try:
        head = Request(await peer.head(), b"")
    except (asyncio.IncompleteReadError, ConnectionError):
        return Reply()
    body = bytearray()
    try:
        if head.all(b"transfer-encoding"):
            while data := await peer.chunk():
                body += data
        else:
            body += await peer.reader.readexactly(int(head.all(b"content-length")[0]))
    except asyncio.IncompleteReadError as error:
        return Reply(head, bytes(body) + error.partial)
    except (ConnectionError, ValueError):
        return Reply(head, bytes(body))
    return Reply(head, bytes(body), complete=True)
