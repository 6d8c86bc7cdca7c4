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

from abridge.wire.codec import Json, read_object, string
from abridge.wire.responses.frames import Make, changed
from abridge.wire.responses.spelling import (
    SAYS,
    STAGES,
    Spelling,
    Stage,
    respelled,
    spoken_in,
    text_in,
)


@dataclass(slots=True, frozen=True)
class Piece:
    """One event of an item's content."""

    stage: Stage
    spelling: Spelling
    text: str  # new text; empty for an event that only repeats or closes
    frame: bytes | None


@dataclass(slots=True)
class _Part:
    spelling: Spelling
    at: Json  # `item_id`, `output_index` and, of a content part, `content_index`
    stage: Stage = "opened"
    said: list[str] = field(default_factory=list)
    cut: bool = False  # there was no room to store all of its text

    @property
    def text(self) -> str:
        return "".join(self.said)


class Contents:
    """Repairs the content of one item."""

    def __init__(self, at: Json, added: Json, take: Callable[[int], bool], make: Make) -> None:
        self.delta = ""  # the type of events that continue the open part, if one can be continued
        self.index: int | None = None  # the `content_index` of that part
        self._at = at
        self._added = added
        self._kind = string(added.get("type"))
        self._take = take
        self._make = make
        self._parts: list[_Part] = []
        self._open: _Part | None = None

    @property
    def whole(self) -> bool:
        """Return whether the content may be complete.

        Arguments are complete once they are JSON. When a custom tool's input is, only upstream
        knows.
        """
        said = SAYS.get(self._kind, ())
        if not said or said[0].wrapped:
            return bool(said)
        part = self._parts[0] if self._parts else None
        if part is None or part.stage == "said":
            return part is not None
        if not (part.said and part.said[-1].rstrip().endswith("}")):
            return False  # saves parsing all of it, which may be long
        return read_object(part.text.encode(errors="surrogatepass")) is not None

    def grow(self, text: str) -> None:
        """Append text to the open part, as far as there is room."""
        part = self._parts[-1]
        if self._take(len(text)):
            part.said.append(text)
        else:
            part.cut = True

    def read(self, event: Json, spelling: Spelling, frame: bytes | None) -> list[Piece] | None:
        """Read one upstream event; return None if it is out of order."""
        stage = STAGES[event["type"]]
        text = text_in(event, spelling)
        if self._goes_on(stage, spelling):
            return [*self._go_on(stage, text, event, frame)]
        if self._is_repeated(stage, spelling, text):
            return None
        ending = [*self.close()]
        if stage != "opened":
            return [*ending, *self._begin(spelling), *self._go_on(stage, text, event, frame)]
        return [*ending, *self._begin(spelling, event, frame), *self._say(text)]

    def complete(self, item: Json) -> Iterator[Piece]:
        """Emit what the finished item says beyond what was streamed."""
        for place, (spelling, text) in enumerate(spoken_in(item, self._kind)):
            if self._open is not None and place == len(self._parts) - 1:
                yield from self._rest(text)
            elif place >= len(self._parts) and text:
                yield from self.close()
                yield from self._begin(spelling)
                yield from self._say(text)
        yield from self.close()

    def close(self) -> Iterator[Piece]:
        """Close the open part, if there is one."""
        part = self._open
        if part is None:
            return
        if part.stage != "said":
            yield self._made("said", part.text)
        if part.spelling.wrapped:
            yield self._made("closed", part.text)
        self._open, self.delta = None, ""

    def settled(self, item: Json, *, exactly: bool) -> Json:
        """Return the item with all the text that was streamed and, if `exact`, with no more."""
        said = "".join(part.text for part in self._parts)
        if not said or any(part.cut for part in self._parts):
            return item
        given = "".join(text for _, text in spoken_in(item, self._kind))
        if given == said or (given.startswith(said) and not exactly):
            return item
        return respelled(item, self._kind, [(part.spelling, part.text) for part in self._parts])

    def _goes_on(self, stage: Stage, spelling: Spelling) -> bool:
        """Return whether the event continues the open part. After `text_done` only `done` does."""
        part = self._open
        if part is None or part.spelling is not spelling:
            return False
        return stage == "closed" if part.stage == "said" else stage != "opened"

    def _is_repeated(self, stage: Stage, spelling: Spelling, text: str) -> bool:
        last = self._parts[-1] if self._parts else None
        if last is None or last.spelling is not spelling:
            return False
        if not spelling.wrapped:
            return True
        if stage == "opened":
            return last is self._open and not last.said
        return stage != "delta" and text in ("", last.text)

    def _begin(
        self, spelling: Spelling, event: Json | None = None, frame: bytes | None = None
    ) -> Iterator[Piece]:
        index = {"content_index": len(self._parts)} if spelling.wrapped else {}
        self._open = _Part(spelling, {**self._at, **index})
        self._parts.append(self._open)
        self.delta, self.index = spelling.delta, index.get("content_index")
        if event is not None:
            yield Piece("opened", spelling, "", self._right("opened", event, frame))
        elif spelling.wrapped:
            yield self._made("opened", "")

    def _go_on(self, stage: Stage, text: str, event: Json, frame: bytes | None) -> Iterator[Piece]:
        part = self._parts[-1]
        if stage == "delta":
            if text:
                self.grow(text)
                yield Piece(stage, part.spelling, text, self._right(stage, event, frame))
            return
        yield from self._rest(text)
        if stage == "closed" and part.stage != "said":
            yield self._made("said", part.text)
        part.stage, self.delta = stage, ""
        self._open = None if stage == "closed" else part
        yield Piece(stage, part.spelling, "", self._right(stage, event, frame))

    def _rest(self, whole: str) -> Iterator[Piece]:
        part = self._parts[-1]
        said = part.text
        if part.stage != "said" and not part.cut and whole.startswith(said):
            yield from self._say(whole[len(said) :])

    def _say(self, text: str) -> Iterator[Piece]:
        if text:
            self.grow(text)
            yield self._made("delta", text)

    def _made(self, stage: Stage, text: str) -> Piece:
        """Make an event that upstream left out."""
        part = self._parts[-1]
        kind, fields = part.spelling.event(stage, text)
        frame = self._make(kind, {**part.at, **part.spelling.near(stage, self._added), **fields})
        return Piece(stage, part.spelling, text if stage == "delta" else "", frame)

    def _right(self, stage: Stage, event: Json, frame: bytes | None) -> bytes | None:
        """Correct upstream's event: address it to this part, and make it repeat the part's text.

        Leave a correct one as it came. Give one that has to be changed all other fields it lacks.
        """
        part = self._parts[-1]
        spelling = part.spelling
        text = {} if part.cut else {spelling.field: part.text}

        def right(event: Json) -> Json:
            if stage == "delta":
                return {**event, **part.at}
            if stage == "said":
                return {**event, **part.at, **text}
            return {**event, **part.at, "part": {**event["part"], "type": spelling.kind, **text}}

        if right(event) == event:
            return frame
        whole = spelling.event(stage, part.text)[1] | spelling.near(stage, self._added)
        return changed(frame, lambda event: _filled(whole, right(event)))


def _filled(whole: Json, event: Json) -> Json:
    """Add the fields of a whole event that this one, or its part, lacks."""
    part = {"part": {**whole["part"], **event["part"]}} if "part" in whole else {}
    return {**whole, **event, **part}
