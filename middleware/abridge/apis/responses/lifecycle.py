"""Repair a response as lifecycle events repeat it, or as a body has it that is no stream: add the
fields that upstream leaves out."""

from __future__ import annotations

from typing import Any

from abridge.apis.frames import change_frame
from abridge.apis.json import string
from abridge.apis.openai import mint_id
from abridge.apis.responses.contents import TEXT
from abridge.apis.responses.items import mint_item_id
from abridge.apis.responses.reasoning import is_reasoning
from abridge.apis.usage import RESPONSES_USAGE
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
    "truncation": "disabled",
}
"""Fields that every response has (openai-openapi, `Response`; openresponses, `ResponseResource`),
with values that claim nothing which upstream did not say. llama.cpp's server begins with only an id
and a status."""

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
        if "usage" in fields:
            fields["usage"] = RESPONSES_USAGE.fill_details(fields["usage"])
        return {**event, "response": {**fields, "id": self._id}}

    def repair_whole(self, response: Json) -> Json:
        """Return a response that is not streamed with what upstream leaves out of it, and of its
        items: their ids and statuses, and the annotations of texts."""
        is_incomplete = bool(response.get("incomplete_details"))
        status = "incomplete" if is_incomplete else "completed"
        repaired: Json = self._repaired({"type": f"response.{status}", "response": response})
        ids: set[str] = set()
        output = [
            _repair_item(item, status, ids) if isinstance(item, dict) else item
            for item in repaired["response"]["output"]
        ]
        return {**repaired["response"], "output": output}


def _repair_item(item: Json, status: str, ids: set[str]) -> Json:
    """Return an item with what upstream leaves out; `ids` are those of the items before it."""
    item_type, item_id = string(item.get("type")), string(item.get("id"))
    fields: Json = {}
    if not item_id or item_id in ids:
        fields["id"] = item_id = mint_item_id(item_type)
    ids.add(item_id)
    if item_type in ("message", "function_call") and "status" not in item:
        fields["status"] = status
    if item_type == "message" and isinstance(item.get("content"), list):
        fields["content"] = [_repair_part(part) for part in item["content"]]
        fields["role"] = item.get("role") or "assistant"
    if is_reasoning(item) and not isinstance(item.get("summary"), list):
        fields["summary"] = []
    return {**item, **fields}


def _repair_part(part: Any) -> Any:
    is_text = isinstance(part, dict) and part.get("type") == TEXT.name
    return {**TEXT.other_fields, **part} if is_text and "annotations" not in part else part
