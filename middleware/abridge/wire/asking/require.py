"""Check the types of a request's fields, and tell the client what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from abridge.errors import RequestError
from abridge.wire.codec import Json, dumps

_NAMES = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}


def an_object(value: Any, param: str) -> Json:
    return value if isinstance(value, dict) else _raise(value, param, dict)


def a_list(value: Any, param: str) -> list[Any]:
    return value if isinstance(value, list) else _raise(value, param, list)


def a_string(value: Any, param: str) -> str:
    return value if isinstance(value, str) else _raise(value, param, str)


def a_word(body: Json, key: str, within: str = "") -> str | None:
    """Return a string field, None if it is missing or empty. `prefix` is the path of `body`."""
    value = body.get(key)
    return None if value is None else a_string(value, f"{within}{key}") or None


def arguments(value: Any) -> str:
    """Return a call's arguments as JSON text; some clients send the object itself."""
    return value if isinstance(value, str) else "" if value is None else dumps(value).decode()


def entries(value: Any, param: str) -> Iterator[tuple[Json, str]]:
    """Yield the objects in a list, each with its name; nothing if there is no list."""
    for place, entry in enumerate([] if value is None else a_list(value, param)):
        name = f"{param}[{place}]"
        yield an_object(entry, name), name


def flag(body: Json, key: str) -> bool:
    """Read a boolean; null and absent are false."""
    value = body.get(key)
    return (
        value if isinstance(value, bool) else bool(value is not None and _raise(value, key, bool))
    )


def invalid(value: Any, param: str) -> RequestError:
    return RequestError(f"Invalid value: {value!r:.80}.", param=param, code="invalid_value")


def _raise(value: Any, param: str, wanted: type) -> Any:
    if value is None:
        raise RequestError(
            f"Missing required parameter: '{param}'.",
            param=param,
            code="missing_required_parameter",
        )
    raise RequestError(
        f"Invalid type for '{param}': expected {_NAMES[wanted]}.", param=param, code="invalid_type"
    )
