"""Answers that stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from starlette.types import Message

from abridge.apis import sse
from abridge.apis.delta_patterns import FrameReader
from abridge.apis.errors import UNREADABLE
from abridge.apis.json import parse_object
from abridge.apis.model_names import answered_model, says_something
from abridge.apis.openai import error_in
from abridge.core.conversation import Json
from abridge.core.events import ErrorDetail, Event, ResponseEnded
from abridge.core.status import SummaryStatus
from abridge.errors import EventTooLarge, MemoryShort
from abridge.http.asgi import BODY_HEADERS, EVENT_STREAM, drop_headers, media_type, with_type
from abridge.pipeline.answers.answer import Answer, AnswerContext
from abridge.work import FEW_THINGS, Work, in_turns

KEEP_ALIVE = sse.encode_comment("keep-alive")

KEEP_ALIVES_PER_EVENT = 3
"""Every so many keep-alives, one is an event: some clients ignore comments."""

make_failed = partial(ResponseEnded, None, None, ok=False, error=UNREADABLE)
"""Makes the end of a response of which nothing can be told but that it failed."""

MAX_UNNAMED = 16
"""So many frames wait for the name of a model."""

COLON = ord(":")

LARGE_FRAME = 32 << 10
"""Bytes beyond which a frame is read in the thread for work that takes long."""

READ_AT_ONCE = 32
"""Frames that are read in a few milliseconds, where none is like the one before it."""

_log = logging.getLogger(__name__)


class StreamAnswer(Answer):
    """Rewrite server-sent events as they come."""

    passed_ok: bool | None = None  # False once an event was lost

    def __init__(
        self, start: Message, context: AnswerContext, decode: Callable[[bytes], bytes]
    ) -> None:
        self._plan = plan = context.plan
        self._client, self._runner = context.client, context.runner
        self._frames = FrameReader(plan.reader, plan.display, self._runner.sequencer.room_for)
        self._context = context
        self._unnamed: list[bytes] = []  # the first frames, until one names the model
        self._decode = decode
        self._decoder = sse.FrameDecoder(plan.event_limit)
        self._limit = min(plan.event_limit, LARGE_FRAME)  # of a frame that is read as it comes
        self._ended = False
        self._is_read_beside = False  # the thread uses the reader
        self._wrote_nothing = False
        self._keep_alives = 0
        self._status = SummaryStatus() if context.plan.tells_status else None
        headers = drop_headers(start["headers"], BODY_HEADERS)
        if media_type(headers) != EVENT_STREAM:
            headers = with_type(headers, EVENT_STREAM)
        headers += context.plan.errors.id_headers(headers)
        self._client.start({**start, "headers": headers})
        self._client.on_leave = self._leave

    def _leave(self) -> None:
        """Record what was read, and stop: the client has left."""
        self._runner.feed(self._frames.release())
        self._runner.stop()
        self._ended = True

    def feed(self, data: bytes) -> None:
        if self._ended:
            return
        try:
            data = self._decode(data)
            alone = self._read_alone(data)
            frames = self._await_model(self._decoder.feed(data)) if alone is None else []
        except (ValueError, EventTooLarge) as error:
            _log.warning("upstream's answer could not be read: %s", str(error))
            message = f"Upstream's answer could not be read: {error}"
            self._end(ErrorDetail("upstream_error", message))
            return
        if alone is not None:
            self._tell(*alone)
        elif self._decoder.waiting and not self._plan.room.holds(self._decoder.waiting):
            self._end(ErrorDetail("overloaded", str(MemoryShort())))
        else:
            self._read(frames)

    async def end(self, error: ErrorDetail | None = None) -> None:
        if error is not None and self._is_read_beside and self._runner.stop_reading():
            self._ended = True  # the thread may still use the reader
            self._runner.feed([ResponseEnded(None, None, ok=False, error=error)])
            self._close_when_done()
            return
        await self._runner.wait_for_reading()
        if error is None and not self._ended:
            frames = self._await_model(self._decoder.end())
            self._read(frames + (self._take_unnamed("") if self._unnamed else []))
            await self._runner.wait_for_reading()
        self._end(error)

    def _end(self, error: ErrorDetail | None) -> None:
        if self._ended:
            return
        self._ended = True
        self._runner.feed(self._last_events(error))
        self._close_when_done()

    def emit(self, events: list[Event]) -> None:
        pieces: list[bytes] = []
        write, status = self._plan.writer.write, self._status
        for event in events:
            if self.passed_ok is not None:
                break
            if event.is_written:
                continue
            try:
                pieces.append(write(event))
            except RecursionError as error:
                pieces.append(self._replace_unwritable(event, error))
            if status is not None and (title := status.take(event)):
                pieces.append(self._tell_life({"x_abridge": {"status": title}}))
        if data := b"".join(pieces):
            self._client.write(data)
            self._keep_alives = 0
        if pieces:
            self._wrote_nothing = not data
        if self._ended:
            self._close_when_done()

    def _tell_life(self, beside: Json | None = None) -> bytes:
        try:
            return self._plan.writer.keep_alive(beside)
        except RecursionError:  # it repeats what upstream sent
            return b""

    def keep_alive(self) -> bytes:
        if not (self._wrote_nothing or self._runner.sequencer.holding):
            return b""
        self._keep_alives += 1
        is_event_due = self._keep_alives % KEEP_ALIVES_PER_EVENT == 0
        return (self._tell_life() if is_event_due else b"") or KEEP_ALIVE

    def _await_model(self, frames: list[bytes]) -> list[bytes]:
        """Return the frames that can be read by now: where it depends on the model what its
        reasoning is, all but comments wait until one has named it, or says more than that."""
        if self._plan.plan_for is None:
            return frames
        comments = []
        for place, frame in enumerate(frames):
            data = sse.frame_data(frame)
            if data is None:
                comments.append(frame)
                continue
            event = parse_object(data) or {}
            model = answered_model(event)
            if model or says_something(event) or len(self._unnamed) >= MAX_UNNAMED:
                self._unnamed += frames[place:]
                return comments + self._take_unnamed(model)
            self._unnamed.append(frame)
        return comments

    def _take_unnamed(self, model: str) -> list[bytes]:
        """Name the model, and return the frames that have waited."""
        self._plan = plan = self._context.name_model(model)
        self._frames = FrameReader(plan.reader, plan.display, self._runner.sequencer.room_for)
        frames, self._unnamed = self._unnamed, []
        return frames

    def _tell(self, events: list[Event], shown: Event | None = None) -> None:
        """Write what is told later, sequence events; if nothing goes out, a keep-alive is due."""
        self._wrote_nothing = True
        if shown is not None:
            self.emit([shown])
        self._runner.feed(events)

    def _read_alone(self, data: bytes) -> tuple[list[Event], Event | None] | None:
        """Read one frame that came alone and is like an earlier one; see `FrameReader`."""
        if self._decoder.waiting or len(data) > self._limit or not data.endswith(sse.BLANK_LINES):
            return None
        try:
            return self._frames.read_alone(data)
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            return self._give_up(error), None

    def _read(self, frames: list[bytes]) -> None:
        """Read the frames that came together, in turns with others if that takes long."""
        if (count := self._read_some(frames[:FEW_THINGS])) < len(frames):
            self._runner.read_in_turns(self._read_in_turns(frames, count))

    def _read_some(self, frames: list[bytes]) -> int:
        """Read some of these frames, none of them large, and have their events sequenced; return
        how many."""
        events: list[Event] = []
        place = 0
        for _ in range(READ_AT_ONCE):
            if place == len(frames) or len(frames[place]) > LARGE_FRAME or self._ended:
                break
            if frames[place][0] == COLON and sse.frame_data(frames[place]) is None:
                events, place = self._pass_comment(frames[place], events), place + 1
                continue
            try:
                read, place = self._frames.read(frames, place)
            except Exception as error:  # noqa: BLE001 -- upstream may send anything
                read = self._give_up(error)
            events += read
        self._tell(events)
        return place

    async def _read_in_turns(self, frames: list[bytes], place: int) -> None:
        """Read the frames from a place on, some at a time. A large one may hold as many events as a
        whole stream: it is read in the thread for such work, and they are fed in turns."""
        while place < len(frames) and not self._ended:
            if len(frames[place]) <= LARGE_FRAME:
                await asyncio.sleep(0)
                place += self._read_some(frames[place : place + FEW_THINGS])
                continue
            self._runner.feed(self._frames.release())
            self._is_read_beside = True
            events = await Work(heavy=True).run(self._read_large, frames[place])
            self._is_read_beside = False
            async for batch in in_turns(events):
                self._runner.feed(batch)
            place += 1

    def _read_large(self, frame: bytes) -> list[Event]:
        try:
            return self._frames.read([frame])[0]
        except Exception as error:  # noqa: BLE001 -- upstream may send anything
            return self._give_up(error)

    def _give_up(self, error: Exception) -> list[Event]:
        """End after a frame that could not be read: it may have held a part of the answer."""
        _log.warning("a frame could not be read: %s", type(error).__name__)
        self._ended = True
        return self._last_events(UNREADABLE) or [make_failed()]

    def _pass_comment(self, frame: bytes, before: list[Event]) -> list[Event]:
        """Pass a comment on, after the events before it; return those that still wait."""
        if self._plan.hide_unread:
            return before
        self._runner.feed(before)
        self._client.write(frame)
        return []

    def _last_events(self, error: ErrorDetail | None) -> list[Event]:
        """Return the events with which the Reader ends the response. It may fail at what it
        repeats of upstream's."""
        gathered = self._frames.release()
        try:
            return gathered + self._plan.reader.end(error)
        except Exception as failure:  # noqa: BLE001 -- upstream may send anything
            _log.warning("a response could not be ended: %s", type(failure).__name__)
            return [*gathered, make_failed()]

    def _replace_unwritable(self, event: Event, error: RecursionError) -> bytes:
        """Return the bytes for an event that is nested too deep to be written anew: those it came
        in. Where nothing unread may get through, the response is broken off."""
        _log.warning("an event could not be written: %s", type(error).__name__)
        if event.frame is not None and not self._plan.hide_unread:
            return event.frame
        self._ended, self.passed_ok = True, False
        self._client.close(complete=False)
        return b""

    def _close_when_done(self) -> None:
        if self.passed_ok is None and self._runner.sequencer.done:
            self._client.close()


