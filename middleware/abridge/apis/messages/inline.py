"""Make thinking blocks of the thinking that upstream writes inside its texts.

Servers without a reasoning parser answer with `<think>…</think>` in a text block. This stage reads
upstream's events before the blocks do, and hands on those that a server with a parser would have
sent: the thinking as a block of its own, live, and then the text without it. So a text's own start
is held until its first word.

Where raw reasoning is hidden, thinking is looked for in all of every text. What comes after a text
has begun can become no block any more: it is left out, and counted as dropped. A block of thinking
may go on in the next text: Claude's are cut wherever citations begin and end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, starmap

from abridge.apis.delta_patterns import Accepts
from abridge.apis.display import Display
from abridge.apis.frames import encode_event, parse_frame
from abridge.apis.json import as_object, string
from abridge.apis.messages.block_order import FramedEvent, ends_answer
from abridge.apis.tags import MAX_LEADING_BLANKS, TagPiece, TagSplitter, join_alike
from abridge.apis.thinking import ThinkingFilter
from abridge.core.conversation import Json
from abridge.providers.profile import Profile

MAX_HELD = MAX_LEADING_BLANKS + 64
"""Events that wait for a block's start. A tag and the blank before it have no more characters:
more events than that hold no text."""


class InlineThinking:
    """Read one answer. Of each text at most `limit` characters are held where reasoning is hidden;
    else only what may be the beginning of a tag."""

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self._profile = profile
        self._hides_raw = display.hides_raw
        self._drops_inline = display.drops_inline
        self._limit = limit
        self._indexes = count(-1, -1)  # of the blocks that are made here
        self._has_reasoned = False
        self._has_answered = False
        self._text: OpenText | None = None
        self._filter: ThinkingFilter | None = None  # of the last text, where reasoning is hidden
        self._other: object = None  # the index of the open block, if it is of another type
        self.dropped = 0

    @classmethod
    def for_answer(cls, profile: Profile, display: Display, limit: int) -> InlineThinking | None:
        """Return the stage for an answer; None if what it looks for is of no interest, or is not to
        be expected."""
        replaces_raw = display.style is not None or not display.show_raw
        if display.hides_raw or (replaces_raw and "tags" in profile.reasoning_in):
            return cls(profile, display, limit)
        return None

    def passes(self, event: Json) -> bool:
        """Return whether `read` would yield just this event, and has nothing to note."""
        if event.get("type") != "content_block_delta":
            return False
        if not self._is_text(event):
            is_noted = self._other is not None and self._ends_other(event)
            return self._text is None and not is_noted
        return self._text is not None and self._text.passes(event)

    @property
    def accepts(self) -> Accepts | None:
        """What tells whether a further text of the open text block has nothing to split, once one
        had not."""
        return None if self._text is None else self._text.splitter.passes

    def read(self, event: Json, frame: bytes | None) -> Iterator[FramedEvent]:
        """Take an event; yield those that it becomes."""
        kind = event.get("type")
        if self._ends_other(event):
            self._other = None
        if kind == "content_block_start":
            yield from self.end()
            yield from self._start(event, frame)
        elif kind == "content_block_delta":
            yield from self._add(event, frame)
        elif self._text is None:
            yield event, frame
        elif kind == "content_block_stop" and event.get("index") == self._text.index:
            text = self._text
            yield from self.end()
            if text.is_started or not text.has_thinking:
                yield from text.start()
                yield event, frame
        elif ends_answer(event) or kind == "error":
            yield from self.end(is_cut=kind == "error")
            yield event, frame
        elif kind in ("ping", "content_block_stop"):
            yield event, frame
        else:
            yield from self._text.pass_on(event, frame)

    def end(self, *, is_cut: bool = False) -> Iterator[FramedEvent]:
        """End the open text. If the answer breaks off, what is held back of it may be thinking."""
        text, self._text = self._text, None
        if text is not None:
            pieces = text.splitter.abort() if is_cut else text.splitter.end()
            yield from self._show(text, pieces)
            yield from text.stop_thinking()
            if text.holds_more:
                yield from text.start()

    def split(self, content: Iterable[Json]) -> list[Json]:
        """Return the blocks of a whole message with their thinking in blocks of its own."""
        blocks: list[Json] = []
        for index, block in enumerate(content):
            address = {"index": index}
            start = {"type": "content_block_start", **address, "content_block": block}
            stop = {"type": "content_block_stop", **address}
            for event in (start, stop):
                for made, _ in self.read(event, None):
                    _add_up(blocks, made)
        return blocks

    def _start(self, event: Json, frame: bytes | None) -> Iterator[FramedEvent]:
        block = as_object(event.get("content_block"))
        kind = block.get("type")
        self._other = None if kind in ("text", "thinking") else event.get("index")
        self._has_reasoned = self._has_reasoned or kind == "thinking"
        if kind != "text":
            yield event, frame
            return
        given = string(block.get("text"))
        empty = {**event, "content_block": {**block, "text": ""}}
        self._text = OpenText(empty, None if given else frame, self._new_splitter(), self._indexes)
        if given:
            yield from self._show(self._text, self._text.splitter.feed(given))

    def _is_text(self, event: Json) -> bool:
        """Return whether a delta holds text of the answer, also of a block that upstream did not
        start; not if it is of a block of another type."""
        is_text = as_object(event.get("delta")).get("type") == "text_delta"
        return is_text and (self._other is None or event.get("index") != self._other)

    def _ends_other(self, event: Json) -> bool:
        """Return whether an event ends an open block of another type: it stops it, or goes on with
        another one. Text under its index is text of the answer from then on."""
        kind, is_own = event.get("type"), event.get("index") == self._other
        return kind == ("content_block_stop" if is_own else "content_block_delta")

    def _new_splitter(self) -> TagSplitter | ThinkingFilter:
        if self._hides_raw:
            last = self._filter
            thinking = ThinkingFilter.for_answer(self._profile, self._limit, after=last)
            if self._has_reasoned:
                thinking.note_reasoning()
            self._filter = thinking
            return thinking
        splitter = TagSplitter(self._profile.tags, prefilled=self._profile.prefilled)
        if self._has_reasoned or self._has_answered:
            splitter.ignore_tags()
        return splitter

    def _add(self, event: Json, frame: bytes | None) -> Iterator[FramedEvent]:
        """Take a delta of a block."""
        index, text = event.get("index"), self._text
        if not self._is_text(event):
            if text is not None and index == text.index:
                yield from text.start()
            yield event, frame
            return
        if text is None or index != text.index:
            yield from self.end()
            begun = {"index": index, "content_block": {"type": "text", "text": ""}}
            start: Json = {"type": "content_block_start", **begun}
            text = self._text = OpenText(start, None, self._new_splitter(), self._indexes)
        given = string(event["delta"].get("text"))
        pieces = text.splitter.feed(given)
        if pieces != [TagPiece("text", given)]:
            yield from self._show(text, pieces)
            if not self._hides_raw:
                yield from text.add_rest(event, frame)
            return
        self._has_answered = self._has_answered or bool(given.strip())
        yield from text.stop_thinking()
        yield from text.start()
        yield event, frame

    def _show(self, text: OpenText, pieces: Iterable[TagPiece]) -> Iterator[FramedEvent]:
        for piece in join_alike(pieces):
            if piece.kind == "text":
                self._has_answered = self._has_answered or bool(piece.text.strip())
                yield from text.add_text(piece.text)
            elif text.is_started or self._drops_inline or self._reasons_elsewhere(text):
                self.dropped += 1
            else:
                self._has_reasoned = True
                yield from text.add_thinking(piece.text)

    def _reasons_elsewhere(self, text: OpenText) -> bool:
        return self._has_reasoned and not text.has_thinking


class OpenText:
    """The open text block, and the thinking block before it."""

    def __init__(
        self,
        start: Json,
        frame: bytes | None,
        splitter: TagSplitter | ThinkingFilter,
        indexes: Iterator[int],
    ) -> None:
        self.index = start.get("index")
        self.splitter = splitter
        self.is_started = False
        self.has_thinking = False
        self._held: list[FramedEvent] = [(start, frame)]
        self._indexes = indexes
        self._thinking: int | None = None  # the index of the thinking block, while it is open

    def passes(self, event: Json) -> bool:
        """Return whether a delta of text is of this block, and has nothing to split."""
        text = string(event["delta"].get("text"))
        is_own = event.get("index") == self.index
        return self.is_started and is_own and self.splitter.passes(text)

    @property
    def holds_more(self) -> bool:
        """Return whether more than its start waits for the block to start."""
        return len(self._held) > 1

    def start(self) -> Iterator[FramedEvent]:
        """Start the block, unless it has."""
        held, self._held, self.is_started = self._held, [], True
        yield from held

    def pass_on(self, event: Json, frame: bytes | None) -> Iterator[FramedEvent]:
        """Pass on what is no text, in its order: unless thinking is open, after the block's
        start."""
        waits = self._thinking is None and not self.is_started
        if waits and len(self._held) < MAX_HELD:
            self._held.append((event, frame))
            return
        if waits:
            yield from self.start()
        yield event, frame

    def add_rest(self, event: Json, frame: bytes | None) -> Iterator[FramedEvent]:
        """Pass on what a delta says beside its text, which was split."""
        if event["delta"].keys() <= {"type", "text"} and event.keys() <= {"type", "index", "delta"}:
            return
        exact = parse_frame(frame)
        rest = {**exact, "delta": {**exact["delta"], "text": ""}}
        made = self._moved(rest, encode_event("content_block_delta", rest))
        yield from self.pass_on(*made)

    def add_text(self, text: str) -> Iterator[FramedEvent]:
        yield from self.stop_thinking()
        yield from self.start()
        yield _delta(self.index, "text", text), None

    def add_thinking(self, text: str) -> Iterator[FramedEvent]:
        if self._thinking is None:
            self._thinking, self.has_thinking = next(self._indexes), True
            block = {"type": "thinking", "thinking": "", "signature": ""}
            start = {"index": self._thinking, "content_block": block}
            yield {"type": "content_block_start", **start}, None
            own_start, *others = self._held
            self._held = [own_start]
            yield from starmap(self._moved, others)
        yield _delta(self._thinking, "thinking", text), None

    def _moved(self, event: Json, frame: bytes | None) -> FramedEvent:
        """Return what a delta said beside a text as if it were said beside the open thinking."""
        if self._thinking is None or event["type"] != "content_block_delta":
            return event, frame
        others = {key: value for key, value in event["delta"].items() if key != "text"}
        delta = {**others, "type": "thinking_delta", "thinking": ""}
        moved = {**event, "index": self._thinking, "delta": delta}
        return moved, encode_event("content_block_delta", moved)

    def stop_thinking(self) -> Iterator[FramedEvent]:
        index, self._thinking = self._thinking, None
        if index is not None:
            yield {"type": "content_block_stop", "index": index}, None


def _delta(index: object, field: str, text: str) -> Json:
    delta = {"type": f"{field}_delta", field: text}
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _add_up(blocks: list[Json], event: Json) -> None:
    """Add an event of a stream to the blocks that it makes."""
    if event["type"] == "content_block_start":
        blocks.append(dict(event["content_block"]))
    elif event["type"] == "content_block_delta":
        field = event["delta"]["type"].removesuffix("_delta")
        blocks[-1][field] += event["delta"][field]
