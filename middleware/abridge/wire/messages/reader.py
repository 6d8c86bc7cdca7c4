"""Reads an Anthropic Messages response, streamed or whole, into translated events.

Everything is in one lane. Each thinking block is a reasoning item of its own, numbered from 0, and
ends when another block continues. Anything after its end, or the answer's, is a fault: counted and
dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from abridge.turn.conversation import Heard
from abridge.turn.events import Began, Ended, Event, Failed, Stopped, StopReason, Trouble
from abridge.wire import sse
from abridge.wire.codec import Json, loads_exactly, objects, read_object, string
from abridge.wire.display import Display
from abridge.wire.learned import NOTHING, Seen
from abridge.wire.messages.blocks import KINDS, LANE, Answer, Block, Reasoning
from abridge.wire.messages.conversation import hear
from abridge.wire.messages.usage import later, read_usage
from abridge.wire.problem import CUT
from abridge.wire.profiles import Profile

STOPS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""Finish reasons; any other stop reason means `stop`, or `tool_calls` if there were calls. Text
before a refusal stays: the client has seen it."""

DELTAS = {"thinking_delta": "thinking", "signature_delta": "thinking", "text_delta": "text"}
"""Block types that a delta implies, for upstreams that leave out `content_block_start`."""

_Method = Callable[["MessagesReader", Json], list[Event]]


class MessagesReader:
    """Reads one response. See `Reader`. Profile and display have no effect here: hiding reasoning
    is the writer's job."""

    def __init__(self, _profile: Profile, _display: Display, limit: int) -> None:
        self._answer = Answer(limit)
        self._blocks: list[Block] = []
        self._at: dict[int | None, Block] = {}
        self._thinking: Block | None = None
        self._usage: Json = {}
        self._failure: Trouble | None = None
        self._began = False
        self._stopped = False
        self._ended = False
        self.dropped = 0
        self.faults = 0

    def read(self, frame: bytes) -> list[Event]:
        data = sse.data(frame)
        if data is None or data.startswith(sse.DONE):  # [DONE]: some gateways send it here, too
            return []
        event = None if self._ended else read_object(data)
        if event is None:
            return self._fault()
        read = self._READ.get(string(event.get("type")))
        return [] if read is None else read(self, event)

    def end(self, trouble: Trouble | None = None) -> list[Event]:
        if self._ended:
            return []
        if self._stopped and trouble is None and self._failure is None:
            return self._end({})
        self._ended = True
        trouble = self._failure or trouble or CUT
        usage = read_usage(self._usage) if self._stopped else None  # not final before
        return [*self._rest(), Ended(None, None, ok=False, usage=usage, trouble=trouble)]

    def whole(self, body: bytes) -> list[Event]:
        message = read_object(body, loads_exactly) or {}
        if not isinstance(message.get("content"), list):
            trouble = _trouble(message) if message.get("type") == "error" else None
            return [Ended(None, None, ok=False, trouble=trouble)]
        events = self._start({"message": message})
        for begun in objects(message["content"]):
            events += self._open(None, begun)
            events += self._close(self._blocks[-1])
        events += self._stop(string(message.get("stop_reason")))
        return [*events, *self._end({})]

    def seen(self) -> Seen:
        """Return nothing: Messages leaves providers no choice of format."""
        return NOTHING

    def heard(self) -> list[Heard]:
        if not self._answer.whole:
            return []
        spelled = [block.spelled() for block in self._blocks]
        keys = tuple((LANE, block.item) for block in self._blocks if block.item is not None)
        return hear([block for block in spelled if block is not None], keys)

    def _fault(self) -> list[Event]:
        self.faults += 1
        return []

    def _start(self, event: Json) -> list[Event]:
        """Start the answer. Anthropic sends no creation time."""
        message = event.get("message")
        message = message if isinstance(message, dict) else {}
        if self._began:
            return self._fault()
        self._began = True
        self._usage = later(self._usage, message.get("usage"))
        return [Began(None, None, string(message.get("id")), string(message.get("model")), 0)]

    def _named(self) -> list[Event]:
        """Start the answer if upstream left out `message_start`."""
        return [] if self._began else self._start({})

    def _begin_block(self, event: Json) -> list[Event]:
        begun, index = event.get("content_block"), _index(event)
        if self._stopped or not isinstance(begun, dict):
            return self._fault()
        last = self._at.get(index)
        ending = self._close(last) if last is not None and last.open else []
        return [*self._named(), *ending, *self._open(index, begun)]

    def _open(self, index: int | None, begun: Json) -> list[Event]:
        block = KINDS.get(string(begun.get("type")), Block)(begun, self._answer)
        self.dropped += not block.told
        self._blocks.append(block)
        self._at[index] = block
        return [*self._turn_to(block), *block.begin()]

    def _turn_to(self, block: Block) -> list[Event]:
        """Continue with a block, which ends the thinking of any other."""
        before = self._thinking
        if before is block or not block.told:
            return []
        self._thinking = block if isinstance(block, Reasoning) else None
        return before.stop() if before is not None and before.open else []

    def _go_on(self, event: Json) -> list[Event]:
        delta, index = event.get("delta"), _index(event)
        if self._stopped or not isinstance(delta, dict):
            return self._fault()
        block = self._at.get(index)
        if block is None and (kind := DELTAS.get(string(delta.get("type")))):
            begun = self._begin_block({"index": index, "content_block": {"type": kind}})
            return [*begun, *self._at[index].go_on(delta)]
        if block is None or not block.open:
            return self._fault()
        return [*self._turn_to(block), *block.go_on(delta)]

    def _stop_block(self, event: Json) -> list[Event]:
        block = self._at.get(_index(event))
        return self._fault() if block is None or not block.open else self._close(block)

    def _close(self, block: Block) -> list[Event]:
        """Stop a block. If that yields more content, continue with the block first."""
        said = block.stop()
        return [*self._turn_to(block), *said] if said else []

    def _change(self, event: Json) -> list[Event]:
        self._usage = later(self._usage, event.get("usage"))
        delta = event.get("delta")
        reason = string(delta.get("stop_reason")) if isinstance(delta, dict) else ""
        return self._stop(reason) if reason else []

    def _stop(self, reason: str) -> list[Event]:
        """Finish the answer. A client continues with the calls it got, whatever reason upstream
        gives."""
        if self._stopped:
            return []
        self._stopped = True
        complete: StopReason = "tool_calls" if self._answer.calls else "stop"
        ending = self._rest()
        ending += [event for block in self._blocks if block.open for event in block.stop()]
        return [*self._named(), *ending, Stopped(LANE, None, STOPS.get(reason, complete))]

    def _end(self, _event: Json) -> list[Event]:
        stopping = self._stop("")
        self._ended = True
        usage = read_usage(self._usage)
        ok = self._failure is None
        return [*stopping, Ended(None, None, ok=ok, usage=usage, trouble=self._failure)]

    def _error(self, event: Json) -> list[Event]:
        self._failure = _trouble(event)
        return [Failed(None, None, self._failure)]

    def _rest(self) -> list[Event]:
        """Close open thinking. After a cut, calls stay incomplete."""
        last = self._thinking
        return last.stop() if last is not None and last.open else []

    _READ: ClassVar[dict[str, _Method]] = {
        "message_start": _start,
        "content_block_start": _begin_block,
        "content_block_delta": _go_on,
        "content_block_stop": _stop_block,
        "message_delta": _change,
        "message_stop": _end,
        "error": _error,
    }


def _index(event: Json) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None


def _trouble(event: Json) -> Trouble:
    error = event.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    return Trouble("upstream_error", string(said))
