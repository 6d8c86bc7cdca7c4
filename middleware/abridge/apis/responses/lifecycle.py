"""Repair lifecycle events, which repeat the response: add the fields that upstream leaves out."""

from __future__ import annotations

from abridge.apis.frames import change_frame
from abridge.apis.json import string
from abridge.apis.openai import mint_id
from abridge.core.conversation import Json

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
    """Repair the lifecycle events of one response.

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
