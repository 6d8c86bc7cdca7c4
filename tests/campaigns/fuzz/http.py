"""Mutants of raw HTTP, fed to the sidecar's own protocol, with the whole app behind it.

What the app is given is compared with what h11, a stricter parser, reads in the same bytes.
"""

from __future__ import annotations

import asyncio
import json
import re
import socket
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import h11
from starlette.types import Message, Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.server import ServerState

from abridge.config.tables import LimitSettings
from abridge.sidecar.server.http_protocol import protocol_factory
from tests.campaigns.fuzz.case import Case, Json, latin
from tests.campaigns.fuzz.mutations import cut, harm_bytes
from tests.campaigns.fuzz.run import Watch
from tests.campaigns.fuzz.world import Worlds
from tests.support.clock import Clock

TIMEOUT = 60.0
"""Seconds after which a silent client is disconnected; they pass at once."""

PATIENCE = 40
"""How many tenths of the timeout may pass until the connection must be over."""

SPEC: Json = {
    "client": "chat",
    "upstream": "same",
    "form": "sidecar",
    "expose": "auto",
    "summarizer": "good",
    "tables": {},
}
PLAIN = latin(json.dumps({"choices": []}).encode())
STATUSES = {200, 400, 404, 405, 408, 411, 413, 414, 415, 417, 431, 501, 503, 505}

METHODS = (*(b"POST",) * 8, b"GET", b"HEAD", b"OPTIONS", b"DELETE", b"PUT", b"CONNECT", b"post")
TARGETS = (
    *(b"/v1/chat/completions",) * 8,
    *(
        b"/v1/responses",
        b"/abridge/healthz",
        b"/",
        b"*",
        b"//v1/chat/completions",
        b"",
        b"a.test:80",
    ),
    *(
        b"http://a.test/v1/chat/completions",
        b"/v1/chat/completions?a=%zz",
        b"/%00",
        b"/\xff",
        b"/a b",
    ),
    *(b"/v1/../v1/responses", b"/" + b"a" * 70_000),
)
VERSIONS = (
    *(b"HTTP/1.1",) * 12,
    b"HTTP/1.0",
    b"HTTP/2.0",
    b"HTTP/0.9",
    b"HTTP/1.2",
    b"http/1.1",
    b"",
)
LENGTHS = (
    b"+5",
    b"-1",
    b"0x5",
    b"5, 5",
    b"5,6",
    b" 5 ",
    b"5\t",
    b"",
    b"1e1",
    b"9" * 30,
    b"00005",
    b"\xb2",
)
CODINGS = (
    *(b"chunked",) * 4,
    *(
        b"Chunked",
        b"chunked, chunked",
        b"identity",
        b"gzip, chunked",
        b"chunked, gzip",
        b"xchunked",
    ),
    *(b" chunked", b"chunked ", b"\x0bchunked", b"chunked;a=b", b'"chunked"', b"", b"chunked\x00"),
)
SIZES = (
    b"+5",
    b"-5",
    b"0x5",
    b" 5",
    b"5 ",
    b"5;a=b",
    b'5;a="\r\n"',
    b"0005",
    b"f" * 17,
    b"",
    b"g",
    b"5\t",
)
HEADERS = (
    *(b"Connection: close", b"Connection: keep-alive", b"Connection: upgrade, x", b"Upgrade: h2c"),
    *(
        b"Expect: 100-continue",
        b"Expect: x",
        b"Host: b.test",
        b"Host:",
        b"Host: a, b",
        b"X: a\x00b",
    ),
    *(
        b"X : a",
        b" X: a",
        b"X: a\r\n folded",
        b"X: a\nY: b",
        b"X: a\rY: b",
        b"X",
        b": a",
        b"X\xff: \xff",
    ),
    *(b"Transfer_Encoding: chunked", b"Content-Length : 3", b"TE: trailers", b"Trailer: x"),
    *(
        b"X: " + b"a" * 70_000,
        b"\r\n".join(b"X%d: a" % n for n in range(300)),
        b"Cookie: " + b"a=b; " * 50,
    ),
)
BODY = json.dumps({"model": "m", "messages": [], "reasoning": {"summary": "auto"}}).encode()


