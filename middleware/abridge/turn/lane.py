"""A lane: the whole output on Responses, one choice on Chat Completions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from abridge.turn.events import Closed, Event, Native
from abridge.turn.item import Item
from abridge.turn.part import Part


@dataclass(slots=True)
class Lane:
    grace: float  # seconds that the lane may still wait
    queue: deque[Event] = field(default_factory=deque)
    """Events that have arrived and are not emitted yet."""
    items: dict[int, Item] = field(default_factory=dict)
    speaker: Item | None = None
    """The item between its ReasoningStarted and ReasoningEnded, as emitted."""
    held_since: float | None = None  # start of the present hold
    held_for: float = 0.0  # seconds of all holds that are over

    def waits_for(self) -> list[Part]:
        """Return the parts that keep the head of the queue from being emitted."""
        head = self.queue[0] if self.queue else None
        if isinstance(head, Closed):
            return list(self.items[head.item].due())
        if isinstance(head, Native):
            return [part for part in self.items[head.item].parts if part.speaking]
        return []

    def moments(self, first_token: float) -> Iterator[float]:
        """Yield the times at which waiting ends: for the hold, and for each part without text."""
        if self.held_since is not None:
            yield self.held_since + self.grace
            for part in self.waits_for():
                if part.silent and part.asked_at is not None:
                    yield max(self.held_since, part.asked_at) + first_token

    def release(self, waited: float) -> None:
        """End the hold, which has lasted for `seconds`."""
        self.held_for += waited
        self.grace -= waited
        self.held_since = None
