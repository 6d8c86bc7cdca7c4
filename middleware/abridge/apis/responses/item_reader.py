"""Read the stream events that concern an output item.

Reasoning items and items of the answer have a reader each. `ItemReader` finds the item that an
event is about, and keeps the items in order. An item of the answer that is still open when the next
begins is closed then, if it is a message or a call with complete arguments. Otherwise the events
that follow are queued until it is done: no other type shows whether it is complete, and arguments
may change until upstream ends them, though they are JSON. llama.cpp's server ends no item before
the whole answer is sent, and numbers none (ggml-org/llama.cpp tools/server/server-task.cpp): there
arguments are complete once they are JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, NamedTuple

from abridge.apis.delta_patterns import Proceed
from abridge.apis.json import string
from abridge.apis.responses.citations import ANNOTATION_ADDED
from abridge.apis.responses.contents import (
    EVENT_STAGES,
    TEXT_DELTA,
    content_kind_of,
    event_text,
    is_reasoning_content,
    without_content,
)
from abridge.apis.responses.framing import Framing
from abridge.apis.responses.items import OutputItem, OutputItems
from abridge.apis.responses.reasoning import LANE, REASONING_PREFIX, is_reasoning, raw_text
from abridge.apis.responses.reasoning_reader import ReasoningReader
from abridge.apis.responses.summaries import NATIVE_STAGES
from abridge.core.conversation import Json
from abridge.core.events import ContentDelta, Event, NativeSummary, Passthrough, ReasoningDelta


class _QueuedEvent(NamedTuple):
    event_type: str
    event: Json
    frame: bytes | None
    frame_size: int


def _proceed_reasoning(item: OutputItem, text: str, frame: bytes | None) -> ReasoningDelta:
    item.contents.append_text(text)
    return ReasoningDelta(LANE, frame, item.output_index, text)


def _proceed_answer(
    item: OutputItem, text: str, frame: bytes | None, *, is_text: bool
) -> ContentDelta:
    item.contents.append_text(text)
    return ContentDelta(LANE, frame, text if is_text else "")


_Handler = Callable[["ItemReader", Json, bytes | None], list[Event]]


class ItemReader:
    """Read the items of one response."""

    def __init__(
        self,
        output: OutputItems,
        framing: Framing,
        *,
        hides_raw: bool,
    ) -> None:
        self._output = output
        self._framing = framing
        self._answer = framing.make_answer_reader(output)
        self._reasoning = ReasoningReader(output, framing, hides_raw=hides_raw)
        self._queue: list[_QueuedEvent] = []  # events of later items than the open one

    def find_continuation(self, event: Json) -> Proceed | None:
        """Return what reads an event that is nothing but the next delta; None for any other.

        It gives the result of `read` in a fraction of the time.
        """
        item = self._output.open_answer
        if item is not None:
            if self._queue or not item.is_continued_by(event):
                return None
            return partial(_proceed_answer, item, is_text=event["type"] == TEXT_DELTA)
        item = self._output.open_reasoning
        if item is None:
            return self._answer.find_continuation(event)
        return partial(_proceed_reasoning, item) if item.is_continued_by(event) else None

    def find_summary(self, events: list[Event]) -> Proceed | None:
        """Return what reads more of the summary that upstream makes, if these events are a piece of
        it and nothing else goes on beside it."""
        event = events[0] if len(events) == 1 and self._output.open_answer is None else None
        if not isinstance(event, NativeSummary) or event.stage != "delta":
            return None
        item = self._output.get(event.item)
        return None if item is None else partial(self._reasoning.proceed_summary, item)

    def read(self, event_type: str, event: Json, frame: bytes | None) -> list[Event]:
        """Read any other event that is not about the response."""
        answer = self._output.open_answer
        if answer is not None and self._must_wait(answer, event):
            if self._output.reserve(self._output.frame_size):
                self._enqueue(_QueuedEvent(event_type, event, frame, self._output.frame_size))
                return []
            return [
                *self._answer.close(),
                *self._release_queue(),
                *self.read(event_type, event, frame),
            ]
        handler = self._HANDLERS.get(event_type, ItemReader._on_other)
        return handler(self, event, frame)

    def finish(self, status: str, output: Any) -> list[Event]:
        """Close the open items at the end of the response, as its `output` has them."""
        events = self._finish_reasoning(status, output)
        while (answer := self._output.open_answer) is not None:
            done = self._final_done(answer, status, output)
            events += (
                self._answer.close(status) if done is None else self._answer.finish(answer, *done)
            )
            events += self._release_queue()
            events += self._finish_reasoning(status, output)
        return events

    def _finish_reasoning(self, status: str, output: Any) -> list[Event]:
        item = self._output.open_reasoning
        done = None if item is None else self._final_done(item, status, output)
        if item is None or done is None:
            return self._reasoning.close(status)
        return self._reasoning.finish(item, *done)

    def _final_done(
        self, item: OutputItem, status: str, output: Any
    ) -> tuple[Json, bytes | None] | None:
        """Return the event that ends an item as the final output has it, and its frame.

        Some upstreams end items in no other way (anomalyco/opencode pull 44893).
        """
        final = self._output.find_final(item, output)
        if final is None:
            return None
        event: Json = {"output_index": item.output_index, "item": {"status": status, **final}}
        return event, self._framing.make_frame("response.output_item.done", event)

    def abort(self) -> list[Event]:
        """End the items as they stand because the stream broke."""
        events = list[Event]()
        while self._queue:
            events += [*self._answer.close("incomplete"), *self._release_queue()]
        return [*events, *self._reasoning.abort()]

    def read_whole(self, number: int, item: Json) -> list[Event]:
        """Read an item of a response that is not streamed, where frames are carried."""
        if is_reasoning(item):
            return self._reasoning.read_whole(number, item)
        return [ContentDelta(LANE, None, raw_text(item))]

    def read_rest(self, number: int | None, done: Json) -> list[Event]:
        """Read an item of the final response, as far as it was not streamed."""
        item, opening = self._output.get(number), list[Event]()
        if item is None:
            item = self._output.add(done, number)
            opening = self._begin(item, None)
        if item.is_reasoning:
            return [*opening, *self._reasoning.complete(item, done, None)] if item.is_open else []
        if item.is_open:
            opening += self._finish_answer(item, {"item": done}, None)
        return [*opening, *self._answer.confirm(item)]

    # Beginning and end of an item

    def _on_added(self, event: Json, frame: bytes | None) -> list[Event]:
        added, index = event.get("item"), event.get("output_index")
        if not isinstance(added, dict):
            return [Passthrough(LANE, frame)]
        if self._output.has_item(added, index):
            return self._output.count_fault()
        item = self._output.add(added, index)
        return self._begin(item, item.correct_address(event, frame))

    def _begin(self, item: OutputItem, frame: bytes | None) -> list[Event]:
        """Begin an item, and close the open one."""
        closing = [*self._answer.close(), *self._reasoning.close()]
        part = self._reasoning if item.is_reasoning else self._answer
        return [*closing, *part.begin(item, frame)]

    def _announce(self, item: OutputItem) -> list[Event]:
        """Begin an item whose beginning upstream left out.

        Where no frames are carried, an item of the answer needs no beginning.
        """
        if not (item.is_reasoning or self._framing.carries_frames):
            return []
        fields = {"output_index": item.output_index, "item": item.snapshot("in_progress")}
        return self._begin(item, self._framing.make_frame("response.output_item.added", fields))

    def _on_done(self, event: Json, frame: bytes | None) -> list[Event]:
        done, index = event.get("item"), event.get("output_index")
        if not isinstance(done, dict):
            return [Passthrough(LANE, frame)]
        item, opening = self._output.find_by_end(done, index), list[Event]()
        if item is None:
            item = self._output.add(without_content(done), index)
            opening = self._announce(item)
        if item.is_reasoning != is_reasoning(done):
            return self._output.count_fault()
        if not item.is_open:
            item.settle(done)
            self._output.store_done(item, item.reconcile(done))
            return [*self._output.count_fault(), *self._answer.settle(item)]
        if item.is_reasoning:
            return [*opening, *self._reasoning.finish(item, event, frame)]
        return [*opening, *self._finish_answer(item, event, frame), *self._release_queue()]

    def _finish_answer(self, item: OutputItem, event: Json, frame: bytes | None) -> list[Event]:
        events = self._answer.finish(item, event, frame)
        return [*self._reasoning.close(), *events] if events else []

    # Content

    def _on_content(self, event: Json, frame: bytes | None) -> list[Event]:
        """Read a content event. It is reasoning if its item is, or if its own type says so."""
        named, kind = self._output.find(event), content_kind_of(event, "reasoning")
        of_reasoning = named is not None and named.is_reasoning
        if kind is None or not (of_reasoning or is_reasoning_content(event)):
            return self._on_other(event, frame)
        text, item = event_text(event, kind) or "", self._output.find_reasoning(event)
        if item is not None:
            return self._reasoning.read_content(item, event, frame)
        if named is not None and self._framing.carries_frames:
            return [ReasoningDelta(LANE, frame, 0, text)]  # within an item of the answer
        if not text:
            return self._output.count_fault()
        added = {"id": event.get("item_id"), "type": "reasoning"}
        item = self._output.add(added, event.get("output_index"))
        return [*self._announce(item), *self._reasoning.read_content(item, event, frame)]

    def _on_summary(self, event: Json, frame: bytes | None) -> list[Event]:
        return self._reasoning.read_summary(event, frame)

    def _on_other(self, event: Json, frame: bytes | None) -> list[Event]:
        """Read an event of another type. Any of a reasoning item may contain reasoning.

        Where no frames are carried, nothing is known that another API could express of types but
        those of content.
        """
        event_type = string(event.get("type"))
        is_known = event_type in EVENT_STAGES or event_type == ANNOTATION_ADDED
        if not (self._framing.carries_frames or is_known):
            return []
        item = self._output.find(event)
        of_reasoning = item is not None and item.is_reasoning
        may_be_reasoning = event_type.startswith(REASONING_PREFIX)
        if of_reasoning or (may_be_reasoning and (item is None or item.is_open)):
            return self._reasoning.read_other(event, frame)
        return self._read_answer(item, event, frame)

    def _read_answer(
        self, named: OutputItem | None, event: Json, frame: bytes | None
    ) -> list[Event]:
        item = self._answer.find_target(named, event)
        opening = self._announce(item) if item is not None and item is not named else []
        events = self._answer.read(item, event, frame)
        if events is None:
            return self._output.count_fault()
        if item is not None and events:
            events = [*self._reasoning.close(), *events]
            if self._queue and item.is_complete and not item.is_numbered:
                events += [*self._answer.close(), *self._release_queue()]
        return [*opening, *events]

    _HANDLERS: ClassVar[dict[str, _Handler]] = {
        "response.output_item.added": _on_added,
        "response.output_item.done": _on_done,
        "response.content_part.added": _on_content,
        "response.content_part.done": _on_content,
        "response.reasoning_text.delta": _on_content,
        "response.reasoning_text.done": _on_content,
        **dict.fromkeys(NATIVE_STAGES, _on_summary),
    }

    # Order

    def _must_wait(self, answer: OutputItem, event: Json) -> bool:
        """Return whether the event is about a later item, and the open one may not be complete."""
        item = self._find_item(event)
        if item is answer or (item is not None and not (item.is_open or item.is_closed_early)):
            return False
        is_addressed = "item" in event or "item_id" in event or "output_index" in event
        return is_addressed and (bool(self._queue) or not answer.is_complete)

    def _find_item(self, event: Json) -> OutputItem | None:
        item = event.get("item")
        if isinstance(item, dict):
            return self._output.find_by_end(item, event.get("output_index"))
        return self._output.find(event)

    def _enqueue(self, queued: _QueuedEvent) -> None:
        self._queue.append(queued)
        self._output.has_queue = True

    def _release_queue(self) -> list[Event]:
        """Read the queued events."""
        queue, self._queue = self._queue, []
        self._output.has_queue = False
        events = list[Event]()
        frame_size = self._output.frame_size
        for event_type, event, frame, size in queue:
            self._output.frame_size = size
            events += self.read(event_type, event, frame)
        self._output.frame_size = frame_size
        return events
