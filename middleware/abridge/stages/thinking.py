"""Make reasoning of the thinking that upstream writes inside its texts, and take it out of calls.

Servers without a reasoning parser answer with `<think>…</think>` in a text. What such a text begins
with becomes a part of its own, live, as a server with a parser would have sent it, and then comes
the text without it. So a text's own start waits for its first word. Where an API's messages consist
of texts, a message's start waits for the first word of any of them.

Where raw reasoning is hidden, thinking is looked for in all of every text, and in the arguments of
calls. What comes after a text has begun can become no part any more: it is left out, and counted. A
block of thinking may go on in the next text: Claude's are cut wherever citations begin and end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from abridge.core.answer import Part
from abridge.core.events import (
    FRAME_OVERHEAD,
    Beside,
    CitationDelta,
    ContentDelta,
    ErrorReported,
    Event,
    Finished,
    ImageDelta,
    NativeSummary,
    PartEnded,
    ProviderState,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    RefusalDelta,
    ResponseEnded,
    ToolCallDelta,
    held_size,
    said_text,
)
from abridge.core.hidden import HiddenCount
from abridge.providers.profile import Profile
from abridge.stages.hidden_thinking import (
    BlockFilter,
    JsonBlockFilter,
    ThinkingFilter,
    visible_text,
)
from abridge.stages.tags import MAX_LEADING_BLANKS, TagPiece, TagSplitter, join_alike

MAX_HELD = MAX_LEADING_BLANKS + 64
"""Events that wait for a message's start, or with text that may yet become a block. A tag and the
blank before it have no more characters: more events than that hold no text."""

Splitter: TypeAlias = TagSplitter | ThinkingFilter

Accepts: TypeAlias = Callable[[str], bool]
"""Returns whether a text may be passed on as the one before it was. It must not refer to the
reader: that circle would outlive a client that leaves mid-stream."""


def accept_any(_text: str) -> bool:
    """Accept any text: none is looked at."""
    return True


class Thinking:
    """Separate the thinking of one lane. Of each text at most `limit` characters are held where
    reasoning is hidden; else only what may be the beginning of a tag. `items` numbers the reasoning
    items that are made. With `by_message` every message may begin with thinking; else only what is
    the first of the answer."""

    def __init__(
        self,
        profile: Profile,
        limit: int,
        items: Iterator[int],
        *,
        hides_raw: bool,
        drops_inline: bool,
        hidden: HiddenCount,
        by_message: bool = False,
        has_reasoned: bool = False,
    ) -> None:
        self._hidden = hidden
        self._profile = profile
        self._hides_raw = hides_raw
        self._drops_inline = drops_inline  # beside a summary of upstream's
        self._by_message = by_message
        self._limit = limit
        self._items = items
        self._so_far = _SoFar(has_reasoned)
        self._cut = 0  # characters of thinking in the texts that have ended
        self._last_cut: tuple[Part | None, int] = (None, 0)  # of the message that ended last
        self._messages: dict[Part, _Message] = {}
        self._holding: dict[Part, _Message] = {}  # texts of which something may be held back
        self._calls: dict[Part, _OpenCall] = {}
        self._current: Part | None = None  # the message, or what else, of the last event
        self._out: list[Event] = []
        self._has_failed = False
        self.dropped = 0

    def had_reasoned_before(self, part: Part | None) -> bool:
        """Return whether upstream had told reasoning apart from its texts as this message began, or
        by now."""
        message = None if part is None else self._messages.get(part)
        return self._so_far.has_reasoned if message is None else message.follows_reasoning

    def accepts(self, part: Part) -> Accepts | None:
        """Return what tells whether a text of a part would go out as it is, and nothing had to be
        noted of it; None if that is not so of any."""
        if part.kind == "reasoning":
            return accept_any if self._so_far.has_reasoned else None
        if part.kind == "text":
            message = self._messages.get(part.whole)
            return None if message is None else message.accepts(part)
        if part.kind == "call" and self._hides_raw:
            call = self._calls.get(part.whole)
            return None if call is None else call.filter.passes
        return accept_any

    def take(self, events: Iterable[Event]) -> list[Event]:
        """Take events; return those that they become."""
        for event in events:
            part = event.part
            if self._by_message and part is not None and part.whole is not self._current:
                self._leave()
                self._current = part.whole
            if part is not None and (part.kind == "call" or isinstance(event, ImageDelta)):
                self._release_texts()
            if isinstance(event, CitationDelta):
                self._move_passage(event)
            elif part is not None and part.kind == "text":
                self._take_text(event, part)
            elif part is not None and part.kind == "call" and self._hides_raw:
                self._take_call(event, part)
            else:
                self._take_other(event)
        out = [*self._out]
        self._out.clear()
        return out

    def break_off(self) -> list[Event]:
        """Return what is held of the texts, as the answer breaks off: it may be thinking."""
        self._has_failed = True
        for message in self._messages.values():
            self._end_texts(message)
        return self.take(())

    def leave(self) -> list[Event]:
        """End the message that is open, since something else follows; return what it still says."""
        self._leave()
        return self.take(())

    def _leave(self) -> None:
        message = None if self._current is None else self._messages.get(self._current)
        if message is not None and not message.is_over:
            self._end_texts(message)
            message.end(None)

    def _move_passage(self, event: CitationDelta) -> None:
        """Pass on a source, its passage moved by the thinking that was taken out before it. That is
        known of the text that ended last; once there was any thinking, others have no passage."""
        part, within = self._last_cut
        is_known = not (within and self._by_message)  # which of the message's texts it was in
        if event.passage is not None and event.part is not None and event.part is part and is_known:
            start, end = event.passage
            event.passage = start - self._cut + within, end - self._cut
        elif self._cut:
            event.passage = None
        self._out.append(event)

    def _take_other(self, event: Event) -> None:
        if _tells_reasoning(event):
            self._so_far.has_reasoned = True
        elif isinstance(event, Finished | ErrorReported | ResponseEnded):
            self._end_all(event)
        self._out.append(event)

    def _end_all(self, event: Finished | ErrorReported | ResponseEnded) -> None:
        """End what is still open, as a text is of which more came after its end."""
        if isinstance(event, ErrorReported) or (isinstance(event, ResponseEnded) and not event.ok):
            self._has_failed = True
        for message in self._messages.values():
            if event.lane in (None, message.lane) and not message.is_over:
                self._end_texts(message)
                message.end(None)
        for call in () if self._has_failed else [*self._calls]:
            self._end_call(call)

    # Texts

    def _take_text(self, event: Event, part: Part) -> None:
        message = self._messages.get(part.whole)
        if message is None:
            so_far = self._so_far
            if self._by_message:
                so_far = _SoFar(so_far.has_reasoned)
            message = _Message(part.whole, event.lane, so_far, self._limit, self._out)
            message.tells_beside = self._by_message
            self._messages[part.whole] = message
        if isinstance(event, PartEnded):
            self._end_texts(message, None if part is message.part else part)
            (message.end if part is message.part else message.pass_on)(event)
        elif isinstance(event, ContentDelta) and (said := said_text(event)):
            self._split(message, part, event, said)
        elif part is not message.part and type(event) is ContentDelta and not message.is_started:
            message.pass_on(Beside(event.lane, event.frame, part=part))
        else:
            if _tells_reasoning(event):  # in the midst of a message
                self._so_far.has_reasoned = message.so_far.has_reasoned = True
            message.pass_on(event)

    def _split(self, message: _Message, part: Part, event: ContentDelta, said: str) -> None:
        text = message.texts.get(part)
        if text is None:
            part.shown = part.shown or []
            text = message.texts[part] = _OpenText(self._new_splitter(message, event), event)
        text.last, text.size = event, text.size + len(said)
        pieces = text.splitter.feed(said)
        if pieces == [TagPiece("text", said)]:
            self._say(message, text, event, said)
        else:
            self._holding[part] = message
            self._show(message, text, pieces)
            if event.says_more and not self._hides_raw:
                message.pass_on(Beside(event.lane, event.frame, part=part))

    def _say(self, message: _Message, text: _OpenText, event: ContentDelta, said: str) -> None:
        text.size -= len(said)
        message.so_far.has_answered = message.so_far.has_answered or bool(said.strip())
        message.say(event, said)

    def _release_texts(self) -> None:
        """Release what is held back of the texts that are open, since what comes now follows it."""
        for part, message in self._holding.items():
            if (text := message.texts.get(part)) is not None:
                self._show(message, text, text.splitter.interrupt())
        self._holding.clear()

    def _end_texts(self, message: _Message, part: Part | None = None) -> None:
        """End one text of a message, or all. If the answer breaks off, what is held back of it may
        be thinking."""
        for ended in [*message.texts] if part is None else [part]:
            text = message.texts.pop(ended, None)
            if text is None:
                continue
            self._show(message, text, text.splitter.end("raw" if self._has_failed else "text"))
            if isinstance(text.splitter, ThinkingFilter):
                message.so_far.last_filter = text.splitter
            message.cut += text.size
            self._last_cut = message.part, message.cut
            self._cut += text.size

    def _show(self, message: _Message, text: _OpenText, pieces: Iterable[TagPiece]) -> None:
        for piece in join_alike(pieces):
            if piece.kind == "text":
                self._say(message, text, _with_text(text.last, piece.text), piece.text)
            elif self._may_reason(message):
                message.so_far.has_reasoned = True
                message.think(piece.text, self._items)
            else:
                self.dropped += not text.has_dropped
                text.has_dropped = True

    def _may_reason(self, message: _Message) -> bool:
        """Return whether thinking in a message may become reasoning before it."""
        if message.is_started or message.part.goes_on or self._drops_inline:
            return False
        return self._by_message or not self._reasons_elsewhere(message)

    def _reasons_elsewhere(self, message: _Message) -> bool:
        return message.so_far.has_reasoned and not message.has_thinking

    def _new_splitter(self, message: _Message, event: ContentDelta) -> Splitter:
        """Make the splitter of a message's next text. Only the start of an answer may be thinking.
        Whether each text of a message may begin inside of it is not known: it is hidden then."""
        profile, so_far = self._profile, message.so_far
        is_refusal = isinstance(event, RefusalDelta)
        has_begun = so_far.has_answered or message.part.goes_on
        if self._hides_raw:
            after = None if is_refusal else so_far.last_filter
            thinking = ThinkingFilter.for_answer(
                profile, self._limit, after=after, hidden=self._hidden
            )
            if is_refusal or so_far.has_reasoned or (has_begun and not self._by_message):
                thinking.note_reasoning()
            return thinking
        is_prefilled = profile.prefilled and not so_far.has_reasoned
        splitter = TagSplitter(profile.tags, prefilled=is_prefilled)
        if is_refusal or has_begun or self._reasons_elsewhere(message):
            splitter.ignore_tags()
        return splitter

    # Calls

    def _take_call(self, event: Event, part: Part) -> None:
        call = part.whole
        if isinstance(event, PartEnded):
            self._end_call(call)
        elif isinstance(event, ToolCallDelta) and event.arguments:
            part.shown = part.shown or []
            found = self._calls.get(call)
            if found is None:
                new_filter = BlockFilter if event.custom else JsonBlockFilter
                blocks = new_filter(limit=self._limit).counting_in(self._hidden)
                found = self._calls[call] = _OpenCall(blocks, event)
            found.last = event
            shown = visible_text(found.filter.feed(event.arguments))
            if shown != event.arguments:
                event = replace(event, frame=None, arguments=shown)
        self._out.append(event)

    def _end_call(self, call: Part) -> None:
        found = self._calls.pop(call, None)
        if found is None:
            return
        rest = visible_text(found.filter.end())
        self.dropped += found.filter.blocks
        if rest:
            self._out.append(replace(found.last, frame=None, id="", name="", arguments=rest))


@dataclass(slots=True)
class _SoFar:
    """What has come so far of an answer or of a message, whichever may begin with thinking."""

    has_reasoned: bool = False
    has_answered: bool = False
    last_filter: ThinkingFilter | None = None  # of the last text


@dataclass(slots=True)
class _OpenText:
    splitter: Splitter
    last: ContentDelta  # its last delta
    size: int = 0  # characters that were said and not shown
    has_dropped: bool = False  # thinking after its start was left out


@dataclass(slots=True)
class _OpenCall:
    filter: BlockFilter
    last: ToolCallDelta


class _Message:
    """A message, or a text that is in none, and the thinking before it."""

    def __init__(
        self, part: Part, lane: int | None, so_far: _SoFar, limit: int, out: list[Event]
    ) -> None:
        self.part = part
        self.lane = lane
        self.so_far = so_far
        self.follows_reasoning = so_far.has_reasoned
        self.texts: dict[Part, _OpenText] = {}  # those that are open
        self.is_started = False
        self.is_over = False
        self.has_thinking = False
        self.cut = 0  # characters of thinking in the texts that have ended
        self.tells_beside = False  # what stands beside a text may come among its thinking
        self._out = out
        self._held: list[Event] = []  # its start, what it says beside its texts, and leading blanks
        self._room = limit  # bytes that may be held
        self._thinking: Part | None = None  # while it is open

    def accepts(self, part: Part) -> Accepts | None:
        text = self.texts.get(part)
        if text is None or not (self.is_started and self.so_far.has_answered):
            return None
        return text.splitter.passes

    def pass_on(self, event: Event) -> None:
        """Pass on what is no text: once the message has started, or among its thinking."""
        is_between = self._thinking is not None and self._may_be_between(event)
        if is_between or not self._holds(event):
            self._out.append(event)

    def say(self, event: ContentDelta, said: str) -> None:
        """Say a text. Blanks may come before thinking, too."""
        if not said.strip() and self._holds(event):
            return
        self._stop_thinking()
        self._start()
        self._out.append(event)

    def think(self, text: str, items: Iterator[int]) -> None:
        if self._thinking is None:
            self.has_thinking = True
            part = self._thinking = Part("reasoning", next(items), item=self.part)
            self._out.append(ReasoningStarted(self.lane, None, part.number, part=part))
            self._drop_blanks()
            self._out += filter(self._may_be_between, self._held)
            self._held = [event for event in self._held if not self._may_be_between(event)]
        thinking = self._thinking
        thinking.texts.append(text)
        self._out.append(ReasoningDelta(self.lane, None, thinking.number, text, part=thinking))

    def end(self, end: Event | None) -> None:
        """End the message. One that held nothing but thinking never was."""
        self.is_over = True
        self._stop_thinking()
        if self.has_thinking:
            self._drop_blanks()
        if len(self._held) > 1 or (self._held and not self.has_thinking):
            self._start()
        if end is not None and (self.is_started or not self.has_thinking):
            self._out.append(end)

    def _may_be_between(self, event: Event) -> bool:
        """Return whether an event may come among the thinking."""
        return event.lane is None or (self.tells_beside and isinstance(event, Beside))

    def _holds(self, event: Event) -> bool:
        """Hold an event until the message starts; return whether it is held."""
        if self.is_started:
            return False
        self._room -= held_size(event) or FRAME_OVERHEAD
        if self._room < 0 or len(self._held) >= MAX_HELD:
            self._stop_thinking()
            self._start()
            return False
        self._held.append(event)
        return True

    def _drop_blanks(self) -> None:
        self._held = [
            event
            for event in self._held
            if not (isinstance(event, ContentDelta) and said_text(event))
        ]

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


def _with_text(delta: ContentDelta, text: str) -> ContentDelta:
    """Return a delta that says a text in the place of its own."""
    changed = replace(delta, frame=None, text=text, logprobs=(), says_more=False)
    if isinstance(changed, RefusalDelta):
        changed.text, changed.refusal = "", text
    return changed


def _tells_reasoning(event: Event) -> bool:
    if isinstance(event, ReasoningDelta | NativeSummary):
        return bool(event.text.strip())
    return isinstance(event, ProviderState)
