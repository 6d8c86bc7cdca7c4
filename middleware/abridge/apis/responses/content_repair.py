"""Repair an item's content as it streams: its content parts, or a call's arguments.

Each part gets its added, delta and done events, in this order and before the next part is added,
whichever of them upstream leaves out, and parts are counted from 0. llama.cpp's server neither
counts nor adds parts of reasoning (ggml-org/llama.cpp tools/server/server-task.cpp). Older vLLM
counts every delta as a part, and adds those of reasoning as `output_text` (vllm
entrypoints/openai/serving_responses.py).

Upstream's final text of a part is the answer, whatever its deltas were. If they are its beginning,
the rest becomes a delta. Any other difference is a mismatch and stays as upstream has it. Only what
upstream leaves out is filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from abridge.apis.json import parse_object, string
from abridge.apis.responses.contents import (
    CONTENT_KINDS,
    EVENT_STAGES,
    Content,
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
    deltas: list[str] = field(default_factory=list)  # or its final text, if that differs
    truncated: bool = False  # there was no room to store all of its text
    is_mismatched: bool = False  # its final text is not the sum of its deltas

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
        self._is_share = False  # one of several items that share upstream's content
        self._is_continued = False  # a later item has the rest of it
        self._earlier_parts = 0  # number of its parts that earlier items have
        self._earlier_text = ""  # beginning of the first part, which an earlier item has

    @property
    def mismatches(self) -> int:
        """Return the number of parts whose final text is not the sum of their deltas."""
        return sum(part.is_mismatched for part in self._parts)

    @property
    def _is_known(self) -> bool:
        """Return whether there is content, and room for all of it."""
        is_streamed = any(part.deltas for part in self._parts)
        return is_streamed and not any(part.truncated for part in self._parts)

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
        if stage in ("text_done", "done") and self._open_part in self._parts[:1]:
            text = self._own_share(text)
        if self._continues_part(stage, kind):
            return [*self._continue_part(stage, text, event, frame)]
        if self._is_repeated(stage, kind, text):
            return None
        ending = [*self.close()]
        if stage != "added":
            return [*ending, *self._add_part(kind), *self._continue_part(stage, text, event, frame)]
        return [*ending, *self._add_part(kind, event, frame), *self._add_text(text or "")]

    def finish(self, item: Json) -> Iterator[ContentEvent]:
        """Take the finished item's texts, and emit what they say beyond what was streamed."""
        contents = self._other_contents(item)
        yield from self._add_text(self._settle_all(contents))
        for kind, text in contents[len(self._parts) :]:
            if text:
                yield from self.close()
                yield from self._add_part(kind)
                yield from self._add_text(text)
        yield from self.close()

    def finish_early(self, added: Json) -> Iterator[ContentEvent]:
        """Close the open part of an item that upstream does not end.

        If nothing was streamed, what the item was `added` with is its content.
        """
        if all(part.stage == "added" and not part.deltas for part in self._parts):
            yield from self.finish(added)
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

    def settle(self, item: Json) -> None:
        """Take the final texts of an item that was closed before."""
        self._settle_all(self._other_contents(item))

    def fill_in(self, item: Json) -> Json:
        """Return the item with the texts that it leaves out; a share, with its own alone."""
        given = contents_of(item, self._item_type)
        if self._is_share or not given:
            return self.rewrite(item)
        if not self._is_known or all(text is not None for _, text in given):
            return item
        known = {(index, part.kind.name): part.text for index, part in enumerate(self._parts)}
        texts = [
            (kind, known.get((index, kind.name), "") if text is None else text)
            for index, (kind, text) in enumerate(given)
        ]
        return with_contents(item, self._item_type, texts)

    def rewrite(self, item: Json) -> Json:
        """Return the item with what is known of its content in place of its own."""
        texts = [(part.kind, part.text) for part in self._parts]
        return with_contents(item, self._item_type, texts) if self._is_known else item

    def continue_from(self, earlier: ContentRepair) -> None:
        """Continue the content of an item that was closed. Each keeps only its share."""
        self._is_share = earlier._is_share = earlier._is_continued = True
        self._earlier_parts = earlier._earlier_parts + len(earlier._parts)
        last = earlier._parts[-1] if earlier._parts else None
        if last is not None and last.stage == "added":  # upstream did not end it
            is_first = last is earlier._parts[0]
            self._earlier_text = (earlier._earlier_text if is_first else "") + last.text
            self._earlier_parts -= 1

    def _continues_part(self, stage: Stage, kind: ContentKind) -> bool:
        """Return whether the event continues the open part. After `text_done` only `done` does."""
        part = self._open_part
        if part is None or part.kind is not kind:
            return False
        return stage == "done" if part.stage == "text_done" else stage != "added"

    def _is_repeated(self, stage: Stage, kind: ContentKind, text: str | None) -> bool:
        last = self._parts[-1] if self._parts else None
        if last is None or last.kind is not kind:
            return False
        if not kind.is_part:
            return True
        if stage == "added":
            return last is self._open_part and not last.deltas
        return stage != "delta" and (not text or text == last.text)

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
        self, stage: Stage, text: str | None, event: Json, frame: bytes | None
    ) -> Iterator[ContentEvent]:
        part = self._parts[-1]
        if stage == "delta":
            if text:
                self.append_text(text)
                yield ContentEvent(stage, part.kind, text, self._correct(stage, event, frame))
            return
        yield from self._add_text(self._settle_by_event(part, text))
        if stage == "done" and part.stage != "text_done":
            yield self._make_missing("text_done", part.text)
        part.stage, self.delta_type = stage, ""
        self._open_part = None if stage == "done" else part
        yield ContentEvent(stage, part.kind, "", self._correct(stage, event, frame))

    def _other_contents(self, item: Json) -> list[Content]:
        """Return the item's content, as far as this has a share in it.

        Return nothing if the item leaves it out, or says just what is known, whatever its division
        into parts.
        """
        if self._is_continued:
            return []
        contents = contents_of(item, self._item_type)[self._earlier_parts :]
        if contents:
            contents[0] = contents[0][0], self._own_share(contents[0][1])
        given = "".join(text or "" for _, text in contents)
        return [] if given == "".join(part.text for part in self._parts) else contents

    def _own_share(self, text: str | None) -> str | None:
        """Return what of the first part's text is not in an earlier item.

        Return None if the text does not go on from there: nobody knows whose share it is.
        """
        if text is None or text.startswith(self._earlier_text):
            return text and text.removeprefix(self._earlier_text)
        for part in self._parts[:1]:
            part.is_mismatched = True
        return None

    def _settle_all(self, contents: list[Content]) -> str:
        """Take upstream's final text of each part; return what of it is yet to be streamed.

        A part that the content lacks is empty.
        """
        rest = ""
        for index, part in enumerate(self._parts if contents else ()):
            kind, text = contents[index] if index < len(contents) else (part.kind, "")
            rest = self._settle(part, text if kind is part.kind else "")
        return rest

    def _settle_by_event(self, part: _StreamedPart, text: str | None) -> str:
        """Take the text of an event that ends a part; return what of it is yet to be streamed.

        An empty one passes, but does not fill in what is left out after it: some gateways end every
        part so, and leave its text out of the item (agentgateway/agentgateway pull 2281,
        maximhq/bifrost pull 895).
        """
        if text != "" or not part.deltas:
            return self._settle(part, text)
        part.is_mismatched = True
        return ""

    def _settle(self, part: _StreamedPart, text: str | None) -> str:
        """Take upstream's final text of a part; return what of it is yet to be streamed."""
        known = part.text
        if text is None or part.truncated or text == known:
            return ""
        if part is self._open_part and part.stage == "added" and text.startswith(known):
            return text[len(known) :]
        part.is_mismatched = True
        if self._reserve(max(0, len(text) - len(known))):
            part.deltas = [text]
        else:
            part.truncated = True
        return ""

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
        """Correct upstream's event: address it to this part, and fill in its text.

        Leave a correct one as it came. Give one that has to be changed all other fields it lacks.
        """
        part = self._parts[-1]
        kind = part.kind
        is_final = stage != "added" and event_text(event, kind) is not None and not self._is_share
        text = {} if part.truncated or is_final else {kind.text_field: part.text}

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
