"""Encode, change and parse the frames of a Responses stream.

The kinds of content that items stream: content parts, and the arguments of calls.

Repair an item's content as it streams: its content parts, or a call's arguments.

Each part gets its added, delta and done events, in this order and before the next part is added,
whichever of them upstream leaves out, and parts are counted from 0. llama.cpp's server neither
counts nor adds parts of reasoning (ggml-org/llama.cpp tools/server/server-task.cpp). Older vLLM
counts every delta as a part, and adds those of reasoning as `output_text` (vllm
entrypoints/openai/serving_responses.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from dataclasses import field as having
from typing import Literal, TypeAlias

from abridge.apis import sse
from abridge.apis.json import dumps, loads_exact, objects, parse_object, string
from abridge.core.conversation import Json

MakeFrame: TypeAlias = Callable[[str, Json], bytes | None]
"""Makes the frame of an event that upstream did not send; None for translated events."""


def encode_event(event_type: str, fields: Json) -> bytes:
    """Encode an event that upstream did not send."""
    return sse.encode_frame(dumps({"type": event_type, **fields}), event_type)


def no_frame(_kind: str, _fields: Json) -> None:
    """Return None: translated events carry no frame."""


def change_frame(frame: bytes | None, change: Callable[[Json], Json]) -> bytes | None:
    """Apply a change to a frame's event; what it leaves alone stays to the last digit."""
    if frame is None:
        return None
    event = change(parse_frame(frame))
    return sse.encode_frame(dumps(event), string(event.get("type")))


def parse_frame(frame: bytes | None) -> Json:
    """Parse the event in a frame with exact numbers, to be written again."""
    return parse_object(sse.frame_data(frame or b"") or b"", loads_exact) or {}


Stage: TypeAlias = Literal["opened", "delta", "said", "closed"]

CONTENT_PART_ADDED = "response.content_part.added"

CONTENT_PART_DONE = "response.content_part.done"


@dataclass(slots=True, frozen=True)
class ContentKind:
    """One kind of content: its event types and fields."""

    name: str  # the `type` of a part, and the middle of event types: `response.{name}.delta`
    text_field: str  # has the whole text, in a part or in the item
    is_part: bool = True  # else all the content of its item, without events for a part
    other_fields: Json = having(default_factory=dict)  # other fields of a part

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
        if stage == "said":
            return self.done_type, {self.text_field: text}
        return CONTENT_PART_ADDED if stage == "opened" else CONTENT_PART_DONE, {
            "part": self.build_part(text)
        }

    def extra_fields(self, stage: Stage, item: Json) -> Json:
        """Return the other fields that an event of this item has."""
        if self is TEXT and stage in ("delta", "said"):
            return {"logprobs": []}
        if self is ARGUMENTS and stage == "said":
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

CONTENT_KINDS: Mapping[str, tuple[ContentKind, ...]] = {
    "message": (TEXT, REFUSAL),
    "reasoning": (REASONING,),
    "function_call": (ARGUMENTS,),
    "custom_tool_call": (INPUT,),
}
"""The kinds of content that an item can have, by its type."""

TEXT_TYPE_ALIASES = ("text", "")
"""Types that some servers give to parts of output text."""

EVENT_STAGES: Mapping[str, Stage] = {
    CONTENT_PART_ADDED: "opened",
    CONTENT_PART_DONE: "closed",
    **{spelling.delta_type: "delta" for said in CONTENT_KINDS.values() for spelling in said},
    **{spelling.done_type: "said" for said in CONTENT_KINDS.values() for spelling in said},
}


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


def event_text(event: Json, content_kind: ContentKind) -> str:
    """Return the text of an event: a delta, or all of a part."""
    part = event.get("part")
    if isinstance(part, dict):
        return string(part.get(content_kind.text_field))
    return string(
        event.get("delta" if event["type"] == content_kind.delta_type else content_kind.text_field)
    )


