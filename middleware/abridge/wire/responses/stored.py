"""What a request says by reference: a response that goes before it, items that are known by id."""

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
"""How the ids of items begin."""

CALL = "call_"
"""Begins the ids by which outputs know their calls, which some clients have as an output's own."""


def prefix_of(item: Json) -> str:
    return PREFIXES.get(string(item.get("type")), "item_")


def given(body: Json) -> list[Any]:
    """The items of a request's input; a text is a message of the user's."""
    said = body.get("input")
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    return said if isinstance(said, list) else []


def named_by(item: Any) -> str:
    """The id of the item that one stands for; empty where it stands for itself."""
    if not isinstance(item, dict):
        return ""
    bare = item.get("type") is None and item.keys() <= {"type", "id"}
    return string(item.get("id")) if bare or item.get("type") == "item_reference" else ""


def own_id(item: Any) -> str:
    """The id of ours under which the client was given an item that it sends back."""
    if not isinstance(item, dict) or named_by(item):
        return ""
    identity = string(item.get("id"))
    return identity if is_minted(identity) and not identity.startswith(CALL) else ""


def is_same(item: Json, other: Json) -> bool:
    """Whether two items say the same: clients spell out what is null."""
    return _said(item) == _said(other)


def _said(item: Json) -> Json:
    return {key: value for key, value in item.items() if value is not None}


def forget_ids(body: Json) -> int:
    """Take the ids of ours out of a request to an upstream, which cannot know them; returns how
    many there were."""
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
