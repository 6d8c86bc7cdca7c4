"""Thinking that stands in the text of messages: read into reasoning items, and written back there.

Servers without a reasoning parser answer with `<think>…</think>` in `output_text`: transformers
(huggingface/transformers cli/serving/response.py), vLLM, llama.cpp. `ResponsesInlineThinking` reads
upstream's events before anything else does, and hands on those that a server with a parser would
have sent: the thinking as a reasoning item of its own, live, and then the message without it. So a
message's own events are held until its first word. Output indexes stay as they are: `OutputItems`
counts anew.

Where raw reasoning is hidden, whatever looks like thinking is taken for it, wherever it stands: in
messages, in refusals, in the arguments of calls. Elsewhere only blocks in the profile's tags are
thinking, and only at the beginning of a message, if the profile says so (`inline_on_responses`).
What comes after a message has begun, or in a call, can become no reasoning item any more, since
that would have to be done before. It is left out then, and counted as dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from abridge.apis.delta_patterns import Accepts
from abridge.apis.display import Display
from abridge.apis.frames import MakeFrame, change_frame
from abridge.apis.json import objects, string
from abridge.apis.openai import mint_id
from abridge.apis.responses.items import (
    ADDRESS_FIELDS,
    ARGUMENTS,
    EVENT_STAGES,
    ITEM_ADDED,
    ITEM_DONE,
    REASONING,
    TEXT,
    Addresses,
    ContentKind,
    OutputItems,
    PartIndexes,
    Stage,
    content_kind_of,
    contents_of,
    event_text,
    is_reasoning_content,
    says_anything,
    upstream_id,
    with_contents,
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
from abridge.providers.profile import TAGS, Profile
from abridge.stages.hidden_thinking import (
    BlockFilter,
    JsonBlockFilter,
    ThinkingFilter,
    visible_text,
)
from abridge.stages.tags import MAX_LEADING_BLANKS, TagPiece, TagSplitter, join_alike

END_TYPES = ("response.completed", "response.incomplete", "response.failed")

CALL_TYPES = ("function_call", "custom_tool_call")

CLIENT_ROLES = ("user", "system", "developer")
"""Roles of messages that the client wrote, not the model."""

CLIENT_OUTPUTS = ("function_call_output", "custom_tool_call_output")
"""Types of items with which a client begins another response."""


FramedEvent: TypeAlias = tuple[Json, bytes | None]


class Splitter(Protocol):
    """Separate thinking from one text that arrives in pieces."""

    def passes(self, text: str) -> bool:
        """Return whether `feed` would return just this text."""

    def feed(self, text: str) -> list[TagPiece]: ...

    def end(self) -> list[TagPiece]:
        """End the text; return what was held back."""

    def abort(self) -> list[TagPiece]:
        """End a text that breaks off; return what was held back."""


@dataclass(slots=True, frozen=True)
class TextRules:
    """What counts as thinking in one response."""

    profile: Profile
    hides_raw: bool
    limit: int  # so many characters of a text may be held back
    drops_inline: bool = False  # it is left out, and becomes no reasoning item

    def apply_to(self, item_type: str) -> bool:
        return item_type == "message" or (self.hides_raw and item_type in CALL_TYPES)


class ItemText:
    """The text of one item, part by part.

    Only a message may begin with thinking that becomes a reasoning item, and if raw reasoning is
    shown, only one that no reasoning item came before: after it, tags belong to the answer.
    """

    def __init__(self, rules: TextRules, item_type: str, *, follows_reasoning: bool) -> None:
        self.has_begun = (
            item_type != "message"
            or rules.drops_inline
            or (follows_reasoning and not rules.hides_raw)
        )
        """The answer has begun, so that thinking can become no reasoning item any more."""
        self.has_raw = False  # there was thinking before the answer
        self.has_dropped = False  # there was some after its beginning, which was left out
        self._unclosed: ThinkingFilter | None = None  # of the last part, if it left a block open
        self._rules = rules
        self._follows_reasoning = follows_reasoning
        self._blank = ""  # white space before the answer, which thinking may follow

    def make_splitter(self, kind: ContentKind) -> Splitter:
        """Make a splitter for the next part."""
        rules, profile = self._rules, self._rules.profile
        if rules.hides_raw:
            if not kind.is_part:
                new_filter = JsonBlockFilter if kind is ARGUMENTS else BlockFilter
                return new_filter(limit=rules.limit)
            unclosed = self._unclosed if kind is TEXT else None
            splitter = ThinkingFilter.for_answer(profile, rules.limit, after=unclosed)
            if kind is not TEXT or self._follows_reasoning or self.has_raw:
                splitter.note_reasoning()
            return splitter
        if kind is not TEXT or self.has_begun:
            return TagSplitter(())
        return TagSplitter(profile.tags, prefilled=profile.prefilled and not self.has_raw)

    def sort(self, pieces: Iterable[TagPiece]) -> Iterator[TagPiece]:
        """Yield what becomes of the next pieces: thinking before the answer, or the answer."""
        for kind, text in join_alike(pieces):
            if kind == "text":
                yield from self._sort_text(text)
            elif self.has_begun:
                self.has_dropped = True
            else:
                self.has_raw, self._blank = True, ""
                yield TagPiece("raw", text)

    def end_part(
        self, pieces: Iterable[TagPiece], splitter: Splitter | None = None
    ) -> Iterator[TagPiece]:
        """Yield what becomes of the last pieces of a part, of the one that its splitter has ended.
        A blank part may be an answer, too."""
        if splitter is not None:
            self._unclosed = None
            if isinstance(splitter, ThinkingFilter) and splitter.is_inside:
                self._unclosed = splitter
        yield from self.sort(pieces)
        blank, self._blank = self._blank, ""
        if blank and not self.has_raw:
            self.has_begun = True
            yield TagPiece("text", blank)

    def split(self, kind: ContentKind, text: str) -> tuple[str, str]:
        """Split the whole text of the next part into thinking before the answer, and the answer."""
        splitter = self.make_splitter(kind)
        pieces = [*self.end_part([*splitter.feed(text), *splitter.end()], splitter)]
        raw = "".join(piece.text for piece in pieces if piece.kind == "raw")
        return raw, visible_text(pieces)

    def _sort_text(self, text: str) -> Iterator[TagPiece]:
        text, self._blank = self._blank + text, ""
        if self.has_begun or text.strip() or len(text) > MAX_LEADING_BLANKS:
            self.has_begun = True
            yield TagPiece("text", text)
        else:
            self._blank = text


class SplitItem(NamedTuple):
    raw: str  # the thinking before the answer
    item: Json  # without any thinking
    has_dropped: bool  # there was some after the answer's beginning


def split_item(item: Json, rules: TextRules, *, follows_reasoning: bool) -> SplitItem:
    """Split an item of which all is known."""
    item_type = string(item.get("type"))
    contents = contents_of(item, item_type) if rules.apply_to(item_type) else []
    item_text = ItemText(rules, item_type, follows_reasoning=follows_reasoning)
    raw, visible = "", []
    for kind, text in contents:
        thought, rest = item_text.split(kind, text or "")
        raw += thought
        visible.append((kind, rest))
    if visible != [(kind, text or "") for kind, text in contents]:
        item = with_contents(item, item_type, visible)
        item = _without_passages(item) if item_type == "message" else item
    return SplitItem(raw, item, item_text.has_dropped)


def _without_passages(message: Json) -> Json:
    """Return a message whose texts were changed without the places that its annotations name."""
    content = [
        {**part, "annotations": [_without_place(each) for each in objects(part["annotations"])]}
        if isinstance(part.get("annotations"), list)
        else part
        for part in objects(message.get("content"))
    ]
    return {**message, "content": content}


def _without_place(annotation: Json) -> Json:
    places = annotation.keys() & {"start_index", "end_index", "index"}
    return {**annotation, **dict.fromkeys(places, 0)}


def hide_thinking(items: Sequence[Any], profile: Profile, *, is_output: bool) -> list[Any]:
    """Return items of a stored response, or of its input, without the thinking in what the model
    wrote. An input has items of several responses, and may be listed from its end."""
    rules = TextRules(profile, hides_raw=True, limit=sys.maxsize)
    follows = _follow_reasoning(items)
    if not is_output:
        listed_first = reversed(_follow_reasoning(items[::-1]))
        follows = [either or other for either, other in zip(follows, listed_first, strict=True)]
    return [
        _hide_in_item(item, rules, follows_reasoning=after)
        for item, after in zip(items, follows, strict=True)
    ]


def _follow_reasoning(items: Sequence[Any]) -> list[bool]:
    """Return for each item whether reasoning came before it in the same response."""
    found, follows = False, []
    for item in items:
        if is_reasoning(item):
            found = found or bool((raw_text(item) + summary_text(item)).strip())
        elif isinstance(item, dict) and _is_from_client(item):
            found = False
        follows.append(found)
    return follows


def _is_from_client(item: Json) -> bool:
    return item.get("role") in CLIENT_ROLES or item.get("type") in CLIENT_OUTPUTS


def _hide_in_item(item: Any, rules: TextRules, *, follows_reasoning: bool) -> Any:
    if not isinstance(item, dict) or item.get("role") in CLIENT_ROLES:
        return item
    item, content = {"type": "message", **item}, item.get("content")
    if isinstance(content, str) and item["type"] == "message":
        text = ItemText(rules, "message", follows_reasoning=follows_reasoning)
        return {**item, "content": text.split(TEXT, content)[1]}
    return split_item(item, rules, follows_reasoning=follows_reasoning).item


def begins_with_thinking(item: Any, profile: Profile) -> bool:
    """Return whether the text of a message begins with a closed block of thinking."""
    if not isinstance(item, dict) or item.get("type") != "message":
        return False
    splitter = TagSplitter(profile.tags)
    pieces = splitter.feed("".join(text or "" for _, text in contents_of(item, "message")[:1]))
    return any(piece.kind == "raw" for piece in pieces) and not splitter.is_inside


# Streams


class SplitPart:
    """A content part, or the arguments of a call, as it streams."""

    def __init__(self, kind: ContentKind, index: int | None, text: ItemText) -> None:
        self.kind = kind
        self.index = index  # upstream's `content_index`, if that tells parts apart
        self.address: Json = {}
        self.is_fed = False  # it has text
        self.is_ended = False
        self.begin(text)

    def begin(self, text: ItemText) -> None:
        """Begin with the first text of the part, since others may have had theirs meanwhile."""
        self.splitter = text.make_splitter(self.kind)
        self.before = copy(text)  # its item's text when it began

    def note_address(self, event: Json) -> None:
        self.address = {key: event[key] for key in ADDRESS_FIELDS if key in event}

    def is_continued_by(self, stage: Stage, kind: ContentKind) -> bool:
        """Return whether an event continues the part. Once it has ended only an end does."""
        return self.kind is kind and stage != "added" and not (self.is_ended and stage == "delta")

    def passes(self, event: Json) -> bool:
        """Return whether an event only adds more text without thinking."""
        text = event.get("delta")
        return (
            event.get("type") == self.kind.delta_type
            and isinstance(text, str)
            and all(event.get(key) == self.address.get(key) for key in ADDRESS_FIELDS)
            and self.is_fed
            and not self.is_ended
            and self.splitter.passes(text)
        )


@dataclass(slots=True)
class InlineItem:
    """An item of the output as it streams."""

    added: Json  # the item at its beginning
    address: Json  # its `output_index`, if upstream says it
    follows_reasoning: bool  # which had come in an item of its own
    text: ItemText
    held: list[FramedEvent] | None = None  # a message's own events, until it begins
    is_added: bool = False  # upstream has sent its beginning
    part: SplitPart | None = None  # the part of the last event
    parts: list[SplitPart] = field(default_factory=list)  # all that are not done
    indexes: PartIndexes = field(default_factory=PartIndexes)
    reasoning_id: str = ""  # of the reasoning item that its thinking became

    @property
    def type(self) -> str:
        return string(self.added.get("type"))

    def passes(self, event: Json) -> bool:
        """Return whether an event only adds text without thinking."""
        return self.held is None and self.part is not None and self.part.passes(event)

    def take_deltas(self) -> list[Json]:
        """Take what deltas that are held say beside texts that were split."""
        held, self.held = self.held or [], []
        deltas = []
        for event, frame in held:
            if EVENT_STAGES.get(string(event.get("type"))) == "delta":
                deltas.append(event)
            else:
                self.held.append((event, frame))
        return deltas

    def find_part(self, event: Json, stage: Stage) -> tuple[int | None, SplitPart | None]:
        """Find the part that an event is about: by its index, if it tells, else the last."""
        part = self.part
        is_fresh = part is not None and not (part.is_fed or part.is_ended)
        index = self.indexes.read(event, stage, is_fresh=is_fresh)
        if index is None:
            return None, part
        return index, next((each for each in reversed(self.parts) if each.index == index), None)


class ResponsesInlineThinking:
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
        self._addresses = Addresses[InlineItem]()
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
            part = SplitPart(kind, index, item.text)
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
        self, item: InlineItem, part: SplitPart, event: Json, frame: bytes | None
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
        self, item: InlineItem, part: SplitPart, event: Json, frame: bytes | None
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

    def _feed(self, item: InlineItem, part: SplitPart, text: str) -> list[TagPiece]:
        if text and not part.is_fed:
            part.begin(item.text)
            part.is_fed = True
        return [*item.text.sort(part.splitter.feed(text))]

    def _turn_to(self, item: InlineItem, part: SplitPart) -> Iterator[FramedEvent]:
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
        self, item: InlineItem, part: SplitPart, end: Callable[[], list[TagPiece]] | None = None
    ) -> Iterator[FramedEvent]:
        """Release what of an open part is held."""
        if part.is_ended:
            return
        yield from self._turn_to(item, part)
        part.is_ended = True
        pieces = [*item.text.end_part((end or part.splitter.end)(), part.splitter)]
        yield from self._show(item, part, pieces)

    def _show(
        self, item: InlineItem, part: SplitPart, pieces: Iterable[TagPiece]
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
            item = self._addresses.find(upstream_id(entry), index)
            if item is None or item.type != entry.get("type"):
                return self._add(entry, index)
            is_new = event_type == ITEM_ADDED and item.added.get("id") != entry.get("id")
            return self._add(entry, index) if is_new else item
        item = self._addresses.find(event.get("item_id"), index)
        if item is not None:
            return item
        streamed = "" if current is None else current.type
        if streamed != "reasoning" and content_kind_of(event, streamed) is not None:
            return current
        kind = content_kind_of(event, "message")
        if kind is None or not event_text(event, kind):
            return None
        return self._add({"id": event.get("item_id"), "type": "message"}, index)

    def _add(self, entry: Json, index: Any) -> InlineItem:
        item = self._make_item(entry, index)
        self._items.append(item)
        self._addresses.add(item, upstream_id(entry), index)
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
        item = self._addresses.find(upstream_id(entry), place)
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


# Written back


def takes_tags(profile: Profile) -> bool:
    """Return whether a server has reasoning in its messages, and wants it back there."""
    return profile.inline_on_responses and profile.returns.place == "tags"


def put_into_tags(items: Sequence[Json], profile: Profile) -> Iterator[Json]:
    """Yield the items of a turn, with reasoning at the beginning of the message after it, or in a
    message of its own if there is none. Reasoning that the message repeats is said once."""
    tagged = ""
    for item in items:
        raw = "" if item.get("encrypted_content") else raw_text(item) if is_reasoning(item) else ""
        if raw.strip():
            tagged += _write_tags(raw, profile)
            continue
        if tagged and item.get("role") == "assistant":
            yield _begin_with(tagged, item, profile)
        else:
            yield from ([_message(tagged), item] if tagged else [item])
        tagged = ""
    if tagged:
        yield _message(tagged)


def _write_tags(text: str, profile: Profile) -> str:
    tag = (profile.tags or TAGS)[0]
    text = text.removeprefix("\n").removesuffix("\n")
    return f"{tag.opening}\n{text}\n{tag.closing}\n\n"


def _message(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


def _begin_with(tagged: str, item: Json, profile: Profile) -> Json:
    if begins_with_thinking({"type": "message", **item}, profile):
        return item
    return {**item, "content": _prefix(tagged, item.get("content"))}


def _prefix(tagged: str, content: Any) -> Any:
    if not isinstance(content, list):
        return tagged + string(content)
    first, *rest = content or [{}]
    if isinstance(first, dict) and isinstance(first.get("text"), str):
        return [{**first, "text": tagged + first["text"]}, *rest]
    return [{"type": "output_text", "text": tagged, "annotations": []}, *content]
