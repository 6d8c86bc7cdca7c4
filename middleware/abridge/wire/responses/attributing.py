"""Attribute each call of a Responses answer to the reasoning that led to it.

Each reasoning item is one stretch. Every item whose type ends in `_call` is a call, whoever runs
its tool; its output is not. A finished item repeats all of its content, so no other event is read.
"""

from __future__ import annotations

import sys
from typing import Any

from abridge.turn.attribution import RAW, SUMMARY, Attributor
from abridge.turn.events import Ended, Event
from abridge.turn.question import SIGNED
from abridge.wire import sse
from abridge.wire.api import Writer
from abridge.wire.attribution import attributed, within
from abridge.wire.codec import Json, string
from abridge.wire.display import Display
from abridge.wire.responses.frames import exactly, frame_of
from abridge.wire.responses.items import is_call, is_reasoning, texts

DONE = "response.output_item.done"
TERMINAL = ("response.completed", "response.incomplete", "response.failed")
CALL = b'_call"'
_THOUGHT = b'"reasoning"'
_DONE, _TERMINAL = DONE.encode(), tuple(kind.encode() for kind in TERMINAL)


class Items:
    """Attributes the calls of one response, taking its items in order."""

    def __init__(self, limit: int) -> None:
        self._attributor: Attributor[str] = Attributor(limit)
        self._stretch = 0

    def read(self, item: Any) -> Any:
        """Take the next item; return a call with its attribution, anything else unchanged."""
        if is_reasoning(item):
            self._think(item)
        elif is_call(item):
            identity = string(item.get("call_id")) or string(item.get("id"))
            told = self._attributor.call(identity)
            return attributed(item, told.parts, told.ref or "")
        return item

    def _think(self, item: Json) -> None:
        """Record reasoning. Opaque state stands in where none is shown; a signature does not."""
        raw, summary = texts(item.get("content")), texts(item.get("summary"))
        self._stretch += 1
        for kind, said in ((RAW, raw), (SUMMARY, summary)):
            for place, text in enumerate(said):
                self._attributor.think(kind, text, part=place, stretch=self._stretch)
        sealed = string(item.get("encrypted_content"))
        if sealed and not sealed.startswith(SIGNED) and not any([*raw, *summary]):
            self._attributor.redact(stretch=self._stretch)


def attribute_response(response: Json, limit: int = sys.maxsize) -> Json:
    """Return the response with its calls attributed."""
    output = response.get("output")
    if not isinstance(output, list):
        return response
    items = Items(limit)
    return {**response, "output": [items.read(item) for item in output]}


class AttributingResponses:
    """Wraps a Writer to attribute calls; stores at most `limit` characters of reasoning."""

    def __init__(self, writer: Writer, _display: Display, limit: int) -> None:
        self._writer = writer
        self._limit = limit
        self._items = Items(limit)

    @property
    def shown(self) -> Json | None:
        shown = self._writer.shown
        return None if shown is None else attribute_response(shown, self._limit)

    def write(self, event: Event) -> bytes:
        data = self._writer.write(event)
        if not _concerns(data):
            return data
        return b"".join(map(self._read, sse.frames(data)))

    def note(self, event: Event) -> None:
        self._writer.note(event)

    def beat(self) -> bytes:
        return self._writer.beat()

    def whole(self, end: Ended) -> bytes:
        body = self._writer.whole(end)
        if CALL not in body:
            return body
        return within(body, lambda response: attribute_response(response, self._limit))

    def _read(self, frame: bytes) -> bytes:
        if not _concerns(frame):
            return frame
        event = exactly(frame)
        kind = event.get("type")
        if kind == DONE:
            told = {**event, "item": self._items.read(event.get("item"))}
        elif kind in TERMINAL and isinstance(event.get("response"), dict):
            told = {**event, "response": attribute_response(event["response"], self._limit)}
        else:
            return frame
        return frame if told == event else frame_of(kind, told)


def _concerns(data: bytes) -> bool:
    """Return whether the data may contain a call, or a finished reasoning item."""
    if _DONE in data:
        return CALL in data or _THOUGHT in data
    return CALL in data and any(kind in data for kind in _TERMINAL)
