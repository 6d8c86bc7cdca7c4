"""The settings in force as TOML, with secrets masked, and a hash of them.

Settings name secrets by environment variable. So secrets can be only in `extra_body`, and in the
address of a store or a ledger: before its host, or in its query.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

from abridge.apis.json import dumps
from abridge.config.settings import Settings
from abridge.config.upstreams import UpstreamSettings

CHANGED_COMMENT = "  # not the default"

MASK = "***"

HASH_DIGITS = 12
"""Hexadecimal digits of the hash: so many are a whole number in a double, which metrics are."""

_SECRET_KEY = re.compile("key|token|secret|password|auth|credential", re.IGNORECASE)


def effective_toml(settings: Settings, environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield lines of TOML that give the same settings; unset keys are left out."""
    default, dumped = Settings().model_dump(), settings.model_dump()
    upstreams = dumped.pop("upstreams")
    for section, table in dumped.items():
        yield f"[{section}]"
        yield from _format_table(table, default[section], environ)
    for upstream in upstreams:
        yield "[[upstreams]]"
        unset = {**UpstreamSettings(base_url=upstream["base_url"]).model_dump(), "base_url": None}
        yield from _format_table(upstream, unset, environ)


def settings_hash(settings: Settings) -> int:
    """Return a number by which the settings of replicas can be compared; secrets are no part of
    it."""
    text = "\n".join(effective_toml(settings, {}))
    return int(sha256(text.encode()).hexdigest()[:HASH_DIGITS], 16)


def _format_table(
    table: Mapping[str, Any], default: Mapping[str, Any], environ: Mapping[str, str]
) -> Iterator[str]:
    for key, value in table.items():
        masked = _mask(value)
        if masked is None or masked == {}:
            continue
        changed = CHANGED_COMMENT if value != default[key] else ""
        yield f"{key} = {_format_value(masked)}{_variable_comment(key, value, environ) or changed}"


def _variable_comment(key: str, value: Any, environ: Mapping[str, str]) -> str:
    if not key.endswith("_env"):
        return ""
    is_set = bool(environ.get(value) or environ.get(f"{value}_FILE"))
    return "  # is set" if is_set else "  # is NOT set"


def _mask(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            key: MASK if _SECRET_KEY.search(key) and _has_text(inner) else _mask(inner)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, str):
        return _mask_address(value) if "://" in value else value
    return [_mask(inner) for inner in value] if isinstance(value, list | tuple) else value


def _has_text(value: Any) -> bool:
    if isinstance(value, Mapping | list):
        return any(map(_has_text, value.values() if isinstance(value, Mapping) else value))
    return isinstance(value, str)


def _mask_address(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    login, at, host = rest.rpartition("@")
    address, mark, query = f"{scheme}{separator}{MASK if at else login}{at}{host}".partition("?")
    return f"{address}{mark}{'&'.join(map(_mask_option, query.split('&')))}"


def _mask_option(option: str) -> str:
    name, equals, _ = option.partition("=")
    return f"{name}{equals}{MASK}" if "password" in unquote(name) else option


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_format_value(key)} = {_format_value(inner)}" for key, inner in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_format_value, value))}]"
    return dumps(value).decode()
