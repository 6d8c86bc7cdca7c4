"""Answers that are not read: passed on as they came, or replaced by an error."""

from __future__ import annotations

from starlette.types import Message

from abridge.exchange.answers.answer import MALFORMED, REWRITTEN, Parts, json_start
from abridge.exchange.body import Inflater, header, without
from abridge.exchange.client import Client
from abridge.turn.events import Event, Trouble
from abridge.wire.codec import dumps, read_object
from abridge.wire.problem import problem

ERROR = ("error", "request_id")
"""Fields of an error body on any API."""


class Untouched:
    """Pass the response on as it came. If it breaks off, so does the client's."""

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
        """Ignore the event: nothing was read."""

    def beat(self) -> bytes:
        return b""


class Restated:
    """Translate upstream's error response to the error shape of the client's API."""

    def __init__(self, start: Message, parts: Parts) -> None:
        self._start = start
        self._parts = parts
        self._came = bytearray()
        self.passed = False

    def feed(self, data: bytes) -> None:
        if len(self._came) <= self._parts.limit:
            self._came += data

    def end(self, trouble: Trouble | None = None) -> None:  # noqa: ARG002 -- sends what it has
        body = self._said()
        length = (b"content-length", str(len(body)).encode())
        headers = [*without(self._start["headers"], REWRITTEN), length]
        self._parts.client.start({**self._start, "headers": headers})
        self._parts.client.write(body)
        self._parts.client.close()

    def emit(self, event: Event) -> None:
        """Ignore the event: nothing was read."""

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
    """Send an error of Abridge's in place of the answer.

    Used where there is no answer, or one that cannot be read while raw reasoning must be hidden.
    """

    passed = None

    def __init__(self, client: Client, trouble: Trouble = MALFORMED, status: int = 502) -> None:
        body = dumps(problem(trouble.message, code=trouble.code))
        client.start(json_start(status, body))
        client.write(body)
        client.close()

    def feed(self, data: bytes) -> None:
        """Discard it."""

    def end(self, trouble: Trouble | None = None) -> None:
        """Do nothing: the response is complete."""

    def emit(self, event: Event) -> None:
        """Discard it."""

    def beat(self) -> bytes:
        return b""


def _alone(body: bytes) -> bytes:
    """Strip an error body to its error.

    What stands beside it, or within it in the error of another Abridge, may be an answer that is
    not for the client.
    """
    said = read_object(body) or {}
    if "error" not in said:
        return body
    alone = {name: said[name] for name in ERROR if name in said}
    if isinstance(alone["error"], dict):
        alone["error"] = {key: alone["error"][key] for key in alone["error"] if key != "response"}
    return body if alone == said else dumps(alone)
