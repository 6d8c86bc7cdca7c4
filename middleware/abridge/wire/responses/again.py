"""Rewrite responses that upstream stores into what their client was shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from abridge.turn.events import NO_SUMMARY
from abridge.wire.codec import Json, objects, string
from abridge.wire.display import Display
from abridge.wire.responses.items import dress, is_reasoning, without_raw
from abridge.wire.responses.response import snapshot
from abridge.wire.responses.unmask import is_masked, unmask_item, unmask_response

FIELDS = ("reasoning", "usage", "reasoning_summary_usage")
"""Fields of a response that differ where a summary was made."""

SUMMARY = ("summary", "summary_error")
"""Fields of a reasoning item that differ."""

Made = Mapping[str, Any]
"""Summary fields that reasoning items were shown with, by item id."""


def made_in(items: Any) -> Json:
    """Return the summary fields of reasoning items, which upstream's own may lack, by item id."""
    made = {
        string(item.get("id")): {key: item[key] for key in SUMMARY if item.get(key)}
        for item in filter(is_reasoning, objects(items))
    }
    return {identity: said for identity, said in made.items() if identity and said}


def response_again(
    response: Json, display: Display, fields: Json, made: Made, *, masked: bool
) -> Json | None:
    """Return upstream's response as its client was shown it; None if it cannot be read.

    With `summary_is_raw`, upstream's summaries are the raw reasoning.
    """
    if not isinstance(response.get("output"), list):
        return None
    reasoning = response.get("reasoning")
    style = reasoning.get("summary") if isinstance(reasoning, dict) else None
    unmasked = unmask_response(response, sure=masked)
    shown = snapshot(unmasked, replace(display, style=style))
    if not display.summary:
        return shown
    return {**shown, **fields, "output": [_with(item, made) for item in shown["output"]]}


def items_again(body: Json, display: Display, made: Made, *, masked: bool) -> Json | None:
    """Return a list of items as they were shown; None if it cannot be read."""
    items = body.get("data")
    if not isinstance(items, list):
        return None
    shown = [_shown(item, display, masked=masked) for item in items]
    return {**body, "data": [_with(item, made) for item in shown] if display.summary else shown}


def _shown(item: Any, display: Display, *, masked: bool) -> Any:
    if masked or is_masked(item):
        item = unmask_item(item)
    return dress(item, NO_SUMMARY, display) if is_reasoning(item) else without_raw(item, display)


def _with(item: Any, made: Made) -> Any:
    return {**item, **made.get(string(item.get("id")), {})} if is_reasoning(item) else item
