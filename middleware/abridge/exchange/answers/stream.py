"""Answers that stream."""

from __future__ import annotations

import logging
from collections.abc import Callable

from starlette.types import Message

from abridge.errors import EventTooLarge
from abridge.exchange.answers.answer import REWRITTEN, Parts
from abridge.exchange.body import without
from abridge.turn.events import Event, Other, Trouble
from abridge.wire import sse

ALIVE = sse.comment("keep-alive")
BEATS = 3
"""Every so many keep-alives, one is an event: some clients ignore comments."""

_log = logging.getLogger(__name__)


class Stream:
    """Rewrite server-sent events as they come."""

    passed = None

    def __init__(self, start: Message, parts: Parts, inflate: Callable[[bytes], bytes]) -> None:
        self._parts = parts
        self._client, self._loom = parts.client, parts.loom
        self._inflate = inflate
        self._decoder = sse.Decoder(parts.limit)
        self._over = False
        self._unseen = False
        self._beats = 0
        self._client.start({**start, "headers": without(start["headers"], REWRITTEN)})

    def feed(self, data: bytes) -> None:
        if self._over:
            return
        try:
            frames = self._decoder.feed(self._inflate(data))
        except (ValueError, EventTooLarge) as error:
            _log.warning("what upstream sent could not be read: %s", error)
            self.end(Trouble("upstream_error", f"What upstream sent could not be read: {error}"))
            return
        for frame in frames:
            self._read(frame)

    def end(self, trouble: Trouble | None = None) -> None:
        if self._over:
            return
        if trouble is None:
            for frame in self._decoder.end():
                self._read(frame)
        self._over = True
        self._loom.hear(self._parts.reader.end(trouble))
        self._close_when_done()

    def emit(self, event: Event) -> None:
        data = self._parts.writer.write(event)
        self._client.write(data)
        self._unseen = not data
        self._beats = 0 if data else self._beats
        self._close_when_done()

    def beat(self) -> bytes:
        if not (self._unseen or self._loom.weaver.holding):
            return b""
        self._beats += 1
        event = b"" if self._beats % BEATS else self._parts.writer.beat()
        return event or ALIVE

    def _read(self, frame: bytes) -> None:
        """Handle one frame, and remember if upstream sent something of which nothing reaches the
        client.

        Then a keep-alive is due in its place.
        """
        comment = frame.startswith(b":") and sse.data(frame) is None
        if comment and not self._parts.opaque:
            self._client.write(frame)
            return
        events = [] if comment else self._events(frame)
        self._unseen = self._unseen or not events
        self._loom.hear(events)

    def _events(self, frame: bytes) -> list[Event]:
        """Parse a frame; an error in the Reader costs no more than this frame."""
        try:
            return self._parts.reader.read(frame)
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            _log.warning("a frame could not be read: %s", type(error).__name__)
            return [] if self._parts.opaque else [Other(None, frame)]

    def _close_when_done(self) -> None:
        if self._over and self._loom.weaver.done:
            self._client.close()
