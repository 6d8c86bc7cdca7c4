"""Repair an item's content as it streams: its content parts, or a call's arguments.

Each part gets its added, delta and done events, in this order, whichever of them upstream leaves
out, and parts are counted from 0 as they begin. Parts that upstream tells apart by `content_index`
may be open at once; of others each is done before the next is added. llama.cpp's server neither
counts nor adds parts of reasoning (ggml-org/llama.cpp tools/server/server-task.cpp). Older vLLM
counts every event (`PartIndexes`), and adds parts of reasoning as `output_text` (vllm
entrypoints/openai/serving_responses.py).

Upstream's final text of a part is the answer, whatever its deltas were. If they are its beginning,
the rest becomes a delta, as long as there is a place for it. Any other difference is a mismatch and
stays as upstream has it. Only what upstream leaves out is filled in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from abridge.apis.frames import MakeFrame, change_frame
from abridge.apis.json import parse_object, string
from abridge.apis.responses.contents import (
    CONTENT_KINDS,
    EVENT_STAGES,
    ContentEvent,
    ContentKind,
    FinalText,
    PartIndexes,
    RestPlace,
    Stage,
    StreamedPart,
    contents_of,
    event_text,
    says_anything,
    with_contents,
)
from abridge.core.conversation import Json

NO_INDEXES: frozenset[int] = frozenset()

NO_TEXTS: Mapping[int, str] = {}


class ContentRepair:
    """Repair the content of one item."""

    def __init__(
        self, address: Json, added: Json, reserve: Callable[[int], bool], make_frame: MakeFrame
    ) -> None:
        self.delta_type = ""  # type of the events that continue the current part, if it can go on
        self.content_index: int | None = None  # the `content_index` of that part
        self.takes_rest: RestPlace = "open part"
        self.contradicted: str | None = None  # what was streamed of a part whose final text differs
        self._address = address
        self._added = added
        self._item_type = string(added.get("type"))
        self._reserve = reserve
        self._make_frame = make_frame
        self._parts: list[StreamedPart] = []  # in the order in which they began
        self._current: StreamedPart | None = None  # the part of the last event
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
        return "".join(part.text for part in self._parts)

    @property
    def _is_known(self) -> bool:
        """Return whether there is content, and room for all of it."""
        is_streamed = any(part.deltas for part in self._parts)
        return is_streamed and not any(part.truncated for part in self._parts)

    def is_complete(self, *, awaits_end: bool) -> bool:
        """Return whether the content may be complete.

        Arguments are complete once they are JSON, unless upstream is to end them itself: then its
        last word may be another. When a custom tool's input is, only upstream knows.
        """
        kinds = CONTENT_KINDS.get(self._item_type, ())
        if not kinds or kinds[0].is_part:
            return bool(kinds)
        part = self._parts[0] if self._parts else None
        if part is None or part.stage == "text_done":
            return part is not None
        if awaits_end or not (part.deltas and part.deltas[-1].rstrip().endswith("}")):
            return False  # saves parsing all of it, which may be long
        return parse_object(part.text.encode(errors="surrogatepass")) is not None

    def append_text(self, text: str) -> None:
        """Append text to the current part, as far as there is room."""
        if self._current is not None:
            self._append(self._current, text)

    def read(
        self, event: Json, kind: ContentKind, frame: bytes | None
    ) -> list[ContentEvent] | None:
        """Read one upstream event; return None if it is out of order."""
        stage, text = EVENT_STAGES[event["type"]], event_text(event, kind)
        index, part = self._find_part(event, kind, stage)
        if part is not None and part.is_continued_by(stage, kind):
            return [*self._continue_part(part, stage, text, event, frame)]
        if self._is_repeated(part, index, stage, kind, text):
            return None
        ending = [*self.close()] if index is None else [*self._close_part(part)]
        if stage == "added":
            part = self._add_part(kind, index)
            added = ContentEvent(stage, kind, "", self._correct(part, stage, event, frame))
            return [*ending, added, *self._add_text(part, text or "")]
        part, adding = self._begin_part(kind, index)
        return [*ending, *adding, *self._continue_part(part, stage, text, event, frame)]

    def finish(self, item: Json) -> Iterator[ContentEvent]:
        """Take the finished item's texts, and emit what they say beyond what was streamed."""
        finals = self._other_finals(item)
        for part, rest in self._settle_all(finals):
            yield from self._add_text(part, rest)
        for kind, text in [(kind, text) for part, kind, text in finals if part is None and text]:
            yield from self.close()
            part, adding = self._begin_part(kind, None)
            yield from [*adding, *self._add_text(part, self._settle(part, text))]
        yield from self.close()

    def finish_early(self, added: Json) -> Iterator[ContentEvent]:
        """Close the open parts of an item that upstream does not end.

        If nothing was streamed, what the item was `added` with is its content.
        """
        if all(part.stage == "added" and not part.deltas for part in self._parts):
            yield from self.finish(added)
        yield from self.close()

    def close(self) -> Iterator[ContentEvent]:
        """Close the open parts."""
        for part in self._parts:
            yield from self._close_part(part)

    def settle(self, item: Json) -> list[ContentEvent]:
        """Take the final texts of an item that was closed before. Return what they say beyond what
        was streamed, if a closed item takes that."""
        if self.takes_rest != "open part":
            return [*self.finish(item)]
        self._settle_all(self._other_finals(item))
        return []

    def fill_in(self, item: Json) -> Json:
        """Return the item with the texts that it leaves out; a share, with its own alone."""
        given = contents_of(item, self._item_type)
        if self._is_share or not given:
            return self.rewrite(item)
        if not self._is_known or all(text is not None for _, text in given):
            return item
        parts = sorted(self._parts, key=lambda part: part.index)
        known = {(place, part.kind.name): part.text for place, part in enumerate(parts)}
        texts = [
            (kind, known.get((place, kind.name), "") if text is None else text)
            for place, (kind, text) in enumerate(given)
        ]
        return with_contents(item, self._item_type, texts)

    def rewrite(self, item: Json) -> Json:
        """Return the item with what is known of its content in place of its own."""
        texts = [(part.kind, part.text) for part in self._parts]
        return with_contents(item, self._item_type, texts) if self._is_known else item

    def continue_from(self, earlier: ContentRepair) -> None:
        """Continue the content of an item that was closed. Each keeps only its share."""
        self._is_share = earlier._is_share = earlier._is_continued = True
        self._indexes = earlier._indexes
        texts, self._ended = {**earlier._earlier}, earlier._ended
        for part in earlier._parts:
            texts[part.index] = texts.get(part.index, "") + part.text
            if part.stage != "added":
                self._ended |= {part.index}
        self._earlier = texts

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
        that comes after a delta or the end.
        """
        if part is None:
            known = [self.text] if len(self._parts) > 1 else []
            if index is not None and index in self._earlier:
                known.append(self._earlier[index])
            return stage in ("text_done", "done") and text in known
        if part.kind is not kind:
            return False
        if not kind.is_part:
            return True
        if stage == "added":
            is_late = index is not None and part.lacks_beginning
            return is_late or (part.is_open and not part.deltas)
        if stage == "delta":
            is_late = index is not None and part.stage != "added"
            return bool(is_late and text and text in part.text)
        return not text or text == part.text

    # Parts

    def _find_part(
        self, event: Json, kind: ContentKind, stage: Stage
    ) -> tuple[int | None, StreamedPart | None]:
        """Find the part that an event is about: by its index, if it tells, else the last."""
        last = self._parts[-1] if self._parts else None
        is_fresh = last is not None and last.is_open and not (last.deltas or last.truncated)
        index = self._indexes.read(event, stage, is_fresh=is_fresh) if kind.is_part else None
        return index, last if index is None else self._by_index.get(index)

    def _add_part(self, kind: ContentKind, index: int | None) -> StreamedPart:
        """Add a part, which takes the events of upstream's `content_index` from now on."""
        place = {"content_index": len(self._parts)} if kind.is_part else {}
        taken = {*self._ended, *(part.index for part in self._parts)}
        order = self._next_index() if index is None or index in taken else index
        part = StreamedPart(kind, order, len(self._parts), {**self._address, **place})
        self._parts.append(part)
        if index is not None:
            self._by_index[index] = part
        self._note_current(part)
        return part

    def _next_index(self) -> int:
        """Return the index of a part that upstream does not address."""
        last = max([*self._earlier, *(part.index for part in self._parts)], default=-1)
        goes_on = not self._parts and last in self._earlier and last not in self._ended
        return last if goes_on else last + 1

    def _begin_part(
        self, kind: ContentKind, index: int | None
    ) -> tuple[StreamedPart, list[ContentEvent]]:
        """Add a part whose beginning upstream left out."""
        part = self._add_part(kind, index)
        part.lacks_beginning = True
        return part, [self._make_missing(part, "added", "")] if kind.is_part else []

    def _close_part(self, part: StreamedPart | None) -> Iterator[ContentEvent]:
        if part is None or not part.is_open:
            return
        if part.stage != "text_done":
            yield self._make_missing(part, "text_done", part.text)
        if part.kind.is_part:
            yield self._make_missing(part, "done", part.text)
        part.is_open = False
        self._note_current(self._current)

    def _note_current(self, part: StreamedPart | None) -> None:
        """Note the part of the last event, and whether deltas may continue it unread."""
        self._current, self.delta_type = part, ""
        if part is None or not part.is_open or part.stage != "added":
            return
        self.content_index = part.address.get("content_index")
        if self.content_index is None or self._by_index.get(self.content_index) is part:
            self.delta_type = part.kind.delta_type

    def _continue_part(
        self, part: StreamedPart, stage: Stage, text: str | None, event: Json, frame: bytes | None
    ) -> Iterator[ContentEvent]:
        if stage == "delta":
            self._note_current(part)
            if text:
                self._append(part, text)
            if text or says_anything(event):
                frame = self._correct(part, stage, event, frame)
                yield ContentEvent(stage, part.kind, text or "", frame)
            return
        share = self._own_share(part, part.index, text)
        yield from self._add_text(part, self._settle_by_event(part, share))
        if stage == "done" and part.stage != "text_done":
            yield self._make_missing(part, "text_done", part.text)
        part.stage, part.is_open = stage, stage != "done"
        self._note_current(self._current)
        yield ContentEvent(stage, part.kind, "", self._correct(part, stage, event, frame))

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
        finals = list[FinalText]()
        for kind, text in contents_of(item, self._item_type):
            index = next(indexes, None)
            if index not in self._ended:
                part = None if index is None else parts.get(index)
                finals.append(FinalText(part, kind, self._own_share(part, index, text)))
        if "".join(final.text or "" for final in finals) == self.text:
            return []
        rest = (parts[index] for index in indexes if index in parts)
        return finals and [*finals, *(FinalText(part, part.kind, "") for part in rest)]

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
            (part, self._settle(part, text if kind is part.kind else "", last))
            for part, kind, text in finals
            if part is not None
        ]

    def _settle_by_event(self, part: StreamedPart, text: str | None) -> str:
        """Take the text of an event that ends a part; return what of it is yet to be streamed.

        An empty one passes, but does not fill in what is left out after it: some gateways end every
        part so, and leave its text out of the item (agentgateway/agentgateway pull 2281,
        maximhq/bifrost pull 895).
        """
        if text != "" or not part.deltas:
            return self._settle(part, text)
        part.is_mismatched = True
        return ""

    def _settle(self, part: StreamedPart, text: str | None, last: int | None = None) -> str:
        """Take upstream's final text of a part; return what of it is yet to be streamed. `last` is
        the place of the last part with a text, where that is known."""
        known = part.text
        if text is None or part.truncated or text == known:
            return ""
        if text.startswith(known) and self._takes_rest(part, last):
            return text[len(known) :]
        part.is_mismatched = True
        self.contradicted = known if self.contradicted is None else self.contradicted
        if self._reserve(max(0, len(text) - len(known))):
            part.deltas = [text]
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
        return next((part.place for part in reversed(self._parts) if part.deltas), -1)

    def _append(self, part: StreamedPart, text: str) -> None:
        if self._reserve(len(text)):
            part.deltas.append(text)
        else:
            part.truncated = True

    # Events

    def _add_text(self, part: StreamedPart, text: str) -> Iterator[ContentEvent]:
        if text:
            self._append(part, text)
            yield self._make_missing(part, "delta", text)

    def _make_missing(self, part: StreamedPart, stage: Stage, text: str) -> ContentEvent:
        """Make an event that upstream left out."""
        event_type, fields = part.kind.build_event(stage, text)
        frame = self._make_frame(
            event_type, {**part.address, **part.kind.extra_fields(stage, self._added), **fields}
        )
        return ContentEvent(stage, part.kind, text if stage == "delta" else "", frame)

    def _correct(
        self, part: StreamedPart, stage: Stage, event: Json, frame: bytes | None
    ) -> bytes | None:
        """Correct upstream's event: address it to this part, and fill in its text.

        Leave a correct one as it came. Give one that has to be changed all other fields it lacks.
        """
        kind = part.kind
        is_final = stage != "added" and event_text(event, kind) is not None and not self._is_share
        known = "" if stage == "delta" else part.text  # not joined anew for each delta
        text = {} if part.truncated or is_final else {kind.text_field: known}

        def correct(event: Json) -> Json:
            if stage == "delta":
                return {**event, **part.address}
            if stage == "text_done":
                return {**event, **part.address, **text}
            return {**event, **part.address, "part": {**event["part"], "type": kind.name, **text}}

        if correct(event) == event:
            return frame
        whole = kind.build_event(stage, known)[1] | kind.extra_fields(stage, self._added)
        return change_frame(frame, lambda event: _fill_missing(whole, correct(event)))


def _fill_missing(whole: Json, event: Json) -> Json:
    """Add the fields of a whole event that this one, or its part, lacks."""
    part = {"part": {**whole["part"], **event["part"]}} if "part" in whole else {}
    return {**whole, **event, **part}
