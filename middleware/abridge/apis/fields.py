"""Read a request's fields, and tell the client which is missing or has the wrong type.

The errors are RequestErrors. `param` is the client's name of a field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from abridge.apis.json import dumps
from abridge.core.conversation import Json
from abridge.errors import RequestError

_TYPE_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}


def require_object(value: Any, param: str) -> Json:
    return value if isinstance(value, dict) else _raise_invalid(value, param, dict)


def require_list(value: Any, param: str) -> list[Any]:
    return value if isinstance(value, list) else _raise_invalid(value, param, list)


def require_string(value: Any, param: str) -> str:
    return value if isinstance(value, str) else _raise_invalid(value, param, str)


def read_string(body: Json, key: str, prefix: str = "") -> str | None:
    """Return a string field, None if it is missing or empty. `prefix` is the path of `body`."""
    value = body.get(key)
    return None if value is None else require_string(value, f"{prefix}{key}") or None


def read_arguments(value: Any) -> str:
    """Return a call's arguments as JSON text; some clients send the object itself."""
    return value if isinstance(value, str) else "" if value is None else dumps(value).decode()


def iter_objects(value: Any, param: str, *, dotted: bool = False) -> Iterator[tuple[Json, str]]:
    """Yield the objects in a list, each with its name; nothing if there is no list.

    The name is spelled `input[0]` as OpenAI does or, if `dotted`, `messages.0` as Anthropic does.
    """
    for index, entry in enumerate([] if value is None else require_list(value, param)):
        name = f"{param}.{index}" if dotted else f"{param}[{index}]"
        yield require_object(entry, name), name


def read_flag(body: Json, key: str, prefix: str = "") -> bool:
    """Read a boolean; null and absent are false. `prefix` is the path of `body`."""
    value = body.get(key)
    return (
        value
        if isinstance(value, bool)
        else bool(value is not None and _raise_invalid(value, f"{prefix}{key}", bool))
    )


def invalid_value_error(value: Any, param: str) -> RequestError:
    return RequestError(f"Invalid value: {value!r:.80}.", param=param, code="invalid_value")


def _raise_invalid(value: Any, param: str, expected: type) -> Any:
    if value is None:
        raise RequestError(
            f"Missing required parameter: '{param}'.",
            param=param,
            code="missing_required_parameter",
        )
    raise RequestError(
        f"Invalid type for '{param}': expected {_TYPE_NAMES[expected]}.",
        param=param,
        code="invalid_type",
    )
