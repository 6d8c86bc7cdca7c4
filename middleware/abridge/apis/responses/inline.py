"""Make reasoning items of the thinking that upstream writes inside its messages.

Servers without a reasoning parser answer with `<think>…</think>` in `output_text`: transformers
(huggingface/transformers cli/serving/response.py), vLLM, llama.cpp. This stage reads upstream's
events before anything else does, and hands on those that a server with a parser would have sent:
the thinking as a reasoning item of its own, live, and then the message without it. So a message's
own events are held until its first word. Output indexes stay as they are: `OutputItems` counts
anew.

What counts as thinking is said in `inline_text.py`. If it comes after a message has begun, or in a
call, it can become no reasoning item any more, since that would have to be done before. It is left
out then, and counted as dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import Any

from abridge.apis.delta_patterns import Accepts
from abridge.apis.display import Display
from abridge.apis.frames import MakeFrame, change_frame
from abridge.apis.json import string
from abridge.apis.openai import mint_id
from abridge.apis.responses.inline_text import (
    FramedEvent,
    InlineItem,
    ItemText,
    SplitItem,
    TextPart,
    TextRules,
    split_item,
)
from abridge.apis.responses.items import (
    EVENT_STAGES,
    REASONING,
    ContentKind,
    OutputItems,
    content_kind_of,
    event_text,
    is_reasoning_content,
    says_anything,
    upstream_id,
    with_event_text,
    without_content,
)
from abridge.apis.responses.reasoning import (
    REASONING_PREFIX,
    is_reasoning,
    make_reasoning,
    raw_text,
    summary_text,
)
from abridge.core.conversation import Json
from abridge.providers.profile import Profile
from abridge.stages.tags import TagPiece

ITEM_ADDED = "response.output_item.added"

ITEM_DONE = "response.output_item.done"

END_TYPES = ("response.completed", "response.incomplete", "response.failed")


class InlineThinking:
    """Take the thinking out of the messages of one response."""

    def __init__(
        self,
        profile: Profile,
        display: Display,
        limit: int,
        output: OutputItems,
        make_frame: MakeFrame,
    ) -> None:
        self._rules = TextRules(profile, display.hides_raw, limit, display.drops_inline)
        self._output = output
        self._make_frame = make_frame
        self._items: list[InlineItem] = []
        self._by_id: dict[str, InlineItem] = {}
        self._by_index: dict[int, InlineItem] = {}
        self._current: InlineItem | None = None  # the item that streams
        self._has_reasoning = False  # some has come in an item of its own
        self._foreign = 0  # events that were left out, since their items cannot have them

    @property
    def dropped(self) -> int:
        return self._foreign + sum(item.text.has_dropped for item in self._items)

    def read(self, event: Json, frame: bytes | None) -> Iterable[FramedEvent]:
        """Read one event; return those that take its place."""
        item = self._current
        if item is not None and item.passes(event):
            return ((event, frame),)
        return self._read(event, frame)

    def find_filter(self, event: Json) -> Accepts | None:
        """Return what tells whether the text of a further event like this one passes; None if that
        depends on more."""
        item = self._current
        if item is None or item.part is None or not item.passes(event):
            return None
        return item.part.splitter.passes

    def end(self) -> Iterator[FramedEvent]:
        """Release the text that is held when the stream breaks off."""
        for item in self._items:
            for part in item.parts:
                yield from self._end_part(item, part, part.splitter.abort)

    def split_output(self, output: list[Any]) -> list[Any]:
        """Return a whole output, with reasoning items made of its thinking."""
        return [split for place, entry in enumerate(output) for split in self._split(place, entry)]

    # Events

    def _read(self, event: Json, frame: bytes | None) -> Iterator[FramedEvent]:
        event_type = string(event.get("type"))
        if isinstance(event.get("response"), dict):
            yield from self._read_response(event, frame, is_end=event_type in END_TYPES)
            return
        is_reasoned = event_type.startswith(REASONING_PREFIX)
        item = None if is_reasoned else self._find(event, event_type)
        if is_reasoned or (item is not None and item is not self._current):
            yield from self._leave_current()
            self._current = item
        self._note_reasoning(event if is_reasoned else {}, event.get("item"))
        if self._is_foreign(item, event):
            self._foreign += 1
        elif item is None:
            yield event, frame
        elif isinstance(event.get("item"), dict):
            yield from self._read_item(item, event, frame, is_done=event_type == ITEM_DONE)
        else:
            yield from self._read_content(item, event, frame)

    def _is_foreign(self, item: InlineItem | None, event: Json) -> bool:
        """Return whether an event is content that its item cannot have, where raw reasoning is
        hidden: nobody would look for thinking in it. An item that nobody announced is a message."""
        is_content = event.get("type") in EVENT_STAGES and not is_reasoning_content(event)
        if not (is_content and self._rules.hides_raw):
            return False
        item_type = "message" if item is None else item.type
        return not self._rules.apply_to(item_type) or content_kind_of(event, item_type) is None

    def _read_response(
        self, event: Json, frame: bytes | None, *, is_end: bool
    ) -> Iterator[FramedEvent]:
        """Read an event that repeats the response. Only the last one adds reasoning items."""
        for item in self._items if is_end else ():
            yield from self._end_parts(item)
            yield from self._begin(item)

        def change(event: Json) -> Json:
            response = event["response"]
            output = response.get("output")
            if not isinstance(output, list):
                return event
            output = self.split_output(output) if is_end else [*map(self._cleaned, output)]
            return {**event, "response": {**response, "output": output}}

        yield _changed(event, frame, change)

    def _read_item(
        self, item: InlineItem, event: Json, frame: bytes | None, *, is_done: bool
    ) -> Iterator[FramedEvent]:
        """Read the beginning or the end of an item."""
        if is_done:
            yield from self._end_parts(item)
            raw = self._split_item(event["item"], item).raw
            if raw and item.held is not None and not item.text.has_raw:
                yield from self._reason(item, raw)
            yield from self._begin(item)
            self._current = None
        item.is_added = True

        def change(event: Json) -> Json:
            return {**event, "item": self._split_item(event["item"], item).item}

        yield from self._pass(item, *_changed(event, frame, change))

    def _pass(self, item: InlineItem, event: Json, frame: bytes | None) -> Iterator[FramedEvent]:
        """Pass on an event about an item, once the item has begun."""
        if item.held is None:
            yield event, frame
        elif self._output.reserve(self._output.frame_size):
            item.held.append((event, frame))
        else:
            yield from self._end_parts(item)
            yield from self._begin(item)
            yield event, frame

    # Content

    def _read_content(
        self, item: InlineItem, event: Json, frame: bytes | None
    ) -> Iterator[FramedEvent]:
        """Read an event of an item, which is one of its content if that may hold thinking."""
        kind = content_kind_of(event, item.type) if self._rules.apply_to(item.type) else None
        if kind is None:
            yield from self._pass(item, event, frame)
            return
        stage = EVENT_STAGES[event["type"]]
        index, part = item.find_part(event, stage)
        if part is None or not part.is_continued_by(stage, kind):
            yield from self._end_parts(item, index)
            part = TextPart(kind, index, item.text)
            item.parts.append(part)
        yield from self._turn_to(item, part)
        part.note_address(event)
        if stage == "delta":
            yield from self._read_delta(item, part, event, frame)
        elif stage == "added":
            text = event_text(event, kind) or ""
            yield from self._pass(item, *_with_text(event, frame, kind, text, ""))
            yield from self._show(item, part, self._feed(item, part, text))
        else:
            yield from self._read_part_end(item, part, event, frame)
            if stage == "done":
                item.part = None
                item.parts.remove(part)

    def _read_delta(
        self, item: InlineItem, part: TextPart, event: Json, frame: bytes | None
    ) -> Iterator[FramedEvent]:
        text = string(event.get("delta"))
        pieces = self._feed(item, part, text)
        if pieces == [TagPiece("text", text)]:
            yield from self._begin(item)
            yield event, frame
        else:
            yield from self._show(item, part, pieces)
            yield from self._pass_rest(item, event)

    def _read_part_end(
        self, item: InlineItem, part: TextPart, event: Json, frame: bytes | None
    ) -> Iterator[FramedEvent]:
        """Read an event with the whole text of a part, which may be the only one that has it."""
        text = event_text(event, part.kind) or ""
        if not part.is_fed:
            part.begin(item.text)
        if not (part.is_fed or item.held is None or item.text.has_raw):
            yield from self._show(item, part, self._feed(item, part, text))
        yield from self._end_part(item, part)
        _, visible = copy(part.before).split(part.kind, text)
        yield from self._pass(item, *_with_text(event, frame, part.kind, text, visible))

    def _feed(self, item: InlineItem, part: TextPart, text: str) -> list[TagPiece]:
        if text and not part.is_fed:
            part.begin(item.text)
            part.is_fed = True
        return [*item.text.sort(part.splitter.feed(text))]

    def _turn_to(self, item: InlineItem, part: TextPart) -> Iterator[FramedEvent]:
        """Go on with a part; release the white space that is held of another."""
        if item.part is not None and item.part is not part:
            yield from self._show(item, item.part, [*item.text.end_part(())])
        item.part = part

    def _end_parts(self, item: InlineItem, index: int | None = None) -> Iterator[FramedEvent]:
        """Release what is held of an item's open parts, or of the one with an index."""
        for part in item.parts:
            if index is None or part.index == index:
                yield from self._end_part(item, part)

    def _end_part(
        self, item: InlineItem, part: TextPart, end: Callable[[], list[TagPiece]] | None = None
    ) -> Iterator[FramedEvent]:
        """Release what of an open part is held."""
        if part.is_ended:
            return
        yield from self._turn_to(item, part)
        part.is_ended = True
        pieces = [*item.text.end_part((end or part.splitter.end)(), part.splitter)]
        yield from self._show(item, part, pieces)

    def _show(
        self, item: InlineItem, part: TextPart, pieces: Iterable[TagPiece]
    ) -> Iterator[FramedEvent]:
        for kind, text in pieces:
            if kind == "raw":
                yield from self._reason(item, text)
            else:
                yield from self._begin(item)
                event_type, fields = part.kind.build_event("delta", text)
                extra_fields = part.kind.extra_fields("delta", item.added)
                yield self._make(event_type, {**part.address, **extra_fields, **fields})

    def _pass_rest(self, item: InlineItem, event: Json) -> Iterator[FramedEvent]:
        """Pass on what a delta says beside its text, which was split: with the thinking, while
        that is open."""
        rest = {**event, "delta": ""}
        if not says_anything(rest):
            return
        if item.held is not None and item.reasoning_id:
            yield self._with_thinking(item, rest)
        else:
            yield from self._pass(item, *self._make(rest["type"], rest))

    def _with_thinking(self, item: InlineItem, rest: Json) -> FramedEvent:
        address = {"item_id": item.reasoning_id, "content_index": 0}
        return self._make(REASONING.delta_type, {**rest, **address, "type": REASONING.delta_type})

    # Beginning

    def _reason(self, item: InlineItem, text: str) -> Iterator[FramedEvent]:
        """Emit thinking as more of the reasoning item before a message."""
        if not item.reasoning_id:
            item.reasoning_id = mint_id("rs_")
            added = make_reasoning(item.reasoning_id, "in_progress")
            yield self._make(ITEM_ADDED, {**item.address, "item": added})
            for rest in item.take_deltas():
                yield self._with_thinking(item, rest)
        yield self._with_thinking(item, {**item.address, "delta": text})

    def _begin(self, item: InlineItem) -> Iterator[FramedEvent]:
        """End the reasoning item before a message, and release the message's own events."""
        held, item.held = item.held, None
        if held is None:
            return
        item.text.has_begun = True
        if item.reasoning_id:
            done = make_reasoning(item.reasoning_id, "completed")
            yield self._make(ITEM_DONE, {**item.address, "item": done})
            if not item.is_added:  # else its index would be taken for the reasoning item's
                yield self._make(ITEM_ADDED, {**item.address, "item": item.added})
        yield from held

    def _make(self, event_type: str, fields: Json) -> FramedEvent:
        return {"type": event_type, **fields}, self._make_frame(event_type, fields)

    def _leave_current(self) -> Iterator[FramedEvent]:
        """Begin the message that streams, though it has no text yet: another item follows."""
        item = self._current
        if item is not None and item.type == "message":
            yield from self._end_parts(item)
            yield from self._begin(item)

    # Items

    def _find(self, event: Json, event_type: str) -> InlineItem | None:
        """Find the item that an event is about, or add it.

        Text of an unknown item is of the one that streams, or of a new message; but a reasoning
        item takes what is called reasoning alone.
        """
        entry, index, current = event.get("item"), event.get("output_index"), self._current
        if isinstance(entry, dict):
            item = self._get(upstream_id(entry), index)
            if item is None or item.type != entry.get("type"):
                return self._add(entry, index)
            is_new = event_type == ITEM_ADDED and item.added.get("id") != entry.get("id")
            return self._add(entry, index) if is_new else item
        item = self._get(string(event.get("item_id")), index)
        if item is not None:
            return item
        streamed = "" if current is None else current.type
        if streamed != "reasoning" and content_kind_of(event, streamed) is not None:
            return current
        kind = content_kind_of(event, "message")
        if kind is None or not event_text(event, kind):
            return None
        return self._add({"id": event.get("item_id"), "type": "message"}, index)

    def _get(self, given_id: str, index: Any) -> InlineItem | None:
        item = self._by_id.get(given_id)
        return self._by_index.get(index) if item is None and isinstance(index, int) else item

    def _add(self, entry: Json, index: Any) -> InlineItem:
        item = self._make_item(entry, index)
        self._items.append(item)
        if upstream_id(entry):
            self._by_id[upstream_id(entry)] = item
        if isinstance(index, int):
            self._by_index[index] = item
        return item

    def _make_item(self, entry: Json, index: Any) -> InlineItem:
        """Make an item that is not found by later events."""
        follows_reasoning = self._has_reasoning
        item_type = string(entry.get("type"))
        text = ItemText(self._rules, item_type, follows_reasoning=follows_reasoning)
        return InlineItem(
            {"role": "assistant", **without_content(entry), "status": "in_progress"},
            {"output_index": index} if isinstance(index, int) else {},
            follows_reasoning,
            text,
            held=None if text.has_begun else [],
        )

    # Whole items

    def _split(self, place: int, entry: Any) -> list[Any]:
        """Return an item of a whole output, with the reasoning item before it if it has one.

        One that was streamed without has none.
        """
        if not isinstance(entry, dict):
            return [entry]
        item = self._get(upstream_id(entry), place)
        if item is None or item.type != entry.get("type"):
            item = self._add(entry, place)
        self._note_reasoning({}, entry)
        raw, cleaned, _ = self._split_item(entry, item)
        if not raw or (item.held is None and not item.reasoning_id):
            return [cleaned]
        item.reasoning_id = item.reasoning_id or mint_id("rs_")
        return [make_reasoning(item.reasoning_id, "completed", raw), cleaned]

    def _cleaned(self, entry: Any) -> Any:
        """Return an item of an unfinished output without its thinking."""
        if not isinstance(entry, dict):
            return entry
        return self._split_item(entry, self._make_item(entry, None)).item

    def _split_item(self, entry: Json, item: InlineItem) -> SplitItem:
        split = split_item(entry, self._rules, follows_reasoning=item.follows_reasoning)
        item.text.has_dropped = item.text.has_dropped or split.has_dropped
        return split

    def _note_reasoning(self, event: Json, entry: Any) -> None:
        """Note that reasoning came in an item of its own."""
        if not self._has_reasoning:
            texts = [string(event.get("delta")), string(event.get("text"))]
            texts += [raw_text(entry), summary_text(entry)] if is_reasoning(entry) else []
            self._has_reasoning = any(map(str.strip, texts))


def _changed(event: Json, frame: bytes | None, change: Callable[[Json], Json]) -> FramedEvent:
    changed = change(event)
    return (event, frame) if changed == event else (changed, change_frame(frame, change))


def _with_text(
    event: Json, frame: bytes | None, kind: ContentKind, text: str, visible: str
) -> FramedEvent:
    """Return an event with the visible part of its text."""
    if visible == text:
        return event, frame
    return _changed(event, frame, lambda event: with_event_text(event, kind, visible))
