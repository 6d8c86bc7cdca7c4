"""ASGI requests and responses: paths, headers and content encodings."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Self
from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from abridge.waiting import Flag

PATH_SAFE = "/:@!$&'()*+,;="  # characters that need no percent-encoding in a path

ASCII = bytes(range(128))

GZIP_OR_ZLIB = 47  # zlib's window bits that take either header

RAW_DEFLATE = -15  # zlib's window bits for data without a header

SLICE = 16 << 10  # bytes inflated at once: what follows a gzip member is copied

EVENT_STREAM = b"text/event-stream"

JSON = b"application/json"

TRAILERS = "http.response.trailers"

BYPASSING_EXTENSIONS = ("http.response.pathsend", "http.response.zerocopysend", TRAILERS)
"""ASGI extensions that send a response past the code that reads it."""

CLOSING = "abridge.closing"
"""Scope key of an `asyncio.Event` that a server sets when it is about to close its connections, as
Abridge's own does with WebSockets. Without it, the server's own close is taken for the client's."""

FRAMING_HEADERS = (b"content-length", b"transfer-encoding")
"""Headers that say where a body ends."""

BODY_HEADERS = (
    *FRAMING_HEADERS,
    *(b"content-encoding", b"content-range", b"etag"),
    *(b"content-md5", b"digest", b"content-digest", b"repr-digest"),
    *(b"signature", b"signature-input"),
)
"""Headers that frame, describe or sign the original bytes of a body that is rewritten."""


_CONTROLS = bytes({*range(0x20), 0x7F} - {0x09})
"""Bytes that no value of a header may have."""

_SEPARATORS = _CONTROLS + b'\t ()<>@,;:[]={}\\"'
"""Bytes that no name of a header may have."""

_BAD_IN_VALUES, _BAD_IN_NAMES = (
    bytes(byte in bad for byte in range(256)) for bad in (_CONTROLS, _SEPARATORS)
)
"""Tables that turn such bytes into 1, and all others into 0."""


