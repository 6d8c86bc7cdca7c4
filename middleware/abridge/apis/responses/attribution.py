"""Attribute each call of a Responses answer to the reasoning that led to it.

Each reasoning item is one stretch. Every item whose type ends in `_call` is a call, whoever runs
its tool; its output is not. A finished item repeats all of its content, so no other event is read.
"""

from __future__ import annotations

import sys
from typing import Any

from abridge.apis.attribution_fields import attribute_call
from abridge.apis.json import string
from abridge.apis.responses.reasoning import is_reasoning, is_tool_call, part_texts
from abridge.core.conversation import Json
from abridge.core.model_request import SIGNATURE_PREFIX
from abridge.stages.attribution import RAW, SUMMARY, Attributor


class ItemAttributor:
    """Attribute the calls of one response, taking its items in order."""

    def __init__(self, limit: int) -> None:
        self._attributor: Attributor = Attributor(limit)
        self._stretch = 0

    def attribute(self, item: Any) -> Any:
        """Take the next item; return a call with its attribution, anything else unchanged."""
        if is_reasoning(item):
            self._add_reasoning(item)
        elif is_tool_call(item):
            call_id = string(item.get("call_id")) or string(item.get("id"))
            return attribute_call(item, self._attributor.attribute_call(), call_id)
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
