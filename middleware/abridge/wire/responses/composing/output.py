"""Write the items of a translated response, one after the other.

One item is open at a time, and every event belongs to it or closes it. Fragments of several calls
may alternate, but items cannot: what is not of the open call is queued until that is complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from abridge.turn.conversation import ItemKey
from abridge.turn.events import (
    Called,
    Closed,
    Event,
    Native,
    PartClosed,
    PartOpened,
    PartSaid,
    Raw,
    Said,
    Sealed,
)
from abridge.turn.question import Tool
from abridge.wire.codec import Json
from abridge.wire.display import Display
from abridge.wire.mint import Mint
from abridge.wire.responses.composing.call import ComposedCall
from abridge.wire.responses.composing.item import Composed, Status
from abridge.wire.responses.composing.message import ComposedMessage
from abridge.wire.responses.composing.reasoning import ComposedReasoning
from abridge.wire.responses.spoken import Spoken


class ComposedOutput:
    """Writes the items of one response. `tools` are those offered to upstream, by name."""

    def __init__(self, display: Display, tools: Mapping[str, Tool], mint: Mint) -> None:
        self.items: list[Json] = []  # those that are done
        self._display = display
        self._tools = tools
        self._mint = mint
        self._open: Composed | None = None
        self._waiting: list[Said] = []
        self._calls = 0
        self._troubled: set[ItemKey] = set()

    # Reasoning

    def begin(self) -> Spoken:
        """Start a stretch of reasoning."""
        yield from self.let_go()
        yield from self._add(self._reasoning())

    def think(self, event: Event) -> Spoken:
        """Write an event of the open reasoning item."""
        item = self._open
        if not isinstance(item, ComposedReasoning):
            return
        match event:
            case Raw():
                yield from item.think(event.text)
            case PartOpened() | PartSaid() | PartClosed():
                yield from item.summarize(event)
            case Native():
                yield from item.tell(event)
            case Sealed():
                item.seal(event)

    def close(self, event: Closed) -> Spoken:
        """End a stretch. Opaque state beyond what one item can hold goes in items of its own."""
        key = event.lane or 0, event.item
        trouble = event.summary.trouble
        item = self._open if isinstance(self._open, ComposedReasoning) else None
        if item is not None and key not in self._troubled:
            item.trouble = trouble
            self._troubled |= {key} if trouble is not None else set()
        yield from self._finish()
        for state in item.left if item is not None else ():
            yield from self._add(self._reasoning(state))
            yield from self._finish()

    # The answer

    def answer(self, *events: Said) -> Spoken:
        queue = deque(events)
        while queue:
            event = queue.popleft()
            call = self._open if isinstance(self._open, ComposedCall) else None
            if call is not None and isinstance(event, Called) and event.call == call.number:
                yield from call.say(event.arguments)
                if self._waiting and call.whole:
                    yield from self._finish()
                    queue.extendleft(reversed(self._take_waiting()))
            elif call is not None and (self._waiting or not call.whole):
                self._waiting.append(event)
            else:
                yield from self._go_on(event)

    def _go_on(self, event: Said) -> Spoken:
        """Write an event into the open message, or into a new item."""
        if isinstance(event, Called):
            if event.call < self._calls:
                return  # of a call that is already complete
            self._calls = event.call + 1
            yield from self._finish()
            tool = self._tools.get(event.name)
            call = ComposedCall(event, tool, len(self.items), self._mint)
            yield from self._add(call)
            yield from call.say(event.arguments)
            return
        message = self._open
        if not isinstance(message, ComposedMessage) or message.number != event.message:
            yield from self._finish()
            message = ComposedMessage(self._mint("msg_"), len(self.items), event.message)
            yield from self._add(message)
        yield from message.say(event)

    def _take_waiting(self) -> list[Said]:
        waiting, self._waiting = self._waiting, []
        return waiting

    def let_go(self, status: Status = "completed") -> Spoken:
        """Finish the open item, and everything that is queued behind it."""
        while self._waiting:
            yield from self._finish()
            yield from self.answer(*self._take_waiting())
        yield from self._finish(status)

    # Items

    def _reasoning(self, sealed: str | None = None) -> ComposedReasoning:
        return ComposedReasoning(self._mint("rs_"), len(self.items), self._display, sealed)

    def _add(self, item: Composed) -> Spoken:
        self._open = item
        if not item.late:
            yield "response.output_item.added", {"output_index": item.index, "item": item.added()}

    def _finish(self, status: Status = "completed") -> Spoken:
        item, self._open = self._open, None
        if item is None:
            return
        at = {"output_index": item.index}
        if item.late:
            yield "response.output_item.added", {**at, "item": item.added()}
        yield from item.end()
        done = item.done(status)
        self.items.append(done)
        yield "response.output_item.done", {**at, "item": done}
