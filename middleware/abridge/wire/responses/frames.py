"""Encode, change and parse the frames of a Responses stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from abridge.wire import sse
from abridge.wire.codec import Json, dumps, loads_exactly, read_object, string

Make: TypeAlias = Callable[[str, Json], bytes | None]
"""Makes the frame of an event that upstream did not send; None for translated events."""


def frame_of(kind: str, fields: Json) -> bytes:
    """Encode an event that upstream did not send."""
    return sse.encode(dumps({"type": kind, **fields}), kind)


def no_frame(_kind: str, _fields: Json) -> None:
    """Return None: translated events carry no frame."""


def changed(frame: bytes | None, change: Callable[[Json], Json]) -> bytes | None:
    """Apply a change to a frame's event; what it leaves alone stays to the last digit."""
    if frame is None:
        return None
    event = change(exactly(frame))
    return sse.encode(dumps(event), string(event.get("type")))


def exactly(frame: bytes | None) -> Json:
    """Parse the event in a frame with exact numbers, to be written again."""
    return read_object(sse.data(frame or b"") or b"", loads_exactly) or {}
