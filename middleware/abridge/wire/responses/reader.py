"""Reads the Responses API: the events of a stream, or a whole response, into turn events.

Everything is in lane 0; an item's number is its `output_index`, which holds where ids do not (some
backends change an item's id between its events). An item that is still open when the next begins is
closed then; what comes of it later is a fault, counted and dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from abridge.turn.conversation import Heard
from abridge.turn.events import (
    Began,
    Closed,
    Ended,
    Event,
    Failed,
    Native,
    NativeKind,
    Opened,
    Other,
    Raw,
    Said,
    Trouble,
)
from abridge.wire import sse
from abridge.wire.codec import Json, dumps, loads_exactly, objects, read_object, string
from abridge.wire.display import Display
from abridge.wire.profiles import Profile
from abridge.wire.responses.conversation import hear
from abridge.wire.responses.items import is_reasoning, raw_text, summary_text, unknown_keys
from abridge.wire.responses.unmask import unmask_event, unmask_response
from abridge.wire.usage import RESPONSES

CUT = Trouble("upstream_error", "The connection to upstream ended before the answer did.")
LANE = 0

NATIVE: dict[str, NativeKind] = {
    "response.reasoning_summary_part.added": "open",
    "response.reasoning_summary_text.delta": "say",
    "response.reasoning_summary_text.done": "close",
    "response.reasoning_summary_part.done": "close",
}

OLD_NAMES = {
    "response.reasoning.delta": "response.reasoning_text.delta",
    "response.reasoning.done": "response.reasoning_text.done",
    "response.reasoning_summary.delta": "response.reasoning_summary_text.delta",
    "response.reasoning_summary.done": "response.reasoning_summary_text.done",
}
"""Names that early builds of Open Responses used (openresponses schema/events.tsp)."""

_Method = Callable[["ResponsesReader", Json, bytes], list[Event]]


class _Item:
    """A reasoning item that was added: what has been said of it, and whether it is still open."""

    def __init__(self, item: Json) -> None:
        self.open = True
        self.raw: list[str] = []
        self.native: dict[int, list[str]] = {}
        self._item = item

    def done(self, status: str) -> Json:
        """The item as it stands, where upstream does not say it."""
        item = {**self._item, "status": status}
        texts = ["".join(said) for _, said in sorted(self.native.items())]
        item["summary"] = [{"type": "summary_text", "text": text} for text in texts]
        if self.raw:
            item["content"] = [{"type": "reasoning_text", "text": "".join(self.raw)}]
        return item


class ResponsesReader:
    """Reads one response. See `abridge.wire.api.Reader`."""

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self._profile = profile
        self._hidden = not display.raw
        self._room = limit
        self._items: dict[int, _Item] = {}
        self._open: int | None = None
        self._response: Json | None = None
        self._done_items: dict[int, Json] = {}
        self._output: list[Json] = []
        self._failure: Trouble | None = None
        self._ended = False
        self.dropped = 0
        self.faults = 0

    def read(self, frame: bytes) -> list[Event]:
        data = sse.data(frame)
        event = None if data is None else read_object(data)
        if event is None:
            return [Other(None, frame)]  # also `[DONE]`, which some backends send after the end
        if self._ended:
            return self._fault()
        if self._profile.summary_is_raw:
            event = unmask_event(event)
            frame = sse.encode(dumps(event), string(event.get("type")))
        kind = string(event.get("type"))
        if kind in OLD_NAMES:
            kind = event["type"] = OLD_NAMES[kind]
            frame = sse.encode(dumps(event), kind)
        read = self._READ.get(kind)
        if read is not None:
            return read(self, event, frame)
        if kind.startswith("response.reasoning"):
            return [Raw(LANE, frame, self._number(event), "")]  # whatever it is, it may be hidden
        return [Said(LANE, frame) if kind.endswith(".delta") else Other(LANE, frame)]

    def end(self, trouble: Trouble | None = None) -> list[Event]:
        if self._ended:
            return []
        self._ended = True
        trouble = self._failure or trouble or CUT
        return [Ended(None, self._broken_off(trouble), ok=False, trouble=trouble)]

    def whole(self, body: bytes) -> list[Event]:
        response = read_object(body, loads_exactly)
        if response is None or not isinstance(response.get("output"), list):
            return [Ended(None, body, ok=False)]
        if self._profile.summary_is_raw:
            response = unmask_response(response)
            body = dumps(response)
        events = self._lifecycle({"response": response}, None)
        for number, item in enumerate(response["output"]):
            if is_reasoning(item):
                self._items[number] = _Item(item)
                events.append(Opened(LANE, None, number))
                events += self._complete(item, number, None)
            elif isinstance(item, dict):
                events.append(Said(LANE, None, raw_text(item)))
        self._output = objects(response["output"])
        return [*events, Ended(None, body, ok=True, usage=RESPONSES.read(response.get("usage")))]

    def heard(self) -> list[Heard]:
        return hear(self._output, sorted(self._items))

    def _lifecycle(self, event: Json, frame: bytes | None) -> list[Event]:
        response = event.get("response")
        if not isinstance(response, dict):
            return [Other(LANE, frame)]
        self._response = response
        created = response.get("created_at")
        moment = int(created) if isinstance(created, int | float) else 0
        began = Began(
            LANE, frame, string(response.get("id")), string(response.get("model")), moment
        )
        return [began]

    def _broken_off(self, trouble: Trouble) -> bytes | None:
        """The end that upstream did not send, with what it said before."""
        if self._response is None:
            if self._failure is not None:
                return None
            error = {"type": "error", **trouble.as_dict(), "param": None}
            return sse.encode(dumps(error), "error")
        items = dict(self._done_items)
        if self._open is not None:
            items[self._open] = self._items[self._open].done("incomplete")
        failed = {
            **self._response,
            "status": "failed",
            "error": {"code": "server_error", "message": trouble.message},
            "output": [item for _, item in sorted(items.items())],
        }
        event = {"type": "response.failed", "response": failed}
        return sse.encode(dumps(event), "response.failed")

    def _number(self, event: Json) -> int:
        number = event.get("output_index")
        return number if isinstance(number, int) else self._open or 0

    def _added(self, event: Json, frame: bytes) -> list[Event]:
        closing, number, item = self._close(), self._number(event), event.get("item")
        if not isinstance(item, dict) or not is_reasoning(item) or number in self._items:
            return [*closing, Other(LANE, frame)]
        self._items[number] = _Item(item)
        self._open = number
        return [*closing, Opened(LANE, frame, number)]

    def _close(self, status: str = "completed") -> list[Event]:
        """Close the item that is open, if one is: something came that ends it."""
        if self._open is None:
            return []
        number, item = self._open, self._items[self._open].done(status)
        kind = "response.output_item.done"
        event = {"type": kind, "output_index": number, "item": item}
        return self._complete(item, number, sse.encode(dumps(event), kind))

    def _complete(self, item: Json, number: int, frame: bytes | None) -> list[Event]:
        """The item is done: say what of it was not said before, and close it."""
        state = self._items[number]
        state.open, self._open = False, None
        events: list[Event] = []
        if not state.raw and (text := raw_text(item)):
            events.append(Raw(LANE, None, number, text))
        if not state.native and (text := summary_text(item)):
            events.append(Native(LANE, None, number, 0, "whole", text))
        if self._hidden:
            self.dropped += unknown_keys(item)
        return [*events, Closed(LANE, frame, number)]

    def _done(self, event: Json, frame: bytes) -> list[Event]:
        item, number = event.get("item"), self._number(event)
        if isinstance(item, dict) and self._room >= len(frame):
            self._room -= len(frame)
            self._done_items[number] = item
        if not isinstance(item, dict) or not is_reasoning(item):
            return [Other(LANE, frame)]
        events: list[Event] = []
        if number not in self._items:
            added = {**event, "type": "response.output_item.added", "item": {**item, "summary": []}}
            events = self._added(added, sse.encode(dumps(added), added["type"]))
        if not self._items[number].open:
            return self._fault()
        return events + self._complete(item, number, frame)

    def _fault(self) -> list[Event]:
        self.faults += 1
        return []

    def _say_raw(self, number: int, text: str, frame: bytes) -> list[Event]:
        state = self._items.get(number)
        if state is not None and not state.open:
            return self._fault()
        if state is not None and text and self._room >= len(text):
            self._room -= len(text)
            state.raw.append(text)
        return [Raw(LANE, frame, number, text)]

    def _raw(self, event: Json, frame: bytes) -> list[Event]:
        return self._say_raw(self._number(event), string(event.get("delta")), frame)

    def _raw_done(self, event: Json, frame: bytes) -> list[Event]:
        number = self._number(event)
        state = self._items.get(number)
        unsaid = state is not None and not state.raw
        return self._say_raw(number, string(event.get("text")) if unsaid else "", frame)

    def _part(self, event: Json, frame: bytes) -> list[Event]:
        part = event.get("part")
        if not isinstance(part, dict) or part.get("type") != "reasoning_text":
            return [Other(LANE, frame)]
        return self._raw_done({**event, "text": part.get("text")}, frame)

    def _native(self, event: Json, frame: bytes) -> list[Event]:
        number, kind = self._number(event), NATIVE[event["type"]]
        state = self._items.get(number)
        if state is None or not state.open:
            return self._fault()
        index = event.get("summary_index")
        part = index if isinstance(index, int) else 0
        text = string(event.get("delta"))
        state.native.setdefault(part, []).append(text)
        return [Native(LANE, frame, number, part, kind, text)]

    def _text(self, event: Json, frame: bytes) -> list[Event]:
        return [Said(LANE, frame, string(event.get("delta")))]

    def _error(self, event: Json, frame: bytes) -> list[Event]:
        error = event.get("error")
        message = string((error if isinstance(error, dict) else event).get("message"))
        self._failure = Trouble("upstream_error", message)
        return [Failed(None, frame, self._failure)]

    def _end(self, event: Json, frame: bytes) -> list[Event]:
        self._ended = True
        response = event.get("response")
        response = response if isinstance(response, dict) else {}
        self._output = objects(response.get("output"))
        ok = event["type"] != "response.failed"
        usage = RESPONSES.read(response.get("usage"))
        whole = event["type"] == "response.completed"
        closing = self._close("completed" if whole else "incomplete")
        return [*closing, Ended(None, frame, ok=ok, usage=usage)]

    _READ: ClassVar[dict[str, _Method]] = {
        "response.created": _lifecycle,
        "response.queued": _lifecycle,
        "response.in_progress": _lifecycle,
        "response.output_item.added": _added,
        "response.output_item.done": _done,
        "response.content_part.added": _part,
        "response.content_part.done": _part,
        "response.reasoning_text.delta": _raw,
        "response.reasoning_text.done": _raw_done,
        "response.output_text.delta": _text,
        "response.completed": _end,
        "response.incomplete": _end,
        "response.failed": _end,
        "error": _error,
        **dict.fromkeys(NATIVE, _native),
    }
