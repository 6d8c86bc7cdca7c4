"""Make reasoning of the thinking that upstream writes inside its texts, and take it out of calls.

Servers without a reasoning parser answer with `<think>…</think>` in a text. What such a text begins
with becomes a part of its own, live, as a server with a parser would have sent it, and then comes
the text without it. So a text's own start waits for its first word.

Where raw reasoning is hidden, thinking is looked for in all of every text, and in the arguments of
calls. What comes after a text has begun can become no part any more: it is left out, and counted. A
block of thinking may go on in the next text: Claude's are cut wherever citations begin and end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from abridge.core.answer import Part
from abridge.core.events import (
    Beside,
    CitationDelta,
    ContentDelta,
    ErrorReported,
    Event,
    Finished,
    PartEnded,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ToolCallDelta,
)
from abridge.core.hidden import HiddenCount
from abridge.providers.profile import Profile
from abridge.stages.hidden_thinking import JsonBlockFilter, ThinkingFilter, visible_text
from abridge.stages.tags import MAX_LEADING_BLANKS, TagPiece, TagSplitter, join_alike

MAX_HELD = MAX_LEADING_BLANKS + 64
"""Events that wait for a text's start. A tag and the blank before it have no more characters: more
events than that hold no text."""


class Thinking:
    """Separate the thinking of one lane. Of each text at most `limit` characters are held where
    reasoning is hidden; else only what may be the beginning of a tag. `items` numbers the reasoning
    items that are made."""

    def __init__(
        self,
        profile: Profile,
        limit: int,
        items: Iterator[int],
        *,
        hides_raw: bool,
        drops_inline: bool,
        hidden: HiddenCount,
    ) -> None:
        self._hidden = hidden
        self._profile = profile
        self._hides_raw = hides_raw
        self._drops_inline = drops_inline  # beside a summary of upstream's
        self._limit = limit
        self._items = items
        self._has_reasoned = False
        self._has_answered = False
        self._cut = 0  # characters of thinking in the texts that have ended
        self._last_cut: tuple[Part | None, int] = (None, 0)  # of the text that ended last
        self._last_filter: ThinkingFilter | None = None  # of the last text
        self._texts: dict[Part, _OpenText] = {}
        self._calls: dict[Part, JsonBlockFilter] = {}
        self._out: list[Event] = []
        self.dropped = 0

    def passes(self, event: Event) -> bool:
        """Return whether a delta would go out as it is, and nothing had to be noted of it."""
        part = event.part
        if part is None or part.kind in ("reasoning", "redacted", "other"):
            return True
        if part.kind == "text":
            text = self._texts.get(part)
            return self._has_answered and text is not None and text.passes(event)
        arguments = event.arguments if isinstance(event, ToolCallDelta) else ""
        return not self._hides_raw or (part in self._calls and self._calls[part].passes(arguments))

    def take(self, events: Iterable[Event]) -> list[Event]:
        """Take events; return those that they become."""
        for event in events:
            kind = None if event.part is None else event.part.kind
            if isinstance(event, CitationDelta):
                self._move_passage(event)
            elif kind == "text":
                self._take_text(event)
            elif kind == "call" and self._hides_raw:
                self._take_call(event)
            else:
                self._take_other(event)
        out = [*self._out]
        self._out.clear()
        return out

    def _move_passage(self, event: CitationDelta) -> None:
        """Name the source of a text that has just ended, in which thinking may have stood. Where
        passages of other texts are is not known once thinking was taken out of any."""
        part, within = self._last_cut
        if event.passage is not None and event.part is not None and event.part is part:
            start, end = event.passage
            event.passage = start - self._cut + within, end - self._cut
        elif self._cut:
            event.passage = None
        self._out.append(event)

    def _take_other(self, event: Event) -> None:
        if isinstance(event, ReasoningStarted):
            self._has_reasoned = True
        elif isinstance(event, Finished | ErrorReported | ResponseEnded):
            self._end_texts(event)
        self._out.append(event)

    def _end_texts(self, event: Finished | ErrorReported | ResponseEnded) -> None:
        """End what is still open, as a text is of which more came after its end."""
        has_failed = isinstance(event, ResponseEnded) and not event.ok
        for text in list(self._texts.values()):
            if event.lane in (None, text.lane):
                self._end_text(text, is_cut=has_failed or isinstance(event, ErrorReported))

    # Texts

    def _take_text(self, event: Event) -> None:
        part = event.part
        if part is None:
            return
        text = self._texts.get(part)
        if text is None:
            part.shown = part.shown or []
            splitter = self._new_splitter()
            text = self._texts[part] = _OpenText(part, event.lane, splitter, self._out)
        if isinstance(event, PartEnded):
            self._end_text(text, end=event)
        elif type(event) is ContentDelta:
            self._split(text, event)
        else:
            text.pass_on(event)

    def _split(self, text: _OpenText, event: ContentDelta) -> None:
        text.size += len(event.text)
        pieces = text.splitter.feed(event.text)
        if pieces == [TagPiece("text", event.text)] or not event.text:
            self._has_answered = self._has_answered or bool(event.text.strip())
            text.say(event)
        else:
            self._show(text, pieces)
            if event.says_more and not self._hides_raw:
                text.pass_on(Beside(event.lane, event.frame, part=text.part))

    def _end_text(self, text: _OpenText, *, is_cut: bool = False, end: Event | None = None) -> None:
        """End a text. If the answer breaks off, what is held back of it may be thinking."""
        del self._texts[text.part]
        self._show(text, text.splitter.abort() if is_cut else text.splitter.end())
        text.end(end)
        self._last_cut = text.part, text.size
        self._cut += text.size

    def _show(self, text: _OpenText, pieces: Iterable[TagPiece]) -> None:
        for piece in join_alike(pieces):
            if piece.kind == "text":
                self._has_answered = self._has_answered or bool(piece.text.strip())
                text.say(ContentDelta(text.lane, None, piece.text, part=text.part))
            elif text.is_started or self._drops_inline or self._reasons_elsewhere(text):
                self.dropped += 1
            else:
                self._has_reasoned = True
                text.think(piece.text, self._items)

    def _reasons_elsewhere(self, text: _OpenText) -> bool:
        return self._has_reasoned and not text.has_thinking

    def _new_splitter(self) -> TagSplitter | ThinkingFilter:
        if self._hides_raw:
            last = self._last_filter
            thinking = ThinkingFilter.for_answer(
                self._profile, self._limit, after=last, hidden=self._hidden
            )
            if self._has_reasoned or self._has_answered:  # only an answer's start may be thinking
                thinking.note_reasoning()
            self._last_filter = thinking
            return thinking
        splitter = TagSplitter(self._profile.tags, prefilled=self._profile.prefilled)
        if self._has_reasoned or self._has_answered:
            splitter.ignore_tags()
        return splitter

    # Calls

    def _take_call(self, event: Event) -> None:
        part = event.part
        if part is None:
            return
        found = self._calls.get(part)
        if found is None:
            part.shown = []
            found = self._calls[part] = JsonBlockFilter(limit=self._limit).counting_in(self._hidden)
        if isinstance(event, PartEnded):
            self._end_call(part, found, event)
        elif isinstance(event, ToolCallDelta) and event.arguments:
            shown = visible_text(found.feed(event.arguments))
            if shown != event.arguments:
                event = replace(event, frame=None, arguments=shown)
        self._out.append(event)

    def _end_call(self, part: Part, found: JsonBlockFilter, event: PartEnded) -> None:
        del self._calls[part]
        rest = visible_text(found.end())
        self.dropped += found.blocks
        if rest:
            call_index = part.number
            self._out.append(
                ToolCallDelta(event.lane, None, call_index=call_index, arguments=rest, part=part)
            )


class _OpenText:
    """A text that is open, and the thinking before it."""

    def __init__(
        self,
        part: Part,
        lane: int | None,
        splitter: TagSplitter | ThinkingFilter,
        out: list[Event],
    ) -> None:
        self.part = part
        self.lane = lane
        self.splitter = splitter
        self.is_started = False
        self.has_thinking = False
        self.size = 0  # characters that were said and not shown
        self._out = out
        self._held: list[Event] = []  # its start, and what it says beside its text
        self._thinking: Part | None = None  # while it is open

    def passes(self, event: Event) -> bool:
        is_text = isinstance(event, ContentDelta) and self.splitter.passes(event.text)
        return self.is_started and is_text

    def pass_on(self, event: Event) -> None:
        """Pass on what is no text: after the start, or among the thinking if about neither."""
        if len(self._held) >= MAX_HELD:
            self._start()
        is_between = event.lane is None and self._thinking is not None
        if self.is_started or is_between:
            self._out.append(event)
        else:
            self._held.append(event)

    def say(self, event: ContentDelta) -> None:
        self.size -= len(event.text)
        self._stop_thinking()
        self._start()
        self._out.append(event)

    def think(self, text: str, items: Iterator[int]) -> None:
        if self._thinking is None:
            self.has_thinking = True
            part = self._thinking = Part("reasoning", next(items))
            self._out.append(ReasoningStarted(self.lane, None, part.number, part=part))
            self._out += [event for event in self._held if event.lane is None]
            self._held = [event for event in self._held if event.lane is not None]
        thinking = self._thinking
        thinking.texts.append(text)
        self._out.append(ReasoningDelta(self.lane, None, thinking.number, text, part=thinking))

    def end(self, end: Event | None) -> None:
        """End the text. One that held nothing but thinking never was."""
        self._stop_thinking()
        if len(self._held) > 1 or (self._held and not self.has_thinking):
            self._start()
        if end is not None and (self.is_started or not self.has_thinking):
            self._out.append(end)

    def _start(self) -> None:
        if self._held:
            self._out += self._held
            self._held = []
        self.is_started = True

    def _stop_thinking(self) -> None:
        part, self._thinking = self._thinking, None
        if part is not None:
            part.is_closed = True
            self._out.append(ReasoningEnded(self.lane, None, part.number, part=part))
