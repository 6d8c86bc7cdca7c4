"""Read an Anthropic Messages response, streamed or whole, into events.

A `Framing` says what becomes of an answer's blocks: events carry frames for clients of the same API
(`framing.py`), none for clients of others (`translation.py`).

Everything is in one lane. Each thinking block is a reasoning item of its own, numbered from 0, and
ends when another block continues. Anything after its end, or the answer's, is a fault: counted and
dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import ClassVar

from abridge.apis import sse
from abridge.apis.delta_patterns import DeltaPatterns
from abridge.apis.display import Display
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE
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
from abridge.apis.messages.block_order import BlockOrder, FramedEvent
from abridge.apis.messages.blocks import (
    DELTA_BLOCK_TYPES,
    LANE,
    Block,
    MessageState,
    ReasoningBlock,
    is_stray,
)
from abridge.apis.messages.errors import read_error_event
from abridge.apis.messages.framing import Framing
from abridge.apis.messages.hiding import MessageRebuilder, show_block
from abridge.apis.messages.history import record_joined_turn, record_turns
from abridge.apis.messages.inline import InlineThinking
from abridge.apis.messages.lifecycle import (
    complete_error,
    complete_start,
    complete_whole,
    make_stop,
    parse_event,
)
from abridge.apis.messages.translation import translate_stop
from abridge.apis.messages.usage import merge_usage, read_usage
from abridge.apis.own_errors import without_message
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    ErrorDetail,
    ErrorReported,
    Event,
    Passthrough,
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
        self._blocks: list[Block] = []
        self._by_index: dict[int | None, Block] = {}
        self._current: Block | None = None  # the block that was continued last
        self._usage: Json = {}
        self._failure: ErrorDetail | None = None
        self._started = False
        self._stopped = False
        self._ended = False
        self._dropped = 0
        self.faults = 0
        self.mismatches = 0

    @property
    def dropped(self) -> int:
        rebuilt = self._rebuilder.drops.count if self._rebuilder is not None else 0
        inline = self._inline.dropped if self._inline is not None else 0
        return self._dropped + self._state.dropped + rebuilt + inline

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
        if not self._carries_frames or (self._is_plain(event) and self._order.passes(event)):
            events = self._handle(event, carried)
            if self.dropped == dropped:
                self._learn(frame, event, events)
            return events
        return self._handle_all(self._order.arrange(event, carried))

    def _learn(self, frame: bytes, event: Json, events: list[Event]) -> None:
        """Learn the pattern of a frame if it says nothing but the next text of a block."""
        delta, block = event.get("delta"), self._current
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
        if self._stopped and error is None and self._failure is None:
            return self._on_message_stop({}, None)
        rest: list[Event] = []
        if self._inline is not None:
            for made in self._inline.end(is_cut=True):
                rest += self._handle(*made)
        self._ended = True
        error = self._failure or error or CONNECTION_LOST
        usage = read_usage(self._usage) if self._stopped else None  # not final before
        ending = self._break_off()
        return [*rest, *ending, ResponseEnded(None, None, ok=False, usage=usage, error=error)]

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
        read = [self._read_whole_block(content_block) for content_block in content]
        events += [event for block_events in read for event in block_events]
        if self._rebuilder is not None:
            content = [show_block(*shown) for shown in zip(content, read, strict=True)]
        whole = complete_whole(message, content)
        if self._carries_frames and (self._hides_raw or whole != sent):
            frame = dumps(whole)
        events += self._finish(string(message.get("stop_reason")))
        usage, error = read_usage(self._usage), self._failure
        self._ended = True
        ended = ResponseEnded(None, frame, ok=error is None, usage=usage, error=error)
        return [*self._select(events), ended]

    def observed(self) -> Observation:
        """Return nothing: Messages leaves providers no choice of format."""
        return NO_OBSERVATION

    def recorded_turns(self) -> list[RecordedTurn]:
        if not self._state.is_complete:
            return []
        read = ((block, block.to_json()) for block in self._blocks)
        content = [
            (None if block.item is None else (LANE, block.item), content_block)
            for block, content_block in read
            if content_block is not None
        ]
        record = record_turns if self._carries_frames else record_joined_turn
        return record(content)

    def _count_fault(self) -> list[Event]:
        self.faults += 1
        return []

    def _read_unparsed(self, data: bytes | None, frame: bytes) -> list[Event]:
        """Read a frame of which no event was parsed, or one after the end.

        Without an event that cannot be read the answer would be another one, so it fails. A comment
        passes, and so does the `[DONE]` that some gateways send here, too, once all is said.
        """
        if data is not None and not self._ended:
            if (valid := replace_invalid(frame)) != frame:
                return self.read(valid)
            if begins_object(data):
                return self.end(UNREADABLE)
        is_done = data is not None and data.startswith(sse.DONE)
        if is_done and not (self._ended and self._carries_frames):
            return []
        if data is not None and not is_done:
            return self._count_fault()
        if self._hides_raw:
            return self._framing.other(sse.encode_frame(sse.DONE)) if is_done else []
        return self._framing.other(frame)

    def _is_plain(self, event: Json) -> bool:
        """Return whether no thinking is to be taken out of an event."""
        return self._inline is None or self._inline.passes(event)

    def _handle_all(self, framed_events: Iterable[FramedEvent]) -> list[Event]:
        events: list[Event] = []
        for event, frame in framed_events:
            if self._inline is None:
                events += self._handle(event, frame)
            else:
                for made in self._inline.read(event, frame):
                    events += self._handle(*made)
        return events

    def _handle(self, event: Json, frame: bytes | None) -> list[Event]:
        handler = self._HANDLERS.get(string(event.get("type")))
        return self._framing.other(frame) if handler is None else handler(self, event, frame)

    # Beginning

    def _on_message_start(self, event: Json, frame: bytes | None) -> list[Event]:
        """Start the answer. Anthropic sends no creation time."""
        if self._started:
            return self._count_fault()
        self._started = True
        message = as_object(event.get("message"))
        self._usage = merge_usage(self._usage, message.get("usage"))
        message_id, model = (string(message.get(key)) for key in ("id", "model"))
        complete = complete_start(message)
        if frame is None or complete != message:
            frame = self._framing.make_frame("message_start", {"message": complete})
        return [ResponseStarted(LANE if frame else None, frame, message_id, model, 0)]

    def _ensure_started(self) -> list[Event]:
        """Start the answer if upstream left out `message_start`."""
        return [] if self._started else self._on_message_start({}, None)

    # Blocks

    def _on_block_start(self, event: Json, frame: bytes | None) -> list[Event]:
        content_block, index = event.get("content_block"), _block_index(event)
        if self._stopped or not isinstance(content_block, dict):
            return self._count_fault()
        previous = self._by_index.get(index)
        ending = self._close_block(previous) if previous is not None and previous.is_open else []
        return [*self._ensure_started(), *ending, *self._open_block(index, content_block, frame)]

    def _open_block(
        self, index: int | None, content_block: Json, frame: bytes | None
    ) -> list[Event]:
        block = self._add_block(index, content_block)
        return [*self._switch_to(block), *self._framing.start(block, frame)]

    def _add_block(self, index: int | None, content_block: Json) -> Block:
        block = self._framing.make_block(content_block, self._state)
        self._dropped += not (block.is_translated or self._carries_frames)
        block.index = len(self._blocks)
        block.is_moved = index != block.index
        self._blocks.append(block)
        self._by_index[index] = block
        return block

    def _switch_to(self, block: Block) -> list[Event]:
        """Continue with a block. Translated, that ends the thinking of any other; for a client of
        this API blocks follow each other, so it ends any other."""
        previous = self._current
        if previous is block or not (block.is_translated or self._carries_frames):
            return []
        self._current = block
        if previous is None or not previous.is_open:
            return []
        ends = self._carries_frames or isinstance(previous, ReasoningBlock)
        return self._framing.stop(previous, None) if ends else []

    def _on_block_delta(self, event: Json, frame: bytes | None) -> list[Event]:
        delta, index = event.get("delta"), _block_index(event)
        if self._stopped or not isinstance(delta, dict):
            return self._count_fault()
        block = self._by_index.get(index)
        if block is None or (self._carries_frames and is_stray(delta, block)):
            return self._read_stray_delta(event, frame)
        if not block.is_open:
            return self._count_fault()
        return [*self._switch_to(block), *self._framing.add_delta(block, event, frame)]

    def _read_stray_delta(self, event: Json, frame: bytes | None) -> list[Event]:
        """Read a delta of a block that upstream did not start, or of another type than its block:
        text of an answer begins a block of its own."""
        block_type = DELTA_BLOCK_TYPES.get(string(event["delta"].get("type")))
        if block_type is None:
            return self._count_fault()
        start = {"index": event.get("index"), "content_block": {"type": block_type}}
        events = self._on_block_start(start, None)
        block = self._by_index[_block_index(event)]
        return [*events, *self._framing.add_delta(block, event, frame)]

    def _on_block_stop(self, event: Json, frame: bytes | None) -> list[Event]:
        block = self._by_index.get(_block_index(event))
        if block is None or not block.is_open:
            return self._count_fault()
        return self._close_block(block, frame)

    def _close_block(self, block: Block, frame: bytes | None = None) -> list[Event]:
        """Stop a block. If that yields more content, continue with the block first."""
        events = self._framing.stop(block, frame)
        return [*self._switch_to(block), *events] if events else []

    def _read_whole_block(self, content_block: Json) -> list[Event]:
        """Read a block of a whole message."""
        block = self._add_block(None, content_block)
        return [*self._switch_to(block), *block.start(), *self._close_block(block)]

    def _select(self, events: list[Event]) -> list[Event]:
        """Return the events of a whole message without those that stand for frames alone."""
        selected = [event for event in events if not isinstance(event, Passthrough)]
        for event in selected:
            event.frame = None
        return selected

    # End

    def _on_message_delta(self, event: Json, frame: bytes | None) -> list[Event]:
        self._usage = merge_usage(self._usage, event.get("usage"))
        reason = string(as_object(event.get("delta")).get("stop_reason"))
        ending = self._finish(reason) if reason else []
        if not self._carries_frames:
            return ending
        return [
            *self._ensure_started(),
            *ending,
            UsageReported(None, frame, read_usage(self._usage) or Tokens()),
        ]

    def _finish(self, reason: str) -> list[Event]:
        """Finish the answer. A client continues with the calls it got, whatever reason upstream
        gives."""
        if self._stopped:
            return []
        self._stopped = True
        ending = self._close_thinking()
        for block in self._blocks:
            ending += self._framing.stop(block, None) if block.is_open else []
        starting = self._ensure_started()
        if self._carries_frames:
            return [*starting, *ending]
        stop = translate_stop(reason, self._blocks, self._state)
        self._failure = stop.error if isinstance(stop, ErrorReported) else self._failure
        return [*starting, *ending, stop]

    def _on_message_stop(self, _event: Json, frame: bytes | None) -> list[Event]:
        stopping = [] if self._stopped else self._stop_without_reason()
        self._ended = True
        frame = frame or self._framing.make_frame("message_stop", {})
        usage, ok = read_usage(self._usage), self._failure is None
        return [*stopping, ResponseEnded(None, frame, ok=ok, usage=usage, error=self._failure)]

    def _stop_without_reason(self) -> list[Event]:
        """Finish the answer where upstream left out why it stops."""
        stopping = self._finish("")
        fields = make_stop([block.type for block in self._blocks], self._usage)
        frame = self._framing.make_frame("message_delta", fields)
        if frame is None:
            return stopping
        return [*stopping, UsageReported(None, frame, read_usage(self._usage) or Tokens())]

    def _on_error(self, event: Json, frame: bytes | None) -> list[Event]:
        if self._failure is not None:
            return self._count_fault()
        self._failure = self._read_error(event)
        if frame is None:
            return [ErrorReported(None, None, self._failure)]
        complete = complete_error(event, self._failure.message)
        if complete != parse_frame(frame):
            frame = encode_event("error", complete)
        return [*self._break_off(), ErrorReported(None, frame, self._failure)]

    def _read_error(self, event: Json) -> ErrorDetail:
        """Read an error, in other words where upstream's may repeat what is hidden."""
        error = read_error_event(event)
        return without_message(error) if self._hides_raw else error

    def _break_off(self) -> list[Event]:
        """End what is open, as the answer breaks off. Calls stay incomplete."""
        ending = self._close_thinking()
        for block in self._blocks:
            ending += self._framing.abort(block) if block.is_open else []
        return ending

    def _close_thinking(self) -> list[Event]:
        block = self._current
        if not isinstance(block, ReasoningBlock) or not block.is_open:
            return []
        return self._framing.stop(block, None)

    _HANDLERS: ClassVar[dict[str, _Handler]] = {
        "message_start": _on_message_start,
        "content_block_start": _on_block_start,
        "content_block_delta": _on_block_delta,
        "content_block_stop": _on_block_stop,
        "message_delta": _on_message_delta,
        "message_stop": _on_message_stop,
        "error": _on_error,
    }


def _block_index(event: Json) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None


def _proceed(order: BlockOrder, block: Block, text: str, frame: bytes | None) -> Event:
    """Read the next text of a block."""
    order.note_fragment(text)
    return block.proceed(text, frame)
