"""The output items of a response, in the order in which they were added.

An item keeps the id it was added with, whatever upstream calls it later (GitHub Copilot changes the
id from event to event). Where an event's id is unknown, its `output_index` finds the item. An item
gets a new id if it has none (llama.cpp's calls) or another item's (messages of older vLLM have the
id of their reasoning item).
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

from abridge.wire.codec import Json, string
from abridge.wire.mint import mint
from abridge.wire.responses.frames import Make, frame_of
from abridge.wire.responses.item import Item

PREFIXES = {"reasoning": "rs_", "message": "msg_", "function_call": "fc_"}


class Output:
    """The items of one response, of which at most `limit` characters are stored."""

    def __init__(self, limit: int, make: Make = frame_of) -> None:
        self._room = limit
        self._make = make
        self._items: dict[int, Item] = {}
        self._places: dict[int, Item] = {}  # by upstream's `output_index`
        self._known: dict[str, Item] = {}  # by every id in use

    def take(self, size: int) -> bool:
        """Reserve so many characters; return whether as many were left."""
        if size > self._room:
            return False
        self._room -= size
        return True

    def has(self, added: Json, index: Any) -> bool:
        """Return whether this item was added before."""
        given, kind = string(added.get("id")), string(added.get("type"))
        item = self.find("", index) if isinstance(index, int) else self._known.get(given)
        return item is not None and (item.given, item.kind) == (given, kind)

    def add(self, added: Json, index: Any) -> Item:
        """Add an item under the next output index."""
        number, name = len(self._items), identity(added)
        prefix = PREFIXES.get(string(added.get("type")), "item_")
        own = mint(prefix) if not name or name in self._known else name
        item = self._items[number] = Item(number, added, own, self.take, self._make)
        self._places[index if isinstance(index, int) else number] = item
        self.name(item, name)
        self.name(item, own)
        return item

    def name(self, item: Item, name: Any) -> None:
        """Let upstream's current id find the item."""
        if string(name):
            self._known[name] = item

    def resume(self, item: Item) -> Item:
        """Add an item that continues one which was closed, and receives its events from now on."""
        rest = self.add({**item.added, "id": None}, None)
        item.split = rest.split = True
        self._known.update({name: rest for name, of in self._known.items() if of is item})
        self._places.update({place: rest for place, of in self._places.items() if of is item})
        return rest

    def find(self, name: Any, index: Any) -> Item | None:
        item = self._known.get(string(name))
        if item is None and isinstance(index, int):
            item = self._places.get(index)
        return item

    def at(self, number: int | None) -> Item | None:
        return None if number is None else self._items.get(number)

    def settle(self, output: Any) -> list[tuple[int | None, Any]]:
        """Reconcile the final response's output with the items as they were streamed.

        Insert finished items that the output lacks at their index. Return each entry with its
        output index, or with None if the stream did not have it.
        """
        given = output if isinstance(output, list) else []
        missing, last = dict(self._items), -1
        entries: list[tuple[int, bool, int | None, Any]] = []
        for entry, item in zip(given, self._match(given), strict=True):
            if item is None:
                entries.append((last, True, None, entry))
            else:
                last = item.number
                del missing[last]
                entries.append((last, False, last, item.settle(entry)))
        for number, item in missing.items():
            if item.done is not None:
                entries.append((number, False, number, item.done))
        entries.sort(key=lambda entry: entry[:2])
        return [(number, entry) for *_, number, entry in entries]

    def _match(self, output: list[Any]) -> list[Item | None]:
        """Find the item of each entry: by id, else the first of its type that is left."""
        left = dict(self._items)
        found: list[Item | None] = []
        for entry in output:
            item = self._known.get(identity(entry)) if isinstance(entry, dict) else None
            found.append(left.pop(item.number, None) if item is not None else None)
        kinds: defaultdict[str, deque[Item]] = defaultdict(deque)
        for item in left.values():
            kinds[item.kind].append(item)
        for place, entry in enumerate(output):
            known = isinstance(entry, dict) and found[place] is None
            if known and kinds[_word(entry, "type")]:
                found[place] = kinds[_word(entry, "type")].popleft()
        return found


def identity(item: Json) -> str:
    """Return upstream's id of an item: its `id`, else its `call_id`.

    llama.cpp's calls have no `id`, and events with their arguments name the `call_id`.
    """
    return string(item.get("id")) or string(item.get("call_id"))


def unnamed(item: Json, index: Any) -> bool:
    return not identity(item) and not isinstance(index, int)


def _word(entry: Any, key: str) -> str:
    return string(entry.get(key)) if isinstance(entry, dict) else ""
