"""What a change of settings brings about without a restart, and what it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from abridge.config.settings import Settings

NEEDS_RESTART = frozenset(
    {
        *("server", "log", "tracing", "ledger"),
        *("history.store", "history.bytes", "history.ttl", "history.seal_keys_env"),
        *("limits.client", "limits.connections", "limits.client_share"),
        *("limits.upload", "limits.upload_rate"),
    }
)
"""The tables and keys that are read at the start alone: those of the listeners, the processes
and the ledger, and of the store and the keys in use, without which what they hold would be lost."""


def needs_restart(key: str) -> bool:
    return key in NEEDS_RESTART or key.partition(".")[0] in NEEDS_RESTART


def changed_keys(before: Settings, now: Settings) -> Iterator[str]:
    """Yield the keys that differ; all upstreams are one."""
    for name in Settings.model_fields:
        old, new = getattr(before, name), getattr(now, name)
        if name == "upstreams":
            yield from (name,) if old != new else ()
        else:
            keys = type(old).model_fields
            yield from (f"{name}.{key}" for key in keys if getattr(old, key) != getattr(new, key))


def keep_until_restart(before: Settings, now: Settings) -> tuple[Settings, list[str]]:
    """Return the new settings with what needs a restart as it was, and the keys of that. Raises
    SettingsError if the two contradict each other."""
    kept = [key for key in changed_keys(before, now) if needs_restart(key)]
    tables: dict[str, Any] = {name: getattr(now, name) for name in Settings.model_fields}
    for table, key in (each.split(".") for each in kept):
        value = getattr(getattr(before, table), key)
        tables[table] = tables[table].model_copy(update={key: value})
    return Settings(**tables), kept
