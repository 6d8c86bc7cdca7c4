"""Encode, parse and change the frames of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from abridge.apis import sse
from abridge.apis.json import dumps, loads_exact, parse_object, string
from abridge.apis.obfuscation import fill_up
from abridge.core.conversation import Json


def encode_event(event_type: str, fields: Json) -> bytes:
    """Encode an event that upstream did not send."""
    return sse.encode_frame(dumps({"type": event_type, **fields}), event_type)


def parse_frame(frame: bytes | None) -> Json:
    """Parse the event in a frame with exact numbers, to be written again."""
    return parse_object(sse.frame_data(frame or b"") or b"", loads_exact) or {}


def change_frame(frame: bytes | None, change: Callable[[Json], Json]) -> bytes | None:
    """Apply a change to a frame's event; what it leaves alone stays to the last digit."""
    if frame is None:
        return None
    event = change(parse_frame(frame))
    return sse.encode_frame(dumps(event), string(event.get("type")))


class SentEvent(dict[str, Any]):
    """An event, or a chunk, as upstream sent it, with exact numbers, and its frame; None where
    events carry none. What is made of it, to repair it, is another object."""

    __slots__ = ("frame",)

    def __init__(self, event: Json, frame: bytes | None) -> None:
        super().__init__(event)
        self.frame = frame


def with_event_name(frame: bytes, event: Json) -> bytes:
    """Return the frame with an `event:` line that names its event's type."""
    if frame[:6] == b"event:" or frame.find(b"\nevent:") >= 0:  # see `CR` in sse.py
        return frame
    kind = string(event.get("type"))
    return b"event: %s\n%s" % (kind.encode(), frame) if kind.isprintable() and kind else frame


HOLE = orjson.Fragment(b"\0")
"""Stands for what is filled in later: a byte that JSON never has."""


class DeltaFrame:
    """Write one delta after the other, of which only the text and the number differ.

    `event` is one of them, with `HOLE` in the place of its number, if it has one, and after it in
    that of its text. What is obfuscated is the text between its quotes, unless `overhead` says how
    many characters more or less.
    """

    __slots__ = ("_after", "_before", "_between", "_overhead", "_unfinished")

    def __init__(
        self, event: Json, event_type: str | None = None, *, overhead: int = -len('""')
    ) -> None:
        frame = sse.encode_frame(dumps(event), event_type)
        self._before, *between, self._after = frame.split(b"\0")
        self._between = b"".join(between)
        self._unfinished = self._after.removesuffix(b"}\n\n") + b',"obfuscation":"'
        self._overhead = overhead

    def write(self, text: str, number: bytes = b"") -> bytes:
        return b"".join((self._before, number, self._between, dumps(text), self._after))

    def write_obfuscated(self, text: str, number: bytes = b"") -> bytes:
        encoded = dumps(text)
        padding = fill_up(len(encoded) + self._overhead)
        return b"".join(
            (self._before, number, self._between, encoded, self._unfinished, padding, b'"}\n\n')
        )
