"""Read the Responses API, a stream or a whole response, into events.

Everything is in one lane. An item's number is its `output_index`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, ClassVar

from abridge.turn.conversation import Heard
from abridge.turn.events import (
    Began,
    Ended,
    Event,
    Failed,
    Other,
    Trouble,
)
from abridge.wire import sse
from abridge.wire.codec import Json, dumps, loads_exactly, packed, read_object, string
from abridge.wire.display import Display
from abridge.wire.learned import NOTHING, Seen
from abridge.wire.problem import CUT, trouble_in
from abridge.wire.profiles import Profile
from abridge.wire.responses.conversation import hear
from abridge.wire.responses.framed import FramedItems
from abridge.wire.responses.frames import changed
from abridge.wire.responses.itemreader import ItemReader
from abridge.wire.responses.items import LANE, is_reasoning, summary_text
from abridge.wire.responses.lifecycle import Lifecycle, named
from abridge.wire.responses.unmask import is_masked, unmask_event, unmask_response
from abridge.wire.usage import RESPONSES, count

OLD_NAMES = {
    "response.reasoning.delta": "response.reasoning_text.delta",
    "response.reasoning.done": "response.reasoning_text.done",
    "response.reasoning_summary.delta": "response.reasoning_summary_text.delta",
    "response.reasoning_summary.done": "response.reasoning_summary_text.done",
}
"""Event types that early builds of Open Responses used (openresponses schema/events.tsp)."""

FIRST = ("response.created", "error")

_Method = Callable[["ResponsesReader", Json, bytes | None], list[Event]]


class ResponsesReader:
    """Reads one response. See `abridge.apis.api.Reader`.

    Events get their frames from the item reader and `_carry_frame`. The translating reader
    overrides both.
    """

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self._masked = profile.summary_is_raw
        self._hidden = not display.raw
        self._items: ItemReader = FramedItems(limit, hidden=self._hidden)
        self._life = Lifecycle()
        self._response: bytes | None = None
        self._final: list[tuple[int | None, Any]] = []  # output indexes and items
        self._failure: Trouble | None = None
        self._ended = False
        self._seen = NOTHING

    @property
    def dropped(self) -> int:
        return self._items.dropped

    @property
    def faults(self) -> int:
        return self._items.faults

    def read(self, frame: bytes) -> list[Event]:
        data = sse.data(frame)
        event = None if data is None or self._ended else read_object(data)
        if event is None:
            return self._no_event(data, frame)
        self._items.came = len(frame)
        carried = self._carried(named(frame, event))
        more = self._items.more(event, carried)
        return self._read(event, carried) if more is None else [more]

    def _read(self, event: Json, frame: bytes | None) -> list[Event]:
        if event.get("type") == "response.output_item.done":
            self._look(event.get("item"))
        if self._masked:
            event, frame = unmask_event(event), changed(frame, unmask_event)
        kind = string(event.get("type"))
        if kind in OLD_NAMES:
            kind = event["type"] = OLD_NAMES[kind]
            frame = changed(frame, lambda event: {**event, "type": OLD_NAMES[event["type"]]})
        read = self._READ.get(kind)
        lead = self._lead(event, kind) if self._response is None else []
        events = read(self, event, frame) if read else self._items.read(kind, event, frame)
        return [*lead, *events] if lead else events

    def _lead(self, event: Json, kind: str) -> list[Event]:
        """Emit the beginning of the response, where upstream begins with another event."""
        if kind in FIRST or not kind.startswith("response."):
            return []
        fields = {"response": self._life.begun(event)}
        created = "response.created"
        return self._lifecycle({"type": created, **fields}, self._items.make(created, fields))

    def end(self, trouble: Trouble | None = None) -> list[Event]:
        if self._ended:
            return []
        self._ended = True
        trouble = self._failure or trouble or CUT
        return [
            *self._items.break_off(),
            Ended(None, self._broken_off(trouble), ok=False, trouble=trouble),
        ]

    def whole(self, body: bytes) -> list[Event]:
        response = read_object(body, loads_exactly)
        if response is None or not isinstance(response.get("output"), list):
            return [Ended(None, self._carried(body), ok=False, trouble=trouble_in(response))]
        for item in response["output"]:
            self._look(item)
        unmasked = unmask_response(response, sure=self._masked)
        if unmasked != response:
            response, body = unmasked, dumps(unmasked)
        events = self._name(response, None)
        self._final = list(enumerate(response["output"]))
        for number, item in enumerate(response["output"]):
            if isinstance(item, dict):
                events += self._items.whole(number, item)
        return [*events, *self._over(response, self._carried(body), ok=True)]

    def heard(self) -> list[Heard]:
        return hear(self._final)

    def seen(self) -> Seen:
        return self._seen

    def _look(self, item: Any) -> None:
        """Observe a finished item as upstream sent it."""
        if is_reasoning(item) and summary_text(item).strip():
            self._seen = Seen(masked=is_masked(item))

    # Events about the response

    def _no_event(self, data: bytes | None, frame: bytes) -> list[Event]:
        """Read a frame that holds no event, or one after the end.

        Comments pass, and so does `[DONE]` after the end. While raw reasoning is hidden nothing
        else does, since it may contain some.
        """
        if data is None:
            passes = not self._hidden or frame.startswith(b":")
        else:
            done = data.strip() == b"[DONE]"
            passes = done if self._ended else not (done or self._hidden)
        return [Other(None, frame)] if passes else self._items.fault()

    def _lifecycle(self, event: Json, frame: bytes | None) -> list[Event]:
        if self._response is not None and event["type"] == "response.created":
            return self._items.fault()
        event, frame = self._life.mend(event, frame)
        return self._name(event["response"], frame)

    def _name(self, response: Json, frame: bytes | None) -> list[Event]:
        self._response = packed(response)
        created = response.get("created_at")
        if isinstance(created, float):
            created = int(created) if isfinite(created) else 0
        moment = count(created) or 0
        return [
            Began(LANE, frame, string(response.get("id")), string(response.get("model")), moment)
        ]

    def _error(self, event: Json, frame: bytes | None) -> list[Event]:
        error = event.get("error")
        message = string((error if isinstance(error, dict) else event).get("message"))
        self._failure = Trouble("upstream_error", message)
        return [Failed(None, frame, self._failure)]

    def _end(self, event: Json, frame: bytes | None) -> list[Event]:
        self._ended = True
        event, frame = self._life.mend(event, frame)
        kind, response = event["type"], event["response"]
        closing = self._items.finish("completed" if kind == "response.completed" else "incomplete")
        output = response.get("output")
        self._final = self._items.output.settle(output)
        if [item for _, item in self._final] != output:
            frame = changed(frame, self._settled)
        return [*closing, *self._over(response, frame, ok=kind != "response.failed")]

    def _over(self, response: Json, frame: bytes | None, *, ok: bool) -> list[Event]:
        return [Ended(None, frame, ok=ok, usage=RESPONSES.read(response.get("usage")))]

    def _carried(self, frame: bytes | None) -> bytes | None:
        """Return the frame that the events read from this one carry."""
        return frame

    def _settled(self, event: Json) -> Json:
        response = event["response"]
        items = [item for _, item in self._items.output.settle(response.get("output"))]
        return {**event, "response": {**response, "output": items}}

    def _broken_off(self, trouble: Trouble) -> bytes | None:
        """Make the end that upstream did not send, with the output so far."""
        if self._response is None:
            if self._failure is not None:
                return None
            return self._items.make("error", {**trouble.as_dict(), "param": None})
        self._final = self._items.output.settle(None)
        failed = {
            **(read_object(self._response, loads_exactly) or {}),
            "status": "failed",
            "error": {"code": "server_error", "message": trouble.message},
            "output": [item for _, item in self._final],
        }
        return self._items.make("response.failed", {"response": failed})

    _READ: ClassVar[dict[str, _Method]] = {
        "response.created": _lifecycle,
        "response.queued": _lifecycle,
        "response.in_progress": _lifecycle,
        "response.completed": _end,
        "response.incomplete": _end,
        "response.failed": _end,
        "error": _error,
    }
