"""List the input items of a stored response, page by page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from abridge.errors import RequestError
from abridge.wire.asking.require import invalid
from abridge.wire.codec import Json, objects, string

LEAST, MOST, USUAL = 1, 100, 20

ORDERS = ("asc", "desc")

_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


@dataclass(slots=True, frozen=True)
class Page:
    """The page of items that a query requests."""

    limit: int = USUAL
    descending: bool = True
    after: str = ""  # the id of the last item before the page

    @classmethod
    def read(cls, query: bytes) -> Page:
        """Parse a query string. Raise RequestError if it is invalid."""
        said = {key: values[-1] for key, values in parse_qs(query.decode("latin-1")).items()}
        order = said.get("order", "desc")
        if order not in ORDERS:
            raise invalid(order, "order")
        return cls(_limit(said.get("limit")), order == "desc", said.get("after", ""))

    def of(self, identities: Sequence[str]) -> tuple[list[str], bool]:
        """Return the ids on the page, in order, and whether there are more.

        Raise RequestError if `after` is not among them.
        """
        ordered = list(reversed(identities)) if self.descending else list(identities)
        if self.after and self.after not in ordered:
            raise RequestError(f"Item with id '{self.after}' not found.", param="after")
        start = ordered.index(self.after) + 1 if self.after else 0
        end = start + self.limit
        return ordered[start:end], len(ordered) > end


def _limit(said: str | None) -> int:
    if said is None:
        return USUAL
    if not _NUMBER.fullmatch(said):
        raise invalid(said, "limit")
    value = int(said)
    if value > MOST:
        raise _beyond("maximum", "above_max", f"<= {MOST}", value)
    if value < LEAST:
        raise _beyond("minimum", "below_min", f">= {LEAST}", value)
    return value


def _beyond(bound: str, code: str, allowed: str, value: int) -> RequestError:
    side, _, _ = code.partition("_")
    return RequestError(
        f"Invalid 'limit': integer {side} {bound} value. Expected a value {allowed}, but got "
        f"{value} instead.",
        param="limit",
        code=f"integer_{code}_value",
    )


def listing(items: Sequence[tuple[str, Json]], *, more: bool) -> Json:
    """Build the list object for a page of items, each given with its id."""
    return {
        "object": "list",
        "data": [listed(item, identity) for identity, item in items],
        "first_id": items[0][0] if items else "",
        "last_id": items[-1][0] if items else "",
        "has_more": more,
    }


def listed(item: Json, identity: str) -> Json:
    """Return an item with the fields of a listed one (openai-openapi, `ItemResource`)."""
    shown = {**item, "id": identity}
    kind = string(item.get("type"))
    if "role" in item and kind in ("", "message"):
        return {**shown, "type": "message", "status": _status(item), "content": _content(item)}
    if kind == "reasoning":
        return {**shown, "summary": objects(item.get("summary"))}
    if kind == "local_shell_call_output":
        return {"call_id": item.get("id"), **shown}
    return {**shown, "status": _status(item)}


def _status(item: Json) -> str:
    return string(item.get("status")) or "completed"


def _content(item: Json) -> list[Json]:
    spoken = item.get("role") == "assistant"
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "input_text", "text": content}]
    return [_part(part, spoken=spoken) for part in objects(content)]


def _part(part: Json, *, spoken: bool) -> Any:
    kind = part.get("type")
    if kind in ("text", "input_text", "output_text"):
        if spoken:
            return {"annotations": [], "logprobs": [], **part, "type": "output_text"}
        return {"type": "input_text", "text": string(part.get("text"))}
    return {"detail": "auto", **part} if kind == "input_image" else part
