"""The output items of a response, in the order in which they were added.

An item keeps the id it was added with, whatever upstream calls it later (GitHub Copilot changes the
id from event to event). Where an event's id is unknown, its `output_index` finds the item. An item
gets a new id if it has none (llama.cpp's calls) or another item's (messages of older vLLM have the
id of their reasoning item).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from abridge.apis.frames import MakeFrame, change_frame, encode_event
from abridge.apis.json import string
from abridge.apis.openai import mint_id
from abridge.apis.responses.content_repair import ContentRepair
from abridge.apis.responses.contents import ContentEvent, content_kind_of
from abridge.apis.responses.reasoning import is_reasoning, rename_raw_summary, summary_text
from abridge.apis.responses.summaries import NativeSummaryRepair
from abridge.core.conversation import Json
from abridge.core.events import Event


def _unlimited(_size: int) -> bool:
    return True


class OutputItem:
    """Hold one output item: its beginning, its end, and what was streamed between them."""

    def __init__(
        self,
        output_index: int,
        added: Json,
        item_id: str = "",
        reserve: Callable[[int], bool] = _unlimited,
        make_frame: MakeFrame = encode_event,
    ) -> None:
        self.output_index = output_index  # its `output_index` as the client knows it
        self.upstream_id = string(added.get("id"))  # upstream's id
        self.id = item_id or self.upstream_id  # the id that the client knows
        self.type = string(added.get("type"))
        self.is_reasoning = is_reasoning(added)
        self.is_numbered = False  # upstream numbers it, and so tells its end from others'
        self.is_open = True
        self.is_closed_early = False  # closed because another item began
        self.native = NativeSummaryRepair(output_index, self.id, make_frame)
        self.contents = ContentRepair(
            {"item_id": self.id, "output_index": output_index}, added, reserve, make_frame
        )
        # Events of a native summary that may be raw reasoning, which only the item's end tells.
        self.held_events: list[tuple[Json, bytes | None]] = []
        self.summary_is_raw = False  # its native summary is the raw reasoning
        # What final texts have beyond what was streamed, told after the item was closed.
        self.late_texts: list[ContentEvent] = []
        self.done: Json | None = None  # the item at its end
        self.added = added  # the item at its beginning

    @property
    def is_complete(self) -> bool:
        """Return whether the item may be complete, judging by what was streamed."""
        return self.contents.is_complete(awaits_end=self.is_numbered)

    def is_continued_by(self, event: Json) -> bool:
        """Return whether an event is nothing but the next delta of the open content part, as nearly
        every event of a stream is."""
        contents, text = self.contents, event.get("delta")
        return (
            bool(contents.delta_type)
            and event.get("type") == contents.delta_type
            and event.get("output_index") == self.output_index
            and event.get("content_index") == contents.content_index
            and event.get("item_id") == self.id
            and isinstance(text, str)
            and bool(text)
        )

    def reconcile(self, item: Json) -> Json:
        """Return upstream's `item` with the first id, and what it leaves out filled in."""
        reconciled = rename_raw_summary(item) if self.summary_is_raw else item
        reconciled = {**reconciled, "id": self.id} if self.id else dict(reconciled)
        reconciled = self.contents.fill_in(reconciled)
        if self.native.texts and not summary_text(item):
            reconciled["summary"] = self.native.summary_parts()
        return reconciled

    def settle(self, item: Json) -> None:
        """Take the final texts of upstream's `item`, which was closed before."""
        final = rename_raw_summary(item) if self.summary_is_raw else item
        self.late_texts += self.contents.settle(final)

    def reconcile_done(self, event: Json, frame: bytes | None) -> tuple[Json, bytes | None]:
        """Return the item that an event ends, what it leaves out filled in, and the frame."""
        done = self.reconcile(event["item"])
        if done != event["item"]:
            frame = change_frame(
                frame, lambda event: {**event, "item": self.reconcile(event["item"])}
            )
        return done, self.correct_address(event, frame)

    def snapshot(self, status: str) -> Json:
        """Return the item where upstream does not send its end.

        Leave out the opaque state that it was added with, which was provisional.
        """
        added = {key: value for key, value in self.added.items() if key != "encrypted_content"}
        if self.is_reasoning:
            added["summary"] = []
        return self.reconcile(self.contents.rewrite({**added, "status": status}))

    def correct_address(self, event: Json, frame: bytes | None) -> bytes | None:
        """Return the event's frame with this item's id and `output_index`."""
        event_id = event["item"].get("id") if "item" in event else event.get("item_id", self.id)
        if event_id == self.id and event.get("output_index") == self.output_index:
            return frame
        return change_frame(frame, self._with_address)

    def _with_address(self, event: Json) -> Json:
        addressed = {**event, "output_index": self.output_index}
        if "item" in event:
            return {**addressed, "item": {**event["item"], "id": self.id}}
        return {**addressed, "item_id": self.id} if "item_id" in event else addressed


