"""Split the text of an output item into thinking and the answer.

Where raw reasoning is hidden, whatever looks like thinking is taken for it, wherever it stands: in
messages, in refusals, in the arguments of calls. Elsewhere only blocks in the profile's tags are
thinking, and only at the beginning of a message, if the profile says so (`inline_on_responses`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeAlias

from abridge.apis.json import string
from abridge.apis.responses.citations import forget_passages
from abridge.apis.responses.items import (
    ADDRESS_FIELDS,
    ARGUMENTS,
    EVENT_STAGES,
    TEXT,
    ContentKind,
    PartIndexes,
    Stage,
    contents_of,
    with_contents,
)
from abridge.apis.responses.reasoning import is_reasoning, raw_text, summary_text
from abridge.core.conversation import Json
from abridge.providers.profile import Profile
from abridge.stages.hidden_thinking import BlockFilter, JsonBlockFilter, ThinkingFilter
from abridge.stages.tags import MAX_LEADING_BLANKS, TagPiece, TagSplitter, join_alike

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
        return raw, "".join(piece.text for piece in pieces if piece.kind == "text")

    def _sort_text(self, text: str) -> Iterator[TagPiece]:
        text, self._blank = self._blank + text, ""
        if self.has_begun or text.strip() or len(text) > MAX_LEADING_BLANKS:
            self.has_begun = True
            yield TagPiece("text", text)
        else:
            self._blank = text


class TextPart:
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
    part: TextPart | None = None  # the part of the last event
    parts: list[TextPart] = field(default_factory=list)  # all that are not done
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

    def find_part(self, event: Json, stage: Stage) -> tuple[int | None, TextPart | None]:
        """Find the part that an event is about: by its index, if it tells, else the last."""
        part = self.part
        is_fresh = part is not None and not (part.is_fed or part.is_ended)
        index = self.indexes.read(event, stage, is_fresh=is_fresh)
        if index is None:
            return None, part
        return index, next((each for each in reversed(self.parts) if each.index == index), None)


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
        item = forget_passages(item) if item_type == "message" else item
    return SplitItem(raw, item, item_text.has_dropped)


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
