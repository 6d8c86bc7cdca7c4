"""Read the reasoning items of a response: raw reasoning, and the summary that upstream makes.

A reasoning item that is still open when the next item begins is closed then. Its later events, like
all events out of order, are counted as faults and dropped.
"""

from __future__ import annotations

from collections.abc import Iterable

from abridge.apis.frames import change_frame, no_frame
from abridge.apis.json import string
from abridge.apis.responses.contents import ContentEvent, content_kind_of
from abridge.apis.responses.framing import Framing
from abridge.apis.responses.items import OutputItem, OutputItems
from abridge.apis.responses.reasoning import (
    LANE,
    SUMMARY_PART_ADDED,
    is_opaque,
    is_raw_summary,
    rename_raw_summary_in_event,
    without_reasoning,
)
from abridge.core.conversation import Json
from abridge.core.events import (
    Event,
    NativeSummary,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
)


class ReasoningReader:
    """Read the reasoning items of one response."""

    def __init__(self, output: OutputItems, framing: Framing, *, hides_raw: bool) -> None:
        self._output = output
        self._framing = framing
        self._hides_raw = hides_raw

    def begin(self, item: OutputItem, frame: bytes | None) -> list[Event]:
        """Begin an item that was added."""
        self._output.open_reasoning = item
        return [ReasoningStarted(LANE, frame, item.output_index)]

    def read_content(self, item: OutputItem, event: Json, frame: bytes | None) -> list[Event]:
        """Read an event of the item's content."""
        kind = content_kind_of(event, "reasoning")
        if kind is None:
            return self.read_other(event, frame)
        content_events = item.contents.read(event, kind, frame) if item.is_open else None
        if content_events is None:
            return self._output.count_fault()
        return _reasoning_deltas(item, content_events)

    def read_summary(self, event: Json, frame: bytes | None) -> list[Event]:
        """Read an event of the summary that upstream makes itself.

        Hold it while it may turn out to be raw reasoning: real summaries announce their parts.
        """
        item = self._output.find_reasoning(event)
        if item is None or not item.is_open:
            return self._output.count_fault()
        frame = item.correct_address(event, frame)
        if event["type"] == SUMMARY_PART_ADDED or item.native.texts:
            return [*self._release_held(item), *self._read_native(item, event, frame)]
        if not self._output.reserve(self._output.frame_size):
            return self._output.count_fault()
        item.held_events.append((event, frame))
        return []

    def proceed_summary(self, item: OutputItem, text: str, frame: bytes | None) -> Event:
        """Read more of the open part of upstream's summary."""
        return item.native.proceed(text, frame, has_room=self._output.reserve(len(text)))

    def read_other(self, event: Json, frame: bytes | None) -> list[Event]:
        """Read an event of unknown meaning, which may contain reasoning."""
        item = self._output.find_reasoning(event)
        if item is None:
            return [ReasoningDelta(LANE, frame, 0, "")]
        if not item.is_open:
            return self._output.count_fault()
        return [ReasoningDelta(LANE, item.correct_address(event, frame), item.output_index, "")]

    def finish(self, item: OutputItem, event: Json, frame: bytes | None) -> list[Event]:
        """Read the event that ends an item."""
        item.summary_is_raw = not item.native.texts and is_raw_summary(event["item"])
        events = self._release_held(item)
        done, frame = item.reconcile_done(event, frame)
        self._output.store_done(item, done)
        return [*events, *self.complete(item, done, frame)]

    def close(self, status: str = "completed") -> list[Event]:
        """Close the open item, if there is one, because upstream does not end it."""
        item = self._output.open_reasoning
        if item is None:
            return []
        events = self._release_held(item)
        item.done = item.snapshot(status)
        fields = {"output_index": item.output_index, "item": item.done}
        frame = self._framing.make_frame("response.output_item.done", fields)
        return [*events, *self.complete(item, item.done, frame)]

    def abort(self) -> list[Event]:
        """Mark the open item as incomplete because the stream broke, and close its summary."""
        item = self._output.open_reasoning
        if item is None:
            return []
        closing = item.native.close()
        item.done = item.snapshot("incomplete")
        return [*closing]

    def read_whole(self, number: int, item: Json) -> list[Event]:
        """Read an item that is not streamed."""
        whole = OutputItem(number, item, make_frame=no_frame)
        return [ReasoningStarted(LANE, None, number), *self.complete(whole, item, None)]

    def complete(self, item: OutputItem, done: Json, frame: bytes | None) -> list[Event]:
        """Emit what the finished item says beyond what was streamed, and close it."""
        item.is_open, self._output.open_reasoning = False, None
        events = [
            *_reasoning_deltas(item, item.contents.finish(done)),
            *item.native.finish(done),
        ]
        if not self._framing.carries_frames:
            events += _state_events(item, without_reasoning(done) if self._hides_raw else done)
        return [*events, ReasoningEnded(LANE, frame, item.output_index)]

    def _release_held(self, item: OutputItem) -> list[Event]:
        """Read the held events, as the summary or the raw reasoning that they are."""
        events: list[Event] = []
        held, item.held_events = item.held_events, []
        for event, frame in held:
            if item.summary_is_raw:
                renamed = rename_raw_summary_in_event(event)
                changed = change_frame(frame, rename_raw_summary_in_event)
                events += self.read_content(item, renamed, changed)
            else:
                events += self._read_native(item, event, frame)
        return events

    def _read_native(
        self, item: OutputItem, event: Json, frame: bytes | None
    ) -> list[NativeSummary] | list[Event]:
        has_room = self._output.reserve(len(string(event.get("delta"))))
        events = item.native.read(event, frame, has_room=has_room)
        return self._output.count_fault() if events is None else events


def is_empty_delta(event: Event) -> bool:
    """Return whether an event of reasoning adds no text: it repeats or closes earlier text."""
    if isinstance(event, NativeSummary):
        return event.stage == "delta" and not event.text
    return isinstance(event, ReasoningDelta) and not event.text


def _reasoning_deltas(item: OutputItem, content_events: Iterable[ContentEvent]) -> list[Event]:
    return [
        ReasoningDelta(LANE, event.frame, item.output_index, event.text) for event in content_events
    ]


def _state_events(item: OutputItem, done: Json) -> list[Event]:
    """Return the item's opaque state, unless it only repeats the reasoning."""
    state = string(done.get("encrypted_content"))
    if not (state and is_opaque(done)):
        return []
    return [ProviderState(LANE, None, item.output_index, state)]