def make(random: Random) -> Case:
    """Draw a connection: one to three requests, mostly with something odd in one."""
    data = b"".join(_request(random) for _ in range(random.choice((1, 1, 2, 3))))
    changes = []
    for _ in range(random.choice((0, 0, 1, 1, 3))):
        data, change = harm_bytes(random, data)
        changes.append(change)
    if random.random() < 0.02:
        data = random.choice((b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02", b"")) + data
    return Case(
        "http", {}, "", "", pieces=[latin(piece) for piece in cut(random, data)], changes=changes
    )


def _request(random: Random) -> bytes:
    odd = random.random() < 0.6
    method = random.choice(METHODS) if odd else b"POST"
    target = random.choice(TARGETS) if odd else TARGETS[0]
    version = random.choice(VERSIONS) if odd else b"HTTP/1.1"
    headers = [b"Host: a.test", b"Content-Type: application/json"]
    body = random.choice((BODY, BODY, b"", b"x" * 70_000))
    match random.randrange(6):
        case 0 | 1:
            headers.append(b"Content-Length: %d" % len(body))
        case 2:
            headers.append(b"Transfer-Encoding: chunked")
            body = _chunked(random, body, odd=False)
        case 3:
            headers.append(b"Transfer-Encoding: " + random.choice(CODINGS))
            body = _chunked(random, body, odd=odd)
        case 4:
            headers.append(b"Content-Length: " + random.choice(LENGTHS))
        case _:
            headers += [b"Content-Length: %d" % random.choice((0, 3, len(body)))]
            headers += [b"Transfer-Encoding: " + random.choice(CODINGS)]
            body = _chunked(random, body, odd=odd)
    if odd:
        headers += random.sample(HEADERS, random.choice((0, 1, 2)))
        random.shuffle(headers)
    end = random.choice((*(b"\r\n",) * 12, b"\n")) if odd else b"\r\n"
    line = b" ".join((method, target, version))
    return end.join((line, *headers, b"", b"")) + body


def _chunked(random: Random, body: bytes, *, odd: bool) -> bytes:
    written = b""
    for start in range(0, len(body), size := random.choice((7, 40, 4096, 100_000))):
        piece = body[start : start + size]
        wrong = odd and random.random() < 0.1
        written += (
            (random.choice(SIZES) if wrong else b"%x" % len(piece)) + b"\r\n" + piece + b"\r\n"
        )
    trailer = random.choice((b"", b"X-Late: a\r\n", b"Content-Length: 9\r\n")) if odd else b""
    return written + b"0\r\n" + trailer + b"\r\n"


# Run

Request = tuple[str, bytes, bytes | None]
"""Method, path and body; None for a body that was cut off."""

FRAMING = re.compile(r"(?!Only).*(content-length|transfer-encoding|chunk)", re.IGNORECASE)
"""Reasons for a refusal that say where a request ends; but h11 knows no other coding than chunked,
of which several may be listed."""

ORIGIN = re.compile(rb"\Ahttps?://[^/]*")


class Socket:
    """What the protocol asks of a socket."""

    family = socket.AF_INET

    def getpeername(self) -> tuple[str, int]:
        return ("127.0.0.1", 9)

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", 80)

    def setsockopt(self, *option: object) -> None:
        """Do nothing."""


class Wire(asyncio.Transport):
    """A transport to nowhere; `sent` is what the protocol wrote."""

    def __init__(self) -> None:
        super().__init__({"socket": Socket()})
        self.sent = bytearray()
        self.over = self.said_all = False
        self.paused = False
        self.protocol: Any = None

    def write(self, data: Any) -> None:
        assert not self.said_all, "written after the end"
        if not self.over:
            self.sent += data

    def write_eof(self) -> None:
        self.said_all = True

    def close(self) -> None:
        if not self.over:
            self.over = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    abort = close

    def is_closing(self) -> bool:
        return self.over

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False


@dataclass
class Seen:
    """Notes the requests that the app is given, and how many of them do not wait for a client."""

    app: Any
    requests: list[Request] = field(default_factory=list)
    working: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        place, parts = len(self.requests), []
        self.requests.append((scope["method"], scope["raw_path"], None))

        async def note() -> Message:
            self.working -= 1
            try:
                message = await receive()
            finally:
                self.working += 1
            if message["type"] == "http.request":
                parts.append(message.get("body", b""))
                if not message.get("more_body"):
                    method, path, _ = self.requests[place]
                    self.requests[place] = (method, path, b"".join(parts))
            return message

        self.working += 1
        try:
            await self.app(scope, note, send)
        finally:
            self.working -= 1

    async def rest(self) -> None:
        """Wait until the app waits for clients only: a thread may be at work, in real time."""
        for _ in range(2000):
            if self.working <= 0:
                return
            await asyncio.sleep(0.001)


async def run(case: Case, worlds: Worlds, watch: Watch) -> list[str]:
    """Play a connection. Return what is wrong."""
    world = worlds.get(SPEC)
    world.upstream.play(Case("http", SPEC, "", "", stream=False, pieces=[PLAIN]))
    seen, state, wrong = Seen(world.app), ServerState(), []
    config = Config(seen, log_config=None, log_level="error", access_log=False, lifespan="off")
    config.load()
    wire = Wire()
    make_protocol: Any = protocol_factory(LimitSettings(client=TIMEOUT))
    wire.protocol = make_protocol(config=config, server_state=state, app_state={})
    try:
        await _play(case, wire, seen)
    except Exception as error:  # noqa: BLE001 -- whatever escapes is a finding
        wrong.append("exception: " + "".join(traceback.format_exception(error)))
    if not wire.over or state.tasks or state.connections:
        wrong.append(f"unending: closed {wire.over}, {len(state.tasks)} tasks")
    wire.close()
    await asyncio.sleep(0)
    wrong += watch.take()
    wrong += [f"left behind: {busy}" for busy in [world.busy()] if busy]
    data = "".join(case.pieces).encode("latin-1")
    return wrong or [*_judge_responses(bytes(wire.sent)), *_judge_requests(data, seen)]


async def _play(case: Case, wire: Wire, seen: Seen) -> None:
    """Feed the pieces, then let time pass until the connection is over."""
    wire.protocol.connection_made(wire)
    clock = Clock(asyncio.get_running_loop())
    try:
        for piece in case.pieces:
            for _ in range(200):
                if not wire.paused or wire.over:
                    break
                await asyncio.sleep(0)
            if wire.over:
                break
            wire.protocol.data_received(piece.encode("latin-1"))
            await asyncio.sleep(0)
        for _ in range(60):
            await asyncio.sleep(0)
        for _ in range(PATIENCE):
            await seen.rest()
            if wire.over:
                break
            await clock.advance(TIMEOUT / 10)
        for _ in range(60):
            await asyncio.sleep(0)
    finally:
        asyncio.get_running_loop().time = clock._time  # type: ignore[method-assign]


def _judge_responses(sent: bytes) -> Iterator[str]:
    """Yield what is wrong with the bytes of all responses."""
    while sent:
        head, found, rest = sent.partition(b"\r\n\r\n")
        line = re.match(rb"HTTP/1\.1 (\d{3}) [\w -]+\r\n", head + b"\r\n")
        if not found or not line:
            yield f"response: {sent[:200]!r}"
            return
        status = int(line[1])
        if status not in STATUSES and status != 100:
            yield f"status: {status} {rest[:200]!r}"
        if b"Traceback" in rest:
            yield f"traceback: {rest[:200]!r}"
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        if length is None and b"transfer-encoding" in head.lower():
            sent = re.sub(rb"\A(?:[1-9a-f][0-9a-f]*\r\n[^\x00]*?\r\n)*?0\r\n\r\n", b"", rest)
        elif length is None and b"\r\nconnection: close" in head.lower():
            return  # its body ends with the connection, as for HTTP/1.0
        else:
            body = int(length[1]) if length and not rest.startswith(b"HTTP/1.1 ") else 0
            sent = rest[body:] if status != 100 else rest


def _judge_requests(data: bytes, seen: Seen) -> Iterator[str]:
    """Yield where the app was given another request than a strict parser reads."""
    strict, refused = _read_strictly(data)
    for place, (ours, theirs) in enumerate(zip(seen.requests, strict, strict=False)):
        if "CONNECT" in (ours[0], theirs[0]):
            return  # what follows belongs to no request
        if ours[2] is not None and theirs[2] is not None and ours != theirs:
            name = "upgrade" if re.search(rb"(?i)\nupgrade:", data) else "differs"
            yield f"{name}: request {place} is {_short(ours)}, not {_short(theirs)}"
            return
    if len(seen.requests) > len(strict) + 1 and FRAMING.match(refused):
        yield f"smuggled: {len(seen.requests)} requests, not {len(strict)}: {refused}"


def _short(request: Request) -> str:
    return f"{request[0]} {request[1][:80]!r} {(request[2] or b'')[:120]!r}"


def _read_strictly(data: bytes) -> tuple[list[Request], str]:
    """Return the requests in some bytes as h11 reads them, up to the first that it refuses, and
    why it refuses that."""
    found: list[Request] = []
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=1 << 24)
    connection.receive_data(data)
    try:
        while True:
            event = connection.next_event()
            if event in (h11.NEED_DATA, h11.PAUSED) or isinstance(event, h11.ConnectionClosed):
                return found, ""
            if isinstance(event, h11.Request):
                target = ORIGIN.sub(b"", re.split(rb"[?#]", bytes(event.target))[0])
                found.append((event.method.decode(), target, None))
                body = b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                found[-1] = (*found[-1][:2], body)
                connection.send(h11.Response(status_code=200, headers=[("content-length", "0")]))
                connection.send(h11.EndOfMessage())
                connection.start_next_cycle()
    except h11.ProtocolError as error:
        return found, str(error)
