"""Print the settings in force as TOML, with secrets masked.

Settings name secrets by environment variable. So secrets can be only in `extra_body`, and in a
store's address: before its host, or in its query.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from abridge.settings import Settings, Upstream
from abridge.wire.codec import dumps

CHANGED = "  # not the default"
MASK = "***"

_SECRET = re.compile("key|token|secret|password|auth|credential", re.IGNORECASE)

_PASSWORD = re.compile(r"(?<=://)\S*(?=@)|(?<=password=)[^&\s]+")


def effective(settings: Settings, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield lines of TOML that give the same settings; unset keys are left out."""
    default, dumped = Settings().model_dump(), settings.model_dump()
    upstreams = dumped.pop("upstreams")
    for section, table in dumped.items():
        yield f"[{section}]"
        yield from _table(table, default[section], environ)
    for upstream in upstreams:
        yield "[[upstreams]]"
        yield from _table(upstream, Upstream().model_dump(), environ)


def _table(
    table: Mapping[str, Any], default: Mapping[str, Any], environ: Mapping[str, str]
) -> Iterator[str]:
    for key, value in table.items():
        shown = _masked(value)
        if shown is None or shown == {}:
            continue
        changed = CHANGED if value != default[key] else ""
        yield f"{key} = {_toml(shown)}{_whether_set(key, value, environ) or changed}"


def _whether_set(key: str, value: Any, environ: Mapping[str, str]) -> str:
    if not key.endswith("_env"):
        return ""
    here = bool(environ.get(value) or environ.get(f"{value}_FILE"))
    return "  # is set" if here else "  # is NOT set"


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: MASK if _SECRET.search(key) and isinstance(under, str) else _masked(under)
            for key, under in value.items()
            if under is not None
        }
    if isinstance(value, str):
        return _PASSWORD.sub(MASK, value)
    return [_masked(under) for under in value] if isinstance(value, list | tuple) else value


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_toml(key)} = {_toml(under)}' for key, under in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return dumps(value).decode()
