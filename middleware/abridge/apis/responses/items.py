"""The output items of a response as upstream streams them: what each says, and what upstream leaves
out or has in another way than it should.

`OutputItems` are the items in the order in which they were added. An item keeps the id it was added
with, whatever upstream calls it later (GitHub Copilot changes the id from event to event). Where an
event's id is unknown, or that of two items, its `output_index` finds the item. An item gets a new
id if it has none (llama.cpp's calls) or another item's (messages of older vLLM have the id of their
reasoning item).

`ItemContents` is what one item streams: its content parts, a call's arguments, or the parts of the
summary that upstream makes itself. Each part gets its added, delta and done events, in this order,
whichever of them upstream leaves out, and parts are counted from 0 as they begin. Parts that
upstream tells apart by `content_index` may be open at once; of others, and of summaries, each is
done before the next is added. llama.cpp's server neither counts nor adds parts of reasoning
(ggml-org/llama.cpp tools/server/server-task.cpp), Ollama neither adds nor ends those of summaries
(ollama openai/responses.go). Older vLLM counts every event (`PartIndexes`), and adds parts of
reasoning as `output_text` (vllm entrypoints/openai/serving_responses.py).

Upstream's final text of a part is the answer, whatever its deltas were. If they are its beginning,
the rest becomes a delta, as long as there is a place for it. Any other difference is a mismatch and
stays as upstream has it. Only what upstream leaves out is filled in.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, get_args

from abridge.apis.display import Display
from abridge.apis.frames import SentEvent, encode_event
from abridge.apis.json import as_object, entries, first_string, objects, string
from abridge.apis.obfuscation import PADDING_FIELDS, obfuscate_event
from abridge.apis.openai import mint_id
from abridge.apis.protocols import Continuation
from abridge.apis.responses.reasoning import (
    is_reasoning,
    rename_raw_summary,
    rename_raw_summary_in_response,
    summary_parts,
    summary_text,
)
from abridge.core.answer import Part, PartKind
from abridge.core.conversation import Json
from abridge.core.events import (
    LANE,
    PART_SEPARATOR,
    ContentDelta,
    Event,
    NativeSummary,
    PartEnded,
    PartStarted,
    ReasoningDelta,
    RefusalDelta,
    ToolCallDelta,
)
from abridge.stages.tag_forms import SIGN

# Kinds of content

Stage: TypeAlias = Literal["added", "delta", "text_done", "done"]

ITEM_ADDED = "response.output_item.added"

ITEM_DONE = "response.output_item.done"

ANNOTATION_ADDED = "response.output_text.annotation.added"

CONTENT_PART_ADDED = "response.content_part.added"

CONTENT_PART_DONE = "response.content_part.done"


@dataclass(slots=True, frozen=True)
class ContentKind:
    """One kind of content: its event types and fields."""

    name: str  # the middle of event types: `response.{name}.delta`
    text_field: str  # has the whole text, in a part or in the item
    is_part: bool = True  # else all the content of its item, without events for a part
    other_fields: Json = field(default_factory=dict)  # other fields of a part
    part_type: str = ""  # the `type` of a part, if that is not the name
    part_events: str = "content_part"  # begins the types of the events about a whole part
    index_field: str = "content_index"  # tells the parts apart
    item_field: str = "content"  # has the parts in an item
    delta_type: str = field(init=False)
    done_type: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta_type", f"response.{self.name}.delta")
        object.__setattr__(self, "done_type", f"response.{self.name}.done")

    def build_event(self, stage: Stage, text: str) -> tuple[str, Json]:
        """Return the type of an event, and the fields with its text."""
        if stage == "delta":
            return self.delta_type, {"delta": text}
        if stage == "text_done":
            return self.done_type, {self.text_field: text}
        return f"response.{self.part_events}.{stage}", {"part": self.build_part(text)}

    def extra_fields(self, stage: Stage, item: Json) -> Json:
        """Return the other fields that an event of this item has."""
        if self is TEXT and stage in ("delta", "text_done"):
            return {"logprobs": []}
        if self is ARGUMENTS and stage == "text_done":
            return {"name": string(item.get("name"))}
        return {}

    def build_part(self, text: str) -> Json:
        part_type = self.part_type or self.name
        return {"type": part_type, self.text_field: text, **self.other_fields}


TEXT = ContentKind(
    "output_text",
    "text",
    other_fields={"annotations": [], "logprobs": []},
)

REFUSAL = ContentKind("refusal", "refusal")

REASONING = ContentKind("reasoning_text", "text")

SUMMARY = ContentKind(
    "reasoning_summary_text",
    "text",
    part_type="summary_text",
    part_events="reasoning_summary_part",
    index_field="summary_index",
    item_field="summary",
)
"""The summary that upstream makes of an item itself."""

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

CALL_TYPES = ("function_call", "custom_tool_call")
"""Types of calls that the client answers."""

TEXT_TYPES = (TEXT.name, "text", "")
"""Types of parts of output text: that of the API, and those that some servers give them."""

TEXT_DELTA = TEXT.delta_type

EVENT_STAGES: Mapping[str, Stage] = {
    CONTENT_PART_ADDED: "added",
    CONTENT_PART_DONE: "done",
    **{kind.delta_type: "delta" for kinds in CONTENT_KINDS.values() for kind in kinds},
    **{kind.done_type: "text_done" for kinds in CONTENT_KINDS.values() for kind in kinds},
}
"""The stage that each type of content event brings its part to."""

SUMMARY_STAGES: Mapping[str, Stage] = {
    SUMMARY.build_event(stage, "")[0]: stage for stage in get_args(Stage)
}
"""The same of the types of events about upstream's summary."""

