"""Load settings: defaults, then a TOML file, then the environment, then flags; the last wins.

Every key is also a variable `ABRIDGE_SECTION__KEY`, and `ABRIDGE_UPSTREAMS` is the list of
upstreams; lists and tables are written as JSON. Other variables with the prefix are ignored: a
Kubernetes Service called `abridge` puts `ABRIDGE_PORT` and the like into every pod.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from abridge.errors import SettingsError
from abridge.settings import Settings
from abridge.values import explain

PREFIX = "ABRIDGE_"
UPSTREAMS = "ABRIDGE_UPSTREAMS"


def load(
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Merge all sources into settings; `flags` is nested like the file. Raises SettingsError."""
    layers = [_file(file) if file else {}, _environment(environ), flags or {}]
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = _merge(merged, layer)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise SettingsError(explain(error)) from None


def secret(variable: str, key: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the secret in an environment variable, or in the file that `<variable>_FILE` names.

    `key` is the setting that names the variable. Raises SettingsError, which never contains the
    secret.
    """
    if value := environ.get(variable, "").strip():
        return _visible(value, f"{key}: the variable")
    if path := environ.get(f"{variable}_FILE"):
        try:
            return _visible(Path(path).read_text().strip(), f"{key}: the file")
        except OSError as error:
            raise SettingsError(f"{key}: cannot read the file: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SettingsError(f"{key}: cannot read the file: it is no text") from None
    raise SettingsError(
        f"{key}: takes the name of an environment variable that holds the key, or of one that "
        "with _FILE at its end names a file; neither is set"
    )


def _visible(value: str, where: str) -> str:
    """Return a value that is safe in a header. Raises SettingsError if it is empty or not."""
    if not value:
        raise SettingsError(f"{where} is empty")
    if not all("!" <= character <= "~" for character in value):
        raise SettingsError(
            f"{where} holds more than a key: takes visible ASCII characters, no spaces or lines"
        )
    return value


def _file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{path}: is no TOML: {error}") from None


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in sorted(environ.items(), key=lambda item: item[0].lower()):  # outer first
        if name.startswith(PREFIX) and ("__" in name or name == UPSTREAMS):
            *tables, key = name.removeprefix(PREFIX).lower().split("__")
            table = found
            for part in tables:
                table = table.setdefault(part, {})
                if not isinstance(table, dict):
                    raise SettingsError(f"{name}: another variable says that {part} is no table")
            table[key] = _value(name, text)
    return found


def _value(name: str, text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise SettingsError(f"{name}: is no JSON, which a list or table is written in") from None


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        both = isinstance(value, Mapping) and isinstance(under, Mapping)
        merged[key] = _merge(under, value) if both else value  # type: ignore[arg-type]
    return merged
