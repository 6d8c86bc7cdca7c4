"""The content that items stream: content parts, and the arguments of calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from abridge.apis.json import objects, string
from abridge.apis.obfuscation import PADDING_FIELDS
from abridge.core.conversation import Json

Stage: TypeAlias = Literal["added", "delta", "text_done", "done"]

CONTENT_PART_ADDED = "response.content_part.added"

CONTENT_PART_DONE = "response.content_part.done"


@dataclass(slots=True, frozen=True)
class ContentKind:
    """One kind of content: its event types and fields."""

    name: str  # the `type` of a part, and the middle of event types: `response.{name}.delta`
    text_field: str  # has the whole text, in a part or in the item
    is_part: bool = True  # else all the content of its item, without events for a part
    other_fields: Json = field(default_factory=dict)  # other fields of a part

    @property
    def delta_type(self) -> str:
        return f"response.{self.name}.delta"

    @property
    def done_type(self) -> str:
        return f"response.{self.name}.done"

    def build_event(self, stage: Stage, text: str) -> tuple[str, Json]:
        """Return the type of an event, and the fields with its text."""
        if stage == "delta":
            return self.delta_type, {"delta": text}
        if stage == "text_done":
            return self.done_type, {self.text_field: text}
        return CONTENT_PART_ADDED if stage == "added" else CONTENT_PART_DONE, {
            "part": self.build_part(text)
        }

    def extra_fields(self, stage: Stage, item: Json) -> Json:
        """Return the other fields that an event of this item has."""
        if self is TEXT and stage in ("delta", "text_done"):
            return {"logprobs": []}
        if self is ARGUMENTS and stage == "text_done":
            return {"name": string(item.get("name"))}
        return {}

    def build_part(self, text: str) -> Json:
        return {"type": self.name, self.text_field: text, **self.other_fields}


TEXT = ContentKind(
    "output_text",
    "text",
    other_fields={"annotations": [], "logprobs": []},
)

REFUSAL = ContentKind("refusal", "refusal")

REASONING = ContentKind("reasoning_text", "text")

ARGUMENTS = ContentKind("function_call_arguments", "arguments", is_part=False)

INPUT = ContentKind("custom_tool_call_input", "input", is_part=False)

Content: TypeAlias = tuple[ContentKind, str | None]
"""One content of an item, and its text; None if upstream leaves that out."""

CONTENT_KINDS: Mapping[str, tuple[ContentKind, ...]] = {
    "message": (TEXT, REFUSAL),
    "reasoning": (REASONING,),
    "function_call": (ARGUMENTS,),
    "custom_tool_call": (INPUT,),
}
"""The kinds of content that an item can have, by its type."""

TEXT_TYPE_ALIASES = ("text", "")
"""Types that some servers give to parts of output text."""

TEXT_DELTA = TEXT.delta_type

EVENT_STAGES: Mapping[str, Stage] = {
    CONTENT_PART_ADDED: "added",
    CONTENT_PART_DONE: "done",
    **{kind.delta_type: "delta" for kinds in CONTENT_KINDS.values() for kind in kinds},
    **{kind.done_type: "text_done" for kinds in CONTENT_KINDS.values() for kind in kinds},
}
"""The stage that each type of content event brings its part to."""


@dataclass(slots=True, frozen=True)
class ContentEvent:
    """One event of an item's content."""

    stage: Stage
    kind: ContentKind
    text: str  # new text; empty for an event that only repeats or closes
    frame: bytes | None


@dataclass(slots=True)
class StreamedPart:
    """One part of an item, or the arguments of a call, as it was streamed."""

    kind: ContentKind
    index: int  # orders it among the parts that upstream has of the item
    place: int  # counts the parts as they begin
    address: Json  # `item_id`, `output_index` and, of a content part, `content_index`
    stage: Stage = "added"  # how far upstream has brought it
    is_open: bool = True
    deltas: list[str] = field(default_factory=list)  # or its final text, if that differs
    truncated: bool = False  # there was no room to store all of its text
    is_mismatched: bool = False  # its final text is not the sum of its deltas
    lacks_beginning: bool = False  # upstream has not sent its `added` event

    @property
    def text(self) -> str:
        return "".join(self.deltas)

    def is_continued_by(self, stage: Stage, kind: ContentKind) -> bool:
        """Return whether an event continues the part. After `text_done` only `done` does."""
        if not self.is_open or self.kind is not kind:
            return False
        return stage == "done" if self.stage == "text_done" else stage != "added"


class FinalText(NamedTuple):
    """Upstream's last word on one part."""

    part: StreamedPart | None  # None if it was not streamed
    kind: ContentKind
    text: str | None  # None if upstream leaves it out


RestPlace: TypeAlias = Literal["open part", "last part", "no part"]
"""Which part takes, as a delta, what only its final text has: one that has not ended; the last with
a text, even if it has ended; or none any more, since texts that were told follow all of them."""

MAX_INDEXES = 128
"""Parts of an item that are told apart. A server that has more counts something else."""


