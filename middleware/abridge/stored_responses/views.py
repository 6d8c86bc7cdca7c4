"""Rewrite responses that upstream stores into what their client was shown.

List the input items of a stored response, page by page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs

from abridge.apis.display import Display
from abridge.apis.fields import invalid_value_error
from abridge.apis.json import objects, string
from abridge.apis.responses.reasoning import (
    as_shown,
    is_raw_summary,
    is_reasoning,
    rename_raw_summary,
    rename_raw_summary_in_response,
    without_raw_content,
)
from abridge.apis.responses.response import snapshot
from abridge.core.conversation import Json
from abridge.core.events import NO_SUMMARY
from abridge.errors import RequestError

CHANGED_RESPONSE_FIELDS = ("reasoning", "usage", "reasoning_summary_usage")
"""Fields of a response that differ where a summary was made."""

CHANGED_ITEM_FIELDS = ("summary", "summary_error")
"""Fields of a reasoning item that differ."""

ShownSummaries = Mapping[str, Any]
"""Summary fields that reasoning items were shown with, by item id."""


def find_summaries(items: Any) -> Json:
    """Return the summary fields of reasoning items, which upstream's own may lack, by item id."""
    summaries = {
        string(item.get("id")): {key: item[key] for key in CHANGED_ITEM_FIELDS if item.get(key)}
        for item in filter(is_reasoning, objects(items))
    }
    return {item_id: fields for item_id, fields in summaries.items() if item_id and fields}


def response_as_shown(
    response: Json,
    display: Display,
    fields: Json,
    summaries: ShownSummaries,
    *,
    summary_is_raw: bool,
) -> Json | None:
    """Return upstream's response as its client was shown it; None if it cannot be read.

    With `summary_is_raw`, upstream's summaries are the raw reasoning.
    """
    if not isinstance(response.get("output"), list):
        return None
    reasoning = response.get("reasoning")
    style = reasoning.get("summary") if isinstance(reasoning, dict) else None
    renamed = rename_raw_summary_in_response(response, always=summary_is_raw)
    shown = snapshot(renamed, replace(display, style=style))
    if not display.show_summary:
        return shown
    return {
        **shown,
        **fields,
        "output": [_with_summary(item, summaries) for item in shown["output"]],
    }


def items_as_shown(
    body: Json, display: Display, summaries: ShownSummaries, *, summary_is_raw: bool
) -> Json | None:
    """Return a list of items as they were shown; None if it cannot be read."""
    items = body.get("data")
    if not isinstance(items, list):
        return None
    shown = [_item_as_shown(item, display, summary_is_raw=summary_is_raw) for item in items]
    return {
        **body,
        "data": [_with_summary(item, summaries) for item in shown]
        if display.show_summary
        else shown,
    }


def _item_as_shown(item: Any, display: Display, *, summary_is_raw: bool) -> Any:
    if summary_is_raw or is_raw_summary(item):
        item = rename_raw_summary(item)
    return (
        as_shown(item, NO_SUMMARY, display)
        if is_reasoning(item)
        else without_raw_content(item, display)
    )


def _with_summary(item: Any, summaries: ShownSummaries) -> Any:
    return {**item, **summaries.get(string(item.get("id")), {})} if is_reasoning(item) else item


MIN_LIMIT, MAX_LIMIT, DEFAULT_LIMIT = 1, 100, 20

ORDERS = ("asc", "desc")

_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


@dataclass(slots=True, frozen=True)
class PageQuery:
    """The page of items that a query requests."""

    limit: int = DEFAULT_LIMIT
    descending: bool = True
    after: str = ""  # the id of the last item before the page

    @classmethod
    def parse(cls, query: bytes) -> PageQuery:
        """Parse a query string. Raise RequestError if it is invalid."""
        params = {key: values[-1] for key, values in parse_qs(query.decode("latin-1")).items()}
        order = params.get("order", "desc")
        if order not in ORDERS:
            raise invalid_value_error(order, "order")
        return cls(_parse_limit(params.get("limit")), order == "desc", params.get("after", ""))

    def select(self, item_ids: Sequence[str]) -> tuple[list[str], bool]:
        """Return the ids on the page, in order, and whether there are more.

        Raise RequestError if `after` is not among them.
        """
        ordered = list(reversed(item_ids)) if self.descending else list(item_ids)
        if self.after and self.after not in ordered:
            raise RequestError(f"Item with id '{self.after}' not found.", param="after")
        start = ordered.index(self.after) + 1 if self.after else 0
        end = start + self.limit
        return ordered[start:end], len(ordered) > end


def _parse_limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if not _INTEGER.fullmatch(text):
        raise invalid_value_error(text, "limit")
    value = int(text)
    if value > MAX_LIMIT:
        raise _out_of_range("maximum", "above_max", f"<= {MAX_LIMIT}", value)
    if value < MIN_LIMIT:
        raise _out_of_range("minimum", "below_min", f">= {MIN_LIMIT}", value)
    return value


def _out_of_range(bound: str, code: str, allowed: str, value: int) -> RequestError:
    side, _, _ = code.partition("_")
    return RequestError(
        f"Invalid 'limit': integer {side} {bound} value. Expected a value {allowed}, but got "
        f"{value} instead.",
        param="limit",
        code=f"integer_{code}_value",
    )


def list_page(items: Sequence[tuple[str, Json]], *, has_more: bool) -> Json:
    """Build the list object for a page of items, each given with its id."""
    return {
        "object": "list",
        "data": [as_listed(item, item_id) for item_id, item in items],
        "first_id": items[0][0] if items else "",
        "last_id": items[-1][0] if items else "",
        "has_more": has_more,
    }


def as_listed(item: Json, item_id: str) -> Json:
    """Return an item with the fields of a listed one (openai-openapi, `ItemResource`)."""
    with_id = {**item, "id": item_id}
    item_type = string(item.get("type"))
    if "role" in item and item_type in ("", "message"):
        return {
            **with_id,
            "type": "message",
            "status": _list_status(item),
            "content": _list_content(item),
        }
    if item_type == "reasoning":
        return {**with_id, "summary": objects(item.get("summary"))}
    if item_type == "local_shell_call_output":
        return {"call_id": item.get("id"), **with_id}
    return {**with_id, "status": _list_status(item)}


def _list_status(item: Json) -> str:
    return string(item.get("status")) or "completed"


def _list_content(item: Json) -> list[Json]:
    is_output = item.get("role") == "assistant"
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    return [_list_part(part, is_output=is_output) for part in objects(content)]


def _list_part(part: Json, *, is_output: bool) -> Any:
    part_type = part.get("type")
    if part_type in ("text", "input_text", "output_text"):
        if is_output:
            return {"annotations": [], "logprobs": [], **part, "type": "output_text"}
        return {"type": "input_text", "text": string(part.get("text"))}
    return {"detail": "auto", **part} if part_type == "input_image" else part
