"""Read the stream events that concern an output item.

A reasoning item that is still open when the next item begins is closed then. Its later events, like
all events out of order, are counted as faults and dropped.

Read a stream's items for clients of the same API, and put the answer's items in order too.

An item of the answer that is still open when the next begins is closed then, if it is a message or
a call with complete arguments. No other type shows whether it is complete, so the events that
follow are queued until it is done. llama.cpp's server ends no item before the whole answer is sent
(ggml-org/llama.cpp tools/server/server-task.cpp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, NamedTuple

from abridge.apis.json import string
from abridge.apis.responses.contents import (
    EVENT_STAGES,
    TEXT,
    ContentEvent,
    ContentKind,
    MakeFrame,
    change_frame,
    content_kind_of,
    encode_event,
    event_text,
    is_reasoning_content,
    no_frame,
    without_content,
)
from abridge.apis.responses.items import OutputItem, OutputItems, is_unaddressed, upstream_id
from abridge.apis.responses.native import NATIVE_STAGES as NATIVE
from abridge.apis.responses.native import SUMMARY_PART_ADDED
from abridge.apis.responses.reasoning import (
    LANE,
    count_unknown_fields,
    is_raw_summary,
    is_reasoning,
    raw_text,
    rename_raw_summary_in_event,
    summary_text,
)
from abridge.core.conversation import Json
from abridge.core.events import (
    ContentDelta,
    Event,
    NativeSummary,
    Passthrough,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
)

_Handler = Callable[["ItemReader", Json, bytes | None], list[Event]]


class ItemReader:
    """Reads the items of one response."""

    def __init__(self, limit: int, *, hidden: bool, make_frame: MakeFrame = encode_event) -> None:
        self.output = OutputItems(limit, make_frame)
        self.make_frame = make_frame  # makes frames for events that upstream left out
        self.frame_size = 0  # bytes of the frame that is being read
        self._hides_raw = hidden
        self.open_reasoning: OutputItem | None = (
            None  # the reasoning item that is added and not done
        )
        self.dropped = 0
        self.faults = 0

    def read_delta(self, event: Json, frame: bytes | None) -> Event | None:
        """Read an event that is nothing but the next delta; return None for any other.

        Give the result of `read` in a fraction of the time.
        """
        item = self.open_reasoning
        if item is None or not (text := item.append_delta(event)):
            return None
        return ReasoningDelta(LANE, frame, item.output_index, text)

    def read(self, kind: str, event: Json, frame: bytes | None) -> list[Event]:
        handler = self._HANDLERS.get(kind)
        return handler(self, event, frame) if handler else self._on_other(event, frame)

    def finish(self, status: str) -> list[Event]:
        """Close the open items at the end of the response."""
        return self.close_reasoning(status)

    def count_fault(self) -> list[Event]:
        self.faults += 1
        return []

    def read_whole_item(self, number: int, item: Json) -> list[Event]:
        """Read an item of a response that is not streamed."""
        if not is_reasoning(item):
            return [ContentDelta(LANE, None, raw_text(item))]
        opening = ReasoningStarted(LANE, None, number)
        return [
            opening,
            *self.complete_reasoning(OutputItem(number, item, make_frame=no_frame), item, None),
        ]

    def _on_item_added(self, event: Json, frame: bytes | None) -> list[Event]:
        added, index = event.get("item"), event.get("output_index")
        if not isinstance(added, dict):
            return [Passthrough(LANE, frame)]
        if self.output.has_item(added, index):
            return self.count_fault()
        item = self.output.add(added, index)
        return self._begin_item(item, item.correct_address(event, frame))

    def _begin_item(self, item: OutputItem, frame: bytes | None) -> list[Event]:
        """Begin an item, and close the open one."""
        closing = self.close_reasoning()
        if not item.is_reasoning:
            return [*closing, Passthrough(LANE, frame)]
        self.open_reasoning = item
        return [*closing, ReasoningStarted(LANE, frame, item.output_index)]

    def close_reasoning(self, status: str = "completed") -> list[Event]:
        """Close the open reasoning item, if there is one."""
        item = self.open_reasoning
        if item is None:
            return []
        events = self._release_held(item)
        item.done = item.snapshot(status)
        fields = {"output_index": item.output_index, "item": item.done}
        frame = self.make_frame("response.output_item.done", fields)
        return [*events, *self.complete_reasoning(item, item.done, frame)]

    def abort(self) -> list[Event]:
        """Mark the open item as incomplete because the stream broke, and close its summary."""
        if self.open_reasoning is None:
            return []
        closing = self.open_reasoning.native.close()
        self.open_reasoning.done = self.open_reasoning.snapshot("incomplete")
        return [*closing]

    def _on_item_done(self, event: Json, frame: bytes | None) -> list[Event]:
        done, index = event.get("item"), event.get("output_index")
        if not isinstance(done, dict):
            return [Passthrough(LANE, frame)]
        item, opening = self._find_ending_item(done, index), list[Event]()
        if item is None:
            item, opening = self._add_unannounced(done, index)
        if item.is_reasoning != is_reasoning(done):
            return self.count_fault()
        if item.is_open:
            return [*opening, *self._finish_item(item, event, frame)]
        self._store_done(item, item.reconcile(done))
        return self.count_fault()

    def _finish_item(self, item: OutputItem, event: Json, frame: bytes | None) -> list[Event]:
        done: Json = event["item"]
        item.summary_is_raw = not item.native.texts and is_raw_summary(done)
        events, reconciled = self._release_held(item), item.reconcile(done)
        self._store_done(item, reconciled)
        if reconciled != done:
            frame = change_frame(
                frame, lambda event: {**event, "item": item.reconcile(event["item"])}
            )
        frame = item.correct_address(event, frame)
        if item.is_reasoning:
            return [*events, *self.complete_reasoning(item, reconciled, frame)]
        item.is_open = False
        return [Passthrough(LANE, frame)]

    def _store_done(self, item: OutputItem, done: Json) -> None:
        if self.output.reserve(self.frame_size):
            item.done = done

    def _find_ending_item(self, done: Json, index: Any) -> OutputItem | None:
        """Find the item that this one ends, if it was added."""
        item = self.output.find(upstream_id(done), index)
        return (
            self.open_reasoning
            if item is None and is_reasoning(done) and is_unaddressed(done, index)
            else item
        )

    def _add_unannounced(self, done: Json, index: Any) -> tuple[OutputItem, list[Event]]:
        """Add an item whose beginning upstream left out."""
        item = self.output.add(without_content(done), index)
        return item, self._announce_item(item) if item.is_reasoning else []

    def _announce_item(self, item: OutputItem) -> list[Event]:
        """Emit the beginning of an item that upstream left out."""
        fields = {"output_index": item.output_index, "item": item.snapshot("in_progress")}
        return self._begin_item(item, self.make_frame("response.output_item.added", fields))

    def complete_reasoning(self, item: OutputItem, done: Json, frame: bytes | None) -> list[Event]:
        """Emit what the finished item says beyond what was streamed, and close it."""
        events = self._remaining_reasoning(item, done)
        if frame is not None:
            events += item.native.finish(done)
        elif native := summary_text(done):
            events.append(NativeSummary(LANE, None, item.output_index, 0, "whole", native))
        if self._hides_raw:
            self.dropped += count_unknown_fields(done)
        return [*events, ReasoningEnded(LANE, frame, item.output_index)]

    def _remaining_reasoning(self, item: OutputItem, done: Json) -> list[Event]:
        """Emit the reasoning of a finished item that was not streamed."""
        item.is_open, self.open_reasoning = False, None
        return self._reasoning_deltas(item, item.contents.finish(done))

    def _reasoning_deltas(
        self, item: OutputItem, content_events: Iterable[ContentEvent]
    ) -> list[Event]:
        return [
            ReasoningDelta(LANE, event.frame, item.output_index, event.text)
            for event in content_events
        ]

    def _on_other(self, event: Json, frame: bytes | None, text: str = "") -> list[Event]:
        """Read an event of another type. Any of a reasoning item may contain reasoning."""
        kind, item = string(event.get("type")), self._find_item(event)
        if kind.startswith("response.reasoning") or (item is not None and item.is_reasoning):
            return self._read_reasoning(event, frame)
        frame = frame if item is None else item.correct_address(event, frame)
        return [
            ContentDelta(LANE, frame, text) if kind.endswith(".delta") else Passthrough(LANE, frame)
        ]

    def _on_text(self, event: Json, frame: bytes | None) -> list[Event]:
        return self._on_other(event, frame, string(event.get("delta")))

    def _find_item(self, event: Json) -> OutputItem | None:
        """Find the item that an event names by id or index."""
        return self.output.find(event.get("item_id"), event.get("output_index"))

    def _find_reasoning(self, event: Json) -> OutputItem | None:
        """Find the reasoning item that an event names, else the open one."""
        item = self._find_item(event)
        return item if item is not None and item.is_reasoning else self.open_reasoning

    def _read_reasoning(self, event: Json, frame: bytes | None, text: str = "") -> list[Event]:
        item = self._find_reasoning(event)
        if item is None:
            return [ReasoningDelta(LANE, frame, 0, text)]
        if not item.is_open:
            return self.count_fault()
        return [ReasoningDelta(LANE, item.correct_address(event, frame), item.output_index, text)]

    def _on_content(self, event: Json, frame: bytes | None) -> list[Event]:
        """Read a content event. It is reasoning if its item is, or if its own type says so."""
        item, kind = self._find_item(event), content_kind_of(event, "reasoning")
        is_reasoning_item = item is not None and item.is_reasoning
        if kind is None or not (is_reasoning_item or is_reasoning_content(event)):
            return self._on_other(event, frame)
        text = event_text(event, kind)
        if (
            frame is not None
            and item is not None
            and not is_reasoning_item
            and self.open_reasoning is None
        ):
            return self._read_reasoning(event, frame, text)  # within an item of another type
        opening = list[Event]()
        if (item := self._find_reasoning(event)) is None:
            if not text:
                return self.count_fault()
            added = {"id": event.get("item_id"), "type": "reasoning"}
            item = self.output.add(added, event.get("output_index"))
            opening = self._announce_item(item)
        content_events = item.contents.read(event, kind, frame) if item.is_open else None
        return (
            self.count_fault()
            if content_events is None
            else [*opening, *self._reasoning_deltas(item, content_events)]
        )

    def _on_summary(self, event: Json, frame: bytes | None) -> list[Event]:
        item = self._find_reasoning(event)
        if item is None or not item.is_open:
            return self.count_fault()
        frame = item.correct_address(event, frame)
        if event["type"] == SUMMARY_PART_ADDED or item.native.texts:
            return [*self._release_held(item), *self._read_summary(item, event, frame)]
        if not self.output.reserve(self.frame_size):
            return self.count_fault()
        item.held_events.append((event, frame))  # may be raw: real summaries announce parts
        return []

    def _read_summary(self, item: OutputItem, event: Json, frame: bytes | None) -> list[Event]:
        has_room = self.output.reserve(len(string(event.get("delta"))))
        events = item.native.read(event, frame, has_room=has_room)
        return self.count_fault() if events is None else [*events]

    def _release_held(self, item: OutputItem) -> list[Event]:
        """Read the held events, as the summary or the raw reasoning that they are."""
        events: list[Event] = []
        held, item.held_events = item.held_events, []
        for event, frame in held:
            if item.summary_is_raw:
                renamed = rename_raw_summary_in_event(event)
                events += self.read(
                    renamed["type"], renamed, change_frame(frame, rename_raw_summary_in_event)
                )
            else:
                events += self._read_summary(item, event, frame)
        return events

    _HANDLERS: ClassVar[dict[str, _Handler]] = {
        "response.output_item.added": _on_item_added,
        "response.output_item.done": _on_item_done,
        "response.content_part.added": _on_content,
        "response.content_part.done": _on_content,
        "response.reasoning_text.delta": _on_content,
        "response.reasoning_text.done": _on_content,
        "response.output_text.delta": _on_text,
        **dict.fromkeys(NATIVE, _on_summary),
    }


class _QueuedEvent(NamedTuple):
    kind: str
    event: Json
    frame: bytes | None
    frame_size: int


class FramedItemReader(ItemReader):
    """Reads the items of one response into framed events."""

    def __init__(self, limit: int, *, hidden: bool) -> None:
        super().__init__(limit, hidden=hidden)
        self.open_answer: OutputItem | None = (
            None  # the item of the answer that is added and not done
        )
        self._queued: list[_QueuedEvent] = []  # events of later items

    def read_delta(self, event: Json, frame: bytes | None) -> Event | None:
        item = self.open_answer
        if item is None:
            return super().read_delta(event, frame)
        if self._queued or not (text := item.append_delta(event)):
            return None
        return ContentDelta(LANE, frame, text if event["type"] == TEXT.delta_type else "")

    def read(self, kind: str, event: Json, frame: bytes | None) -> list[Event]:
        item = self.open_answer
        if item is None:
            return super().read(kind, event, frame)
        if not self._must_wait(item, event):
            return super().read(kind, event, frame)
        if self.output.reserve(self.frame_size):
            self._queued.append(_QueuedEvent(kind, event, frame, self.frame_size))
            return []
        return [*self._close_answer(), *self._release_queued(), *self.read(kind, event, frame)]

    def finish(self, status: str) -> list[Event]:
        events = self.close_reasoning(status)
        while self.open_answer is not None:
            events += [
                *self._close_answer(status),
                *self._release_queued(),
                *self.close_reasoning(status),
            ]
        return events

    def abort(self) -> list[Event]:
        released = list[Event]()
        while self._queued:
            released += [*self._close_answer("incomplete"), *self._release_queued()]
        return [*released, *super().abort()]

    # Order

    def _must_wait(self, item: OutputItem, event: Json) -> bool:
        """Return whether the event is about a later item, and this one may not be complete."""
        event_item = self._find_event_item(event)
        if event_item is item or (
            event_item is not None and not (event_item.is_open or event_item.is_closed_early)
        ):
            return False
        addressed = "item" in event or "item_id" in event or "output_index" in event
        return addressed and (bool(self._queued) or not item.is_complete)

    def _find_event_item(self, event: Json) -> OutputItem | None:
        item = event.get("item")
        if isinstance(item, dict):
            return self._find_ending_item(item, event.get("output_index"))
        return self._find_item(event)

    def _find_item(self, event: Json) -> OutputItem | None:
        """Find the event's item. An unknown id is the open answer's, if the content fits it."""
        item, answer = super()._find_item(event), self.open_answer
        if item is not None or answer is None or self._queued:
            return item
        if content_kind_of(event, answer.type) is None:
            return None
        self.output.register_id(answer, event.get("item_id"))
        return answer

    def _begin_item(self, item: OutputItem, frame: bytes | None) -> list[Event]:
        closing = self._close_answer()
        if not item.is_reasoning:
            self.open_answer = item
            if without_content(item.added) != item.added:
                frame = change_frame(
                    frame, lambda event: {**event, "item": without_content(event["item"])}
                )
        return [*closing, *super()._begin_item(item, frame)]

    def _close_answer(self, status: str = "completed") -> list[Event]:
        """Close the open item of the answer because others follow, or the response ends."""
        item, self.open_answer = self.open_answer, None
        if item is None:
            return []
        rest = self._answer_events(item.contents.finish(item.added))
        item.is_open, item.is_closed_early = False, True
        item.done = item.snapshot(status)
        fields = {"output_index": item.output_index, "item": item.done}
        return [*rest, Passthrough(LANE, self.make_frame("response.output_item.done", fields))]

    def _release_queued(self) -> list[Event]:
        """Read the queued events."""
        queued, self._queued = self._queued, []
        events = list[Event]()
        frame_size = self.frame_size
        for kind, event, frame, self.frame_size in queued:
            events += self.read(kind, event, frame)
        self.frame_size = frame_size
        return events

    # Content

    def _on_other(self, event: Json, frame: bytes | None, text: str = "") -> list[Event]:
        item = self._find_item(event)
        if item is None and (content_kind := content_kind_of(event, "message")) is not None:
            return self._read_unannounced(event, content_kind, frame)
        if item is None and string(event.get("type")) in EVENT_STAGES:
            return self.count_fault()  # of an unknown call; its end repeats the arguments
        if item is None or item.is_reasoning:
            return super()._on_other(event, frame, text)
        if (content_kind := content_kind_of(event, item.type)) is not None:
            return self._read_answer(item, event, content_kind, frame)
        return super()._on_other(event, frame, text) if item.is_open else self.count_fault()

    def _read_unannounced(
        self, event: Json, content_kind: ContentKind, frame: bytes | None
    ) -> list[Event]:
        """Read text of an unknown item as a message that was not announced."""
        if not event_text(event, content_kind):
            return self.count_fault()
        added: Json = {"id": event.get("item_id"), "type": "message", "role": "assistant"}
        item = self.output.add(added, event.get("output_index"))
        return [*self._announce_item(item), *self._read_answer(item, event, content_kind, frame)]

    def _read_answer(
        self, item: OutputItem, event: Json, content_kind: ContentKind, frame: bytes | None
    ) -> list[Event]:
        opening = list[Event]()
        if item.is_closed_early and content_kind.is_part and EVENT_STAGES[event["type"]] == "delta":
            item = self.output.continue_item(item)
            opening = self._announce_item(item)
        content_events = item.contents.read(event, content_kind, frame) if item.is_open else None
        if content_events is None:
            return self.count_fault()
        events = [*opening, *self._answer_events(content_events)]
        if self._queued and item.is_complete:
            events += [*self._close_answer(), *self._release_queued()]
        return events

    def _answer_events(self, content_events: Iterable[ContentEvent]) -> list[Event]:
        return [
            ContentDelta(LANE, event.frame, event.text if event.kind is TEXT else "")
            if event.stage == "delta"
            else Passthrough(LANE, event.frame)
            for event in content_events
        ]

    # End

    def _find_ending_item(self, done: Json, index: Any) -> OutputItem | None:
        """Find the item that this one ends; without id and index, the open one of its type."""
        item = super()._find_ending_item(done, index)
        is_same_type = self.open_answer is not None and self.open_answer.type == done.get("type")
        return (
            self.open_answer
            if item is None and is_same_type and is_unaddressed(done, index)
            else item
        )

    def _add_unannounced(self, done: Json, index: Any) -> tuple[OutputItem, list[Event]]:
        item = self.output.add(without_content(done), index)
        return item, self._announce_item(item)

    def _finish_item(self, item: OutputItem, event: Json, frame: bytes | None) -> list[Event]:
        if item.is_reasoning:
            return super()._finish_item(item, event, frame)
        rest = self._answer_events(item.contents.finish(event["item"]))
        self.open_answer = None
        return [*rest, *super()._finish_item(item, event, frame), *self._release_queued()]
