"""Put the events of an answer into an order in which one call is written after the other.

Fragments of several calls may alternate, and reasoning may come between them, but on Responses and
Messages one item or block is open at a time: what is not of the open call is queued until that is
complete.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from io import StringIO

from abridge.apis.json import parse_object
from abridge.core.events import Event, ToolCallDelta


class CallOrder:
    """Order the events of one answer."""

    def __init__(self) -> None:
        self._open_call: _OpenCall | None = None
        self._queued: OrderedDict[int, list[Event]] = OrderedDict()
        """By the number of their call; a run of others has a negative one."""
        self._runs = 0
        self.lost_arguments = False  # of a call that was already complete
        self._next_call = 0

    def arrange(self, event: Event) -> Iterable[Event]:
        """Take an event; return those whose turn it is. A call is done as another one follows."""
        if self._open_call is None and not isinstance(event, ToolCallDelta):
            return (event,)  # nothing is queued, since only an open call has others wait
        return self._arrange(event)

    def _arrange(self, event: Event) -> Iterator[Event]:
        if self._waits(event):
            self._queue(event)
        else:
            yield from self._place(event)
        while self._queued and (self._open_call is None or self._open_call.is_complete()):
            yield from self._release()

    def add_arguments(self, event: ToolCallDelta) -> bool:
        """Take a piece of the open call, if nothing waits for that; return whether it was taken."""
        call = self._open_call
        if call is None or self._queued or not call.has(event):
            return False
        call.add(event.arguments)
        return True

    def rest(self) -> Iterator[Event]:
        """Yield what is queued: no more of the open call will come."""
        while self._queued:
            yield from self._release()
        self._open_call = None

    def _waits(self, event: Event) -> bool:
        call = self._open_call
        if call is None or call.has(event):
            return False
        return bool(self._queued) or not call.is_complete()

    def _queue(self, event: Event) -> None:
        if isinstance(event, ToolCallDelta):
            number = event.call_index
        else:
            self._runs += next(reversed(self._queued), 0) >= 0
            number = -self._runs
        self._queued.setdefault(number, []).append(event)

    def _release(self) -> Iterator[Event]:
        """Yield what is queued of the call, or the run, that has waited longest."""
        self._open_call = None
        _, events = self._queued.popitem(last=False)
        for event in events:
            yield from self._place(event)

    def _place(self, event: Event) -> Iterator[Event]:
        """Yield an event, unless it is of a call that is already complete."""
        call = self._open_call
        if isinstance(event, ToolCallDelta):
            if call is not None and call.has(event):
                call.add(event.arguments)
            elif event.call_index < self._next_call:
                lost = event.arguments if event.custom else event.arguments.strip()
                self.lost_arguments = self.lost_arguments or bool(lost)
                return
            else:
                self._next_call, self._open_call = event.call_index + 1, _OpenCall(event)
        else:
            self._open_call = None
        yield event


class _OpenCall:
    def __init__(self, event: ToolCallDelta) -> None:
        self._number = event.call_index
        self._is_custom = event.custom
        self._arguments = StringIO()
        self._last_fragment = ""
        self.add(event.arguments)

    def has(self, event: Event) -> bool:
        """Return whether an event is of this call."""
        return isinstance(event, ToolCallDelta) and event.call_index == self._number

    def add(self, arguments: str) -> None:
        self._arguments.write(arguments)
        self._last_fragment = arguments or self._last_fragment

    def is_complete(self) -> bool:
        """Return whether the arguments are complete JSON. Free text never counts as complete.

        Parse them, which may be long, only after a fragment that can end an object, and once.
        """
        if self._is_custom or not self._last_fragment.rstrip().endswith("}"):
            return False
        is_complete = is_whole(self._arguments.getvalue())
        self._last_fragment = self._last_fragment if is_complete else ""
        return is_complete


def is_whole(arguments: str) -> bool:
    """Return whether arguments are complete JSON."""
    return parse_object(arguments.encode(errors="surrogatepass")) is not None
