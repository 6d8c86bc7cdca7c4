"""Repair an item's content as it streams: its content parts, or a call's arguments.

Each part gets its added, delta and done events, in this order and before the next part is added,
whichever of them upstream leaves out, and parts are counted from 0. llama.cpp's server neither
counts nor adds parts of reasoning (ggml-org/llama.cpp tools/server/server-task.cpp). Older vLLM
counts every delta as a part, and adds those of reasoning as `output_text` (vllm
entrypoints/openai/serving_responses.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from abridge.apis.json import parse_object, string
from abridge.apis.responses.contents import (
    CONTENT_KINDS,
    EVENT_STAGES,
    ContentKind,
    Stage,
    contents_of,
    event_text,
    with_contents,
)
from abridge.apis.responses.frames import MakeFrame, change_frame
from abridge.core.conversation import Json


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
    stage: Stage = "added"
    deltas: list[str] = field(default_factory=list)
    truncated: bool = False  # there was no room to store all of its text

    @property
    def text(self) -> str:
        return "".join(self.deltas)


class ContentRepair:
    """Repair the content of one item."""

    def __init__(
        self, address: Json, added: Json, reserve: Callable[[int], bool], make_frame: MakeFrame
    ) -> None:
        self.delta_type = ""  # type of the events that continue the open part, if it can go on
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
        if part is None or part.stage == "text_done":
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
        if stage != "added":
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
        if part.stage != "text_done":
            yield self._make_missing("text_done", part.text)
        if part.kind.is_part:
            yield self._make_missing("done", part.text)
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
        return stage == "done" if part.stage == "text_done" else stage != "added"

    def _is_repeated(self, stage: Stage, kind: ContentKind, text: str) -> bool:
        last = self._parts[-1] if self._parts else None
        if last is None or last.kind is not kind:
            return False
        if not kind.is_part:
            return True
        if stage == "added":
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
            yield ContentEvent("added", kind, "", self._correct("added", event, frame))
        elif kind.is_part:
            yield self._make_missing("added", "")

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
        if stage == "done" and part.stage != "text_done":
            yield self._make_missing("text_done", part.text)
        part.stage, self.delta_type = stage, ""
        self._open_part = None if stage == "done" else part
        yield ContentEvent(stage, part.kind, "", self._correct(stage, event, frame))

    def _add_rest(self, whole: str) -> Iterator[ContentEvent]:
        part = self._parts[-1]
        streamed = part.text
        if part.stage != "text_done" and not part.truncated and whole.startswith(streamed):
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
            if stage == "text_done":
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
