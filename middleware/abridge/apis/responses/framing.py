"""Frame the events of a stream: strategies that say what becomes of what upstream sends.

There are two. `OriginalFrames` is for clients of Responses: an event carries the frame it came in,
changed where it was repaired, or a new one where upstream left the event out. `TranslatedEvents`
(`translation.py`) is for clients of other APIs: an event has no frame and says everything itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Protocol

from abridge.apis.delta_patterns import Proceed
from abridge.apis.frames import change_frame, encode_event
from abridge.apis.json import string
from abridge.apis.obfuscation import obfuscate_event
from abridge.apis.responses.contents import (
    EVENT_STAGES,
    TEXT,
    TEXT_DELTA,
    ContentEvent,
    ContentKind,
    content_kind_of,
    event_text,
    without_content,
)
from abridge.apis.responses.items import OutputItem, OutputItems
from abridge.apis.responses.reasoning import LANE
from abridge.core.conversation import Json
from abridge.core.events import ContentDelta, ErrorDetail, Event, Passthrough, ResponseEnded


class AnswerReader(Protocol):
    """Read the items of the answer, which are all but the reasoning."""

    def begin(self, item: OutputItem, frame: bytes | None) -> list[Event]:
        """Begin an item that was added."""

    def find_target(self, item: OutputItem | None, event: Json) -> OutputItem | None:
        """Return the item that takes an event: the one it names or, if that cannot, another."""

    def find_continuation(self, event: Json) -> Proceed | None:
        """Return what reads an event that is nothing but the next delta of an item that is not kept
        open; None for any other."""

    def read(self, item: OutputItem | None, event: Json, frame: bytes | None) -> list[Event] | None:
        """Read an event that is not about reasoning; return None if it is out of order."""

    def finish(self, item: OutputItem, event: Json, frame: bytes | None) -> list[Event]:
        """Read the event that ends an item."""

    def settle(self, item: OutputItem) -> list[Event]:
        """Return what final texts that came after an item was closed have beyond its deltas."""

    def confirm(self, item: OutputItem) -> list[Event]:
        """Do the same of each item of the final response, in the order that they have there."""

    def close(self, status: str = "completed") -> list[Event]:
        """Close the open item, if there is one, because others follow or the response ends."""


class Framing(Protocol):
    """Say what becomes of the events of one response."""

    carries_frames: ClassVar[bool]

    def make_frame(self, event_type: str, fields: Json) -> bytes | None:
        """Make the frame of an event that upstream left out, if events carry frames."""

    def make_answer_reader(self, output: OutputItems) -> AnswerReader:
        """Make the reader of the answer."""

    def make_end(
        self, end: ResponseEnded, response: Json, error: ErrorDetail | None
    ) -> list[Event]:
        """Return the last events. `error` was reported in the stream, if there was one."""


class OriginalFrames:
    """Carry upstream's frames, repaired. See the protocol `Framing`."""

    carries_frames: ClassVar[bool] = True

    def __init__(self, *, obfuscate: bool = False) -> None:
        self._obfuscates = obfuscate

    def make_frame(self, event_type: str, fields: Json) -> bytes | None:
        return encode_event(event_type, obfuscate_event(fields) if self._obfuscates else fields)

    def make_answer_reader(self, output: OutputItems) -> OriginalAnswer:
        return OriginalAnswer(output)

    def make_end(
        self, end: ResponseEnded, _response: Json, _error: ErrorDetail | None
    ) -> list[Event]:
        """Return the end: its frame has the response, and the error was sent."""
        return [end]


class OriginalAnswer:
    """Repair the items of the answer. See the protocol `AnswerReader`.

    An item is kept open until it is done, or until it may be complete and the next begins.
    """

    def __init__(self, output: OutputItems) -> None:
        self._output = output

    def begin(self, item: OutputItem, frame: bytes | None) -> list[Event]:
        """Begin an item without content: that comes in events of its own."""
        self._output.open_answer = item
        if without_content(item.added) != item.added:
            frame = change_frame(
                frame, lambda event: {**event, "item": without_content(event["item"])}
            )
        return [Passthrough(LANE, frame)]

    def find_target(self, item: OutputItem | None, event: Json) -> OutputItem | None:
        """Find the item that takes an event.

        Text of an unknown item becomes a message. A delta of an item that was closed for others
        becomes an item that continues it.
        """
        if item is None:
            kind = content_kind_of(event, "message")
            if kind is None or not event_text(event, kind):
                return None
            added: Json = {"id": event.get("item_id"), "type": "message", "role": "assistant"}
            return self._output.add(added, event.get("output_index"))
        if item.is_closed_early and EVENT_STAGES.get(string(event.get("type"))) == "delta":
            kind = content_kind_of(event, item.type)
            if kind is not None and kind.is_part:
                return self._output.continue_item(item)
        return item

    def find_continuation(self, _event: Json) -> None:
        """Return None: the item that may go on is kept open."""

    def read(self, item: OutputItem | None, event: Json, frame: bytes | None) -> list[Event] | None:
        event_type = string(event.get("type"))
        if item is None:
            return None if event_type in EVENT_STAGES else [_other_event(event, frame)]
        if (kind := content_kind_of(event, item.type)) is not None:
            return self._read_content(item, event, kind, frame)
        if not item.is_open:
            return None
        return [_other_event(event, item.correct_address(event, frame))]

    def _read_content(
        self, item: OutputItem, event: Json, kind: ContentKind, frame: bytes | None
    ) -> list[Event] | None:
        content_events = item.contents.read(event, kind, frame) if item.is_open else None
        return None if content_events is None else _answer_events(content_events)

    def finish(self, item: OutputItem, event: Json, frame: bytes | None) -> list[Event]:
        rest = _answer_events(item.contents.finish(event["item"]))
        done, frame = item.reconcile_done(event, frame)
        self._output.store_done(item, done)
        item.is_open, self._output.open_answer = False, None
        return [*rest, Passthrough(LANE, frame)]

    def settle(self, _item: OutputItem) -> list[Event]:
        """Return nothing: nothing about an item follows its end, and the final response tells."""
        return []

    confirm = settle

    def close(self, status: str = "completed") -> list[Event]:
        item, self._output.open_answer = self._output.open_answer, None
        if item is None:
            return []
        rest = _answer_events(item.contents.finish_early(item.added))
        item.is_open, item.is_closed_early = False, True
        item.done = item.snapshot(status)
        fields = {"output_index": item.output_index, "item": item.done}
        return [*rest, Passthrough(LANE, encode_event("response.output_item.done", fields))]


def _answer_events(content_events: Iterable[ContentEvent]) -> list[Event]:
    return [
        ContentDelta(LANE, event.frame, event.text if event.kind is TEXT else "")
        if event.stage == "delta"
        else Passthrough(LANE, event.frame)
        for event in content_events
    ]


def _other_event(event: Json, frame: bytes | None) -> Event:
    """Return an event of unknown meaning. Deltas count as text only if they are known as that."""
    event_type = string(event.get("type"))
    if not event_type.endswith(".delta"):
        return Passthrough(LANE, frame)
    return ContentDelta(LANE, frame, string(event.get("delta")) if event_type == TEXT_DELTA else "")
