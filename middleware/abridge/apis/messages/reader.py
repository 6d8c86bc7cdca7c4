"""Read an Anthropic Messages response, streamed or whole, into events.

An event says what it says in all APIs; where the client speaks Messages, it carries upstream's
frame, too. The parts are in the order in which upstream let them come, be it sloppy: the stages
behind the reader put them one after the other, and take thinking out of texts.

Everything is in one lane. Each thinking block is a reasoning item of its own, numbered from 0.
Upstream may go on with an answer whose end it has told: the end is that of all that comes
(`_complete`). Anything after that is a fault: counted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.endings import UNFINISHED, infer_reason, reason_of_parts
from abridge.apis.errors import (
    CONNECTION_LOST,
    SECOND_ANSWER,
    TURN_PAUSED,
    UNREADABLE,
    read_detail,
    with_error_type,
    without_message,
)
from abridge.apis.frames import SentEvent, encode_event, parse_frame, with_event_name
from abridge.apis.json import (
    as_object,
    begins_object,
    dumps,
    loads_exact,
    objects,
    parse_body,
    parse_object,
    replace_invalid,
    string,
)
from abridge.apis.messages.blocks import (
    DELTA_BLOCK_TYPES,
    AnswerBlocks,
    Block,
    MessageState,
    complete_call,
    is_lost_fragment,
    is_of_other_type,
)
from abridge.apis.messages.history import MessagesHistory
from abridge.apis.messages.shapes import MessagesRebuilder
from abridge.apis.messages.usage import NO_USAGE, merge_usage, read_usage
from abridge.apis.openai import mint_id
from abridge.apis.protocols import Continuation
from abridge.apis.shapes import DropCount
from abridge.apis.usage import report_tier
from abridge.core.answer import Part
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    LANE,
    STRAY_ARGUMENTS,
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    FinishReason,
    Passthrough,
    ResponseEnded,
    ResponseStarted,
    UsageReported,
)
from abridge.core.usage import NO_TOKENS

REQUIRED_FIELDS: Json = {
    "type": "message",
    "role": "assistant",
    "model": "",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
}
"""Fields that every message has (Anthropic API reference, `Message`), beside `id` and `usage`, with
values that claim nothing which upstream did not say."""

FINISH_REASONS: Mapping[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""Finish reasons; any other stop reason means `stop`, or `tool_calls` if there were calls. Text
before a refusal stays: the client has seen it."""


def complete_start(message: Json) -> Json:
    """Return a message as a stream starts it: with all its fields, and no content."""
    usage = {**NO_USAGE, **as_object(message.get("usage"))}
    complete = {"id": "", **REQUIRED_FIELDS, **message, "content": [], "usage": usage}
    return {**complete, "id": string(complete["id"]) or mint_id("msg_")}


def complete_whole(message: Json, content: list[Json]) -> Json:
    """Return a whole message with all its fields, and this content."""
    complete = {**complete_start(message), "content": list(map(complete_call, content))}
    if complete["stop_reason"] is None:
        complete |= make_stop(map(block_type, content), complete["usage"])["delta"]
    return complete


def unfold_message(message: Json) -> list[Json]:
    """Return the events of which a message consists that comes whole, but for the last."""
    change = {key: message[key] for key in ("stop_reason", "stop_sequence") if message.get(key)}
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None}
    events: list[Json] = [{"type": "message_start", "message": start}]
    for index, content_block in enumerate(objects(message["content"])):
        address = {"index": index}
        events.append({"type": "content_block_start", **address, "content_block": content_block})
        events.append({"type": "content_block_stop", **address})
    if change:
        usage = as_object(message.get("usage"))
        delta = {"stop_reason": None, "stop_sequence": None, **change}
        events.append({"type": "message_delta", "delta": delta, "usage": usage})
    return events


class MessageStop:
    """What upstream has said so far of why its answer stops.

    It waits until something else than the answer follows, or the end: upstream may go on after it,
    or have another reason then.
    """

    def __init__(self) -> None:
        self.reason = ""
        self.is_last_word = False  # nothing more of the answer has come since
        self._event: Json = {}

    def take(self, event: Json) -> bool:
        """Take a `message_delta` that says why the answer stops, or one that follows it; return
        whether it was taken."""
        delta = as_object(event.get("delta"))
        reason = string(delta.get("stop_reason"))
        if not (reason or self.reason):
            return False
        self.reason, self.is_last_word = reason or self.reason, True
        if self._event:
            told = {key: value for key, value in delta.items() if value is not None}
            usage = merge_usage(as_object(self._event.get("usage")), event.get("usage"))
            delta = {**as_object(self._event.get("delta")), **told}
            event = {**self._event, **event, "delta": delta, "usage": usage}
        self._event = event
        return True

    def release(self) -> Json:
        """Return the event that says so, once."""
        event, self._event = self._event, {}
        return event


