"""Recognise a frame that differs from an earlier one in the text of its delta alone.

Nearly every frame of a stream does: it has the bytes of the one before, but for the text and what
counts or pads the frames. Once such a frame has been read, its *pattern* is kept: the bytes around
what varies. A frame that consists of the same bytes around other values of the same kinds has the
same tokens, so it says the same with another text, and none of it needs to be parsed or checked
again. Those that come together become one event.

Two things make that certain. A pattern is made only where no backslash stands outside the values,
so that quotation marks alone tell what is a string there; and a value is taken only if it is one
string or one number by itself. What a frame means depends on what came before it, too. So a reader
says of each that it has parsed whether the next one like it would be read alike (`Continuation`),
and with one of which it does not, all patterns are forgotten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import orjson

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.json import dumps
from abridge.apis.obfuscation import FIELD, PADDING_FIELDS, fill_up
from abridge.apis.protocols import Continuation, Keep, Reader
from abridge.core.events import JOINED, Alike, DeltaRun, Event, ReasoningDelta, next_delta
from abridge.core.segmenter import text_size
from abridge.stages.thinking import Accepts

VARYING_FIELDS = (b"sequence_number", *(field.encode() for field in PADDING_FIELDS))
"""Fields that number or pad frames. No reader looks at them."""

COPIED_FIELD = b"p"
"""One of them that is only ever upstream's own."""

MAX_PATTERNS = 4
"""Patterns that are kept at once: choices and reasoning or calls that alternate have one each."""

MAX_UNUSED = 16
"""Patterns in a row that no frame has fitted. Then every frame of the stream is another one."""

MAX_FRAME = 4096
"""The longest frame, in bytes, of which a pattern is kept."""

MAX_GATHERED = 512
"""Characters of reasoning that are gathered before they are told."""

_NUMBER = re.compile(rb"0|[1-9]\d{0,17}")
"""A number that varies: one that fits 64 bits, whatever it is."""

_VALUE = re.compile(rb'\s*+:\s*+(?:"((?:[^"\\]++|\\.)*+)"|(\d{1,18}+)(?=\s*+[,}]))')

_PADDED_END = re.compile(rb'"(?=[\]}]*+ )[\]} ]++[\r\n]++\Z')

_PLAIN = re.compile(rb"[\w.-]*")
"""Padding that nobody spells in another way."""


