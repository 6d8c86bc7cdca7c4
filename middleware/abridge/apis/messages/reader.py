"""Read an Anthropic Messages response, streamed or whole, into translated events.

Everything is in one lane. Each thinking block is a reasoning item of its own, numbered from 0, and
ends when another block continues. Anything after its end, or the answer's, is a fault: counted and
dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.errors import CONNECTION_LOST, UNREADABLE
from abridge.apis.json import (
    begins_object,
    loads_exact,
    objects,
    parse_object,
    replace_invalid,
    string,
)
from abridge.apis.messages.blocks import BLOCK_TYPES, LANE, Block, MessageState, ReasoningBlock
from abridge.apis.messages.errors import read_error_event
from abridge.apis.messages.history import record_turn
from abridge.apis.own_errors import without_message
from abridge.apis.shapes import name
from abridge.apis.usage import as_count
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    ErrorDetail,
    ErrorReported,
    Event,
    Finished,
    FinishReason,
    ResponseEnded,
    ResponseStarted,
)
from abridge.core.usage import Tokens
from abridge.providers.learned import NO_OBSERVATION, Observation
from abridge.providers.profile import Profile

FINISH_REASONS: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""Finish reasons; any other stop reason means `stop`, or `tool_calls` if there were calls. Text
before a refusal stays: the client has seen it."""

DELTA_BLOCK_TYPES = {
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "text_delta": "text",
}
"""Block types that a delta implies, for upstreams that leave out `content_block_start`."""

_Handler = Callable[["MessagesReader", Json], list[Event]]


class MessagesReader:
    """Read one response. See `Reader`.

    Hiding thinking blocks is the writer's job; here thinking is kept out of the other ones.
    """

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self._state = MessageState(profile, display, limit)
        self._hides_raw = display.hides_raw
        self._blocks: list[Block] = []
        self._by_index: dict[int | None, Block] = {}
        self._current_thinking: Block | None = None
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
        return self._dropped + self._state.dropped

    def read(self, frame: bytes) -> list[Event]:
        data = sse.frame_data(frame)
        if data is None or data.startswith(sse.DONE):  # [DONE]: some gateways send it here, too
            return []
        event = None if self._ended else _parse_event(data)
        if event is None:
            is_lost = not self._ended and begins_object(data)
            return self.end(UNREADABLE) if is_lost else self._count_fault()
        handler = self._HANDLERS.get(string(event.get("type")))
        return [] if handler is None else handler(self, event)

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        if self._stopped and error is None and self._failure is None:
            return self._on_message_stop({})
        self._ended = True
        error = self._failure or error or CONNECTION_LOST
        usage = read_usage(self._usage) if self._stopped else None  # not final before
        return [
            *self._close_thinking(),
            *(event for block in self._blocks for event in block.abort()),
            ResponseEnded(None, None, ok=False, usage=usage, error=error),
        ]

    def read_whole(self, body: bytes) -> list[Event]:
        parsed = parse_object(body, loads_exact)
        message = parsed or parse_object(replace_invalid(body), loads_exact) or {}
        if not isinstance(message.get("content"), list):
            error = self._read_error(message) if message.get("type") == "error" else None
            return [ResponseEnded(None, None, ok=False, error=error)]
        events = self._on_message_start({"message": message})
        for content_block in objects(message["content"]):
            events += self._open_block(None, content_block)
            events += self._close_block(self._blocks[-1])
        events += self._finish(string(message.get("stop_reason")))
        return [*events, *self._on_message_stop({})]

    def observed(self) -> Observation:
        """Return nothing: Messages leaves providers no choice of format."""
        return NO_OBSERVATION

    def recorded_turns(self) -> list[RecordedTurn]:
        if not self._state.is_complete:
            return []
        blocks = [block.to_json() for block in self._blocks]
        keys = tuple((LANE, block.item) for block in self._blocks if block.item is not None)
        return record_turn([block for block in blocks if block is not None], keys)

    def _count_fault(self) -> list[Event]:
        self.faults += 1
        return []

    def _on_message_start(self, event: Json) -> list[Event]:
        """Start the answer. Anthropic sends no creation time."""
        message = event.get("message")
        message = message if isinstance(message, dict) else {}
        if self._started:
            return self._count_fault()
        self._started = True
        self._usage = merge_usage(self._usage, message.get("usage"))
        message_id, model = (self._state.check(message.get(key), name) for key in ("id", "model"))
        return [ResponseStarted(None, None, message_id, model, 0)]

    def _ensure_started(self) -> list[Event]:
        """Start the answer if upstream left out `message_start`."""
        return [] if self._started else self._on_message_start({})

    def _on_block_start(self, event: Json) -> list[Event]:
        content_block, index = event.get("content_block"), _block_index(event)
        if self._stopped or not isinstance(content_block, dict):
            return self._count_fault()
        previous = self._by_index.get(index)
        ending = self._close_block(previous) if previous is not None and previous.is_open else []
        return [*self._ensure_started(), *ending, *self._open_block(index, content_block)]

    def _open_block(self, index: int | None, content_block: Json) -> list[Event]:
        block = BLOCK_TYPES.get(string(content_block.get("type")), Block)(
            content_block, self._state
        )
        self._dropped += not block.is_translated
        self._blocks.append(block)
        self._by_index[index] = block
        return [*self._switch_to(block), *block.start()]

    def _switch_to(self, block: Block) -> list[Event]:
        """Continue with a block, which ends the thinking of any other."""
        previous = self._current_thinking
        if previous is block or not block.is_translated:
            return []
        self._current_thinking = block if isinstance(block, ReasoningBlock) else None
        return previous.stop() if previous is not None and previous.is_open else []

    def _on_block_delta(self, event: Json) -> list[Event]:
        delta, index = event.get("delta"), _block_index(event)
        if self._stopped or not isinstance(delta, dict):
            return self._count_fault()
        block = self._by_index.get(index)
        if block is None and (kind := DELTA_BLOCK_TYPES.get(string(delta.get("type")))):
            events = self._on_block_start({"index": index, "content_block": {"type": kind}})
            return [*events, *self._by_index[index].add_delta(delta)]
        if block is None or not block.is_open:
            return self._count_fault()
        return [*self._switch_to(block), *block.add_delta(delta)]

    def _on_block_stop(self, event: Json) -> list[Event]:
        block = self._by_index.get(_block_index(event))
        return (
            self._count_fault() if block is None or not block.is_open else self._close_block(block)
        )

    def _close_block(self, block: Block) -> list[Event]:
        """Stop a block. If that yields more content, continue with the block first."""
        events = block.stop()
        return [*self._switch_to(block), *events] if events else []

    def _on_message_delta(self, event: Json) -> list[Event]:
        self._usage = merge_usage(self._usage, event.get("usage"))
        delta = event.get("delta")
        reason = string(delta.get("stop_reason")) if isinstance(delta, dict) else ""
        return self._finish(reason) if reason else []

    def _finish(self, reason: str) -> list[Event]:
        """Finish the answer. A client continues with the calls it got, whatever reason upstream
        gives."""
        if self._stopped:
            return []
        self._stopped = True
        default_reason: FinishReason = "tool_calls" if self._state.call_count else "stop"
        ending = self._close_thinking()
        ending += [event for block in self._blocks if block.is_open for event in block.stop()]
        return [
            *self._ensure_started(),
            *ending,
            Finished(LANE, None, FINISH_REASONS.get(reason, default_reason)),
        ]

    def _on_message_stop(self, _event: Json) -> list[Event]:
        stopping = self._finish("")
        self._ended = True
        usage = read_usage(self._usage)
        ok = self._failure is None
        return [*stopping, ResponseEnded(None, None, ok=ok, usage=usage, error=self._failure)]

    def _on_error(self, event: Json) -> list[Event]:
        if self._failure is not None:
            return self._count_fault()
        self._failure = self._read_error(event)
        return [ErrorReported(None, None, self._failure)]

    def _read_error(self, event: Json) -> ErrorDetail:
        """Read an error, in other words where upstream's may repeat what is hidden."""
        error = read_error_event(event)
        return without_message(error) if self._hides_raw else error

    def _close_thinking(self) -> list[Event]:
        """Close open thinking. After a cut, calls stay incomplete."""
        block = self._current_thinking
        return block.stop() if block is not None and block.is_open else []

    _HANDLERS: ClassVar[dict[str, _Handler]] = {
        "message_start": _on_message_start,
        "content_block_start": _on_block_start,
        "content_block_delta": _on_block_delta,
        "content_block_stop": _on_block_stop,
        "message_delta": _on_message_delta,
        "message_stop": _on_message_stop,
        "error": _on_error,
    }


