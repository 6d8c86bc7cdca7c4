"""References in a request: to the previous response, and to items by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from abridge.errors import RequestError
from abridge.wire.codec import Json, objects, string
from abridge.wire.mint import is_minted

PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        "": "msg_",
        "message": "msg_",
        "reasoning": "rs_",
        "function_call": "fc_",
        "function_call_output": "fco_",
        "custom_tool_call": "ctc_",
        "custom_tool_call_output": "ctco_",
        "local_shell_call": "lsh_",
        "local_shell_call_output": "lsho_",
        "tool_search_call": "tsc_",
        "tool_search_output": "tso_",
    }
)
"""Prefixes of item ids, by item type."""

CALL = "call_"
"""Prefix of call ids. Some clients send the call's id as the id of its output item."""


def prefix_of(item: Json) -> str:
    return PREFIXES.get(string(item.get("type")), "item_")


def given(body: Json) -> list[Any]:
    """Return the items of a request's input; a string is a message of the user."""
    said = body.get("input")
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    return said if isinstance(said, list) else []


def named_by(item: Any) -> str:
    """Return the id that an item reference names; empty for an item that is no reference."""
    if not isinstance(item, dict):
        return ""
    bare = item.get("type") is None and item.keys() <= {"type", "id"}
    return string(item.get("id")) if bare or item.get("type") == "item_reference" else ""


def own_id(item: Any) -> str:
    """Return the minted id of an item that the client sends back; empty if it has none."""
    if not isinstance(item, dict) or named_by(item):
        return ""
    identity = string(item.get("id"))
    return identity if is_minted(identity) and not identity.startswith(CALL) else ""


def is_same(item: Json, other: Json) -> bool:
    """Return whether two items are equal but for null fields, which clients may add."""
    return _said(item) == _said(other)


def _said(item: Json) -> Json:
    return {key: value for key, value in item.items() if value is not None}


def forget_ids(body: Json) -> int:
    """Remove minted ids from a request, since upstream cannot know them.

    Return how many there were.
    """
    items = [item for item in objects(body.get("input")) if own_id(item)]
    for item in items:
        del item["id"]
    return len(items)


def no_previous(identity: str) -> RequestError:
    return RequestError(
        f"Previous response with id '{identity}' not found.",
        param="previous_response_id",
        code="previous_response_not_found",
    )


def no_item(identity: str, place: int) -> RequestError:
    return RequestError(f"Item with id '{identity}' not found.", param=f"input[{place}].id")


def not_in_background() -> RequestError:
    return RequestError("Cannot cancel a synchronous response.")


def no_response(identity: str) -> RequestError:
    return RequestError(f"Response with id '{identity}' not found.", status=404)
