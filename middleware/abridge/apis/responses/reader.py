"""Repair lifecycle events, which repeat the response: add the fields that upstream leaves out.

Read the Responses API, a stream or a whole response, into events.

Everything is in one lane. An item's number is its `output_index`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any, ClassVar

from abridge.apis import sse
from abridge.apis.display import Display
from abridge.apis.errors import CONNECTION_LOST
from abridge.apis.json import dumps, loads_exact, packed, parse_object, string
from abridge.apis.openai import error_in, mint_id
from abridge.apis.responses.contents import change_frame
from abridge.apis.responses.history import record_turns
from abridge.apis.responses.item_reader import FramedItemReader, ItemReader
from abridge.apis.responses.reasoning import (
    LANE,
    is_raw_summary,
    is_reasoning,
    rename_raw_summary_in_event,
    rename_raw_summary_in_response,
    summary_text,
)
from abridge.apis.usage import RESPONSES_USAGE, as_count
from abridge.core.conversation import Json, RecordedTurn
from abridge.core.events import (
    ErrorDetail,
    ErrorReported,
    Event,
    Passthrough,
    ResponseEnded,
    ResponseStarted,
)
from abridge.providers.learned import NO_OBSERVATION, Observation
from abridge.providers.profile import Profile

REQUIRED_FIELDS: Json = {
    "object": "response",
    "created_at": 0,
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "",
    "output": [],
    "parallel_tool_calls": True,
    "temperature": None,
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
}
"""Fields that every response has (openai-openapi, `Response`), with values that claim nothing which
upstream did not say. llama.cpp's server begins with only an id and a status."""

EVENT_STATUS = {
    "response.created": "in_progress",
    "response.queued": "queued",
    "response.in_progress": "in_progress",
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}


class ResponseLifecycle:
    """Repairs the lifecycle events of one response.

    Its first id stays its id; where upstream gives none, one is minted.
    """

    def __init__(self) -> None:
        self._id = ""

    def initial_response(self, event: Json) -> Json:
        """Return the response at its beginning, where upstream began with this event."""
        repaired = self._repaired({**event, "type": "response.created"})
        return {**repaired["response"], "status": "in_progress", "output": [], "usage": None}

    def repair(self, event: Json, frame: bytes | None) -> tuple[Json, bytes | None]:
        """Repair an event that repeats the response; return it with its frame."""
        repaired = self._repaired(event)
        return (
            (event, frame) if repaired == event else (repaired, change_frame(frame, self._repaired))
        )

    def _repaired(self, event: Json) -> Json:
        given = event.get("response")
        response = given if isinstance(given, dict) else {}
        self._id = self._id or string(response.get("id")) or mint_id("resp_")
        fields = {
            "id": self._id,
            "status": EVENT_STATUS[event["type"]],
            **REQUIRED_FIELDS,
            **response,
        }
        if not isinstance(fields["output"], list):
            fields["output"] = []
        return {**event, "response": {**fields, "id": self._id}}


def with_event_name(frame: bytes, event: Json) -> bytes:
    """Return the frame with an `event:` line that names its event's type."""
    if frame[:6] == b"event:" or b"\nevent:" in frame:
        return frame
    kind = string(event.get("type"))
    return b"event: %s\n%s" % (kind.encode(), frame) if kind.isprintable() and kind else frame


EARLY_EVENT_TYPES = {
    "response.reasoning.delta": "response.reasoning_text.delta",
    "response.reasoning.done": "response.reasoning_text.done",
    "response.reasoning_summary.delta": "response.reasoning_summary_text.delta",
    "response.reasoning_summary.done": "response.reasoning_summary_text.done",
}
"""Event types that early builds of Open Responses used (openresponses schema/events.tsp)."""

FIRST_EVENTS = ("response.created", "error")

_Handler = Callable[["ResponsesReader", Json, bytes | None], list[Event]]


