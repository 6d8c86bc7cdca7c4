"""Answers that are not read: as they came, or an error in their place."""

from __future__ import annotations

from starlette.types import Message

from abridge.exchange.answers.answer import MALFORMED, REWRITTEN, Parts, json_start
from abridge.exchange.body import Inflater, header, without
from abridge.exchange.client import Client
from abridge.turn.events import Event, Trouble
from abridge.wire.codec import dumps, read_object
from abridge.wire.problem import problem

ERROR = ("error", "request_id")
"""What an error body says on any API."""


class Untouched:
    """Goes out as it came. A body that breaks off breaks off for the client, too."""

    def __init__(self, start: Message, client: Client) -> None:
        self._client = client
        self.passed = start["status"] < 400
        client.start(start)

    def feed(self, data: bytes) -> None:
        self._client.write(data)

    def end(self, trouble: Trouble | None = None) -> None:
        self.passed = self.passed and trouble is None
        self._client.close(complete=trouble is None)

    def emit(self, event: Event) -> None:
        """Nothing was read, so nothing is woven."""

    def beat(self) -> bytes:
        return b""


class Restated:
    """An error of upstream's, and no answer with it, in the shape in which the client's API gives
    errors."""

    def __init__(self, start: Message, parts: Parts) -> None:
        self._start = start
        self._parts = parts
        self._came = bytearray()
        self.passed = False

    def feed(self, data: bytes) -> None:
        if len(self._came) <= self._parts.limit:
            self._came += data

    def end(self, trouble: Trouble | None = None) -> None:  # noqa: ARG002 -- said so far
        body = self._said()
        length = (b"content-length", str(len(body)).encode())
        headers = [*without(self._start["headers"], REWRITTEN), length]
        self._parts.client.start({**self._start, "headers": headers})
        self._parts.client.write(body)
        self._parts.client.close()

    def emit(self, event: Event) -> None:
        """Nothing was read, so nothing is woven."""

    def beat(self) -> bytes:
        return b""

    def _said(self) -> bytes:
        restate = self._parts.problem or bytes
        encoding = header(self._start["headers"], b"content-encoding")
        try:
            inflate = Inflater(self._parts.limit).feed if encoding else bytes
            return _alone(restate(inflate(bytes(self._came))))
        except ValueError:
            return dumps(problem(MALFORMED.message, code=MALFORMED.code))


class Refused:
    """An error of Abridge's own in the answer's place: there is none, or none that can be shown,
    since raw reasoning is to be hidden and nobody can tell where it is."""

    passed = None

    def __init__(self, client: Client, trouble: Trouble = MALFORMED, status: int = 502) -> None:
        body = dumps(problem(trouble.message, code=trouble.code))
        client.start(json_start(status, body))
        client.write(body)
        client.close()

    def feed(self, data: bytes) -> None:
        """Not to be shown."""

    def end(self, trouble: Trouble | None = None) -> None:
        """All is said."""

    def emit(self, event: Event) -> None:
        """Not to be shown."""

    def beat(self) -> bytes:
        return b""


def _alone(body: bytes) -> bytes:
    """An error, without what stands beside it, or in it where it is another Abridge's, which may be
    an answer that is not for the client."""
    said = read_object(body) or {}
    if "error" not in said:
        return body
    alone = {name: said[name] for name in ERROR if name in said}
    if isinstance(alone["error"], dict):
        alone["error"] = {key: alone["error"][key] for key in alone["error"] if key != "response"}
    return body if alone == said else dumps(alone)
