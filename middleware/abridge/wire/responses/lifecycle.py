"""Repair lifecycle events, which repeat the response: add the fields that upstream leaves out."""

from __future__ import annotations

from abridge.wire.codec import Json, string
from abridge.wire.mint import mint
from abridge.wire.responses.frames import changed

REQUIRED: Json = {
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

STATUS = {
    "response.created": "in_progress",
    "response.queued": "queued",
    "response.in_progress": "in_progress",
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}


class Lifecycle:
    """Repairs the lifecycle events of one response.

    Its first id stays its id; where upstream gives none, one is minted.
    """

    def __init__(self) -> None:
        self._id = ""

    def begun(self, event: Json) -> Json:
        """Return the response at its beginning, where upstream began with this event."""
        mended = self._mended({**event, "type": "response.created"})
        return {**mended["response"], "status": "in_progress", "output": [], "usage": None}

    def mend(self, event: Json, frame: bytes | None) -> tuple[Json, bytes | None]:
        """Repair an event that repeats the response; return it with its frame."""
        mended = self._mended(event)
        return (event, frame) if mended == event else (mended, changed(frame, self._mended))

    def _mended(self, event: Json) -> Json:
        given = event.get("response")
        response = given if isinstance(given, dict) else {}
        self._id = self._id or string(response.get("id")) or mint("resp_")
        fields = {"id": self._id, "status": STATUS[event["type"]], **REQUIRED, **response}
        if not isinstance(fields["output"], list):
            fields["output"] = []
        return {**event, "response": {**fields, "id": self._id}}


def named(frame: bytes, event: Json) -> bytes:
    """Return the frame with an `event:` line that names its event's type."""
    if frame[:6] == b"event:" or b"\nevent:" in frame:
        return frame
    kind = string(event.get("type"))
    return b"event: %s\n%s" % (kind.encode(), frame) if kind.isprintable() and kind else frame
