"""The interface of all kinds of answers, and what they are made with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from starlette.types import Message

from abridge.exchange.client import Client
from abridge.exchange.loom import Loom
from abridge.turn.events import Ended, Event, Trouble
from abridge.wire.api import Reader, Writer

REWRITTEN = (
    b"content-length",
    b"content-encoding",
    b"etag",
    b"content-md5",
    b"digest",
    b"content-digest",
    b"repr-digest",
)
"""Headers that describe the original bytes of a body that is rewritten."""

MALFORMED = Trouble("upstream_error", "What upstream answered could not be read.")


class Answer(Protocol):
    """One response on its way from the application to the client.

    `passed_ok` is None if the response was read; else it tells whether the status that was passed
    on is a success.
    """

    @property
    def passed(self) -> bool | None: ...

    def feed(self, data: bytes) -> None:
        """Take more of the body."""

    def end(self, trouble: Trouble | None = None) -> None:
        """End the body; `error` says why it broke off."""

    def emit(self, event: Event) -> None:
        """Take the next event, in the client's order."""

    def beat(self) -> bytes:
        """Return a keep-alive if one is due, else nothing."""


@dataclass(slots=True)
class Parts:
    """Collaborators of an answer."""

    client: Client
    loom: Loom
    reader: Reader
    writer: Writer
    opaque: bool  # nothing unread may get through
    problem: Callable[[bytes], bytes] | None  # translates an error body, if upstream's API differs
    limit: int  # bytes of one event, or of a whole body
    describe: Callable[[Ended], Mapping[str, str]]  # headers about the summary


def json_start(status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = ()) -> Message:
    """Return the start message of a JSON response made by Abridge."""
    described = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    return {"type": "http.response.start", "status": status, "headers": described}
