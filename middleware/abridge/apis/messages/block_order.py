"""Put the events of a stream into an order in which one block is open at a time.

Blocks that follow each other are Anthropic's order, but a sloppy upstream may let calls alternate.
What is not of the open call is queued until that is complete.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from io import StringIO
from typing import TypeAlias

from abridge.apis.json import as_object, parse_object, string
from abridge.core.conversation import Json

FramedEvent: TypeAlias = tuple[Json, bytes | None]
"""An event, and the frame in which it came."""

CALL_TYPES = ("tool_use", "server_tool_use", "mcp_tool_use")

BLOCK_EVENTS = ("content_block_start", "content_block_delta", "content_block_stop")


def ends_answer(event: Json) -> bool:
    """Return whether an event says why the answer stops, or that it does. Some servers report usage
    before, in a `message_delta` of its own."""
    kind = event.get("type")
    gives_reason = kind == "message_delta" and as_object(event.get("delta")).get("stop_reason")
    return bool(gives_reason) or kind == "message_stop"


class BlockOrder:
    """Order the events of one stream. At most `limit` bytes are queued, and as many characters of
    the open call are kept: past that, the call that others wait for is given up."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._room_left = limit
        self._open: object = None  # the index of the open call
        self._arguments = StringIO()
        self._last_fragment = ""
        self._queued: OrderedDict[int | None, list[FramedEvent]] = OrderedDict()  # by index

    @property
    def is_waiting(self) -> bool:
        """Return whether something waits for the open call, which is not whole."""
        return bool(self._queued)

    def passes(self, event: Json) -> bool:
        """Return whether `arrange` would yield just this event; then it is taken note of."""
        kind = event.get("type")
        if self._open is None:
            return kind != "content_block_start"
        is_next = kind == "content_block_delta" and event.get("index") == self._open
        if not is_next or self._queued:
            return False
        self.note_fragment(string(as_object(event.get("delta")).get("partial_json")))
        return True

    def arrange(self, event: Json, frame: bytes | None) -> Iterator[FramedEvent]:
        """Take an event; yield those whose turn it is. After an error nothing is: a call that may
        lack something is not to be stopped, since clients run what is."""
        if ends_answer(event):
            yield from self.rest()
            yield event, frame
            return
        if self._waits(event):
            self._queue(event, frame)
        else:
            yield event, frame
            self._note(event)
        while self._queued and (self._open is None or self._is_complete()):
            yield from self._release()

    def rest(self) -> Iterator[FramedEvent]:
        """Yield what is queued: no more of the open call will come."""
        while self._queued:
            yield from self._release()
        self._open = None

    def _waits(self, event: Json) -> bool:
        """Return whether an event is about another block than the open call, which is not whole."""
        is_other = event.get("type") in BLOCK_EVENTS and event.get("index") != self._open
        if self._open is None or not is_other:
            return False
        return bool(self._queued) or not self._is_complete()

    def _queue(self, event: Json, frame: bytes | None) -> None:
        index = event.get("index")
        key = index if isinstance(index, int) else None
        self._queued.setdefault(key, []).append((event, frame))
        self._room_left -= len(frame or b"")
        if self._room_left < 0:
            self._open = None

    def _release(self) -> Iterator[FramedEvent]:
        """Yield what is queued of the block that has waited longest."""
        self._open = None
        _, events = self._queued.popitem(last=False)
        for event, frame in events:
            self._room_left += len(frame or b"")
            yield event, frame
            self._note(event)

    def _note(self, event: Json) -> None:
        """Take note of a call that begins, goes on or ends; any other block ends it."""
        kind, index = event.get("type"), event.get("index")
        if kind == "content_block_start":
            is_call = as_object(event.get("content_block")).get("type") in CALL_TYPES
            self._open, self._arguments = index if is_call else None, StringIO()
            self._last_fragment = ""
        elif kind == "content_block_delta" and index == self._open:
            self.note_fragment(string(as_object(event.get("delta")).get("partial_json")))
        elif kind in BLOCK_EVENTS:
            self._open = None

    def note_fragment(self, fragment: str) -> None:
        """Take note of a fragment of the open call's arguments, if one is open."""
        if self._open is None:
            return
        self._arguments.write(fragment)
        self._last_fragment = fragment or self._last_fragment
        if self._arguments.tell() > self._limit:
            self._open = None

    def _is_complete(self) -> bool:
        """Return whether the open call has all its arguments.

        Parse them, which may be long, only after a fragment that can end an object, and once.
        """
        if not self._last_fragment.rstrip().endswith("}"):
            return False
        arguments = self._arguments.getvalue().encode(errors="surrogatepass")
        is_complete = parse_object(arguments) is not None
        self._last_fragment = self._last_fragment if is_complete else ""
        return is_complete
