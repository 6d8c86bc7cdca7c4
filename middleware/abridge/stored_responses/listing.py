"""List the input items of a stored response, page by page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from abridge.apis.json import objects, string
from abridge.apis.params import invalid_value_error
from abridge.core.conversation import Json
from abridge.errors import RequestError

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
        """Parse a query string. Raises RequestError if it is invalid."""
        params = {key: values[-1] for key, values in parse_qs(query.decode("latin-1")).items()}
        order = params.get("order", "desc")
        if order not in ORDERS:
            raise invalid_value_error(order, "order")
        return cls(_parse_limit(params.get("limit")), order == "desc", params.get("after", ""))

    def select(self, item_ids: Sequence[str]) -> tuple[list[str], bool]:
        """Return the ids on the page, in order, and whether there are more.

        Raises RequestError if `after` is not among them.
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