def contents_of(item: Json, item_type: str) -> list[tuple[ContentKind, str]]:
    """Return the content of an item of this type, part by part."""
    kinds = CONTENT_KINDS.get(item_type, ())
    if kinds and not kinds[0].is_part:
        return [(kinds[0], string(item.get(kinds[0].text_field)))]
    return [
        (content_kind, string(part.get(content_kind.text_field)))
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


def _is_part_of_kind(part: object, content_kind: ContentKind) -> bool:
    if not isinstance(part, dict) or not content_kind.is_part:
        return False
    part_type = string(part.get("type"))
    return (
        content_kind is REASONING
        or part_type == content_kind.name
        or (content_kind is TEXT and part_type in TEXT_TYPE_ALIASES)
    )


@dataclass(slots=True, frozen=True)
class ContentEvent:
    """One event of an item's content."""

    stage: Stage
    kind: ContentKind
    text: str  # new text; empty for an event that only repeats or closes
    frame: bytes | None


@dataclass(slots=True)
class _StreamedPart:
    kind: ContentKind
    address: Json  # `item_id`, `output_index` and, of a content part, `content_index`
    stage: Stage = "opened"
    deltas: list[str] = field(default_factory=list)
    truncated: bool = False  # there was no room to store all of its text

    @property
    def text(self) -> str:
        return "".join(self.deltas)


class ContentRepair:
    """Repairs the content of one item."""

    def __init__(
        self, address: Json, added: Json, reserve: Callable[[int], bool], make_frame: MakeFrame
    ) -> None:
        self.delta_type = (
            ""  # the type of events that continue the open part, if one can be continued
        )
        self.content_index: int | None = None  # the `content_index` of that part
        self._address = address
        self._added = added
        self._item_type = string(added.get("type"))
        self._reserve = reserve
        self._make_frame = make_frame
        self._parts: list[_StreamedPart] = []
        self._open_part: _StreamedPart | None = None

    @property
    def is_complete(self) -> bool:
        """Return whether the content may be complete.

        Arguments are complete once they are JSON. When a custom tool's input is, only upstream
        knows.
        """
        kinds = CONTENT_KINDS.get(self._item_type, ())
        if not kinds or kinds[0].is_part:
            return bool(kinds)
        part = self._parts[0] if self._parts else None
        if part is None or part.stage == "said":
            return part is not None
        if not (part.deltas and part.deltas[-1].rstrip().endswith("}")):
            return False  # saves parsing all of it, which may be long
        return parse_object(part.text.encode(errors="surrogatepass")) is not None

    def append_text(self, text: str) -> None:
        """Append text to the open part, as far as there is room."""
        part = self._parts[-1]
        if self._reserve(len(text)):
            part.deltas.append(text)
        else:
            part.truncated = True

    def read(
        self, event: Json, kind: ContentKind, frame: bytes | None
    ) -> list[ContentEvent] | None:
        """Read one upstream event; return None if it is out of order."""
        stage = EVENT_STAGES[event["type"]]
        text = event_text(event, kind)
        if self._continues_part(stage, kind):
            return [*self._continue_part(stage, text, event, frame)]
        if self._is_repeated(stage, kind, text):
            return None
        ending = [*self.close()]
        if stage != "opened":
            return [*ending, *self._add_part(kind), *self._continue_part(stage, text, event, frame)]
        return [*ending, *self._add_part(kind, event, frame), *self._add_text(text)]

    def finish(self, item: Json) -> Iterator[ContentEvent]:
        """Emit what the finished item says beyond what was streamed."""
        for index, (kind, text) in enumerate(contents_of(item, self._item_type)):
            if self._open_part is not None and index == len(self._parts) - 1:
                yield from self._add_rest(text)
            elif index >= len(self._parts) and text:
                yield from self.close()
                yield from self._add_part(kind)
                yield from self._add_text(text)
        yield from self.close()

    def close(self) -> Iterator[ContentEvent]:
        """Close the open part, if there is one."""
        part = self._open_part
        if part is None:
            return
        if part.stage != "said":
            yield self._make_missing("said", part.text)
        if part.kind.is_part:
            yield self._make_missing("closed", part.text)
        self._open_part, self.delta_type = None, ""

    def reconcile(self, item: Json, *, exact: bool) -> Json:
        """Return the item with all the text that was streamed and, if `exact`, with no more."""
        streamed = "".join(part.text for part in self._parts)
        if not streamed or any(part.truncated for part in self._parts):
            return item
        given = "".join(text for _, text in contents_of(item, self._item_type))
        if given == streamed or (given.startswith(streamed) and not exact):
            return item
        return with_contents(
            item, self._item_type, [(part.kind, part.text) for part in self._parts]
        )

    def _continues_part(self, stage: Stage, kind: ContentKind) -> bool:
        """Return whether the event continues the open part. After `text_done` only `done` does."""
        part = self._open_part
        if part is None or part.kind is not kind:
            return False
        return stage == "closed" if part.stage == "said" else stage != "opened"

    def _is_repeated(self, stage: Stage, kind: ContentKind, text: str) -> bool:
        last = self._parts[-1] if self._parts else None
        if last is None or last.kind is not kind:
            return False
        if not kind.is_part:
            return True
        if stage == "opened":
            return last is self._open_part and not last.deltas
        return stage != "delta" and text in ("", last.text)

    def _add_part(
        self, kind: ContentKind, event: Json | None = None, frame: bytes | None = None
    ) -> Iterator[ContentEvent]:
        index = {"content_index": len(self._parts)} if kind.is_part else {}
        self._open_part = _StreamedPart(kind, {**self._address, **index})
        self._parts.append(self._open_part)
        self.delta_type, self.content_index = kind.delta_type, index.get("content_index")
        if event is not None:
            yield ContentEvent("opened", kind, "", self._correct("opened", event, frame))
        elif kind.is_part:
            yield self._make_missing("opened", "")

    def _continue_part(
        self, stage: Stage, text: str, event: Json, frame: bytes | None
    ) -> Iterator[ContentEvent]:
        part = self._parts[-1]
        if stage == "delta":
            if text:
                self.append_text(text)
                yield ContentEvent(stage, part.kind, text, self._correct(stage, event, frame))
            return
        yield from self._add_rest(text)
        if stage == "closed" and part.stage != "said":
            yield self._make_missing("said", part.text)
        part.stage, self.delta_type = stage, ""
        self._open_part = None if stage == "closed" else part
        yield ContentEvent(stage, part.kind, "", self._correct(stage, event, frame))

    def _add_rest(self, whole: str) -> Iterator[ContentEvent]:
        part = self._parts[-1]
        streamed = part.text
        if part.stage != "said" and not part.truncated and whole.startswith(streamed):
            yield from self._add_text(whole[len(streamed) :])

    def _add_text(self, text: str) -> Iterator[ContentEvent]:
        if text:
            self.append_text(text)
            yield self._make_missing("delta", text)

    def _make_missing(self, stage: Stage, text: str) -> ContentEvent:
        """Make an event that upstream left out."""
        part = self._parts[-1]
        event_type, fields = part.kind.build_event(stage, text)
        frame = self._make_frame(
            event_type, {**part.address, **part.kind.extra_fields(stage, self._added), **fields}
        )
        return ContentEvent(stage, part.kind, text if stage == "delta" else "", frame)

    def _correct(self, stage: Stage, event: Json, frame: bytes | None) -> bytes | None:
        """Correct upstream's event: address it to this part, and make it repeat the part's text.

        Leave a correct one as it came. Give one that has to be changed all other fields it lacks.
        """
        part = self._parts[-1]
        kind = part.kind
        text = {} if part.truncated else {kind.text_field: part.text}

        def correct(event: Json) -> Json:
            if stage == "delta":
                return {**event, **part.address}
            if stage == "said":
                return {**event, **part.address, **text}
            return {**event, **part.address, "part": {**event["part"], "type": kind.name, **text}}

        if correct(event) == event:
            return frame
        whole = kind.build_event(stage, part.text)[1] | kind.extra_fields(stage, self._added)
        return change_frame(frame, lambda event: _fill_missing(whole, correct(event)))


def _fill_missing(whole: Json, event: Json) -> Json:
    """Add the fields of a whole event that this one, or its part, lacks."""
    part = {"part": {**whole["part"], **event["part"]}} if "part" in whole else {}
    return {**whole, **event, **part}
