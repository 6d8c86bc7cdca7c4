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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

from abridge.apis.delta_patterns import Accepts
from abridge.apis.display import Display
from abridge.apis.frames import FramedEvent, MakeFrame, repair
from abridge.apis.json import objects, string
from abridge.apis.logprobs import without_logprobs
from abridge.apis.openai import mint_id
from abridge.apis.responses.items import (
    ADDRESS_FIELDS,
    ARGUMENTS,
    CALL_TYPES,
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
from abridge.core.hidden import HiddenCount
from abridge.providers.profile import TAGS, Profile
from abridge.stages.hidden_thinking import (
    BlockFilter,
    JsonBlockFilter,
    ThinkingFilter,
    visible_text,
)
from abridge.stages.tags import MAX_LEADING_BLANKS, TagPiece, TagSplitter, join_alike

BROKEN_STATUSES = ("failed", "cancelled")

END_TYPES = ("response.completed", "response.incomplete", "response.failed")

CLIENT_ROLES = ("user", "system", "developer")
"""Roles of messages that the client wrote, not the model."""

CLIENT_OUTPUTS = ("function_call_output", "custom_tool_call_output")
"""Types of items with which a client begins another response."""


Splitter: TypeAlias = TagSplitter | ThinkingFilter


@dataclass(slots=True)
class TextRules:
    """What counts as thinking in one response."""

    profile: Profile
    hides_raw: bool
    limit: int  # so many characters of a text may be held back
    drops_inline: bool = False  # it is left out, and becomes no reasoning item
    hidden: HiddenCount = field(default_factory=Counter)  # counts it
    has_failed: bool = False  # the response has: what is held back of a text may be thinking

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
        self.hidden = rules.hidden
        self._follows_reasoning = follows_reasoning
        self._blank = ""  # white space before the answer, which thinking may follow

    def uncounted(self) -> ItemText:
        """Return a copy that counts nothing as hidden: it is to read again what was counted."""
        text = copy(self)
        text.hidden = Counter()
        return text

    def make_splitter(self, kind: ContentKind) -> Splitter:
        """Make a splitter for the next part."""
        rules, profile = self._rules, self._rules.profile
        if rules.hides_raw:
            if not kind.is_part:
                new_filter = JsonBlockFilter if kind is ARGUMENTS else BlockFilter
                return new_filter(limit=rules.limit).counting_in(self.hidden)
            unclosed = self._unclosed if kind is TEXT else None
            splitter = ThinkingFilter.for_answer(
                profile, rules.limit, after=unclosed, hidden=self.hidden
            )
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

    def split(self, kind: ContentKind, text: str, *, is_cut: bool = False) -> tuple[str, str]:
        """Split the whole text of the next part into thinking before the answer, and the answer.
        One that `is_cut` broke off."""
        splitter = self.make_splitter(kind)
        rest = [*splitter.feed(text), *(splitter.abort() if is_cut else splitter.end())]
        pieces = [*self.end_part(rest, splitter)]
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


def split_item(
    item: Json, rules: TextRules, *, follows_reasoning: bool, is_cut: bool = False
) -> SplitItem:
    """Split an item of which all is known; one that `is_cut` broke off."""
    item_type = string(item.get("type"))
    contents = contents_of(item, item_type) if rules.apply_to(item_type) else []
    item_text = ItemText(rules, item_type, follows_reasoning=follows_reasoning)
    raw, visible = "", []
    for kind, text in contents:
        thought, rest = item_text.split(kind, text or "", is_cut=is_cut)
        raw += thought
        visible.append((kind, rest))
    if visible != [(kind, text or "") for kind, text in contents]:
        item = with_contents(item, item_type, visible)
        item = _without_passages(item) if item_type == "message" else item
    return SplitItem(raw, item, item_text.has_dropped)


def _without_passages(message: Json) -> Json:
    """Return a message whose texts were changed without the places that its annotations name, and
    without log probabilities."""
    content = [
        {**part, "annotations": [_without_place(each) for each in objects(part["annotations"])]}
        if isinstance(part.get("annotations"), list)
        else part
        for part in map(without_logprobs, objects(message.get("content")))
    ]
    return {**message, "content": content}


def _without_place(annotation: Json) -> Json:
    places = annotation.keys() & {"start_index", "end_index", "index"}
    return {**annotation, **dict.fromkeys(places, 0)}


def hide_thinking(
    items: Sequence[Any], profile: Profile, hidden: HiddenCount, *, is_output: bool
) -> list[Any]:
    """Return items of a stored response, or of its input, without the thinking in what the model
    wrote, which is counted. An input has items of several responses, and may be listed from its
    end."""
    rules = TextRules(profile, hides_raw=True, limit=sys.maxsize, hidden=hidden)
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
        self.before = text.uncounted()  # its item's text when it began

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


class Emitted:
    """What takes the place of the event that is read."""

    def __init__(self, output: OutputItems, make_frame: MakeFrame) -> None:
        self._output = output
        self.make_frame = make_frame
        self._events: list[FramedEvent] = []

    def add(self, event: Json, frame: bytes | None) -> None:
        self._events.append((event, frame))

    def make(self, event_type: str, fields: Json) -> None:
        self.add({"type": event_type, **fields}, self.make_frame(event_type, fields))

    def has_room(self) -> bool:
        """Return whether the event may be held."""
        return self._output.reserve(self._output.frame_size)

    def take(self) -> list[FramedEvent]:
        events, self._events = self._events, []
        return events


class InlineItem:
    """An item of the output as it streams, of which the thinking is taken out."""

    def __init__(
        self, entry: Json, index: Any, rules: TextRules, emitted: Emitted, *, follows: bool
    ) -> None:
        self.added = {"role": "assistant", **without_content(entry), "status": "in_progress"}
        self.type = string(entry.get("type"))
        self.follows_reasoning = follows  # which had come in an item of its own
        self.text = ItemText(rules, self.type, follows_reasoning=follows)
        self.reasoning_id = ""  # of the reasoning item that its thinking became
        self.is_added = False  # upstream has sent its beginning
        self.part: SplitPart | None = None  # the part of the last event
        self._rules = rules
        self._is_counted = False  # some of it was split before
        self._emitted = emitted
        self._address = {"output_index": index} if isinstance(index, int) else {}
        self._held: list[FramedEvent] | None = None if self.text.has_begun else []
        """A message's own events, until it begins."""
        self.is_cut = False  # the response failed before its text had begun
        self._parts: list[SplitPart] = []  # all that are not done
        self._indexes = PartIndexes()

    @property
    def is_held(self) -> bool:
        return self._held is not None

    def passes(self, event: Json) -> bool:
        """Return whether an event only adds text without thinking."""
        return self._held is None and self.part is not None and self.part.passes(event)

    def split(self, entry: Json) -> SplitItem:
        """Split the item as all of it is known. What is hidden of it counts once."""
        rules = replace(self._rules, hidden=Counter()) if self._is_counted else self._rules
        self._is_counted = True
        is_cut = self.is_cut or (self._rules.has_failed and not self.text.has_begun)
        follows = self.follows_reasoning
        split = split_item(entry, rules, follows_reasoning=follows, is_cut=is_cut)
        self.text.has_dropped = self.text.has_dropped or split.has_dropped
        return split

    def finish(self, entry: Json) -> None:
        """Take the item at its end, which may be the first to have its thinking."""
        self.end_parts()
        raw = self.split(entry).raw
        if raw and self.is_held and not self.text.has_raw:
            self._reason(raw)
        self.begin()

    def hand_on(self, event: Json, frame: bytes | None) -> None:
        """Hand on an event about the item, once that has begun."""
        if self._held is not None and self._emitted.has_room():
            self._held.append((event, frame))
            return
        if self._held is not None:
            self.leave()
        self._emitted.add(event, frame)

    # Content

    def read(self, event: Json, frame: bytes | None) -> None:
        """Read an event of the item, which is one of its content if that may hold thinking."""
        kind = content_kind_of(event, self.type) if self._rules.apply_to(self.type) else None
        if kind is None:
            self.hand_on(event, frame)
            return
        stage = EVENT_STAGES[event["type"]]
        index, part = self._find_part(event, stage)
        if part is None or not part.is_continued_by(stage, kind):
            self.end_parts(index)
            part = SplitPart(kind, index, self.text)
            self._is_counted = True
            self._parts.append(part)
        self._turn_to(part)
        part.note_address(event)
        if stage == "delta":
            self._read_delta(part, event, frame)
        elif stage == "added":
            text = event_text(event, kind) or ""
            self.hand_on(*_with_text(event, frame, kind, text, ""))
            self._show(part, self._feed(part, text))
        else:
            self._read_part_end(part, event, frame)
            if stage == "done":
                self.part = None
                self._parts.remove(part)

    def _find_part(self, event: Json, stage: Stage) -> tuple[int | None, SplitPart | None]:
        """Find the part that an event is about: by its index, if it tells, else the last."""
        part = self.part
        is_fresh = part is not None and not (part.is_fed or part.is_ended)
        index = self._indexes.read(event.get("content_index"), stage, is_fresh=is_fresh)
        if index is None:
            return None, part
        return index, next((each for each in reversed(self._parts) if each.index == index), None)

    def _read_delta(self, part: SplitPart, event: Json, frame: bytes | None) -> None:
        text = string(event.get("delta"))
        pieces = self._feed(part, text)
        if pieces == [TagPiece("text", text)]:
            self.begin()
            self._emitted.add(event, frame)
            return
        self._show(part, pieces)
        rest = without_logprobs({**event, "delta": ""})
        if says_anything(rest) and self.is_held and self.reasoning_id:
            self._tell_thinking(rest)
        elif says_anything(rest):
            self.hand_on(rest, self._emitted.make_frame(rest["type"], rest))

    def _read_part_end(self, part: SplitPart, event: Json, frame: bytes | None) -> None:
        """Read an event with the whole text of a part, which may be the only one that has it."""
        text = event_text(event, part.kind) or ""
        if not part.is_fed:
            part.begin(self.text)
        if self.is_held and not (part.is_fed or self.text.has_raw):
            self._show(part, self._feed(part, text))
        self._end_part(part)
        _, visible = copy(part.before).split(part.kind, text)
        self.hand_on(*_with_text(event, frame, part.kind, text, visible))

    def _feed(self, part: SplitPart, text: str) -> list[TagPiece]:
        if text and not part.is_fed:
            part.begin(self.text)
            part.is_fed = True
        return [*self.text.sort(part.splitter.feed(text))]

    def _turn_to(self, part: SplitPart) -> None:
        """Go on with a part; release the white space that is held of another."""
        if self.part is not None and self.part is not part:
            self._show(self.part, self.text.end_part(()))
        self.part = part

    def end_parts(self, index: int | None = None) -> None:
        """Release what is held of the open parts, or of the one with an index."""
        for part in self._parts:
            if index is None or part.index == index:
                self._end_part(part)

    def break_off(self) -> None:
        """Release the text that is held when the stream breaks off."""
        for part in self._parts:
            self._end_part(part, part.splitter.abort)

    def _end_part(self, part: SplitPart, end: Callable[[], list[TagPiece]] | None = None) -> None:
        if part.is_ended:
            return
        self._turn_to(part)
        part.is_ended = True
        default = part.splitter.abort if self._rules.has_failed else part.splitter.end
        self._show(part, self.text.end_part((end or default)(), part.splitter))

    def _show(self, part: SplitPart, pieces: Iterable[TagPiece]) -> None:
        for kind, text in [*pieces]:
            if kind == "raw":
                self._reason(text)
            else:
                self.begin()
                event_type, fields = part.kind.build_event("delta", text)
                extra_fields = part.kind.extra_fields("delta", self.added)
                self._emitted.make(event_type, {**part.address, **extra_fields, **fields})

    # Beginning

    def _reason(self, text: str) -> None:
        """Tell thinking as more of the reasoning item before a message, with what deltas that are
        held say beside texts that were split."""
        if not self.reasoning_id:
            self.reasoning_id = mint_id("rs_")
            added = make_reasoning(self.reasoning_id, "in_progress")
            self._emitted.make(ITEM_ADDED, {**self._address, "item": added})
            held, self._held = self._held or [], []
            for event, frame in held:
                if EVENT_STAGES.get(string(event.get("type"))) == "delta":
                    self._tell_thinking(event)
                else:
                    self._held.append((event, frame))
        self._tell_thinking({**self._address, "delta": text})

    def _tell_thinking(self, rest: Json) -> None:
        address = {"item_id": self.reasoning_id, "content_index": 0}
        kind = REASONING.delta_type
        self._emitted.make(kind, {**rest, **address, "type": kind})

    def begin(self) -> None:
        """End the reasoning item before a message, and release the message's own events."""
        held, self._held = self._held, None
        if held is None:
            return
        self.text.has_begun = True
        if self.reasoning_id:
            done = make_reasoning(self.reasoning_id, "completed")
            self._emitted.make(ITEM_DONE, {**self._address, "item": done})
            if not self.is_added:  # else its index would be taken for the reasoning item's
                self._emitted.make(ITEM_ADDED, {**self._address, "item": self.added})
        for event, frame in held:
            self._emitted.add(event, frame)

    def leave(self) -> None:
        """Begin a message though it has no text yet, since something else follows."""
        self.is_cut = self.is_cut or (self._rules.has_failed and self.is_held)
        self.end_parts()
        self.begin()


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
        self._rules = TextRules(
            profile, display.hides_raw, limit, display.drops_inline, display.hidden
        )
        self._emitted = Emitted(output, make_frame)
        self._items: list[InlineItem] = []
        self._addresses = Addresses[InlineItem]()
        self._current: InlineItem | None = None  # the item that streams
        self._has_reasoning = False  # some has come in an item of its own
        self._foreign = 0  # events that were left out, since their items cannot have them

    @property
    def dropped(self) -> int:
        return self._foreign + sum(item.text.has_dropped for item in self._items)

    def read(self, event: Json, frame: bytes | None) -> list[FramedEvent]:
        """Read one event; return those that take its place."""
        item = self._current
        if item is not None and item.passes(event):
            return [(event, frame)]
        self._read(event, frame)
        return self._emitted.take()

    def find_filter(self, event: Json) -> Accepts | None:
        """Return what tells whether the text of a further event like this one passes; None if that
        depends on more."""
        item = self._current
        if item is None or item.part is None or not item.passes(event):
            return None
        return item.part.splitter.passes

    def end(self) -> list[FramedEvent]:
        """Release the text that is held when the stream breaks off."""
        for item in self._items:
            item.break_off()
        return self._emitted.take()

    def split_whole(self, response: Json) -> Json:
        """Return a whole response, with reasoning items made of its thinking."""
        self._rules.has_failed = response.get("status") in BROKEN_STATUSES
        return {**response, "output": self.split_output(response["output"])}

    def split_output(self, output: list[Any]) -> list[Any]:
        """Return a whole output, with reasoning items made of its thinking."""
        return [split for place, entry in enumerate(output) for split in self._split(place, entry)]

    # Events

    def _read(self, event: Json, frame: bytes | None) -> None:
        event_type = string(event.get("type"))
        if isinstance(event.get("response"), dict):
            self._read_response(event, frame, is_end=event_type in END_TYPES)
            return
        is_reasoned = event_type.startswith(REASONING_PREFIX)
        item = None if is_reasoned else self._find(event, event_type)
        if is_reasoned or (item is not None and item is not self._current):
            if self._current is not None and self._current.type == "message":
                self._current.leave()
            self._current = item
        self._note_reasoning(event if is_reasoned else {}, event.get("item"))
        if self._is_foreign(item, event):
            self._foreign += 1
        elif item is None:
            self._emitted.add(event, frame)
        elif isinstance(event.get("item"), dict):
            self._read_item(item, event, frame, is_done=event_type == ITEM_DONE)
        else:
            item.read(event, frame)

    def _is_foreign(self, item: InlineItem | None, event: Json) -> bool:
        """Return whether an event is content that its item cannot have, where raw reasoning is
        hidden: nobody would look for thinking in it. An item that nobody announced is a message."""
        is_content = event.get("type") in EVENT_STAGES and not is_reasoning_content(event)
        if not (is_content and self._rules.hides_raw):
            return False
        item_type = "message" if item is None else item.type
        return not self._rules.apply_to(item_type) or content_kind_of(event, item_type) is None

    def _read_response(self, event: Json, frame: bytes | None, *, is_end: bool) -> None:
        """Read an event that repeats the response. Only the last one adds reasoning items."""
        self._rules.has_failed = event.get("type") == "response.failed"
        for item in self._items if is_end else ():
            item.leave()

        def change(event: Json) -> Json:
            response = event["response"]
            output = response.get("output")
            if not isinstance(output, list):
                return event
            output = self.split_output(output) if is_end else [*map(self._cleaned, output)]
            return {**event, "response": {**response, "output": output}}

        self._emitted.add(*repair(event, frame, change))

    def _read_item(
        self, item: InlineItem, event: Json, frame: bytes | None, *, is_done: bool
    ) -> None:
        """Read the beginning or the end of an item."""
        if is_done:
            item.finish(event["item"])
            self._current = None
        item.is_added = True
        item.hand_on(
            *repair(event, frame, lambda event: {**event, "item": item.split(event["item"]).item})
        )

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
        follows = self._has_reasoning
        item = InlineItem(entry, index, self._rules, self._emitted, follows=follows)
        self._items.append(item)
        self._addresses.add(item, upstream_id(entry), index)
        return item

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
        raw, cleaned, _ = item.split(entry)
        if not raw or not (item.is_held or item.reasoning_id):
            return [cleaned]
        item.reasoning_id = item.reasoning_id or mint_id("rs_")
        return [make_reasoning(item.reasoning_id, "completed", raw), cleaned]

    def _cleaned(self, entry: Any) -> Any:
        """Return an item of an unfinished output without its thinking."""
        if not isinstance(entry, dict):
            return entry
        return split_item(entry, self._rules, follows_reasoning=self._has_reasoning).item

    def _note_reasoning(self, event: Json, entry: Any) -> None:
        """Note that reasoning came in an item of its own."""
        if not self._has_reasoning:
            texts = [string(event.get("delta")), string(event.get("text"))]
            texts += [raw_text(entry), summary_text(entry)] if is_reasoning(entry) else []
            self._has_reasoning = any(map(str.strip, texts))


def _with_text(
    event: Json, frame: bytes | None, kind: ContentKind, text: str, visible: str
) -> FramedEvent:
    """Return an event with the visible part of its text."""
    if visible == text:
        return event, frame
    return repair(
        event, frame, lambda event: without_logprobs(with_event_text(event, kind, visible))
    )


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