ID_PREFIXES = {"reasoning": "rs_", "message": "msg_", "function_call": "fc_"}


def mint_item_id(item_type: str) -> str:
    return mint_id(ID_PREFIXES.get(item_type, "item_"))


class _Room:
    """The characters that may still be stored."""

    def __init__(self, limit: int) -> None:
        self._left = limit

    def reserve(self, size: int) -> bool:
        """Reserve so many characters; return whether as many were left."""
        if size > self._left:
            return False
        self._left -= size
        return True


class OutputItems:
    """Hold the items of one response, of which at most `limit` characters are stored.

    At most one is open, of the reasoning or of the answer.
    """

    def __init__(self, limit: int, make_frame: MakeFrame = encode_event) -> None:
        self.open_reasoning: OutputItem | None = None  # the reasoning item that is not done
        self.open_answer: OutputItem | None = None  # the item of the answer, if it is kept open
        self.has_queue = False  # events of later items are queued behind the open one
        self.frame_size = 0  # bytes of the frame that is being read
        self.faults = 0  # events that upstream sent out of order
        self.misplaced = 0  # texts of the final response that no stream can have in their place
        self.reserve = _Room(limit).reserve
        self._make_frame = make_frame
        self._items: dict[int, OutputItem] = {}
        self._by_upstream_index: dict[int, OutputItem] = {}  # by upstream's `output_index`
        self._by_id: dict[str, OutputItem] = {}  # by every id in use
        self._unaddressed: dict[str, OutputItem] = {}  # the last that had no address, by type

    @property
    def mismatches(self) -> int:
        """Return the number of texts that are not the sum of their deltas."""
        return self.misplaced + sum(item.contents.mismatches for item in self._items.values())

    @property
    def has_open_part(self) -> bool:
        """Return whether upstream has not ended all its items, or begun none."""
        items = self._items.values()
        return not items or any(item.is_open or item.is_closed_early for item in items)

    def store_done(self, item: OutputItem, done: Json) -> None:
        """Store an item as it is at its end, if there is room."""
        if self.reserve(self.frame_size):
            item.done = done

    def count_fault(self) -> list[Event]:
        self.faults += 1
        return []

    def has_item(self, added: Json, index: Any) -> bool:
        """Return whether this item was added before."""
        given_id, item_type = string(added.get("id")), string(added.get("type"))
        item = self._find("" if isinstance(index, int) else given_id, index)
        return item is not None and (item.upstream_id, item.type) == (given_id, item_type)

    def add(self, added: Json, index: Any) -> OutputItem:
        """Add an item under the next output index."""
        number, given_id = len(self._items), upstream_id(added)
        is_taken = not given_id or given_id in self._by_id
        item_id = mint_item_id(string(added.get("type"))) if is_taken else given_id
        item = self._items[number] = OutputItem(
            number, added, item_id, self.reserve, self._make_frame
        )
        item.is_numbered = isinstance(index, int)
        if not (given_id or item.is_numbered):
            self._unaddressed[item.type] = item
        self._by_upstream_index[index if isinstance(index, int) else number] = item
        self.register_id(item, given_id)
        self.register_id(item, item_id)
        return item

    def register_id(self, item: OutputItem, given_id: Any) -> None:
        """Let upstream's current id find the item."""
        if string(given_id):
            self._by_id[given_id] = item

    def continue_item(self, item: OutputItem) -> OutputItem:
        """Add an item that continues one which was closed, and receives its events from now on."""
        rest = self.add({**item.added, "id": None}, None)
        rest.contents.continue_from(item.contents)
        del self._unaddressed[rest.type]  # it has the addresses of the other
        self._by_id.update({known_id: rest for known_id, of in self._by_id.items() if of is item})
        self._by_upstream_index.update(
            {
                upstream_index: rest
                for upstream_index, of in self._by_upstream_index.items()
                if of is item
            }
        )
        return rest

    def get(self, number: int | None) -> OutputItem | None:
        return None if number is None else self._items.get(number)

    def find(self, event: Json) -> OutputItem | None:
        """Find the item that an event names by id or index.

        An unknown id is the open answer's, if the content fits it.
        """
        item, answer = self._find(event.get("item_id"), event.get("output_index")), self.open_answer
        if item is not None or answer is None or self.has_queue:
            return item
        if content_kind_of(event, answer.type) is None:
            return None
        self.register_id(answer, event.get("item_id"))
        return answer

    def find_reasoning(self, event: Json) -> OutputItem | None:
        """Find the reasoning item that an event names, else the open one."""
        item = self.find(event)
        return item if item is not None and item.is_reasoning else self.open_reasoning

    def find_by_end(self, done: Json, index: Any) -> OutputItem | None:
        """Find the item that this one ends; without id and index, the open one of its type.

        An id that it did not have before is its own from now on: the final response names it so.
        The end of an item without an address may be the first event that has one.
        """
        given_id = upstream_id(done)
        item = self._find(given_id, index) or self._find_unaddressed(done)
        if item is not None and given_id:
            self._by_id.setdefault(given_id, item)
        if item is not None or given_id or isinstance(index, int):
            return item
        if self.open_reasoning is not None:
            return self.open_reasoning if is_reasoning(done) else None
        is_same_type = self.open_answer is not None and self.open_answer.type == done.get("type")
        return self.open_answer if is_same_type else None

    def _find_unaddressed(self, done: Json) -> OutputItem | None:
        item = self._unaddressed.get(string(done.get("type")))
        return item if item is not None and item.is_open else None

    def _find(self, given_id: Any, index: Any) -> OutputItem | None:
        item = self._by_id.get(string(given_id))
        if item is None and isinstance(index, int):
            item = self._by_upstream_index.get(index)
        return item

    def reconcile(self, output: Any) -> list[tuple[int | None, Any]]:
        """Reconcile the final response's output with the items as they were streamed.

        Insert finished items that the output lacks at their index. Return each entry with its
        output index, or with None if the stream did not have it.
        """
        given = output if isinstance(output, list) else []
        missing, last = dict(self._items), -1
        entries: list[tuple[int, bool, int | None, Any]] = []
        for entry, item in zip(given, self._match_items(given), strict=True):
            if item is None:
                entries.append((last, True, None, entry))
            else:
                last = item.output_index
                del missing[last]
                if not item.is_open:
                    item.settle(entry)
                entries.append((last, False, last, item.reconcile(entry)))
        for number, item in missing.items():
            if item.done is not None:
                entries.append((number, False, number, item.done))
        entries.sort(key=lambda entry: entry[:2])
        return [(number, entry) for *_, number, entry in entries]

    def find_final(self, item: OutputItem, output: Any) -> Json | None:
        """Find an item in the final response's output."""
        given = output if isinstance(output, list) else []
        matches = zip(given, self._match_items(given), strict=True)
        final: Json = next((entry for entry, match in matches if match is item), {})
        return final if final.get("type") == item.type else None

    def _match_items(self, output: list[Any]) -> list[OutputItem | None]:
        """Find the item of each entry: by id, else the first of its type that is left."""
        left = dict(self._items)
        found: list[OutputItem | None] = []
        for entry in output:
            item = self._by_id.get(upstream_id(entry)) if isinstance(entry, dict) else None
            found.append(left.pop(item.output_index, None) if item is not None else None)
        by_type: defaultdict[str, deque[OutputItem]] = defaultdict(deque)
        for item in left.values():
            by_type[item.type].append(item)
        for index, entry in enumerate(output):
            known = isinstance(entry, dict) and found[index] is None
            if known and by_type[_string_field(entry, "type")]:
                found[index] = by_type[_string_field(entry, "type")].popleft()
        return found


def upstream_id(item: Json) -> str:
    """Return upstream's id of an item: its `id`, else its `call_id`.

    llama.cpp's calls have no `id`, and events with their arguments name the `call_id`.
    """
    return string(item.get("id")) or string(item.get("call_id"))


def _string_field(entry: Any, key: str) -> str:
    return string(entry.get(key)) if isinstance(entry, dict) else ""
