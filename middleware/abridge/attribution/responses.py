"""Attribute each call of a Responses answer to the reasoning that led to it.

Each reasoning item is one stretch. Every item whose type ends in `_call` is a call, whoever runs
its tool; its output is not. A finished item repeats all of its content, so no other event is read.
"""

from __future__ import annotations

import sys
from typing import Any

from abridge.apis import sse
from abridge.apis.api import Writer
from abridge.apis.attribution_fields import attribute_call
from abridge.apis.display import Display
from abridge.apis.frames import encode_event, parse_frame
from abridge.apis.json import string
from abridge.apis.openai import change_answer
from abridge.apis.responses.reasoning import is_reasoning, is_tool_call, part_texts
from abridge.attribution.attributor import RAW, SUMMARY, Attributor
from abridge.core.conversation import Json
from abridge.core.events import Event, ResponseEnded
from abridge.core.model_request import SIGNATURE_PREFIX

ITEM_DONE = "response.output_item.done"

TERMINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed")

CALL_SUFFIX = b'_call"'

_REASONING_TYPE = b'"reasoning"'

_ITEM_DONE_BYTES, _TERMINAL_BYTES = (
    ITEM_DONE.encode(),
    tuple(kind.encode() for kind in TERMINAL_EVENTS),
)


class ItemAttributor:
    """Attribute the calls of one response, taking its items in order."""

    def __init__(self, limit: int) -> None:
        self._attributor: Attributor[str] = Attributor(limit)
        self._stretch = 0

    def attribute(self, item: Any) -> Any:
        """Take the next item; return a call with its attribution, anything else unchanged."""
        if is_reasoning(item):
            self._add_reasoning(item)
        elif is_tool_call(item):
            call_id = string(item.get("call_id")) or string(item.get("id"))
            attribution = self._attributor.attribute_call(call_id)
            return attribute_call(item, attribution.parts, attribution.ref or "")
        return item

    def _add_reasoning(self, item: Json) -> None:
        """Record reasoning. Opaque state stands in where none is shown; a signature does not."""
        raw, summary = part_texts(item.get("content")), part_texts(item.get("summary"))
        self._stretch += 1
        for kind, texts in ((RAW, raw), (SUMMARY, summary)):
            for index, text in enumerate(texts):
                self._attributor.add_reasoning(kind, text, part=index, stretch=self._stretch)
        state = string(item.get("encrypted_content"))
        if state and not state.startswith(SIGNATURE_PREFIX) and not any([*raw, *summary]):
            self._attributor.add_redacted(stretch=self._stretch)


def attribute_response(response: Json, limit: int = sys.maxsize) -> Json:
    """Return the response with its calls attributed."""
    output = response.get("output")
    if not isinstance(output, list):
        return response
    items = ItemAttributor(limit)
    return {**response, "output": [items.attribute(item) for item in output]}


class ResponsesAttributingWriter:
    """Wrap a Writer, and attribute its calls; keep at most `limit` characters of reasoning."""

    def __init__(self, writer: Writer, _display: Display, limit: int) -> None:
        self._writer = writer
        self._limit = limit
        self._items = ItemAttributor(limit)

    @property
    def final_response(self) -> Json | None:
        response = self._writer.final_response
        return None if response is None else attribute_response(response, self._limit)

    def write(self, event: Event) -> bytes:
        data = self._writer.write(event)
        if not _is_relevant(data):
            return data
        return b"".join(map(self._attribute_frame, sse.split_frames(data)))

    def note(self, event: Event) -> None:
        self._writer.note(event)

    def keep_alive(self) -> bytes:
        return self._writer.keep_alive()

    def write_whole(self, end: ResponseEnded) -> bytes:
        body = self._writer.write_whole(end)
        if CALL_SUFFIX not in body:
            return body
        return change_answer(body, lambda response: attribute_response(response, self._limit))

    def _attribute_frame(self, frame: bytes) -> bytes:
        if not _is_relevant(frame):
            return frame
        event = parse_frame(frame)
        event_type = event.get("type")
        if event_type == ITEM_DONE:
            attributed_event = {**event, "item": self._items.attribute(event.get("item"))}
        elif event_type in TERMINAL_EVENTS and isinstance(event.get("response"), dict):
            attributed_event = {
                **event,
                "response": attribute_response(event["response"], self._limit),
            }
        else:
            return frame
        return frame if attributed_event == event else encode_event(event_type, attributed_event)


def _is_relevant(data: bytes) -> bool:
    """Return whether the data may contain a call, or a finished reasoning item."""
    if _ITEM_DONE_BYTES in data:
        return CALL_SUFFIX in data or _REASONING_TYPE in data
    return CALL_SUFFIX in data and any(kind in data for kind in _TERMINAL_BYTES)