class UnfoldedAnswer(StreamAnswer):
    """Rewrite a whole answer as the stream that its client was promised.

    It is read as a stream of one event: a line, which JSON is once it has no line breaks.
    """

    def __init__(
        self, start: Message, context: AnswerContext, decode: Callable[[bytes], bytes]
    ) -> None:
        super().__init__({**start, "status": 200}, context, decode)
        self._decode = lambda data: decode(data).translate(None, b"\r\n")
        errors = context.plan.errors
        self._upstream = errors.upstream or errors.api.upstream

    async def end(self, error: ErrorDetail | None = None) -> None:
        if error is None and not self._ended:
            body, self._decode = bytes(self._decoder.rest), bytes
            self._decoder.rest.clear()
            error = await Work(heavy=len(body) > LARGE_FRAME).run(self._find_fault, body)
            if error is None:
                before, after = self._upstream.whole_in_stream
                self.feed(before + body + after)
        await super().end(error)

    def _find_fault(self, body: bytes) -> ErrorDetail | None:
        """Return what is told in place of a body that is no answer."""
        whole = parse_object(body) or {}
        if any(isinstance(whole.get(key), list | dict) for key in self._upstream.answer_keys):
            return None
        told = None if self._plan.display.hides_raw else error_in(whole)
        return told or UNREADABLE