class FrameReader:
    """Read the frames of one stream: by the patterns of its deltas, and else by a reader. Where raw
    reasoning is hidden, each frame that goes out is written anew, also one that looks like
    upstream's. Reasoning that comes frame by frame is gathered while there is `room`: so much may
    go on from an event before anything comes of it. `release` ends that.
    """

    def __init__(
        self, reader: Reader, display: Display, room: Callable[[Event], float] = lambda _: 0
    ) -> None:
        self._reader = reader
        self._rewrites = display.hides_raw
        self._drops_reasoning = display.hides_raw and not display.show_raw
        self._patterns: list[_Pattern] = []
        self._unused = 0
        self._shows_reasoning = display.show_raw
        self._gathers = not display.tells_progress
        self._room_for = room
        self._waiting: _Pattern | None = None  # that of the last frame, if its texts are gathered
        self._gathered: list[str] = []
        self._room = 0.0  # for more of it

    def read_alone(self, frame: bytes) -> tuple[list[Event], Event | None] | None:
        """Read a frame that came alone, if it is like an earlier one; return None for any other, as
        for anything that is no frame but ends like one.

        Return the events that are to be told, and a delta that is to be written at once and told
        later, if there is one.
        """
        for pattern in self._patterns:
            text, out = pattern.take(frame)
            if text:
                self._unused = 0
                if pattern is self._waiting:
                    if not self._gathered:
                        self._room = min(MAX_GATHERED, self._room_for(pattern.event))
                    if self._room > 0:
                        return self._gather(pattern, text, out)
                told, is_reasoning = self.release(), type(pattern.event) is ReasoningDelta
                may_wait = self._gathers and is_reasoning and pattern.accepts is None
                self._waiting = pattern if may_wait else None
                return [*told, pattern.tell(text, out)], None
        return None

    def _gather(
        self, pattern: _Pattern, text: str, out: bytes | None
    ) -> tuple[list[Event], Event | None]:
        self._gathered.append(text)
        self._room -= len(text) if text.isascii() else text_size(text)
        shown = next_delta(pattern.event, text, out) if self._shows_reasoning else None
        return [] if self._room > 0 else self.release(), shown

    def read(self, frames: Sequence[bytes], place: int = 0) -> tuple[list[Event], int]:
        """Read the frame at a place, with those after it that its event can tell, too; return the
        place of the next. What was gathered is told first."""
        told, self._waiting = self.release(), None
        if told:
            return told, place
        for pattern in self._patterns:
            text, out = pattern.take(frames[place])
            if text:
                self._unused = 0
                if place + 1 < len(frames) and type(pattern.event) in JOINED:
                    return pattern.tell_run(DeltaRun([text], [out]), frames, place + 1)
                return [pattern.tell(text, out)], place + 1
        return self._parse(frames[place]), place + 1

    def release(self) -> list[Event]:
        """Return the event of what was gathered, if anything was."""
        if self._waiting is None or not self._gathered:
            return []
        text, frame = "".join(self._gathered), self._waiting.event.frame
        self._gathered = []
        told = self._waiting.tell(text, frame and b"")
        told.is_written = self._shows_reasoning
        return [told]

    def _parse(self, frame: bytes) -> list[Event]:
        """Read a frame that fits no pattern, and learn its pattern if the next may be like it."""
        reader, dropped = self._reader, self._reader.dropped
        events = reader.read(frame)
        for event in events if self._drops_reasoning else ():
            if type(event) is ReasoningDelta and event.frame and event.text:
                event.frame = b""  # no client is told
        found = reader.continuation
        delta = events[-1] if events else None
        if not (found and delta and next_delta(delta, found.text, delta.frame) == delta):
            self._patterns = []  # something may have begun or ended
            return events
        begins = len(events) > 1  # it or its part, which may have changed its frame alone
        kept = [] if begins else self._patterns
        self._patterns = [old for old in kept if old.may_stay_beside(delta)]
        if reader.dropped == dropped and (not begins or not delta.frame or delta.frame == frame):
            self._learn(frame, delta, found)
        return events

    def _learn(self, frame: bytes, event: Event, found: Continuation) -> None:
        if self._unused >= MAX_UNUSED:
            self._patterns = []
            return
        self._unused += 1
        pattern = _find_pattern(frame, event, found, rewrites=self._rewrites)
        if pattern is not None:
            self._patterns = [pattern, *self._patterns[: MAX_PATTERNS - 1]]


_NOTHING = "", None

_Hole: TypeAlias = tuple[bool, bool, bool, bytes]
"""A value that varies: whether it is a string, whether it is the text, whether it is the last, and
the bytes that follow on it. It has no names, with which it would take longer to unpack."""


class _Prefixed(NamedTuple):
    """A frame goes out after these bytes."""

    prefix: bytes

    def make(self, frame: bytes, _text: str, _start: int) -> bytes:
        return self.prefix + frame


class _Written(NamedTuple):
    """A frame goes out anew, but for its text."""

    before: bytes
    after: bytes
    rest: bytes = b""  # what follows on the obfuscation, if Abridge adds that
    padded_size: int | None = None  # bytes of a text with its obfuscation
    until_copied: bytes | None = None  # what follows on the text before upstream's own padding

    def make(self, frame: bytes, text: str, start: int) -> bytes | None:
        """Return the bytes that go out for a text that starts there in upstream's frame; None if
        they cannot be told: whoever writes a text anew may spell it otherwise than upstream."""
        written, after = orjson.dumps(text), self.after
        if not frame.startswith(written, start):
            return None
        if self.until_copied is not None:
            span = _find_value(frame, COPIED_FIELD)
            if span is None or not _PLAIN.fullmatch(frame, span.start, span.end):
                return None  # the text is its name, or it may be spelled otherwise
            after = b"%b%b%b" % (self.until_copied, frame[span.start : span.end], after)
        if self.padded_size is None:
            return b"".join((self.before, written, after))
        padding = fill_up(len(written) - 2 - self.padded_size)
        return b"".join((self.before, written, after, padding, self.rest))


