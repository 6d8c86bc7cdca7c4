"""Encode, parse and change the frames of a stream.

An event of upstream's is repaired twice over: as the fields that were parsed, for reading, and in
its frame, for the client of the same API. There everything that is not repaired stays as upstream
wrote it, to the last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from abridge.apis import sse
from abridge.apis.json import dumps, loads_exact, parse_object, string
from abridge.core.conversation import Json

MakeFrame: TypeAlias = Callable[[str, Json], bytes | None]
"""Makes the frame of an event that upstream did not send; None where events carry no frames."""


def encode_event(event_type: str, fields: Json) -> bytes:
    """Encode an event that upstream did not send."""
    return sse.encode_frame(dumps({"type": event_type, **fields}), event_type)


def no_frame(_event_type: str, _fields: Json) -> None:
    """Make no frame."""


def parse_frame(frame: bytes | None) -> Json:
    """Parse the event in a frame with exact numbers, to be written again."""
    return parse_object(sse.frame_data(frame or b"") or b"", loads_exact) or {}


def change_frame(frame: bytes | None, change: Callable[[Json], Json]) -> bytes | None:
    """Apply a change to a frame's event; what it leaves alone stays to the last digit."""
    if frame is None:
        return None
    event = change(parse_frame(frame))
    return sse.encode_frame(dumps(event), string(event.get("type")))


def with_event_name(frame: bytes, event: Json) -> bytes:
    """Return the frame with an `event:` line that names its event's type."""
    if frame[:6] == b"event:" or b"\nevent:" in frame:
        return frame
    kind = string(event.get("type"))
    return b"event: %s\n%s" % (kind.encode(), frame) if kind.isprintable() and kind else frame