def block_type(content_block: Json) -> str:
    return string(content_block.get("type"))


def complete_error(event: Json, message: str) -> Json:
    """Return an error event in Anthropic's form; some gateways send only a text, or no type."""
    error = {"type": "api_error", "message": message, **as_object(event.get("error"))}
    return {**event, "type": "error", "error": error}


def make_stop(block_types: Iterable[str], usage: Json) -> Json:
    """Return the `message_delta` that upstream left out. Why an answer stops is told by its
    blocks."""
    reason = "tool_use" if "tool_use" in block_types else "end_turn"
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 0, **usage},
    }


def parse_event(data: bytes) -> Json | None:
    """Parse an event: with exact numbers unless it is a delta, all of which are text."""
    event = parse_object(data)
    if event is None or event.get("type") == "content_block_delta":
        return event
    return with_error_type(parse_object(data, loads_exact) or event)


_Handler = Callable[["MessagesReader", Json], list[Event]]


class MessagesReader:
    """Read one response. See the protocol `ReaderOfParts`.

    With `translates` its client speaks another API, so that no event carries a frame.
    """

    def __init__(self, display: Display, limit: int, *, translates: bool = False) -> None:
        self._carries_frames = not translates
        self._hides_raw = display.hides_raw
        self._state = MessageState(display, self._carries_frames, limit)
        self._blocks = AnswerBlocks(self._state)
        self._rebuilder = MessagesRebuilder(DropCount.of(display)) if display.hides_raw else None
        self._usage: Json = {}
        self._failure: ErrorDetail | None = None
        self._stop = MessageStop()
        self._last_event: Json = {"type": "message_stop"}
        self._started = False
        self._message_id: str | None = None  # None until upstream has said it
        self._stopped = False  # upstream has sent `message_stop`
        self._ended = False
        self._is_given_up = False  # it ended here before upstream ended it
        self.faults = 0
        self.continuation: Continuation | None = None

    @property
    def dropped(self) -> int:
        rebuilt = self._rebuilder.drops.count if self._rebuilder is not None else 0
        return self._state.untranslated + self._state.withheld + rebuilt

    def read(self, frame: bytes) -> list[Event]:
        self.continuation = None
        data = sse.frame_data(frame)
        event = None if data is None or self._ended else parse_event(data)
        if event is None:
            return self._read_unparsed(data, frame)
        if self._rebuilder is None:
            event = SentEvent(event, with_event_name(frame, event))
        elif (event := self._rebuilder.rebuild(event)) is None:
            return []
        events = self._handle(event)
        block = events[0].part if len(events) == 1 else None
        if event.get("type") == "content_block_delta" and isinstance(block, Block):
            self.continuation = block.continuation_of(event)
        return events

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        is_over = self._stopped or (self._stop.is_last_word and error is None)
        if is_over and self._failure is None:
            return self._complete()
        return self._fail(error or CONNECTION_LOST)

    def read_whole(self, body: bytes) -> list[Event]:
        parsed, body = parse_body(body)
        sent = parsed or {}
        frame = body if self._carries_frames and not self._hides_raw else None
        if not isinstance(sent.get("content"), list):
            is_error = with_error_type(sent).get("type") == "error"
            error = self._read_error(sent) if is_error else None
            return [ResponseEnded(None, frame, ok=False, error=error)]
        message = sent if self._rebuilder is None else self._rebuilder.rebuild_message(sent)
        events = self._unfold(message)
        whole = complete_whole(message, objects(message["content"]))
        if self._carries_frames and (self._hides_raw or whole != sent):
            frame = dumps(whole)
        self.faults += not self._stop.reason
        events += self._finish(self._stop.reason)
        usage, error = read_usage(self._usage), self._failure
        self._ended = True
        return [*events, ResponseEnded(None, frame, ok=error is None, usage=usage, error=error)]

    def record(self, parts: Sequence[Part]) -> list[RecordedTurn]:
        if not self._state.is_complete:
            return []
        content = map(_as_block, parts)
        keys = ((LANE, part.number) if part.kind == "reasoning" else None for part in parts)
        items = [
            (key, block) for key, block in zip(keys, content, strict=True) if block is not None
        ]
        return MessagesHistory.record(items, joined=not self._carries_frames)

    def _pass(self, frame: bytes | None, part: Part | None = None) -> list[Event]:
        """Return the event of a frame that is about no block."""
        return [Passthrough(None, frame, part=part)] if self._carries_frames else []

    def _count_fault(self) -> list[Event]:
        self.faults += 1
        return []

    def _read_unparsed(self, data: bytes | None, frame: bytes) -> list[Event]:
        """Read a frame of which no event was parsed, or one after the end.

        Without an event that cannot be read the answer would be another one, so it fails. A comment
        passes.
        """
        if data is None:
            return [] if self._hides_raw else self._pass(frame)
        if data.startswith(sse.DONE):
            return self._read_done(frame)
        if not self._ended:
            if (valid := replace_invalid(frame)) != frame:
                return self.read(valid)
            if begins_object(data) or self._lacks_arguments(data, frame):
                return self._fail(UNREADABLE)
        return [] if self._is_given_up else self._count_fault()

    def _lacks_arguments(self, data: bytes, frame: bytes) -> bool:
        """Return whether an open call may lack some of its arguments: a frame that says nothing
        stands where they were."""
        is_lost = sse.says_nothing(frame, data) or b"content_block_" in frame
        return self._blocks.has_open_call and is_lost

    def _read_done(self, frame: bytes) -> list[Event]:
        """Read the `[DONE]` that some gateways send here, too. It passes after the end."""
        if not self._ended:
            return self._note_stop(self._last_event)
        return self._pass(sse.encode_frame(sse.DONE) if self._hides_raw else frame)

    def _handle(self, event: Json) -> list[Event]:
        handler = self._HANDLERS.get(string(event.get("type")))
        if handler is not None:
            return handler(self, event)
        part = None if event.get("type") == "ping" else self._blocks.open_text
        passed = self._pass(self._state.frame_of(event), part)
        stop = self._release_stop()
        ending = self._blocks.close_all() if stop else []  # it may have left out their ends
        return [*ending, *stop, *passed]

    # Beginning

    def _on_message_start(self, event: Json) -> list[Event]:
        """Start the answer. Another one that begins within it fails it, for its blocks would go on
        with those of the first; a start that is only repeated does not."""
        message = event.get("message")
        if event.get("type") == "message_start" and as_object(message).get("content"):
            return self._unfold(event["message"])
        if as_object(message).get("type") == "error":  # a whole answer that is an error
            return self._report(as_object(message), None)
        message_id = string(as_object(message).get("id"))
        if not self._started:
            self._message_id = message_id
            return self._start(event)
        is_other = bool(self._blocks.all) or message_id != self._message_id
        events = self._count_fault()
        is_second = self._message_id is not None and isinstance(message, dict)
        return self._fail(SECOND_ANSWER) if is_second and is_other else events

    def _unfold(self, message: Json) -> list[Event]:
        """Read an answer that comes whole, or is all in its start, as it is where a tool of the
        server's calls one of the client's: the call, and why it stops (Anthropic's programmatic
        tool calling, recorded by the AI SDK)."""
        unfolded = (self._handle(event) for event in unfold_message(message) if not self._ended)
        return [event for events in unfolded for event in events]

    def _start(self, event: Json) -> list[Event]:
        """Start the answer. Anthropic sends no creation time."""
        self._started, message = True, as_object(event.get("message"))
        self._usage = merge_usage(self._usage, message.get("usage"))
        message_id, model = (string(message.get(key)) for key in ("id", "model"))
        complete = complete_start(message)
        if complete != message:
            event = {"type": "message_start", "message": complete}
        frame = self._state.frame_of(event)
        started = ResponseStarted(LANE if frame else None, frame, message_id, model, 0)
        return [*report_tier(None if frame else self._usage.get("service_tier")), started]

    def _ensure_started(self) -> list[Event]:
        """Start the answer if upstream left out `message_start`."""
        return [] if self._started else self._start({})

    # Blocks

    def _on_block_start(self, event: Json) -> list[Event]:
        content_block, index = event.get("content_block"), event.get("index")
        self._stop.is_last_word = False
        if not isinstance(content_block, dict) or self._blocks.has_begun(index, content_block):
            return self._count_fault()
        return [*self._ensure_started(), *self._blocks.open(event)]

    def _on_block_delta(self, event: Json) -> list[Event]:
        delta, block = event.get("delta"), self._blocks.find(event.get("index"))
        self._stop.is_last_word = False
        if not isinstance(delta, dict):
            return self._count_fault()
        if is_lost_fragment(delta, block):
            return [*self._count_fault(), *self._fail(STRAY_ARGUMENTS)]
        if block is not None and not is_of_other_type(delta, block):
            return block.add(event)
        return self._read_stray_delta(event)

    def _read_stray_delta(self, event: Json) -> list[Event]:
        """Read a delta of a block that upstream did not start, or of another type than its block:
        text begins a block of its own."""
        block_type = DELTA_BLOCK_TYPES.get(string(event["delta"].get("type")))
        if block_type is None:
            return self._count_fault()
        address = {"type": "content_block_start", "index": event.get("index")}
        events = self._on_block_start({**address, "content_block": {"type": block_type}})
        return [*events, *self._blocks.all[-1].add(event)]

    def _on_block_stop(self, event: Json) -> list[Event]:
        block = self._blocks.find(event.get("index"))
        if block is not None:
            block.is_ended = True
        if block is None or block.is_stopped:
            return self._count_fault()
        return block.stop(self._state.frame_of(event))

    # End

    def _on_message_delta(self, event: Json) -> list[Event]:
        self._usage = merge_usage(self._usage, event.get("usage"))
        usage = as_object(event.get("usage"))
        if usage.get("output_tokens") is None:  # SDKs read it
            known = self._usage.get("output_tokens") or 0
            event = {**event, "usage": {**usage, "output_tokens": known}}
        if self._stop.take(event):
            return self._ensure_started()
        reported = self._report_usage(event)
        return [*self._ensure_started(), *reported] if reported else []

    def _release_stop(self) -> list[Event]:
        return self._report_usage(self._stop.release())

    def _report_usage(self, event: Json) -> list[Event]:
        """Report the usage so far in the frame of an event, if there is one."""
        if not (event and self._carries_frames):
            return []
        usage = read_usage(self._usage) or NO_TOKENS
        return [UsageReported(None, self._state.frame_of(event), usage)]

    def _on_message_stop(self, event: Json) -> list[Event]:
        return self._count_fault() if self._stopped else self._note_stop(event)

    def _note_stop(self, event: Json) -> list[Event]:
        """End the answer, unless why it stops is still to come: some say so afterwards."""
        self._stopped, self._last_event = True, event
        return self.end() if self._stop.reason or self._failure is not None else []

    def _complete(self) -> list[Event]:
        """End an answer that is over."""
        if not (self._stop.reason or self._explain_end()):
            return self._fail(UNFINISHED)
        self._ended = True
        events = self._finish(self._stop.reason)
        events += self._release_stop()
        if not self._stop.reason:
            stop = make_stop([block.type for block in self._blocks.all], self._usage)
            events += self._report_usage(stop)
        frame, error = self._state.frame_of(self._last_event), self._failure
        usage = read_usage(self._usage)
        return [*events, ResponseEnded(None, frame, ok=error is None, usage=usage, error=error)]

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
        if reason == "pause_turn" and not self._carries_frames:  # no other API can have it go on
            self._failure = TURN_PAUSED
            return [*events, ErrorReported(None, None, TURN_PAUSED)]
        default = reason_of_parts(has_calls=self._state.call_count > 0)
        hosted_calls = self._blocks.only_hosted_calls
        told = FINISH_REASONS.get(reason, default)
        return [*events, Finished(LANE, None, told, hosted_calls=hosted_calls)]

    def _fail(self, error: ErrorDetail) -> list[Event]:
        """End an answer that is not whole."""
        self._ended = self._is_given_up = True
        usage = read_usage(self._usage) if self._stop.reason else None  # not final before
        ended = ResponseEnded(None, None, ok=False, usage=usage, error=self._failure or error)
        return [*self._blocks.break_off(), ended]

    def _on_error(self, event: Json) -> list[Event]:
        return self._report(event, self._state.frame_of(event))

    def _report(self, event: Json, frame: bytes | None) -> list[Event]:
        """Report an error, in its frame if there is one."""
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
        error = read_detail(event)
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


def _as_block(part: Part) -> Json | None:
    """Return a part as a block of a whole message; None if it holds nothing."""
    if isinstance(part, Block):
        return part.to_json()
    field = {"reasoning": "thinking", "text": "text"}.get(part.kind)
    signature = {"signature": ""} if field == "thinking" else {}
    return None if field is None else {"type": field, field: part.shown_text, **signature}