@dataclass(slots=True, frozen=True)
class _Pattern:
    """The bytes of a frame around what varies."""

    head: bytes
    holes: tuple[_Hole, ...]
    closing: bytes
    """What ends the frame after the last hole's rest, but for blanks, if it is padded with them, as
    Anthropic's frames are."""
    outgoing: _Prefixed | _Written | None  # None if each event has the same frame, or none
    passes: bool  # a frame goes out as it is
    event: Event
    keeps: tuple[Keep, ...]
    accepts: Accepts | None

    def tell(self, text: str, frame: bytes | None) -> Event:
        """Return the event of a text, which is kept, and of what goes out."""
        for keep in self.keeps:
            keep(text)
        return next_delta(self.event, text, frame)

    def tell_run(
        self, run: DeltaRun, frames: Sequence[bytes], place: int
    ) -> tuple[list[Event], int]:
        """Return the event of a run with which the frames from a place on go on that fit as well,
        and the place of the next."""
        while place < len(frames):
            text, out = self.take(frames[place])
            if not text:
                break
            run.texts.append(text)
            run.frames.append(out)
            place += 1
        frame = b"".join(filter(None, run.frames)) if self.outgoing else self.event.frame
        event = self.tell("".join(run.texts), frame)
        event.run = run
        return [event], place

    def take(self, frame: bytes) -> tuple[str, bytes | None]:
        """Return the text of a frame of this pattern, and what goes out; "" for any other."""
        if not frame.startswith(self.head):
            return _NOTHING
        start, text, text_start = len(self.head), "", 0
        for is_string, is_text, is_last, rest in self.holes:
            end = frame.rfind(rest, start) if is_last else frame.find(rest, start)
            if is_string:  # what has no end is no value
                try:
                    value = orjson.loads(frame[start - 1 : end + 1])
                except orjson.JSONDecodeError:
                    return _NOTHING
                if is_text:
                    text, text_start = value, start - 1
            elif not _NUMBER.fullmatch(frame, start, end):
                return _NOTHING
            start = end + len(rest)
        after = frame[start:].translate(None, b" ") if self.closing else frame[start:]
        if not text or after != self.closing:
            return _NOTHING
        out = frame if self.passes else self.event.frame
        if self.outgoing is not None and not self.passes:
            out = self.outgoing.make(frame, text, text_start)
            if out is None:
                return _NOTHING
        is_accepted = self.accepts is None or self.accepts(text)  # asked last: it notes it
        return (text, out) if is_accepted else _NOTHING

    def may_stay_beside(self, event: Event) -> bool:
        """Return whether frames of this pattern are read as before after one with such an event:
        those of another part of the same lane may not be."""
        return self.event.lane != event.lane or self.event.part is event.part


class _Span(NamedTuple):
    start: int
    end: int
    is_string: bool


def note_move(event: Event, frame: bytes, text: str, field: str, written: bytes) -> None:
    """Note how others of a frame's pattern go out, if it was written anew with its text once, in
    this field, and that is certain."""
    alike, data = event.alike, sse.frame_data(frame) or b""
    if alike is None or alike.text_start is None or written.count(dumps(text)) != 1:
        return
    spans = {name: _find_value(data, name) for name in alike.varying}
    values = {name: data[span.start : span.end] for name, span in spans.items() if span}
    if len(values) == len(spans):
        outgoing = _find_written(written, field.encode(), text, values)
        alike.field, alike.write = field, outgoing and outgoing.make