class ResponsesReader:
    """Reads one response. See `abridge.apis.api.Reader`.

    Events get their frames from the item reader and `_carry_frame`. The translating reader
    overrides both.
    """

    def __init__(self, profile: Profile, display: Display, limit: int) -> None:
        self._summary_is_raw = profile.summary_is_raw
        self._hides_raw = not display.show_raw
        self._item_reader: ItemReader = FramedItemReader(limit, hidden=self._hides_raw)
        self._lifecycle = ResponseLifecycle()
        self._response: bytes | None = None
        self._final_output: list[tuple[int | None, Any]] = []  # output indexes and items
        self._error: ErrorDetail | None = None
        self._ended = False
        self._observation = NO_OBSERVATION

    @property
    def dropped(self) -> int:
        return self._item_reader.dropped

    @property
    def faults(self) -> int:
        return self._item_reader.faults

    def read(self, frame: bytes) -> list[Event]:
        data = sse.frame_data(frame)
        event = None if data is None or self._ended else parse_object(data)
        if event is None:
            return self._read_other_frame(data, frame)
        self._item_reader.frame_size = len(frame)
        event_frame = self._carry_frame(with_event_name(frame, event))
        delta = self._item_reader.read_delta(event, event_frame)
        return self._read_event(event, event_frame) if delta is None else [delta]

    def _read_event(self, event: Json, frame: bytes | None) -> list[Event]:
        if event.get("type") == "response.output_item.done":
            self._observe(event.get("item"))
        if self._summary_is_raw:
            event, frame = (
                rename_raw_summary_in_event(event),
                change_frame(frame, rename_raw_summary_in_event),
            )
        kind = string(event.get("type"))
        if kind in EARLY_EVENT_TYPES:
            kind = event["type"] = EARLY_EVENT_TYPES[kind]
            frame = change_frame(
                frame, lambda event: {**event, "type": EARLY_EVENT_TYPES[event["type"]]}
            )
        handler = self._HANDLERS.get(kind)
        start = self._missing_start(event, kind) if self._response is None else []
        events = (
            handler(self, event, frame) if handler else self._item_reader.read(kind, event, frame)
        )
        return [*start, *events] if start else events

    def _missing_start(self, event: Json, kind: str) -> list[Event]:
        """Emit the beginning of the response, where upstream begins with another event."""
        if kind in FIRST_EVENTS or not kind.startswith("response."):
            return []
        fields = {"response": self._lifecycle.initial_response(event)}
        created = "response.created"
        return self._on_lifecycle(
            {"type": created, **fields}, self._item_reader.make_frame(created, fields)
        )

    def end(self, error: ErrorDetail | None = None) -> list[Event]:
        if self._ended:
            return []
        self._ended = True
        error = self._error or error or CONNECTION_LOST
        return [
            *self._item_reader.abort(),
            ResponseEnded(None, self._missing_end(error), ok=False, error=error),
        ]

    def read_whole(self, body: bytes) -> list[Event]:
        response = parse_object(body, loads_exact)
        if response is None or not isinstance(response.get("output"), list):
            return [
                ResponseEnded(None, self._carry_frame(body), ok=False, error=error_in(response))
            ]
        for item in response["output"]:
            self._observe(item)
        renamed = rename_raw_summary_in_response(response, always=self._summary_is_raw)
        if renamed != response:
            response, body = renamed, dumps(renamed)
        events = self._start_response(response, None)
        self._final_output = list(enumerate(response["output"]))
        for number, item in enumerate(response["output"]):
            if isinstance(item, dict):
                events += self._item_reader.read_whole_item(number, item)
        return [*events, *self._end_events(response, self._carry_frame(body), ok=True)]

    def recorded_turns(self) -> list[RecordedTurn]:
        return record_turns(self._final_output)

    def observed(self) -> Observation:
        return self._observation

    def _observe(self, item: Any) -> None:
        """Observe a finished item as upstream sent it."""
        if is_reasoning(item) and summary_text(item).strip():
            self._observation = Observation(summary_is_raw=is_raw_summary(item))

    # Events about the response

    def _read_other_frame(self, data: bytes | None, frame: bytes) -> list[Event]:
        """Read a frame that holds no event, or one after the end.

        Comments pass, and so does `[DONE]` after the end. While raw reasoning is hidden nothing
        else does, since it may contain some.
        """
        if data is None:
            passes = not self._hides_raw or frame.startswith(b":")
        else:
            done = data.strip() == b"[DONE]"
            passes = done if self._ended else not (done or self._hides_raw)
        return [Passthrough(None, frame)] if passes else self._item_reader.count_fault()

    def _on_lifecycle(self, event: Json, frame: bytes | None) -> list[Event]:
        if self._response is not None and event["type"] == "response.created":
            return self._item_reader.count_fault()
        event, frame = self._lifecycle.repair(event, frame)
        return self._start_response(event["response"], frame)

    def _start_response(self, response: Json, frame: bytes | None) -> list[Event]:
        self._response = packed(response)
        created = response.get("created_at")
        if isinstance(created, float):
            created = int(created) if isfinite(created) else 0
        timestamp = as_count(created) or 0
        return [
            ResponseStarted(
                LANE, frame, string(response.get("id")), string(response.get("model")), timestamp
            )
        ]

    def _on_error(self, event: Json, frame: bytes | None) -> list[Event]:
        error = event.get("error")
        message = string((error if isinstance(error, dict) else event).get("message"))
        self._error = ErrorDetail("upstream_error", message)
        return [ErrorReported(None, frame, self._error)]

    def _on_end(self, event: Json, frame: bytes | None) -> list[Event]:
        self._ended = True
        event, frame = self._lifecycle.repair(event, frame)
        kind, response = event["type"], event["response"]
        closing = self._item_reader.finish(
            "completed" if kind == "response.completed" else "incomplete"
        )
        output = response.get("output")
        self._final_output = self._item_reader.output.reconcile(output)
        if [item for _, item in self._final_output] != output:
            frame = change_frame(frame, self._reconciled)
        return [*closing, *self._end_events(response, frame, ok=kind != "response.failed")]

    def _end_events(self, response: Json, frame: bytes | None, *, ok: bool) -> list[Event]:
        return [
            ResponseEnded(None, frame, ok=ok, usage=RESPONSES_USAGE.read(response.get("usage")))
        ]

    def _carry_frame(self, frame: bytes | None) -> bytes | None:
        """Return the frame that the events read from this one carry."""
        return frame

    def _reconciled(self, event: Json) -> Json:
        response = event["response"]
        items = [item for _, item in self._item_reader.output.reconcile(response.get("output"))]
        return {**event, "response": {**response, "output": items}}

    def _missing_end(self, error: ErrorDetail) -> bytes | None:
        """Make the end that upstream did not send, with the output so far."""
        if self._response is None:
            if self._error is not None:
                return None
            return self._item_reader.make_frame("error", {**error.as_dict(), "param": None})
        self._final_output = self._item_reader.output.reconcile(None)
        failed = {
            **(parse_object(self._response, loads_exact) or {}),
            "status": "failed",
            "error": {"code": "server_error", "message": error.message},
            "output": [item for _, item in self._final_output],
        }
        return self._item_reader.make_frame("response.failed", {"response": failed})

    _HANDLERS: ClassVar[dict[str, _Handler]] = {
        "response.created": _on_lifecycle,
        "response.queued": _on_lifecycle,
        "response.in_progress": _on_lifecycle,
        "response.completed": _on_end,
        "response.incomplete": _on_end,
        "response.failed": _on_end,
        "error": _on_error,
    }
