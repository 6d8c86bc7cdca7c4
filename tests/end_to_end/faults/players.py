"""A server that plays a script up to a named place and there injects a fault."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise

from tests.end_to_end.faults.cells import STATUSES, Fault, What, Where
from tests.end_to_end.faults.dialects import Dialect
from tests.end_to_end.faults.loop import pause
from tests.end_to_end.faults.turns import Turn
from tests.support.servers import Peer, chunk, listen, refusing_address

STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
BODY = [where for where in Where if where >= Where.FIRST]
GIVEN_UP = (What.STALL, What.HALF_CLOSE, What.GARBAGE)
"""After these the other end must hang up by itself."""

NO_HTTP = b"no HTTP at all\r\n\r\n"
NO_CHUNK = b"no chunk at all\r\n"
RETRY_AFTER = b"retry-after: 7"
REFUSAL = b'{"error": {"message": "Later.", "type": "server_error", "param": null, "code": null}}'


@dataclass(frozen=True)
class Script:
    """A response: its body in pieces, how many precede each place, and an error event.

    A whole body has a length; a stream is chunked.
    """

    pieces: Sequence[bytes]
    before: Mapping[Where, int]
    streamed: bool
    error: bytes = b""

    @classmethod
    def of(cls, dialect: Dialect, turn: Turn, *, streamed: bool) -> Script:
        return cls.stream(dialect, turn) if streamed else cls.whole(dialect, turn)

    @classmethod
    def stream(cls, dialect: Dialect, turn: Turn) -> Script:
        frames = dialect.stream(turn)
        thinking = [place for place, frame in enumerate(frames) if dialect.reasoning_mark in frame]
        middle, between = thinking[len(thinking) // 2], thinking[-1] + 1
        last = len(frames) - 1
        places = [0, middle, between, (between + last) // 2 + 1, last, last + 1]
        return cls(frames, dict(zip(BODY, places, strict=True)), True, dialect.error)

    @classmethod
    def whole(cls, dialect: Dialect, turn: Turn) -> Script:
        body = json.dumps(dialect.whole(turn)).encode()
        thought, text = (json.dumps(turn.steps[place][1])[1:-1].encode() for place in (0, 1))
        begins, answers = body.index(thought), body.index(text)
        middle, between = begins + len(thought) // 2, begins + len(thought)
        edges = [0, middle, between, answers + len(text) // 2, len(body) - 1, len(body)]
        pieces = [body[start:end] for start, end in pairwise(edges)]
        return cls(pieces, {where: number for number, where in enumerate(BODY)}, False)

    def body(self, where: Where = Where.AFTER) -> bytes:
        """Return the body up to a place."""
        return b"".join(self.pieces[: self.before.get(where, 0)])

    def begin(self, where: Where) -> list[bytes]:
        """Return the response up to a place, as sent."""
        if where < Where.FIRST:
            return []
        head = STREAM if self.streamed else WHOLE % len(self.body())
        return [head, *self._framed(self.pieces[: self.before[where]])]

    def rest(self, where: Where) -> list[bytes]:
        """Return what is left to send from a place on."""
        if where < Where.FIRST:
            return self.begin(Where.AFTER) + self.rest(Where.AFTER)
        end = [chunk(b"")] if self.streamed else []
        return self._framed(self.pieces[self.before[where] :]) + end

    def garbage(self, where: Where) -> bytes:
        """Return unreadable bytes in place of the rest: no status line, no chunk, no JSON."""
        if where < Where.FIRST:
            return NO_HTTP
        return NO_CHUNK if self.streamed else b"#" * (sum(map(len, self.rest(where))) or 1)

    def complete(self, what: What, where: Where) -> bool:
        """Return whether the response still has its declared length after the fault."""
        if self.streamed or where < Where.FIRST:
            return False
        return what is What.GARBAGE or self.body(where) == self.body()

    def _framed(self, pieces: Sequence[bytes]) -> list[bytes]:
        return [chunk(piece) if self.streamed else piece for piece in pieces if piece]


@dataclass
class Player:
    """Plays `script` to each request, at once or up to `where`: there it pauses, then does `what`.

    `requests` counts requests, `busy` the responses under way; `reached` is set at the first pause.
    If `paced`, each piece is sent by itself.
    """

    script: Script
    what: What | None = None
    where: Where | None = None
    paced: bool = False
    requests: int = 0
    busy: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def with_fault(cls, script: Script, fault: Fault | None, *, paced: bool = False) -> Player:
        if fault is None or fault.what is What.NOTHING:
            return cls(script, paced=paced)
        return cls(script, fault.what, fault.where, paced)

    async def __call__(self, peer: Peer) -> None:
        if self.what is not None and self.where is Where.CONNECT:
            await self._at_work(peer)
            return
        while True:
            await peer.request()
            self.requests += 1
            await self._at_work(peer)

    async def _at_work(self, peer: Peer) -> None:
        self.busy += 1
        try:
            if self.where is None:
                await self._send(peer, self.script.rest(Where.HEADERS))
                return
            await self._send(peer, self.script.begin(self.where))
            self.reached.set()
            await pause()
            await self._inject(peer, self.where)
        finally:
            self.busy -= 1

    async def _send(self, peer: Peer, pieces: list[bytes]) -> None:
        for data in pieces if self.paced else [b"".join(pieces)]:
            await peer.send(data)
            await asyncio.sleep(0)

    async def _inject(self, peer: Peer, where: Where) -> None:
        script = self.script
        match self.what:
            case None:
                await self._send(peer, script.rest(where))
            case What.RESET:
                peer.reset()
            case What.HALF_CLOSE:
                peer.writer.write_eof()
            case What.GARBAGE:
                await peer.send(script.garbage(where))
            case What.ERROR_EVENT:
                await peer.send(chunk(script.error) + chunk(b""))
            case What.BAD_REQUEST | What.UNAVAILABLE:
                kind = b"content-type: application/json"
                await peer.answer(REFUSAL, kind, RETRY_AFTER, status=STATUSES[self.what])
        if self.what in GIVEN_UP and not script.complete(self.what, where):
            await peer.left()


@asynccontextmanager
async def serve_player(player: Player) -> AsyncIterator[tuple[str, list[asyncio.Task[None]]]]:
    """Serve `player`; yield its address and the tasks in which it plays."""
    if player.what is What.REFUSE:
        with refusing_address() as url:
            yield url, []
    elif player.what is What.STALL and player.where is Where.CONNECT:
        with unresponsive_address() as url:
            yield url, []
    else:
        async with listen(player) as listener:
            yield listener.url, listener.tasks


@contextmanager
def unresponsive_address() -> Iterator[str]:
    """Yield an address at which connecting never ends: its backlog of one is taken."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        place = server.getsockname()
        with socket.create_connection(place):
            yield f"http://{place[0]}:{place[1]}"