def _find_pattern(
    frame: bytes, event: Event, found: Continuation, *, rewrites: bool
) -> _Pattern | None:
    """Find the pattern of a frame; None if it is not certain that another text would be read from
    the same place."""
    carried, key, text = event.frame, found.key.encode(), found.text
    data = sse.frame_data(frame) or b""
    if len(frame) > MAX_FRAME or frame.count(data) != 1 or b"\0" in data:
        return None  # of several lines, or perhaps in UTF-16
    text_span = _find_text(data, key, text)
    if text_span is None:
        return None
    varying = {name: _find_value(data, name) for name in VARYING_FIELDS if name != key}
    others = {name: span for name, span in varying.items() if span is not None}
    spans = sorted([text_span, *others.values()])
    values = {name: data[span.start : span.end] for name, span in others.items()}
    outgoing: _Prefixed | _Written | None = None
    if carried and carried.endswith(frame) and not rewrites:
        outgoing = _Prefixed(carried.removesuffix(frame))
    elif carried:
        outgoing = _find_written(carried, key, text, values)
    starts, ends = [span.start for span in spans], [span.end for span in spans]
    literals = [data[start:end] for start, end in zip([0, *ends], [*starts, None], strict=True)]
    if bool(carried) != (outgoing is not None) or not _are_tokens(literals, spans):
        return None
    before, after = frame.split(data)
    rests = [*literals[1:-1], literals[-1] + after]
    closing = b""
    keeps_padding = isinstance(outgoing, _Written) and _PADDED_END.search(carried or b"")
    if _PADDED_END.match(rests[-1]) and not keeps_padding:
        rests[-1], closing = b'"', rests[-1][1:].replace(b" ", b"")
    holes = tuple(
        (span.is_string, span is text_span, span is spans[-1], rest)
        for span, rest in zip(spans, rests, strict=True)
    )
    head, passes = before + literals[0], outgoing == _Prefixed(b"")
    event.alike = Alike(len(head) - 1 if passes and holes[0][1] else None, (*others,))
    return _Pattern(head, holes, closing, outgoing, passes, event, found.keeps, found.accepts)


def _find_written(
    carried: bytes, key: bytes, text: str, values: Mapping[bytes, bytes]
) -> _Written | None:
    """Find how bytes that are written anew follow from a text. Of these other values, which vary in
    upstream's frame, only padding may be in them: others the reader left out, or set its own. A
    value with an escape may be in them as well, spelled otherwise."""
    if b"\\" in b"".join(values.values()):
        return None
    span = _find_text(carried, key, text)
    others = [name for name, value in values.items() if _has_value(carried, name, value)]
    if span is None or others not in ([], [COPIED_FIELD]):
        return None
    before, after, rest, size = carried[: span.start - 1], carried[span.end + 1 :], b"", None
    if (padding := _find_value(after, FIELD.encode())) is not None:
        size = span.end - span.start + padding.end - padding.start
        after, rest = after[: padding.start], after[padding.end :]
    if not others:
        return _Written(before, after, rest, size)
    copied = _find_value(after, COPIED_FIELD)
    if copied is None or carried.count(b'"%b"' % COPIED_FIELD) != 1:
        return None
    return _Written(before, after[copied.end :], rest, size, after[: copied.start])


def _has_value(data: bytes, name: bytes, value: bytes) -> bool:
    """Return whether something of this name may have that value."""
    span = _find_value(data, name)
    return data[span.start : span.end] == value if span is not None else b'"%b"' % name in data


def _find_text(data: bytes, key: bytes, text: str) -> _Span | None:
    """Find a text under its key."""
    span = _find_value(data, key)
    if span is None or not span.is_string:
        return None
    try:
        return span if orjson.loads(data[span.start - 1 : span.end + 1]) == text else None
    except orjson.JSONDecodeError:
        return None


def _find_value(data: bytes, name: bytes) -> _Span | None:
    """Find the only value of this name, a text between its quotation marks or a number."""
    mark = b'"%b"' % name
    found = _VALUE.match(data, data.find(mark) + len(mark)) if data.count(mark) == 1 else None
    return _Span(*found.span(found.lastindex or 0), found.lastindex == 1) if found else None


def _are_tokens(literals: list[bytes], spans: list[_Span]) -> bool:
    """Return whether the values between the literals are whole tokens.

    Without backslashes each quotation mark begins or ends a string, so their number tells whether a
    value is within one.
    """
    quotes = 0
    for literal, span in zip(literals, spans, strict=False):
        quotes += literal.count(b'"')
        if quotes % 2 != span.is_string:
            return False
    return b"\\" not in b"".join(literals)