def can_be_written(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Return whether a client reads each of these headers as one, with its name."""
    names = [name for name, _ in headers]
    return (
        all(names)
        and 1 not in b"".join(names).translate(_BAD_IN_NAMES)
        and 1 not in b"".join([value for _, value in headers]).translate(_BAD_IN_VALUES)
    )


def decoded_path(scope: Scope) -> str:
    """Return the path below the mount point, percent-decoded."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(f"{root}/") else path


def encoded_path(scope: Scope) -> bytes:
    """Return the path below the mount point, percent-encoded as the client encoded it.

    `raw_path` is optional in ASGI, and some applications rewrite `path` without it: if the two
    disagree, `path` decides.
    """
    path, root = scope["path"], scope.get("root_path", "")
    raw: bytes | None = scope.get("raw_path")
    if raw is not None and not root and b"%" not in raw and raw.decode("latin-1") == path:
        return raw
    if raw is None or unquote(raw.decode("latin-1")) != path:
        raw = quote(path, PATH_SAFE).encode()
    start = 0
    if path == root or path.startswith(f"{root}/"):
        for _ in root.encode():
            start += 3 if raw[start : start + 1] == b"%" else 1
    return raw[start:]


def request_paths(scope: Scope) -> tuple[str, str]:
    """Return the path below the mount point, decoded and as the client wrote it."""
    return decoded_path(scope), encoded_path(scope).decode("latin-1")


def quote_non_ascii(data: bytes) -> str:
    """Percent-encode the bytes of a path or a query that no URL may have."""
    return quote(data, ASCII)


class Inflater:
    """Decompress gzip or deflate incrementally; raises ValueError on invalid data.

    One member may follow another, as gzip has it; zeros after one are padding. Deflate may lack
    its zlib header. `limit` bounds the output of one call in bytes, against decompression bombs.
    """

    def __init__(self, encoding: bytes, limit: int) -> None:
        self._encoding = encoding
        self._limit = limit
        self._member: zlib._Decompress | None = None  # the one being read

    def feed(self, data: bytes) -> bytes:
        decoded = bytearray()
        try:
            for start in range(0, len(data), SLICE):
                self._inflate(data[start : start + SLICE], decoded)
        except zlib.error as error:
            raise ValueError(str(error)) from None
        return bytes(decoded)

    def _inflate(self, data: bytes, decoded: bytearray) -> None:
        """Append to `decoded` what `data` unpacks to."""
        while data := self._skip_padding(data):
            if self._member is None or self._member.eof:
                self._member = self._new_member(data[0])
            decoded += self._member.decompress(data, self._limit + 1 - len(decoded))
            if len(decoded) > self._limit:
                raise ValueError(f"it unpacks to more than {self._limit} bytes")
            data = self._member.unused_data

    def _skip_padding(self, data: bytes) -> bytes:
        return data if self._member is None or not self._member.eof else data.lstrip(b"\0")

    def _new_member(self, first_byte: int) -> zlib._Decompress:
        is_raw = self._encoding == b"deflate" and first_byte & 0x0F != zlib.DEFLATED
        return zlib.decompressobj(RAW_DEFLATE if is_raw else GZIP_OR_ZLIB)


def can_decode(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether a body is not encoded, or in a way that `decoder_for` knows."""
    return content_encoding(headers) in (b"", b"gzip", b"x-gzip", b"deflate")


def decoder_for(headers: Iterable[tuple[bytes, bytes]], limit: int) -> Callable[[bytes], bytes]:
    """Return what undoes the content encoding of a body, piece by piece. See `Inflater`."""
    encoding = content_encoding(headers)
    return Inflater(encoding, limit).feed if encoding else bytes


def content_encoding(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return how a body is encoded, in small letters; nothing if it is not, as some servers say so
    that nobody compresses a stream."""
    given = b",".join([value for name, value in headers if name.lower() == b"content-encoding"])
    codings = [coding.strip() for coding in given.lower().split(b",")] if given else []
    return b",".join(coding for coding in codings if coding not in (b"", b"identity", b"none"))


def get_header(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Return the first header with this lower-case name, or `b""`."""
    size = len(name)
    for key, value in headers:
        if len(key) == size and key.lower() == name:
            return value
    return b""


def media_type(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return what a body is, in small letters and without parameters."""
    return get_header(headers, b"content-type").split(b";")[0].strip().lower()


def is_json_by_type(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    kind = media_type(headers)
    return kind == JSON or kind.endswith(b"+json")


def with_type(headers: list[tuple[bytes, bytes]], kind: bytes) -> list[tuple[bytes, bytes]]:
    """Return headers that give a body another type."""
    return [*drop_headers(headers, (b"content-type",)), (b"content-type", kind)]


def drop_headers(
    headers: Iterable[tuple[bytes, bytes]], names: Iterable[bytes]
) -> list[tuple[bytes, bytes]]:
    dropped = frozenset(names)
    return [header for header in headers if header[0].lower() not in dropped]


def with_header_list(start: Message) -> Message:
    """Return a start message with its headers as a list: ASGI allows any iterable, and none."""
    return {**start, "headers": list(start.get("headers") or ())}


def scope_for_body(scope: Scope, body: bytes, dropped: Iterable[bytes] = BODY_HEADERS) -> Scope:
    """Return the scope of a request with another body, or with its own in one piece. `dropped` are
    the headers that no longer hold."""
    length = (b"content-length", str(len(body)).encode())
    return {**scope, "headers": [*drop_headers(scope["headers"], dropped), length]}


def scope_of_read_answer(scope: Scope) -> Scope:
    """Return the scope of a request the answer to which is read: nothing in it lets that go out
    unread or compressed."""
    read = {**scope, "headers": drop_headers(scope["headers"], (b"accept-encoding",))}
    if extensions := scope.get("extensions"):
        kept = {key: extensions[key] for key in extensions if key not in BYPASSING_EXTENSIONS}
        read["extensions"] = kept
    return read


def adding_headers(headers: Iterable[tuple[bytes, bytes]], send: Send) -> Send:
    """Return a `send` that adds these headers to a response."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*(message.get("headers") or ()), *headers]}
        await send(message)

    return send_with_headers


def answering_upgrade(scope: Scope, send: Send) -> Send:
    """Return a `send` that answers a request to upgrade with the messages of an HTTP response.

    Where the server takes none (ASGI's "WebSocket denial response"), it closes the connection
    before that is accepted, which the server tells the client with a 403.
    """
    takes_response = "websocket.http.response" in (scope.get("extensions") or {})

    async def send_denial(message: Message) -> None:
        if takes_response:
            await send({**message, "type": f"websocket.{message['type']}"})
        elif message["type"] == "http.response.start":
            await send({"type": "websocket.close"})

    return send_denial


def without_trailers(start: Message) -> Message:
    """Return the start message of an answer whose trailers will not pass, its headers as a list."""
    kept = {key: start[key] for key in start if key != "trailers"}
    return {**kept, "headers": drop_headers(start.get("headers") or (), (b"trailer",))}


def content_length(scope: Scope) -> int:
    """Return the Content-Length, 0 if there is none."""
    value = get_header(scope["headers"], b"content-length")
    return int(value) if value.isdigit() else 0


class AppReceive:
    """The application's `receive`: the request, then that the client has left or the response is
    complete. It offers a call if the client leaves: see `call_on_leave`."""

    def __init__(self, body: bytes | None = None) -> None:
        self.body = body  # not received yet
        self._over = Flag()
        self._has_left = False
        self._on_leave: Callable[[], object] | None = None

    async def __call__(self) -> Message:
        if self.body is not None:
            body, self.body = self.body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._over.wait()
        return {"type": "http.disconnect"}

    def call_on_leave(self, callback: Callable[[], object]) -> bool:
        self._on_leave = callback
        if self._has_left:
            self.leave()
        return True

    def end(self) -> None:
        """Tell the application that the response is complete."""
        self._over.set()
        self._on_leave = None

    def leave(self) -> None:
        """Tell the application that the client has left."""
        callback, self._has_left = self._on_leave, True
        self.end()
        if callback is not None:
            callback()


class ReceiveUntil:
    """A `receive` that also yields `http.disconnect` once `ended` is set. Leave it at the end.

    A call that is cancelled leaves what it awaited to the next one: an application may poll, as
    Starlette's `is_disconnected` does, which cancels each call that has to wait. What `receive` has
    already, as a `BufferedBody` has the body, is not awaited.
    """

    __slots__ = ("_ended", "_receive", "_receiving", "call_on_leave")

    def __init__(self, ended: Flag, receive: Receive) -> None:
        self._ended = ended
        self._receive = receive
        self._receiving: asyncio.Future[Message] | None = None
        self.call_on_leave = getattr(receive, "call_on_leave", None)

    async def __aenter__(self) -> Self:
        return self

    async def __call__(self) -> Message:
        offer: Callable[[], Message | None] | None = getattr(self._receive, "receive_at_once", None)
        if self._receiving is None and offer is not None and (message := offer()) is not None:
            return message
        awaited = self._receiving = self._receiving or asyncio.ensure_future(self._receive())
        if not (awaited.done() or self._ended.is_set()):
            ending = self._ended.wait()
            try:
                await asyncio.wait((awaited, ending), return_when=asyncio.FIRST_COMPLETED)
            finally:
                ending.cancel()
        if not awaited.done():
            return {"type": "http.disconnect"}
        self._receiving = None
        return awaited.result()

    async def __aexit__(self, *_: object) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait((self._receiving,))


async def run_lifespan(
    app: ASGIApp, scope: Scope, receive: Receive, send: Send, close: Callable[[], Awaitable[object]]
) -> None:
    """Run an application's lifespan, and call `close` before its shutdown is reported, or at its
    end, if it reports none. Some servers, such as hypercorn, cancel what goes on after the report.
    """
    closed = False

    async def close_and_send(message: Message) -> None:
        nonlocal closed
        if message["type"].startswith("lifespan.shutdown.") and not closed:
            closed = True
            await close()
        await send(message)

    try:
        await app(scope, receive, close_and_send)
    finally:
        if not closed:
            await close()


def call_on_leave(receive: Receive, callback: Callable[[], object]) -> bool:
    """Have `callback` called if the client leaves before its response is complete, instead of the
    one before.

    Returns False if this `receive` does not offer that: only the one of Abridge's own server does.
    """
    offer = getattr(receive, "call_on_leave", None)
    return offer is not None and offer(callback)


def find_write_at_once(send: Send) -> Callable[[bytes], bool] | None:
    """Return what sends a piece of a body that has begun without awaiting, or returns False if only
    `send` can, since the client is slow or has left.

    None if this `send` does not offer that. It does if it is a method of an object that also has
    this one: of Abridge's own server, an `Exchange`, a `Trial` whose answer passes.
    """
    return getattr(getattr(send, "__self__", None), "write_at_once", None)


def json_start(status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> Message:
    """Return the start message of a JSON response made by Abridge."""
    described = [
        (b"content-type", JSON),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    return {"type": "http.response.start", "status": status, "headers": described}


async def send_json(send: Send, body: bytes) -> None:
    """Send a JSON response made by Abridge."""
    await send_whole(send, json_start(200, body), body)


async def send_whole(send: Send, start: Message, body: bytes) -> None:
    """Send a response whose body is at hand; at once if `send` offers that, as it may offer
    `write_at_once`."""
    offer: Callable[[Message, bytes], Awaitable[None]] | None
    offer = getattr(getattr(send, "__self__", None), "send_whole", None)
    if offer is not None:
        await offer(start, body)
    else:
        await send(start)
        await send({"type": "http.response.body", "body": body, "more_body": False})
