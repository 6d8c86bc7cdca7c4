"""Answers that are one JSON body."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.types import Message

from abridge.exchange.answers.answer import MALFORMED, REWRITTEN, Answer, Parts
from abridge.exchange.answers.unread import Refused, Untouched
from abridge.exchange.body import without
from abridge.turn.events import Ended, Event, Trouble

TIMEOUT = "upstream_timeout"
"""`UpstreamBroken.code` where upstream fell silent."""

_log = logging.getLogger(__name__)


class Whole:
    """Buffer a JSON body and rewrite it at its end."""

    def __init__(self, start: Message, parts: Parts, inflate: Callable[[bytes], bytes]) -> None:
        self._start = start
        self._parts = parts
        self._inflate = inflate
        self._came = bytearray()
        self._instead: Answer | None = None

    def feed(self, data: bytes) -> None:
        if self._instead is not None:
            self._instead.feed(data)
            return
        self._came += data
        if len(self._came) > self._parts.limit:
            self._give_up()

    def end(self, trouble: Trouble | None = None) -> None:
        if self._instead is not None:
            self._instead.end(trouble)
        elif trouble is not None:
            status = 504 if trouble.code == TIMEOUT else 502
            self._instead = Refused(self._parts.client, trouble, status)
        else:
            self._weave()

    def emit(self, event: Event) -> None:
        if self._instead is not None:
            return
        if not isinstance(event, Ended):
            self._parts.writer.note(event)
            return
        body = self._written(event)
        if body is None:
            self._give_up(event.trouble)
            self._parts.client.close()
            return
        headers = [
            *without(self._start["headers"], REWRITTEN),
            (b"content-length", str(len(body)).encode()),
            *((key.encode(), value.encode()) for key, value in self._parts.describe(event).items()),
        ]
        status = self._start["status"] if event.trouble is None else 502
        self._parts.client.start({**self._start, "status": status, "headers": headers})
        self._parts.client.write(body)
        self._parts.client.close()

    @property
    def passed(self) -> bool | None:
        return self._instead.passed if self._instead is not None else None

    def beat(self) -> bytes:
        return b""

    def _weave(self) -> None:
        try:
            self._parts.loom.hear(self._parts.reader.whole(self._inflate(bytes(self._came))))
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            _log.warning("an answer could not be read: %s", type(error).__name__)
            self._give_up()
            self._parts.client.close()

    def _written(self, event: Ended) -> bytes | None:
        """Return the rewritten body, None where it could not be read or written."""
        try:
            return self._parts.writer.whole(event) if event.ok else None
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            _log.warning("an answer could not be written: %s", type(error).__name__)
            return None

    def _give_up(self, trouble: Trouble | None = None) -> None:
        """Replace an answer that cannot be read: pass it on as it came, or send an error where
        nothing unread may get through."""
        if self._parts.opaque:
            told = trouble if trouble is not None and trouble.message else MALFORMED
            self._instead = Refused(self._parts.client, told)
            return
        self._instead = Untouched(self._start, self._parts.client)
        self._instead.feed(bytes(self._came))