_STAGES = {**EVENT_STAGES, **SUMMARY_STAGES}

ADDRESS_FIELDS = ("item_id", "output_index", "content_index")
"""Fields that say which part an event is about."""

INDEX_FIELDS = ("output_index", "content_index", "summary_index")

_FORMAL_FIELDS = frozenset({"type", "sequence_number", *ADDRESS_FIELDS, *PADDING_FIELDS})
"""Fields that tell no more of a part than that an event is about it."""


def content_kind_of(event: Json, item_type: str) -> ContentKind | None:
    """Return the kind of content an event streams, if an item of this type can have it.

    All parts of a reasoning item are reasoning, whatever upstream calls them.
    """
    event_type, kinds = event.get("type"), CONTENT_KINDS.get(item_type, ())
    if event_type in (CONTENT_PART_ADDED, CONTENT_PART_DONE):
        return _kind_of_part(event.get("part"), kinds)
    return next((kind for kind in kinds if event_type in (kind.delta_type, kind.done_type)), None)


def is_reasoning_content(event: Json) -> bool:
    part_type = as_object(event.get("part")).get("type")
    own_types = REASONING.delta_type, REASONING.done_type
    return part_type == REASONING.name or event["type"] in own_types


def rename_raw_summary_in_event(event: Json, part_type: str = "reasoning_text") -> Json:
    """Return the event with raw reasoning that it calls a summary as reasoning."""
    event = dict(event)
    stage = SUMMARY_STAGES.get(string(event.get("type")))
    if stage is not None:
        event["type"] = REASONING.build_event(stage, "")[0]
        event["content_index"] = event.pop("summary_index", 0)
    part = event.get("part")
    if isinstance(part, dict) and (stage is not None or part.get("type") == "summary_text"):
        event["part"] = {**part, "type": "reasoning_text"}
    if "item" in event:
        event["item"] = rename_raw_summary(event["item"], part_type)
    if isinstance(event.get("response"), dict):
        event["response"] = rename_raw_summary_in_response(event["response"], part_type)
    return event


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
    return _contents_in(item, CONTENT_KINDS.get(item_type, ()))


