"""JSON as providers write it: orjson for speed, the standard library for what orjson rejects.

orjson rejects lone surrogates (deltas may split a pair), NaN and infinities, and reads integers of
more than 64 bits as floats. All of these occur on the wire and must be preserved.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson

from abridge.core.conversation import Json

_DIGIT_MASK = bytes(
    ord("0") if chr(byte).isdigit() and byte < 128 else ord(" ") for byte in range(256)
)

_LONG_NUMBER = b"0" * 19


def loads(data: bytes) -> Any:
    """Parse. Raises ValueError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def loads_exact(data: bytes) -> Any:
    """Parse without changing any number, for JSON that will be written again. Raises ValueError."""
    return json.loads(data) if _LONG_NUMBER in data.translate(_DIGIT_MASK) else loads(data)


def parse_object(data: bytes, parse: Callable[[bytes], Any] = loads) -> Json | None:
    """Parse a JSON object; return None if `data` is anything else."""
    try:
        value = parse(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def dumps(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value, separators=(",", ":")).encode()


def packed(value: Any) -> bytes:
    """Serialize for storage.

    A parsed object takes five times the memory of its JSON, and the bytes that orjson returns have
    spare room at their end, so that they are copied.
    """
    return bytes(memoryview(dumps(value)))


def string(value: Any) -> str:
    """Return `value` if it is a string, else "".

    Structured content where a string was expected is no reason to fail.
    """
    return value if isinstance(value, str) else ""


def objects(value: Any) -> list[Json]:
    """Return the objects in `value` if it is a list, else nothing."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def as_object(value: Any) -> Json:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