ADDRESS_FIELDS = ("item_id", "output_index", "content_index")
"""Fields that say which part an event is about."""

_FORMAL_FIELDS = frozenset({"type", "sequence_number", *ADDRESS_FIELDS, *PADDING_FIELDS})
"""Fields that tell no more of a part than that an event is about it."""


class PartIndexes:
    """Tell which part an event of an item is about, by its `content_index`.

    Older vLLM counts every event there: after it has added a part it sends none with the index of
    that one. Then the index says nothing, and nor does it beyond `MAX_INDEXES`.
    """

    def __init__(self) -> None:
        self._known: tuple[int, ...] = ()  # nearly always one
        self._counts_events = False

    def read(self, event: Json, stage: Stage, *, is_fresh: bool) -> int | None:
        """Return the index of the event's part; None if it does not say.

        `is_fresh` tells that the last part has no text yet.
        """
        index = event.get("content_index")
        if not isinstance(index, int) or self._counts_events:
            return None
        is_new = index not in self._known
        misses_part = stage != "added" and is_fresh
        if is_new and (misses_part or len(self._known) >= MAX_INDEXES):
            self._counts_events = True
            return None
        if is_new:
            self._known += (index,)
        return index


def content_kind_of(event: Json, item_type: str) -> ContentKind | None:
    """Return the kind of content an event streams, if an item of this type can have it.

    All parts of a reasoning item are reasoning, whatever upstream calls them.
    """
    event_type, part = event.get("type"), event.get("part")
    for content_kind in CONTENT_KINDS.get(item_type, ()):
        if event_type in (content_kind.delta_type, content_kind.done_type):
            return content_kind
        if event_type in (CONTENT_PART_ADDED, CONTENT_PART_DONE) and _is_part_of_kind(
            part, content_kind
        ):
            return content_kind
    return None


def is_reasoning_content(event: Json) -> bool:
    part = event.get("part")
    part_type = part.get("type") if isinstance(part, dict) else ""
    return part_type == REASONING.name or event["type"] in (
        REASONING.delta_type,
        REASONING.done_type,
    )


def says_anything(event: Json) -> bool:
    """Return whether an event says more than what it is about."""
    values = (value for key, value in event.items() if key not in _FORMAL_FIELDS)
    return any(value not in (None, "", []) for value in values)


def event_text(event: Json, content_kind: ContentKind) -> str | None:
    """Return the text of an event: a delta, or all of a part. None if upstream leaves it out."""
    part = event.get("part")
    if isinstance(part, dict):
        return _text_in(part, content_kind.text_field)
    is_delta = event["type"] == content_kind.delta_type
    return _text_in(event, "delta" if is_delta else content_kind.text_field)


def contents_of(item: Json, item_type: str) -> list[Content]:
    """Return the content of an item of this type, part by part."""
    kinds = CONTENT_KINDS.get(item_type, ())
    if kinds and not kinds[0].is_part:
        return [(kinds[0], _text_in(item, kinds[0].text_field))]
    return [
        (content_kind, _text_in(part, content_kind.text_field))
        for part in objects(item.get("content"))
        for content_kind in kinds
        if _is_part_of_kind(part, content_kind)
    ]


def without_content(item: Json) -> Json:
    """Return the item as it is at its beginning, without content."""
    kinds = CONTENT_KINDS.get(string(item.get("type")), ())
    if not kinds:
        return item
    return {**item, "content": []} if kinds[0].is_part else {**item, kinds[0].text_field: ""}


def with_event_text(event: Json, content_kind: ContentKind, text: str) -> Json:
    """Return an event that has the text of a whole part with another one."""
    part = event.get("part")
    if isinstance(part, dict):
        return {**event, "part": {**part, content_kind.text_field: text}}
    return {**event, content_kind.text_field: text}


def with_contents(item: Json, item_type: str, texts: list[tuple[ContentKind, str]]) -> Json:
    """Return the item with this content."""
    if texts and not texts[0][0].is_part:
        return {**item, texts[0][0].text_field: texts[0][1]}
    remaining, content = list(texts), list[Json]()
    for part in objects(item.get("content")):
        content_kind = next(
            (each for each in CONTENT_KINDS.get(item_type, ()) if _is_part_of_kind(part, each)),
            None,
        )
        if content_kind is None:
            content.append(part)
        elif remaining and remaining[0][0] is content_kind:
            content.append({**part, content_kind.text_field: remaining.pop(0)[1]})
    return {
        **item,
        "content": [*content, *(content_kind.build_part(text) for content_kind, text in remaining)],
    }


def _text_in(fields: Json, key: str) -> str | None:
    text = fields.get(key)
    return text if isinstance(text, str) else None


def _is_part_of_kind(part: object, content_kind: ContentKind) -> bool:
    if not isinstance(part, dict) or not content_kind.is_part:
        return False
    part_type = string(part.get("type"))
    return (
        content_kind is REASONING
        or part_type == content_kind.name
        or (content_kind is TEXT and part_type in TEXT_TYPE_ALIASES)
    )
