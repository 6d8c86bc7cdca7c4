"""Put the fragments of an answer into an order in which one call is written after the other.

Fragments of several calls may alternate, but on Responses and Messages one item or block is open at
a time: what is not of the open call is queued until that is complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from io import StringIO

from abridge.apis.json import parse_object
from abridge.core.events import ContentDelta, ToolCallDelta


class CallOrder:
    """Order the pieces of one answer."""

    def __init__(self) -> None:
        self._open_call: _OpenCall | None = None
        self._queued: list[ContentDelta] = []
        self._next_call = 0

    def arrange(self, *events: ContentDelta) -> Iterator[ContentDelta]:
        """Take pieces; yield those whose turn it is. A call is done as another piece follows it."""
        queue = deque(events)
        while queue:
            event = queue.popleft()
            call = self._open_call
            if (
                call is not None
                and isinstance(event, ToolCallDelta)
                and event.call_index == call.number
            ):
                call.add(event.arguments)
                yield event
                if self._queued and call.is_complete:
                    self._open_call = None
                    queue.extendleft(reversed(self._take_queued()))
            elif call is not None and (self._queued or not call.is_complete):
                self._queued.append(event)
            else:
                yield from self._begin(event)

    def rest(self) -> Iterator[ContentDelta]:
        """Yield what is queued: no more of the open call will come."""
        while self._queued:
            self._open_call = None
            yield from self.arrange(*self._take_queued())
        self._open_call = None

    def _begin(self, event: ContentDelta) -> Iterator[ContentDelta]:
        self._open_call = None
        if isinstance(event, ToolCallDelta):
            if event.call_index < self._next_call:
                return  # of a call that is already complete
            self._next_call = event.call_index + 1
            self._open_call = _OpenCall(event)
        yield event

    def _take_queued(self) -> list[ContentDelta]:
        queued, self._queued = self._queued, []
        return queued


class _OpenCall:
    def __init__(self, event: ToolCallDelta) -> None:
        self.number = event.call_index
        self._is_custom = event.custom
        self._arguments = StringIO()
        self._last_fragment = ""
        self.add(event.arguments)

    def add(self, arguments: str) -> None:
        self._arguments.write(arguments)
        self._last_fragment = arguments or self._last_fragment

    @property
    def is_complete(self) -> bool:
        """Return whether the arguments are complete JSON. Free text never counts as complete.

        Parse them only if the last fragment can end an object, since they may be long.
        """
        if self._is_custom or not self._last_fragment.rstrip().endswith("}"):
            return False
        text = self._arguments.getvalue()
        return parse_object(text.encode(errors="surrogatepass")) is not None
