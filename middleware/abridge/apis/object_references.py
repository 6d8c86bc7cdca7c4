"""What a request refers to of the things that its upstream stores for an account.

Where all clients share one key, the account is everybody's: whoever names an object gets it. Here
is found which objects a body names; whose they are is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from abridge.apis.json import string
from abridge.core.conversation import Json

OBJECT_FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "file_id": "/v1/files",
        "file_ids": "/v1/files",
        "vector_store_ids": "/v1/vector_stores",
        "container": "/v1/containers",
        "container_id": "/v1/containers",
        "conversation": "/v1/conversations",
        "prompt": "/v1/prompts",
        "skill_id": "/v1/skills",
        "user_profile_id": "/v1/user_profiles",
        "workspace_id": "/v1/workspaces",
        "tunnel_id": "/v1/tunnels",
    }
)
"""Fields that name an object, by its id or an object with its id, and the path at which the API
lists such objects."""

CLIENT_FIELDS = frozenset({"metadata", "parameters", "schema", "input_schema", "input_examples"})
"""Fields whose content is the client's own, whatever the names in it."""

CALL_TYPE, CALL_INPUT = "tool_use", "input"
"""The type of Anthropic's calls, and their field whose content is the client's own, too."""

LOADED_ITEMS: Mapping[str, str] = MappingProxyType(
    {
        "reasoning": "encrypted_content",
        "compaction": "encrypted_content",
        "image_generation_call": "result",
        "": "role",
    }
)
"""Types of items that Responses loads by their id where this field of theirs is empty. One without
a type is a message if it has a role, and else a reference, whatever empty fields it has."""

OTHER_SPELLINGS = (b"\\u", b"\0")
"""Bytes without which names are spelled as they are read: escapes, and zeros of UTF-16 and
UTF-32."""

_NEEDLES = (*(f'"{name}"'.encode() for name in OBJECT_FIELDS), b'"id"', b'"previous_response_id"')

_MODEL = b'"model"'

_Place: TypeAlias = tuple["_Place | None", str | int]
"""A place in a body: the one around it, and the key or index in that."""


class ObjectReference(NamedTuple):
    """A field that names an object."""

    param: str  # the field, dotted
    path: str  # at which the API lists such objects


def may_name_objects(body: bytes) -> bool:
    """Return whether a body may name an object, or two models, by a byte search alone."""
    return body.count(_MODEL) > 1 or any(needle in body for needle in (*OTHER_SPELLINGS, *_NEEDLES))


def find_object_references(body: Json) -> Iterator[ObjectReference]:
    """Yield the fields of a request that name objects, other than responses and their items."""
    pending: list[tuple[_Place | None, Any]] = [(None, body)]
    while pending:
        place, value = pending.pop()
        for name, entry in _entries(value):
            if name in OBJECT_FIELDS and _names_object(entry):
                yield ObjectReference(_spell((place, name)), OBJECT_FIELDS[name])
            elif isinstance(entry, dict | list) and not _is_clients(name, value, place):
                pending.append(((place, name), entry))


def _entries(value: Any) -> Iterable[tuple[Any, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value)


def _is_clients(name: Any, holder: Any, place: _Place | None) -> bool:
    """Return whether the content of a field is the client's own. A body's own `input` is never."""
    is_call = place is not None and name == CALL_INPUT and holder.get("type") == CALL_TYPE
    return name in CLIENT_FIELDS or is_call


def _spell(place: _Place | None) -> str:
    """Spell a place as errors name it: `input[0].content`."""
    spelled = ""
    while place is not None:
        place, name = place
        spelled = (f"[{name}]" if isinstance(name, int) else f".{name}") + spelled
    return spelled.removeprefix(".")


def _names_object(value: Any) -> bool:
    """Return whether a field's value is an id, ids, or an object that has an id."""
    if isinstance(value, list):
        return any(isinstance(entry, str) for entry in value)
    return bool(string(value.get("id") if isinstance(value, dict) else value))


def loaded_id(item: Any) -> str:
    """Return the id by which upstream would load an input item's content; empty if it is whole."""
    if not isinstance(item, dict):
        return ""
    content = LOADED_ITEMS.get(string(item.get("type")))
    return string(item.get("id")) if content is not None and not item.get(content) else ""
