"""Check the types of a request's fields, and tell the client what is wrong with them.

The summary that a request asks for: `reasoning.summary`, the same object on both of OpenAI's
APIs.

On Responses it is a field of the API (openai-openapi, `Reasoning.summary`; `generate_summary` is
its old name). On Chat Completions it is an extension of Abridge's, which upstream never gets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from abridge.apis.json import dumps
from abridge.core.conversation import Json
from abridge.core.styles import SummaryStyle
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


def iter_objects(value: Any, param: str) -> Iterator[tuple[Json, str]]:
    """Yield the objects in a list, each with its name; nothing if there is no list."""
    for index, entry in enumerate([] if value is None else require_list(value, param)):
        name = f"{param}[{index}]"
        yield require_object(entry, name), name


def read_flag(body: Json, key: str) -> bool:
    """Read a boolean; null and absent are false."""
    value = body.get(key)
    return (
        value
        if isinstance(value, bool)
        else bool(value is not None and _raise_invalid(value, key, bool))
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


SUMMARY_KEYS = ("summary", "generate_summary")

SUMMARY_NEEDLE = b'summary"'
"""Occurs in every body that asks for a summary."""

STYLE_NAMES: tuple[str, ...] = get_args(SummaryStyle)


def requested_style(body: Json) -> str | None:
    """Return the requested style: `off` if the body has null, None if it has nothing.

    Raises RequestError for an invalid style.
    """
    reasoning = body.get("reasoning")
    if not isinstance(reasoning, dict):
        return None
    for key in SUMMARY_KEYS:
        if key in reasoning:
            return (
                "off"
                if reasoning[key] is None
                else _parse_style(reasoning[key], f"reasoning.{key}")
            )
    return None


def native_style(body: Json) -> str | None:
    """Return the style to request from an upstream that makes summaries itself."""
    style = requested_style(body)
    return None if style == "off" else style


def _parse_style(value: object, param: str) -> str:
    if value in STYLE_NAMES:
        return str(value)
    raise RequestError(
        f"Invalid value: {value!r:.80}. Supported values are: {_format_list(STYLE_NAMES)}.",
        param=param,
        code="invalid_value",
    )


def check_style_allowed(style: str, allowed: tuple[str, ...], param: str) -> None:
    """Raise RequestError if the settings do not allow a style."""
    if style not in allowed:
        supported = _format_list(allowed) if allowed else "none"
        raise RequestError(
            f"Unsupported value: {style!r}. Supported values are: {supported}.",
            param=param,
            code="unsupported_value",
        )


def remove_summary_request(body: Json) -> bool:
    """Remove the requested style from the body for an upstream that does not know it.

    Return True if there was one.
    """
    reasoning = body.get("reasoning")
    if not isinstance(reasoning, dict) or not any(key in reasoning for key in SUMMARY_KEYS):
        return False
    left = {key: value for key, value in reasoning.items() if key not in SUMMARY_KEYS}
    if left:
        body["reasoning"] = left
    else:
        del body["reasoning"]
    return True


def _format_list(values: tuple[str, ...]) -> str:
    return ", ".join(repr(value) for value in values)
