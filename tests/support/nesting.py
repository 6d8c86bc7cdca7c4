"""JSON that is nested deep."""

from __future__ import annotations

import json
from typing import Any

PLACE = '"nested here"'


def nested(levels: int, innermost: Any = 1) -> Any:
    """Return so many lists and objects within each other."""
    value = innermost
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def nested_json(value: Any, levels: int) -> bytes:
    """Write a value as JSON, with so many lists in the place of the text "nested here"."""
    return json.dumps(value).replace(PLACE, "[" * levels + "]" * levels).encode()
