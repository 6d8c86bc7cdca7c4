"""The tokens that keys have used on a day, in a file beside that of the keys.

So they outlive the process, and all processes of a machine count together. What a process has used
since it last wrote the file is its own: it is added to what others wrote meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from abridge.apis.json import as_object
from abridge.apis.usage import as_count
from abridge.sidecar.client_keys.file import locked, replace_file
from abridge.sidecar.client_keys.limits import DAY

SUFFIX = ".spent"
"""Is added to the name of the file of keys."""


def add_spent(keys_file: Path, day: int, unsaved: Mapping[str, int]) -> dict[str, int]:
    """Add what was used on a day to the file, and return what was used in all, by name of the key.

    Days are counted from the epoch; the file has the latest. Raises OSError.
    """
    path = keys_file.with_name(keys_file.name + SUFFIX)
    if not unsaved:
        return _read(path, day)
    with locked(path.parent):
        totals = _read(path, day)
        for name, tokens in unsaved.items():
            totals[name] = totals.get(name, 0) + tokens
        content = {"day": _date(day), "tokens": totals}
        replace_file(path, json.dumps(content, indent=1) + "\n", flush=False)
    return totals


def _read(path: Path, day: int) -> dict[str, int]:
    """Return what was used on a day. A file that has another day, or is broken, has nothing."""
    try:
        content: Any = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    if as_object(content).get("day") != _date(day):
        return {}
    counts = as_object(content.get("tokens"))
    return {name: count for name, count in counts.items() if as_count(count) is not None}


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY, UTC).date().isoformat()
