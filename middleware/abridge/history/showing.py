"""Tracks the summaries shown in one answer, in the forms a client may return them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import accumulate

from abridge.history.shown import Owner, Shown
from abridge.turn.conversation import ItemKey
from abridge.turn.events import Ended, Event, Native, PartClosed, PartSaid, Raw

MOST_RAW = 700
"""Characters of reasoning compared with a summary: an extract of longer reasoning, without its
title, is shorter than the reasoning."""

BETWEEN = "\n\n"


class _Item:
    def __init__(self) -> None:
        self.raw = ""
        self.closed: list[str] = []
        self.said: list[str] = []


class _Lane:
    """Everything shown in one lane. `native` is true if upstream wrote some of it."""

    def __init__(self) -> None:
        self.parts: list[list[str]] = []
        self.native = False
        self._last: tuple[int, int] | None = None

    def say(self, item: int, part: int, text: str) -> None:
        if self._last != (item, part):
            self._last = item, part
            self.parts.append([])
        self.parts[-1].append(text)


class Showing:
    """Follows one answer and registers the summaries it shows.

    A client returns a summary's parts, or an item's whole summary as one text, or those of all
    items if it has one field for them; if it left mid-summary, as much as it had received. If
    `translated` is true, upstream's own summary is registered as well: a client of another API may
    have been shown it as reasoning.

    Upstream's own text, and an extract (`copied`), is registered for `owner` alone: its words are
    not Abridge's, another model may have written the same. Text equal to the item's reasoning is
    not registered.
    """

    def __init__(self, shown: Shown, owner: Owner, *, copied: bool, crossed: bool = False) -> None:
        self._shown = shown
        self._owner = owner
        self._copied = copied
        self._crossed = crossed
        self._items: defaultdict[ItemKey, _Item] = defaultdict(_Item)
        self._lanes: defaultdict[int, _Lane] = defaultdict(_Lane)

    def note(self, event: Event) -> None:
        """Take an event on its way to the client."""
        match event:
            case Raw():
                if self._copied and len((item := self._item(event)).raw) <= MOST_RAW:
                    item.raw += event.text
            case PartSaid():
                self._item(event).said.append(event.text)
                self._lane(event).say(event.item, event.index, event.text)
            case PartClosed():
                item = self._item(event)
                item.closed.append(event.text)
                item.said.clear()
                self._know(item, event.text, BETWEEN.join(item.closed))
            case Native() if self._crossed and event.text:
                self._lane(event).native = True
                self._lane(event).say(event.item, event.part, event.text)
            case Ended():
                for number, lane in self._lanes.items():
                    self._know_all(number, BETWEEN.join(map("".join, lane.parts)))

    def leave(self) -> None:
        """Register every prefix the client may have received: it left after an unknown delta."""
        for item in self._items.values():
            before = _before(item.closed)
            for said in accumulate(item.said):
                self._know(item, said, before + said)
        for number, lane in self._lanes.items():
            before = _before(map("".join, lane.parts[:-1]))
            for said in accumulate(lane.parts[-1]):
                self._know_all(number, before + said)

    def _item(self, event: Raw | PartSaid | PartClosed) -> _Item:
        return self._items[event.lane or 0, event.item]

    def _lane(self, event: PartSaid | Native) -> _Lane:
        return self._lanes[event.lane or 0]

    def _know(self, item: _Item, *texts: str) -> None:
        owner = self._owner if self._copied else None
        self._shown.add((text for text in texts if text.strip() != item.raw.strip()), owner)

    def _know_all(self, number: int, text: str) -> None:
        """Register everything a lane shows, as one text."""
        items = [item for (lane, _), item in self._items.items() if lane == number]
        if text.strip() != BETWEEN.join(item.raw.strip() for item in items):
            owned = self._copied or self._lanes[number].native
            self._shown.add([text], self._owner if owned else None)


def _before(texts: Iterable[str]) -> str:
    return "".join(f"{text}{BETWEEN}" for text in texts)