def _contents_in(item: Json, kinds: tuple[ContentKind, ...]) -> list[Content]:
    if kinds and not kinds[0].is_part:
        return [(kinds[0], _text_in(item, kinds[0].text_field))]
    return [
        (kind, _text_in(part, kind.text_field))
        for part in objects(item.get(kinds[0].item_field) if kinds else None)
        if (kind := _kind_of_part(part, kinds)) is not None
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
        content_kind = _kind_of_part(part, CONTENT_KINDS.get(item_type, ()))
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


def _kind_of_part(part: object, kinds: tuple[ContentKind, ...]) -> ContentKind | None:
    """Return which of these kinds a part is of. There is only one where parts are reasoning."""
    part_type = string(part.get("type")) if isinstance(part, dict) else None
    for kind in kinds if part_type is not None else ():
        is_text = kind is TEXT and part_type in TEXT_TYPES
        if kind.is_part and (is_text or kind in (REASONING, SUMMARY) or part_type == kind.name):
            return kind
    return None


# The content of one item


class ResponseState:
    """What the items of one response share, of which at most `limit` characters are stored.

    With `carries_frames` the client speaks Responses, too: its items follow each other, and every
    event has a frame.
    """

    def __init__(self, display: Display, limit: int, *, carries_frames: bool) -> None:
        self.display = display
        self.limit = limit
        self.carries_frames = carries_frames
        self._room_left = limit

    def reserve(self, size: int) -> bool:
        """Reserve room for so many characters; return whether as much was left."""
        if size > self._room_left:
            return False
        self._room_left -= size
        return True

    def keep(self, part: StreamedPart, text: str) -> None:
        """Keep a text of a part if there is room for it."""
        if self.reserve(len(text)):
            part.texts.append(text)
        else:
            part.truncated = True

    def make_frame(self, event_type: str, fields: Json) -> bytes | None:
        """Make the frame of an event that upstream did not send."""
        if not self.carries_frames:
            return None
        shown = obfuscate_event(fields) if self.display.obfuscate else fields
        return encode_event(event_type, shown)

    def frame_of(self, event: Json) -> bytes | None:
        """Return the frame of an event: upstream's, unless the event was repaired."""
        if isinstance(event, SentEvent) and self.carries_frames:
            return event.frame
        return self.make_frame(string(event.get("type")), event)


class StreamedPart(Part):
    """One part of an item, or the arguments of a call, as it was streamed. Its `texts` are those of
    its deltas, or its final text, if that differs."""

    __slots__ = (
        *("address", "content_kind", "index", "is_mismatched", "is_open", "lacks_beginning"),
        *("place", "stage", "truncated"),
    )

    def __init__(
        self, item: Part, content_kind: ContentKind, index: int, place: int, address: Json
    ) -> None:
        super().__init__(item.kind, item.number, free_text=item.free_text, item=item)
        self.content_kind = content_kind
        self.index = index  # orders it among the parts that upstream has of the item
        self.place = place  # counts the parts as they begin
        self.address = address
        """`item_id`, `output_index` and, of a content part, `content_index`."""
        self.stage: Stage = "added"  # how far upstream has brought it
        self.is_open = True
        self.truncated = False  # there was no room to store all of its text
        self.is_mismatched = False  # its final text is not the sum of its deltas
        self.lacks_beginning = False  # upstream has not sent its `added` event

    def is_continued_by(self, stage: Stage, kind: ContentKind) -> bool:
        """Return whether an event continues the part. After `text_done` only `done` does."""
        if not self.is_open or self.content_kind is not kind:
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


class PartIndexes:
    """Tell which part an event of an item is about, by its `content_index` or `summary_index`.

    Older vLLM counts every event there: after it has added a part it sends none with the index of
    that one. Then the index says nothing, and nor does it beyond `MAX_INDEXES`.
    """

    def __init__(self) -> None:
        self._known: tuple[int, ...] = ()  # nearly always one
        self._counts_events = False

    def read(self, index: Any, stage: Stage, *, is_fresh: bool) -> int | None:
        """Return the index of an event's part; None if it does not say.

        `is_fresh` tells that the last part has no text yet.
        """
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


NO_INDEXES: frozenset[int] = frozenset()

NO_TEXTS: Mapping[int, str] = {}


class ItemContents:
    """What one item streams, and the repair of it.

    Each of its events is one of the answer's: new text, with what else another API can express, or
    nothing but a frame that repeats or closes.
    """

    def __init__(
        self,
        part: Part,
        address: Json,
        added: Json,
        state: ResponseState,
        *,
        kinds: tuple[ContentKind, ...] | None = None,
    ) -> None:
        self.takes_rest: RestPlace = "open part"
        self.contradicted: str | None = None  # what was streamed of a part whose final text differs
        self.number = 0  # of a message among the messages, or of a call among the calls
        self._item_part = part  # of the answer, whose parts are items
        self._address = address
        self._added = added
        self._item_type = string(added.get("type"))
        self._kinds = CONTENT_KINDS.get(self._item_type, ()) if kinds is None else kinds
        self._state = state
        self._parts: list[StreamedPart] = []  # in the order in which they began
        self._unclosed: list[StreamedPart] = []  # those that may be open
        self._taken: set[int] = set()  # indexes of the parts, and of those that were ended before
        self._last_index = -1  # the highest of any part, in earlier items too
        self._current: StreamedPart | None = None  # the part of the last event
        self._next: StreamedPart | None = None  # that part, if the next delta may be like the last
        self._indexes = PartIndexes()
        self._by_index: dict[int, StreamedPart] = {}  # by upstream's `content_index`
        self._is_share = False  # one of several items that share upstream's content
        self._is_continued = False  # a later item has the rest of it
        self._earlier = NO_TEXTS  # what earlier items have of parts, by their index
        self._ended = NO_INDEXES  # indexes of the parts that earlier items have all of

    @property
    def mismatches(self) -> int:
        """Return the number of parts whose final text is not the sum of their deltas."""
        return sum(part.is_mismatched for part in self._parts)

    @property
    def text(self) -> str:
        """Return all of it: what was streamed, or upstream's final text of a part."""
        return "".join(part.said_text for part in self._parts)

    @property
    def has_begun(self) -> bool:
        return bool(self._parts)

    @property
    def parts(self) -> list[StreamedPart]:
        """Return the parts in the order that upstream has them in."""
        return sorted(self._parts, key=lambda part: part.index)

    @property
    def texts(self) -> list[str]:
        return [part.said_text for part in self.parts]

    @property
    def _is_known(self) -> bool:
        """Return whether there is content, and room for all of it."""
        is_streamed = any(part.texts for part in self._parts)
        return is_streamed and not any(part.truncated for part in self._parts)

    def continuation_of(self, event: Json, part: StreamedPart) -> Continuation | None:
        """Return how a delta of a part is continued, if it held nothing but the next text."""
        text = event.get("delta")
        if part is not self._next or event.get("type") != part.content_kind.delta_type:
            return None
        if not (part.address.items() <= event.items() and isinstance(text, str) and text):
            return None
        return Continuation("delta", text, (partial(self._go_on, part),))

    def _go_on(self, part: StreamedPart, text: str) -> None:
        self._state.keep(part, text)
        if part.shown is not None and not part.truncated:
            part.shown.append(text)

    def read(self, event: Json, kind: ContentKind) -> list[Event] | None:
        """Read one upstream event; return None if it is out of order."""
        stage, text = _STAGES[event["type"]], event_text(event, kind)
        index, part = self._find_part(event, kind, stage)
        if part is not None and part.is_continued_by(stage, kind):
            return self._continue_part(part, stage, text, event)
        if self._is_repeated(part, index, stage, kind, text):
            return None
        ending = self.close() if index is None or kind is SUMMARY else self._close_part(part)
        if stage == "added":
            part = self._add_part(kind, index)
            added = self._tell(part, stage, self._correct(part, stage, event))
            return [*ending, added, *self._add_text(part, text or "")]
        part, adding = self._begin_part(kind, index)
        return [*ending, *adding, *self._continue_part(part, stage, text, event)]

    def finish(self, item: Json) -> list[Event]:
        """Take the finished item's texts, and emit what they say beyond what was streamed."""
        finals, events = self._other_finals(item), list[Event]()
        for part, rest in self._settle_all(finals):
            events += self._add_text(part, rest)
        for kind, text in [(kind, text) for part, kind, text in finals if part is None and text]:
            events += self.close()
            part, adding = self._begin_part(kind, None)
            events += [*adding, *self._add_text(part, self._settle(part, text))]
        return events + self.close()

    def add(self, kind: ContentKind, text: str) -> list[Event]:
        """Add text that upstream has said elsewhere."""
        part, adding = (self._current, []) if self._current else self._begin_part(kind, None)
        return [*adding, *self._add_text(part, text)]

    def finish_early(self, added: Json) -> list[Event]:
        """Close the open parts of an item that upstream does not end.

        If nothing was streamed, what the item was `added` with is its content.
        """
        if all(part.stage == "added" and not part.texts for part in self._parts):
            return self.finish(added)
        return self.close()

    def close(self) -> list[Event]:
        """Close the open parts."""
        unclosed, self._unclosed = self._unclosed, []
        return [event for part in unclosed for event in self._close_part(part)]

    def settle(self, item: Json) -> list[Event]:
        """Take the final texts of an item that was closed before. Return what they say beyond what
        was streamed, if a closed item takes that."""
        if self.takes_rest != "open part":
            return self.finish(item)
        self._settle_all(self._other_finals(item))
        return []

    def fill_in(self, item: Json) -> Json:
        """Return the item with the texts that it leaves out; a share, with its own alone."""
        given = _contents_in(item, self._kinds)
        if self._is_share or not given:
            return self.rewrite(item)
        if not self._is_known or all(text is not None for _, text in given):
            return item
        known = {
            (place, part.content_kind.name): part.said_text for place, part in enumerate(self.parts)
        }
        texts = [
            (kind, known.get((place, kind.name), "") if text is None else text)
            for place, (kind, text) in enumerate(given)
        ]
        return with_contents(item, self._item_type, texts)

    def rewrite(self, item: Json) -> Json:
        """Return the item with what is known of its content in place of its own."""
        texts = [(part.content_kind, part.said_text) for part in self._parts]
        return with_contents(item, self._item_type, texts) if self._is_known else item

    def continue_from(self, earlier: ItemContents) -> None:
        """Continue the content of an item that was closed. Each keeps only its share."""
        self._is_share = earlier._is_share = earlier._is_continued = True
        self._indexes = earlier._indexes
        texts, self._ended = {**earlier._earlier}, earlier._ended
        for part in earlier._parts:
            texts[part.index] = texts.get(part.index, "") + part.said_text
            if part.stage != "added":
                self._ended |= {part.index}
        self._earlier, self._taken = texts, {*self._ended}
        self._last_index = max(texts, default=-1)

    def _is_repeated(
        self,
        part: StreamedPart | None,
        index: int | None,
        stage: Stage,
        kind: ContentKind,
        text: str | None,
    ) -> bool:
        """Return whether an event only repeats what is known.

        The end of an unknown part may repeat what an earlier item has of it, or all parts. A delta
        that comes after the end of its part does, if that had its text, and so does a beginning
        that comes after a delta or the end. Where thinking is to be hidden, what might be a piece
        of its tags is no repetition: without it, what follows would be shown.
        """
        if part is None:
            known = [self.text] if len(self._parts) > 1 else []
            if index is not None and index in self._earlier:
                known.append(self._earlier[index])
            return stage in ("text_done", "done") and text in known
        if part.content_kind is not kind:
            return False
        if not kind.is_part or kind is SUMMARY:
            return True
        if stage == "added":
            is_late = index is not None and part.lacks_beginning
            return is_late or (part.is_open and not part.texts)
        if stage == "delta":
            is_late = index is not None and part.stage != "added"
            hides_raw = self._state.display.hides_raw
            is_safe = not (hides_raw and SIGN.search(part.said_text))
            return bool(is_late and is_safe and text and text in part.said_text)
        return not text or text == part.said_text

    # Parts

    def _find_part(
        self, event: Json, kind: ContentKind, stage: Stage
    ) -> tuple[int | None, StreamedPart | None]:
        """Find the part that an event is about: by its index, if it tells, else the last."""
        last = self._parts[-1] if self._parts else None
        is_fresh = last is not None and last.is_open and not (last.texts or last.truncated)
        given = event.get(kind.index_field) if kind.is_part else None
        index = self._indexes.read(given, stage, is_fresh=is_fresh)
        return index, last if index is None else self._by_index.get(index)

    def _add_part(self, kind: ContentKind, index: int | None) -> StreamedPart:
        """Add a part, which takes the events of upstream's `content_index` from now on."""
        place = {kind.index_field: len(self._parts)} if kind.is_part else {}
        order = self._next_index() if index is None or index in self._taken else index
        address = {**self._address, **place}
        part = StreamedPart(self._item_part, kind, order, len(self._parts), address)
        self._parts.append(part)
        self._unclosed.append(part)
        self._taken.add(order)
        self._last_index = max(self._last_index, order)
        if not kind.is_part:
            self._item_part.texts = part.texts
        if index is not None:
            self._by_index[index] = part
        self._note_current(part)
        return part

    def _next_index(self) -> int:
        """Return the index of a part that upstream does not address."""
        last = self._last_index
        goes_on = not self._parts and last in self._earlier and last not in self._ended
        return last if goes_on else last + 1

    def _begin_part(self, kind: ContentKind, index: int | None) -> tuple[StreamedPart, list[Event]]:
        """Add a part whose beginning upstream left out."""
        part = self._add_part(kind, index)
        part.lacks_beginning = True
        return part, [self._make_missing(part, "added", "")] if kind.is_part else []

    def _close_part(self, part: StreamedPart | None) -> list[Event]:
        if part is None or not part.is_open:
            return []
        missing: list[Stage] = [] if part.stage == "text_done" else ["text_done"]
        missing += ["done"] if part.content_kind.is_part else []
        part.is_open = False
        self._note_current(self._current)
        return [self._make_missing(part, stage, part.said_text) for stage in missing]

    def _note_current(self, part: StreamedPart | None) -> None:
        """Note the part of the last event, and whether the next delta may be like the last."""
        self._current, self._next = part, None
        if part is None or not part.is_open or part.stage != "added":
            return
        index = part.address.get(part.content_kind.index_field)
        if index is None or self._by_index.get(index) is part:
            self._next = part

    def _continue_part(
        self, part: StreamedPart, stage: Stage, text: str | None, event: Json
    ) -> list[Event]:
        if stage == "delta":
            self._note_current(part)
            if text:
                self._state.keep(part, text)
            elif not says_anything(event):
                return []
            return [self._tell(part, stage, self._correct(part, stage, event), text or "")]
        share = self._own_share(part, part.index, text)
        events = self._add_text(part, self._settle_by_event(part, share))
        if stage == "done" and part.stage != "text_done":
            events.append(self._make_missing(part, "text_done", part.said_text))
        part.stage, part.is_open = stage, stage != "done"
        self._item_part.is_ended = not part.content_kind.is_part
        self._note_current(self._current)
        return [*events, self._tell(part, stage, self._correct(part, stage, event))]

    # Final texts

    def _other_finals(self, item: Json) -> list[FinalText]:
        """Return the texts of the item's content, as far as this has a share in it.

        Return nothing if the item leaves it out, or says just what is known, whatever its division
        into parts.
        """
        if self._is_continued:
            return []
        parts = {part.index: part for part in self._parts}
        indexes = iter(sorted({*self._earlier, *parts}))
        finals: list[FinalText] = []
        for kind, text in _contents_in(item, self._kinds):
            index = next(indexes, None)
            if index not in self._ended:
                part = None if index is None else parts.get(index)
                finals.append(FinalText(part, kind, self._own_share(part, index, text)))
        if "".join(final.text or "" for final in finals) == self.text:
            return []
        rest = (parts[index] for index in indexes if index in parts)
        return finals and [*finals, *(FinalText(part, part.content_kind, "") for part in rest)]

    def _own_share(
        self, part: StreamedPart | None, index: int | None, text: str | None
    ) -> str | None:
        """Return what of a part's text is not in an earlier item.

        Return None if the text does not go on from there: nobody knows whose share it is.
        """
        earlier = "" if index is None or index in self._ended else self._earlier.get(index, "")
        if text is None or text.startswith(earlier):
            return text and text.removeprefix(earlier)
        if part is not None:
            part.is_mismatched = True
        return None

    def _settle_all(self, finals: list[FinalText]) -> list[tuple[StreamedPart, str]]:
        """Take upstream's final text of each part; return what of it is yet to be streamed.

        A part that the content lacks, or has in another kind, is empty.
        """
        last = self._last_place()
        return [
            (part, self._settle(part, text if kind is part.content_kind else "", last))
            for part, kind, text in finals
            if part is not None
        ]

    def _settle_by_event(self, part: StreamedPart, text: str | None) -> str:
        """Take the text of an event that ends a part; return what of it is yet to be streamed.

        An empty one passes, but does not fill in what is left out after it: some gateways end every
        part so, and leave its text out of the item (agentgateway/agentgateway pull 2281,
        maximhq/bifrost pull 895).
        """
        if text != "" or not part.texts:
            return self._settle(part, text)
        part.is_mismatched = True
        return ""

    def _settle(self, part: StreamedPart, text: str | None, last: int | None = None) -> str:
        """Take upstream's final text of a part; return what of it is yet to be streamed. `last` is
        the place of the last part with a text, where that is known."""
        known = part.said_text
        if text and text == known and not part.truncated:
            part.texts[:] = [text]  # many pieces take twenty times its size
        if text is None or part.truncated or text == known:
            return ""
        if text.startswith(known) and self._takes_rest(part, last):
            return text[len(known) :]
        part.is_mismatched = True
        self.contradicted = known if self.contradicted is None else self.contradicted
        if self._state.reserve(max(0, len(text) - len(known))):
            part.texts[:] = [text]
        else:
            part.truncated = True
        return ""

    def _takes_rest(self, part: StreamedPart, last: int | None) -> bool:
        """Return whether what only the final text of a part has can be a delta of it."""
        if self.takes_rest == "open part":
            return part.is_open and part.stage == "added"
        if self.takes_rest == "no part":
            return False
        return part.place >= (self._last_place() if last is None else last)

    def _last_place(self) -> int:
        return next((part.place for part in reversed(self._parts) if part.texts), -1)

    # Events

    def _add_text(self, part: StreamedPart, text: str) -> list[Event]:
        if not text:
            return []
        self._state.keep(part, text)
        return [self._make_missing(part, "delta", text)]

    def _tell(self, part: StreamedPart, stage: Stage, frame: bytes | None, text: str = "") -> Event:
        """Return an event with new text, or one that repeats or closes earlier text. Naming its
        part afterwards takes a tenth of the time."""
        kind = part.content_kind
        event: Event
        if kind is REASONING:
            is_summary = self._state.display.replaces_native  # which is read as reasoning
            if stage == "added" and part.place and is_summary:
                text = PART_SEPARATOR
            event = ReasoningDelta(LANE, frame, self._item_part.number, text)
        elif kind is SUMMARY:
            native = "done" if stage == "text_done" else stage
            event = NativeSummary(LANE, frame, self._item_part.number, part.index, native, text)
        elif stage != "delta":
            event = (PartStarted if stage == "added" else PartEnded)(LANE, frame)
        elif kind is TEXT:
            event = ContentDelta(LANE, frame, text, (), self.number)
        elif kind is REFUSAL:
            event = RefusalDelta(LANE, frame, "", (), self.number, text)
        else:
            call, custom = self.number, kind is INPUT
            event = ToolCallDelta(LANE, frame, call_index=call, arguments=text, custom=custom)
        event.part = part
        return event

    def _make_missing(self, part: StreamedPart, stage: Stage, text: str) -> Event:
        """Make an event that upstream left out."""
        event_type, fields = part.content_kind.build_event(stage, text)
        beside = part.content_kind.extra_fields(stage, self._added)
        frame = self._state.make_frame(event_type, {**part.address, **beside, **fields})
        return self._tell(part, stage, frame, text if stage == "delta" else "")

    def _correct(self, part: StreamedPart, stage: Stage, event: Json) -> bytes | None:
        """Return the frame of upstream's event, addressed to this part, its text filled in.

        Leave a correct one as it came. Give one that has to be changed all other fields it lacks.
        """
        kind = part.content_kind
        is_final = stage != "added" and event_text(event, kind) is not None and not self._is_share
        known = "" if stage == "delta" else part.said_text  # not joined anew for each delta
        text = {} if part.truncated or is_final else {kind.text_field: known}
        correct = {**event, **part.address}
        if stage == "text_done":
            correct |= text
        elif stage != "delta":
            head, kept = kind.build_part("")["type"], as_object(event.get("part"))
            correct["part"] = {**kept, "type": head, **text}
        if correct != event:
            whole = kind.build_event(stage, known)[1] | kind.extra_fields(stage, self._added)
            event = _fill_missing(whole, correct)
        return self._state.frame_of(event)


def _fill_missing(whole: Json, event: Json) -> Json:
    """Add the fields of a whole event that this one, or its part, lacks."""
    part = {"part": {**whole["part"], **event["part"]}} if "part" in whole else {}
    return {**whole, **event, **part}


# Items


PART_KINDS: Mapping[str, PartKind] = {"reasoning": "reasoning", "message": "text"}
"""The kind of part that an item is, by its type. Any other is like a call, of which only its end
tells that it is whole."""


@dataclass(slots=True)
class Telling:
    """How much of an item a client of another API was told."""

    is_named: bool = False  # it is a message, or a call whose name is known
    has_arguments: bool = False  # arguments of the call were emitted
    withheld: str = ""  # `{}`, which may only hold the place of other arguments
    written: str = ""  # all the arguments, where they were emitted at the end of the call
    turn: int = 0  # of a message: which of them it was to begin its text, from 1


class OutputItem:
    """Hold one output item: its beginning, its end, and what was streamed between them."""

    def __init__(
        self,
        output_index: int,
        added: Json,
        state: ResponseState,
        item_id: str = "",
    ) -> None:
        self.output_index = output_index  # its `output_index` as the client knows it
        self.upstream_id = string(added.get("id"))  # upstream's id
        self.id = item_id or self.upstream_id  # the id that the client knows
        self.type = string(added.get("type"))
        self.is_reasoning = is_reasoning(added)
        self.is_open = True
        self.is_announced = True  # upstream has sent its beginning or its end
        self.is_closed_early = False  # closed because another item began
        kind = PART_KINDS.get(self.type, "call")
        self.part = Part(kind, output_index, free_text=self.type != "function_call")
        address = {"item_id": self.id, "output_index": output_index}
        self.contents = ItemContents(self.part, address, added, state)
        self.native = ItemContents(self.part, address, added, state, kinds=(SUMMARY,))
        self.telling = Telling()
        # Events of a native summary that may be raw reasoning, which only the item's end tells.
        self.held_events: list[Json] = []
        self.summary_is_raw = False  # its native summary is the raw reasoning
        # What final texts have beyond what was streamed, told after the item was closed.
        self.late_texts: list[Event] = []
        self.done: Json | None = None  # the item at its end
        self.added = added  # the item at its beginning

    def event(self, event_type: str, item: Json) -> Json:
        """Return the event that begins or ends the item."""
        return {"type": event_type, "output_index": self.output_index, "item": item}

    def reconcile(self, item: Json) -> Json:
        """Return upstream's `item` with the first id, and what it leaves out filled in."""
        reconciled = rename_raw_summary(item) if self.summary_is_raw else item
        reconciled = {**reconciled, "id": self.id} if self.id else dict(reconciled)
        reconciled = self.contents.fill_in(reconciled)
        if self.native.has_begun and not summary_text(item):
            reconciled["summary"] = summary_parts(self.native.texts)
        return reconciled

    def settle(self, item: Json) -> None:
        """Take the final texts of upstream's `item`, which was closed before."""
        final = rename_raw_summary(item) if self.summary_is_raw else item
        self.late_texts += self.contents.settle(final)

    def reconcile_done(self, event: Json) -> Json:
        """Return the event that ends the item, what it leaves out filled in."""
        done = self.reconcile(event["item"])
        return self.address(event if done == event["item"] else {**event, "item": done})

    def snapshot(self, status: str) -> Json:
        """Return the item where upstream does not send its end.

        Leave out the opaque state that it was added with, which was provisional.
        """
        added = {key: value for key, value in self.added.items() if key != "encrypted_content"}
        if self.is_reasoning:
            added["summary"] = []
        return self.reconcile(self.contents.rewrite({**added, "status": status}))

    def address(self, event: Json) -> Json:
        """Return an event with this item's id and `output_index`."""
        addressed = {**event, "output_index": self.output_index}
        if "item" in event:
            addressed["item"] = {**event["item"], "id": self.id}
        elif "item_id" in event:
            addressed["item_id"] = self.id
        return event if addressed == event else addressed


ITEM_ID_PREFIXES: Mapping[str, str] = {
    "": "msg_",
    "message": "msg_",
    "reasoning": "rs_",
    "compaction": "cmp_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
    "local_shell_call": "lsh_",
    "local_shell_call_output": "lsho_",
    "shell_call": "sh_",
    "shell_call_output": "sho_",
    "apply_patch_call": "apc_",
    "apply_patch_call_output": "apco_",
    "tool_search_call": "tsc_",
    "tool_search_output": "tso_",
}
"""Prefixes of item ids, by item type."""


def id_prefix(item_type: str) -> str:
    return ITEM_ID_PREFIXES.get(item_type, "item_")


def mint_item_id(item_type: str) -> str:
    return mint_id(id_prefix(item_type))


Named = TypeVar("Named")


class Addresses(Generic[Named]):
    """Find what upstream's events name, by id or else by `output_index`. An id that two have names
    neither."""

    def __init__(self) -> None:
        self.by_key: dict[str | int, Named | None] = {}  # id or index; None for an id of two
        self._keys: defaultdict[Named, set[str | int]] = defaultdict(set)  # of each

    def find(self, given_id: Any, index: Any) -> Named | None:
        named = self.by_key.get(string(given_id))
        return self.by_key.get(index) if named is None and isinstance(index, int) else named

    def add(self, named: Named, given_id: Any, index: Any = None) -> None:
        """Add what has this id, in the place of what has its index, too."""
        replaced = self.by_key.get(index, named) if isinstance(index, int) else named
        if string(given_id):
            is_alone = self.by_key.get(given_id, named) in (named, replaced)
            self.by_key[given_id] = named if is_alone else None
            self._keys[named].add(given_id)
        if isinstance(index, int):
            self.by_key[index] = named
            self._keys[named].add(index)

    def hand_over(self, old: Named, new: Named) -> None:
        """Give all addresses of one to another."""
        keys = self._keys.pop(old, set())
        self.by_key.update({key: new for key in keys if self.by_key[key] is old})
        self._keys[new] |= keys


OutputEntry: TypeAlias = tuple[int | None, Any]
"""An item of a response's output, and its output index; None if the stream did not have it."""


class OutputItems:
    """Hold the items of one response."""

    def __init__(self, state: ResponseState) -> None:
        self.state = state
        self._last_reasoning: OutputItem | None = None  # the reasoning item that began last
        self._last_answer: OutputItem | None = None  # the item of the answer that did
        self.frame_size = 0  # bytes of the frame that is being read
        self.faults = 0  # events that upstream sent out of order
        self.misplaced = 0  # texts of the final response that no stream can have in their place
        self._items: dict[int, OutputItem] = {}
        self._addresses = Addresses[OutputItem]()  # every id in use, and upstream's indexes
        self.message_count = 0  # messages among them
        self._unaddressed: dict[str, OutputItem] = {}  # the last that had no address, by type

    @property
    def mismatches(self) -> int:
        """Return the number of texts that are not the sum of their deltas."""
        return self.misplaced + sum(item.contents.mismatches for item in self._items.values())

    @property
    def open_reasoning(self) -> OutputItem | None:
        """Return the reasoning item that began last, if it is open."""
        item = self._last_reasoning
        return item if item is not None and item.is_open else None

    @property
    def open_answer(self) -> OutputItem | None:
        """Return the item of the answer that began last, if it is open."""
        item = self._last_answer
        return item if item is not None and item.is_open else None

    @property
    def all_open(self) -> list[OutputItem]:
        return [item for item in self._items.values() if item.is_open]

    @property
    def is_empty(self) -> bool:
        return not self._items

    @property
    def has_open_part(self) -> bool:
        """Return whether upstream has not ended all its items, or begun none."""
        items = self._items.values()
        return self.is_empty or any(item.is_open or item.is_closed_early for item in items)

    def store_done(self, item: OutputItem, done: Json) -> None:
        """Store an item as it is at its end, if there is room."""
        if self.state.reserve(self.frame_size):
            item.done = done

    def note_begun(self, item: OutputItem) -> None:
        """Note that an item has begun: events that name no known item may be about it. Where items
        need no order, only messages and reasoning are continued so."""
        if item.is_reasoning:
            self._last_reasoning = item
        elif self.state.carries_frames or item.type == "message":
            self._last_answer = item

    def count_fault(self) -> list[Event]:
        self.faults += 1
        return []

    def has_item(self, added: Json, index: Any) -> bool:
        """Return whether this item was added before."""
        given_id, item_type = string(added.get("id")), string(added.get("type"))
        item = self._addresses.find("" if isinstance(index, int) else given_id, index)
        return item is not None and (item.upstream_id, item.type) == (given_id, item_type)

    def add(self, added: Json, index: Any) -> OutputItem:
        """Add an item under the next output index."""
        number, given_id = len(self._items), upstream_id(added)
        is_taken = not given_id or given_id in self._addresses.by_key
        item_id = mint_item_id(string(added.get("type"))) if is_taken else given_id
        item = self._items[number] = OutputItem(number, added, self.state, item_id)
        is_numbered = isinstance(index, int)
        item.part.free_text |= is_numbered  # upstream ends it: its last word may be another
        if not (given_id or is_numbered):
            self._unaddressed[item.type] = item
        self._addresses.add(item, given_id, index if is_numbered else number)
        self._addresses.add(item, item_id)
        if item.type == "message":
            item.contents.number = self.message_count
            self.message_count += 1
        return item

    def continue_item(self, item: OutputItem) -> OutputItem:
        """Add an item that continues one which was closed, and receives its events from now on."""
        rest = self.add({**item.added, "id": None}, None)
        rest.part.goes_on = True
        rest.contents.continue_from(item.contents)
        del self._unaddressed[rest.type]  # it has the addresses of the other
        self._addresses.hand_over(item, rest)
        return rest

    def get(self, number: int | None) -> OutputItem | None:
        return None if number is None else self._items.get(number)

    def find(self, event: Json) -> OutputItem | None:
        """Find the item that an event names by id or index.

        An unknown id is the open answer's, if the content fits it; where no beginnings are sent,
        an unknown index is another item's.
        """
        item = self._addresses.find(event.get("item_id"), event.get("output_index"))
        answer = self.open_answer
        if item is not None or answer is None:
            return item
        is_another = not answer.is_announced and isinstance(event.get("output_index"), int)
        if is_another or content_kind_of(event, answer.type) is None:
            return None
        self._addresses.add(answer, event.get("item_id"))  # upstream's current id of it
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
        item = self._addresses.find(given_id, index) or self._find_unaddressed(done)
        is_new_id = bool(given_id) and given_id not in self._addresses.by_key
        if item is not None and is_new_id:
            self._addresses.add(item, given_id)
        if item is not None or is_new_id or isinstance(index, int):
            return item
        if is_reasoning(done):
            return self.open_reasoning
        is_same_type = self.open_answer is not None and self.open_answer.type == done.get("type")
        return self.open_answer if is_same_type else None

    def _find_unaddressed(self, done: Json) -> OutputItem | None:
        item = self._unaddressed.get(string(done.get("type")))
        return item if item is not None and item.is_open else None

    def reconcile(self, output: Any) -> list[OutputEntry]:
        """Reconcile the final response's output with the items as they were streamed. Insert
        finished items that the output lacks at their index."""
        given = entries(output)
        missing, last = dict(self._items), -1
        placed: list[tuple[int, bool, int | None, Any]] = []
        for entry, item in zip(given, self._match_items(given), strict=True):
            if item is None:
                placed.append((last, True, None, entry))
            else:
                last = item.output_index
                del missing[last]
                if not item.is_open:
                    item.settle(entry)
                placed.append((last, False, last, item.reconcile(entry)))
        for number, item in missing.items():
            if item.done is not None:
                placed.append((number, False, number, item.done))
        placed.sort(key=lambda entry: entry[:2])
        return [(number, entry) for *_, number, entry in placed]

    def find_finals(self, output: Any) -> dict[int, Json]:
        """Find the items in the final response's output, by their own output index."""
        given = entries(output)
        return {
            item.output_index: entry
            for entry, item in zip(given, self._match_items(given), strict=True)
            if item is not None and entry.get("type") == item.type
        }

    def _match_items(self, output: list[Any]) -> list[OutputItem | None]:
        """Find the item of each entry: by an id that only it has, else the first of its type that
        is left."""
        left = dict(self._items)
        found: list[OutputItem | None] = []
        for entry in map(as_object, output):
            item = self._addresses.by_key.get(upstream_id(entry))
            found.append(left.pop(item.output_index, None) if item is not None else None)
        by_type: defaultdict[str, deque[OutputItem]] = defaultdict(deque)
        for item in left.values():
            by_type[item.type].append(item)
        for index, entry in enumerate(output):
            if isinstance(entry, dict) and found[index] is None:
                alike = by_type[string(entry.get("type"))]
                found[index] = alike.popleft() if alike else None
        return found


def upstream_id(item: Json) -> str:
    """Return upstream's id of an item: its `id`, else its `call_id`.

    llama.cpp's calls have no `id`, and events with their arguments name the `call_id`.
    """
    return first_string(item, "id", "call_id")