def _parse_event(data: bytes) -> Json | None:
    """Parse an event: with exact numbers unless it is a delta, all of which are text."""
    event = parse_object(data) or parse_object(replace_invalid(data))
    if event is None or event.get("type") == "content_block_delta":
        return event
    return parse_object(data, loads_exact) or event


def _block_index(event: Json) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None


# Usage; in a stream it is cumulative: a later figure replaces an earlier one

OUTPUT_DETAILS = "output_tokens_details"


def read_usage(usage: Json) -> Tokens | None:
    """Return the figures reported; None if there are none.

    `input_tokens` excludes cache reads and writes, which OpenAI's count includes. No total is
    reported, but `output_tokens` includes thinking by definition (Anthropic API reference,
    `Usage`), so here, and only here, the sum is exact.
    """
    cached = as_count(usage.get("cache_read_input_tokens"))
    written = as_count(usage.get("cache_creation_input_tokens"))
    fresh, output_tokens = as_count(usage.get("input_tokens")), as_count(usage.get("output_tokens"))
    input_tokens = None if fresh is None else fresh + (cached or 0) + (written or 0)
    total = None if input_tokens is None or output_tokens is None else input_tokens + output_tokens
    details = usage.get(OUTPUT_DETAILS)
    thinking_tokens = (
        as_count(details.get("thinking_tokens")) if isinstance(details, dict) else None
    )
    tokens = Tokens(input_tokens, output_tokens, total, thinking_tokens, cached, written)
    return None if tokens == Tokens() else tokens


def merge_usage(usage: Json, reported: Any) -> Json:
    """Merge newly reported usage into what is known. A null figure keeps the earlier one."""
    if not isinstance(reported, dict):
        return usage
    return {**usage, **{name: figure for name, figure in reported.items() if figure is not None}}
