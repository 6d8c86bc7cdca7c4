"""The frames of a Responses stream: made anew, or changed in one thing."""

from __future__ import annotations

from collections.abc import Callable

from abridge.wire import sse
from abridge.wire.codec import Json, dumps, loads_exactly, read_object, string


def frame_of(kind: str, fields: Json) -> bytes:
    """An event that upstream did not send."""
    return sse.encode(dumps({"type": kind, **fields}), kind)


def changed(frame: bytes, change: Callable[[Json], Json]) -> bytes:
    """The frame with its event changed; what is not changed stays to the last digit."""
    event = change(exactly(frame))
    return sse.encode(dumps(event), string(event.get("type")))


def exactly(frame: bytes | None) -> Json:
    """The event in a frame, to be written again."""
    return read_object(sse.data(frame or b"") or b"", loads_exactly) or {}
