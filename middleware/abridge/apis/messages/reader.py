"""Read an Anthropic Messages response, streamed or whole, into events.

A `Framing` says what becomes of an answer's blocks: events carry frames for clients of the same API
(`framing.py`), none for clients of others (`translation.py`).

Everything is in one lane. Each thinking block is a reasoning item of its own, numbered from 0, and
ends when another block continues. Upstream may go on with an answer whose end it has told: the end
is that of all that comes (`_complete`). Anything after that is a fault: counted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from abridge.apis import sse
from abridge.apis.delta_patterns import DeltaPatterns
from abridge.apis.display import Display
from abridge.apis.endings import UNFINISHED, infer_reason
from abridge.apis.errors import CONNECTION_LOST, SECOND_ANSWER, STRAY_ARGUMENTS, UNREADABLE
from abridge.apis.frames import encode_event, parse_frame, with_event_name
from abridge.apis.json import (
    as_object,
    begins_object,
    dumps,
    loads_exact,
    objects,
    parse_object,
    replace_invalid,
    string,
)
from abridge.apis.messages.answer_blocks import AnswerBlocks
from abridge.apis.messages.block_order import BlockOrder, FramedEvent
from abridge.apis.messages.blocks import (
    DELTA_BLOCK_TYPES,
    LANE,
    Block,
    MessageState,
    is_lost_fragment,
    is_stray,
)
from abridge.apis.messages.errors import read_error_event
from abridge.apis.messages.framing import Framing, without_frames
from abridge.apis.messages.hiding import MessageRebuilder, show_block
from abridge.apis.messages.history import record_joined_turn, record_turns
from abridge.apis.messages.inline import InlineThinking
from abridge.apis.messages.lifecycle import (
    MessageStop,
    complete_error,
    complete_start,
    complete_whole,
    make_stop,
    parse_event,
    unfold_start,
)
from abridge.apis.messages.translation import translate_stop
from abridge.apis.messages.usage import merge_usage, read_usage
from abridge.apis.own_errors import without_message
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    ErrorDetail,
    ErrorReported,
    Event,
    ResponseEnded,
    ResponseStarted,
    UsageReported,
)
from abridge.core.usage import Tokens
from abridge.providers.learned import NO_OBSERVATION, Observation
from abridge.providers.profile import Profile

_Handler = Callable[["MessagesReader", Json, bytes | None], list[Event]]


class MessagesReader:
    """Read one response. See the protocol `Reader`.

    Hiding thinking blocks is the writer's job; here thinking is kept out of the other ones.
    """

    def __init__(self, profile: Profile, display: Display, limit: int, framing: Framing) -> None:
        self._framing = framing
        self._carries_frames = framing.carries_frames
        self._state = MessageState(profile, display, limit)
        self._hides_raw = display.hides_raw
        self._rebuilder = MessageRebuilder() if display.hides_raw else None
        self._order = BlockOrder(limit)
        self._patterns = DeltaPatterns(rewrites=display.hides_raw)
        self.read_delta = self._patterns.read
        self._inline: InlineThinking | None = None
        if framing.carries_frames:
            self._inline = InlineThinking.for_answer(profile, display, limit)
        self._blocks = AnswerBlocks(framing, self._state)
        self._usage: Json = {}
        self._failure: ErrorDetail | None = None
        self._stop = MessageStop()
        self._end_frame: bytes | None = None  # of `message_stop`
        self._started = False
        self._message_id: str | None = None  # None until upstream has said it
        self._stopped = False  # upstream has sent `message_stop`
        self._ended = False
        self._is_given_up = False  # it ended here before upstream ended it
        self.faults = 0
        self.mismatches = 0

    @property
    def dropped(self) -> int:
        rebuilt = self._rebuilder.drops.count if self._rebuilder is not None else 0
        inline = self._inline.dropped if self._inline is not None else 0
        return self._blocks.untranslated + self._state.dropped + rebuilt + inline

    def read(self, frame: bytes) -> list[Event]:
        delta = self._patterns.read(frame)
        return self._read(frame) if delta is None else [delta]

    def _read(self, frame: bytes) -> list[Event]:
        """Read a frame that fits no pattern."""
        self._patterns.clear()
        data = sse.frame_data(frame)
        event = None if data is None or self._ended else parse_event(data)
        if event is None:
            return self._read_unparsed(data, frame)
        carried, dropped = None, self.dropped
        if self._rebuilder is not None:
            event = self._rebuilder.rebuild(event)
            if event is None:
                return []
            carried = encode_event(event["type"], event) if self._carries_frames else None
        elif self._carries_frames:
            carried = with_event_name(frame, event)
        self._stop.note(event)
        if unfolded := unfold_start(event):
            arranged = (self._order.arrange(*one) for one in unfolded)
            return self._handle_all(made for events in arranged for made in events)
        if self._passes(event):
            events = self._handle(event, carried)
            if self.dropped == dropped and not self._ended:
                self._learn(frame, event, events)
            return events
        return self._handle_all(self._order.arrange(event, carried))

    def _learn(self, frame: bytes, event: Json, events: list[Event]) -> None:
        """Learn the pattern of a frame if it says nothing but the next text of a block."""
        delta, block = event.get("delta"), self._blocks.current
        if block is None or not isinstance(delta, dict):
            return
        field = block.text_field
        is_next = event.get("type") == "content_block_delta" and len(events) == 1
        if is_next and delta.keys() == {"type", field} and string(delta[field]):
            accepts = block.accepts
            if accepts is None and self._inline is not None:
                accepts = self._inline.accepts
            proceed, text = partial(_proceed, self._order, block), delta[field]
            self._patterns.learn(frame, events[0].frame, field, text, proceed, accepts=accepts)

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        self._patterns.clear()
        is_over = self._stopped or (self._stop.is_last_word and error is None)
        if is_over and self._failure is None:
            return self._complete()
        return self._fail(error or CONNECTION_LOST)

    def read_whole(self, body: bytes) -> list[Event]:
        parsed = parse_object(body, loads_exact)
        if parsed is None and (valid := replace_invalid(body)) != body:
            return self.read_whole(valid)
        sent = parsed or {}
        frame = body if self._carries_frames and not self._hides_raw else None
        if not isinstance(sent.get("content"), list):
            error = self._read_error(sent) if sent.get("type") == "error" else None
            return [ResponseEnded(None, frame, ok=False, error=error)]
        message = sent if self._rebuilder is None else self._rebuilder.rebuild_message(sent)
        events = self._on_message_start({"message": message}, None)
        given = objects(message["content"])
        content = given if self._inline is None else self._inline.split(given)
        read = [self._blocks.read_whole(content_block) for content_block in content]
        events += [event for block_events in read for event in block_events]
        if self._rebuilder is not None:
            content = [show_block(*shown) for shown in zip(content, read, strict=True)]
        whole = complete_whole(message, content)
        if self._carries_frames and (self._hides_raw or whole != sent):
            frame = dumps(whole)
        reason = string(message.get("stop_reason"))
        self.faults += not reason
        events += self._finish(reason)
        usage, error = read_usage(self._usage), self._failure
        self._ended = True
        ended = ResponseEnded(None, frame, ok=error is None, usage=usage, error=error)
        return [*without_frames(events), ended]

    def observed(self) -> Observation:
        """Return nothing: Messages leaves providers no choice of format."""
        return NO_OBSERVATION

    def recorded_turns(self) -> list[RecordedTurn]:
        if not self._state.is_complete:
            return []
        record = record_turns if self._carries_frames else record_joined_turn
        return record(self._blocks.as_content())

    def _count_fault(self) -> list[Event]:
        self.faults += 1
        return []

    def _read_unparsed(self, data: bytes | None, frame: bytes) -> list[Event]:
        """Read a frame of which no event was parsed, or one after the end.

        Without an event that cannot be read the answer would be another one, so it fails. A comment
        passes.
        """
        if data is None:
            return [] if self._hides_raw else self._framing.other(frame)
        if data.startswith(sse.DONE):
            return self._read_done(frame)
        if not self._ended:
            if (valid := replace_invalid(frame)) != frame:
                return self.read(valid)
            if begins_object(data):
                return self._fail(UNREADABLE)
        return [] if self._is_given_up else self._count_fault()

    def _read_done(self, frame: bytes) -> list[Event]:
        """Read the `[DONE]` that some gateways send here, too. It passes after the end."""
        if not self._ended:
            return self._note_stop(self._end_frame)
        return self._framing.other(sse.encode_frame(sse.DONE) if self._hides_raw else frame)

    def _passes(self, event: Json) -> bool:
        """Return whether an event is read as it is: it waits for none, and no thinking is to be
        taken out of it. What waits at the end of the answer is read there (`_complete`)."""
        if not self._carries_frames or event.get("type") == "message_stop":
            return True
        is_plain = self._inline is None or self._inline.passes(event)
        return is_plain and self._order.passes(event)

    def _handle_all(self, framed_events: Iterable[FramedEvent]) -> list[Event]:
        events: list[Event] = []
        for event, frame in framed_events:
            if self._ended:
                break
            if self._inline is None:
                events += self._handle(event, frame)
            else:
                for made in self._inline.read(event, frame):
                    events += self._handle(*made)
        return events

    def _handle(self, event: Json, frame: bytes | None) -> list[Event]:
        handler = self._HANDLERS.get(string(event.get("type")))
        if handler is None:
            return [*self._release_stop(), *self._framing.other(frame)]
        return handler(self, event, frame)

    # Beginning

    def _on_message_start(self, event: Json, frame: bytes | None) -> list[Event]:
        """Start the answer. Another one that begins within it fails it, for its blocks would go on
        with those of the first; a start that is only repeated does not."""
        message = event.get("message")
        message_id = string(as_object(message).get("id"))
        if not self._started:
            self._message_id = message_id
            return self._start(as_object(message), frame)
        is_other = bool(self._blocks.all) or message_id != self._message_id
        events = self._count_fault()
        is_second = self._message_id is not None and isinstance(message, dict)
        return self._fail(SECOND_ANSWER) if is_second and is_other else events

    def _start(self, message: Json, frame: bytes | None) -> list[Event]:
        """Start the answer. Anthropic sends no creation time."""
        self._started = True
        self._usage = merge_usage(self._usage, message.get("usage"))
        message_id, model = (string(message.get(key)) for key in ("id", "model"))
        complete = complete_start(message)
        if frame is None or complete != message:
            frame = self._framing.make_frame("message_start", {"message": complete})
        return [ResponseStarted(LANE if frame else None, frame, message_id, model, 0)]

    def _ensure_started(self) -> list[Event]:
        """Start the answer if upstream left out `message_start`."""
        return [] if self._started else self._start({}, None)

    # Blocks

    def _on_block_start(self, event: Json, frame: bytes | None) -> list[Event]:
        content_block, index = event.get("content_block"), event.get("index")
        if not isinstance(content_block, dict):
            return self._count_fault()
        return [*self._ensure_started(), *self._blocks.open(index, content_block, frame)]

    def _on_block_delta(self, event: Json, frame: bytes | None) -> list[Event]:
        delta, block = event.get("delta"), self._blocks.find(event.get("index"))
        if not isinstance(delta, dict):
            return self._count_fault()
        if is_lost_fragment(delta, block):
            return [*self._count_fault(), *self._fail(STRAY_ARGUMENTS)]
        if block is None or is_stray(delta, block, is_translated=not self._carries_frames):
            return self._read_stray_delta(event, frame)
        if not block.is_open:
            return self._count_fault()
        return [*self._blocks.switch_to(block), *self._framing.add_delta(block, event, frame)]

    def _read_stray_delta(self, event: Json, frame: bytes | None) -> list[Event]:
        """Read a delta of a block that upstream did not start, or of another type than its block:
        text of an answer begins a block of its own."""
        block_type = DELTA_BLOCK_TYPES.get(string(event["delta"].get("type")))
        if block_type is None:
            return self._count_fault()
        start = {"index": event.get("index"), "content_block": {"type": block_type}}
        events = self._on_block_start(start, None)
        block = self._blocks.all[-1]
        return [*events, *self._framing.add_delta(block, event, frame)]

    def _on_block_stop(self, event: Json, frame: bytes | None) -> list[Event]:
        block = self._blocks.find(event.get("index"))
        if block is not None:
            block.is_ended = True
        if block is None or not block.is_open:
            return self._count_fault()
        return self._blocks.close(block, frame)

    # End

    def _on_message_delta(self, event: Json, frame: bytes | None) -> list[Event]:
        self._usage = merge_usage(self._usage, event.get("usage"))
        if self._stop.take(event, frame or self._framing.make_frame("message_delta", event)):
            return self._ensure_started()
        if not self._carries_frames:
            return []
        return [*self._ensure_started(), self._report_usage(frame)]

    def _release_stop(self) -> list[Event]:
        frame = self._stop.release()
        return [] if frame is None else [self._report_usage(frame)]

    def _report_usage(self, frame: bytes | None) -> Event:
        return UsageReported(None, frame, read_usage(self._usage) or Tokens())

    def _on_message_stop(self, _event: Json, frame: bytes | None) -> list[Event]:
        return self._count_fault() if self._stopped else self._note_stop(frame)

    def _note_stop(self, frame: bytes | None) -> list[Event]:
        """End the answer, unless why it stops is still to come: some say so afterwards."""
        self._stopped, self._end_frame = True, frame
        return self.end() if self._stop.reason or self._failure is not None else []

    def _complete(self) -> list[Event]:
        """End an answer that is over."""
        if self._order.is_waiting and not self._stop.reason:
            return self._fail(UNFINISHED)
        events = self._flush()
        if self._ended:
            return events
        if not (self._stop.reason or self._explain_end()):
            return [*events, *self._fail(UNFINISHED)]
        self._ended = True
        events += self._finish(self._stop.reason)
        events += self._release_stop()
        if self._carries_frames and not self._stop.reason:
            events.append(self._report_usage(self._make_stop()))
        frame = self._end_frame or self._framing.make_frame("message_stop", {})
        usage, error = read_usage(self._usage), self._failure
        return [*events, ResponseEnded(None, frame, ok=error is None, usage=usage, error=error)]

    def _flush(self) -> list[Event]:
        """Read what waits, as nothing more can come."""
        events = self._handle_all(self._order.rest())
        if self._inline is not None:
            for made in self._inline.end():
                events += self._handle(*made)
        return events

    def _explain_end(self) -> bool:
        """Return whether the blocks tell why the answer stops, where upstream does not."""
        is_open, has_calls = self._blocks.has_open_part, self._state.call_count > 0
        reason = infer_reason(has_open_part=is_open, has_calls=has_calls)
        self.faults += reason is not None
        return reason is not None

    def _finish(self, reason: str) -> list[Event]:
        """Finish the blocks. A client continues with the calls it got, whatever reason upstream
        gives."""
        events = [*self._blocks.close_all(), *self._ensure_started()]
        if self._carries_frames:
            return events
        stop = translate_stop(reason, self._blocks.all, self._state)
        self._failure = stop.error if isinstance(stop, ErrorReported) else self._failure
        return [*events, stop]

    def _make_stop(self) -> bytes | None:
        """Make the frame that says why the answer stops."""
        fields = make_stop([block.type for block in self._blocks.all], self._usage)
        return self._framing.make_frame("message_delta", fields)

    def _fail(self, error: ErrorDetail) -> list[Event]:
        """End an answer that is not whole."""
        self._patterns.clear()
        rest: list[Event] = []
        if self._inline is not None:
            for made in self._inline.end(is_cut=True):
                rest += self._handle(*made)
        self._ended = self._is_given_up = True
        usage = read_usage(self._usage) if self._stop.reason else None  # not final before
        rest += self._blocks.break_off()
        error = self._failure or error
        return [*rest, ResponseEnded(None, None, ok=False, usage=usage, error=error)]

    def _on_error(self, event: Json, frame: bytes | None) -> list[Event]:
        if self._failure is not None:
            return self._count_fault()
        self._failure = self._read_error(event)
        if frame is None:
            return [ErrorReported(None, None, self._failure)]
        complete = complete_error(event, self._failure.message)
        if complete != parse_frame(frame):
            frame = encode_event("error", complete)
        ending = [*self._blocks.break_off(), *self._release_stop()]
        return [*ending, ErrorReported(None, frame, self._failure)]

    def _read_error(self, event: Json) -> ErrorDetail:
        """Read an error, in other words where upstream's may repeat what is hidden."""
        error = read_error_event(event)
        return without_message(error) if self._hides_raw else error

    _HANDLERS: ClassVar[dict[str, _Handler]] = {
        "message_start": _on_message_start,
        "content_block_start": _on_block_start,
        "content_block_delta": _on_block_delta,
        "content_block_stop": _on_block_stop,
        "message_delta": _on_message_delta,
        "message_stop": _on_message_stop,
        "error": _on_error,
    }


def _proceed(order: BlockOrder, block: Block, text: str, frame: bytes | None) -> Event:
    """Read the next text of a block."""
    order.note_fragment(text)
    return block.proceed(text, frame)
