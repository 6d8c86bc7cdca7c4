"""Load settings, and what they name: secrets and optional packages.

Settings come from defaults, then a TOML file, then the environment, then flags; the last wins.
Every key is also a variable `ABRIDGE_SECTION__KEY`, and `ABRIDGE_UPSTREAMS` is the list of
upstreams; lists and tables are written as JSON. Other variables with the prefix are ignored: a
Kubernetes Service called `abridge` puts `ABRIDGE_PORT` and the like into every pod.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from abridge.config.setting_types import explain_error
from abridge.config.settings import Settings
from abridge.errors import SettingsError

ENV_PREFIX = "ABRIDGE_"

UPSTREAMS_VARIABLE = "ABRIDGE_UPSTREAMS"


def load_settings(
    file: Path | None = None,
    environ: Mapping[str, str] = os.environ,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Merge all sources into settings; `flags` is nested like the file. Raises SettingsError."""
    layers = [_read_file(file) if file else {}, _read_environment(environ), flags or {}]
    merged: dict[str, Any] = {}
    for layer in layers:
        merged = _merge(merged, layer)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise SettingsError(explain_error(error)) from None


def read_secret(variable: str, key: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return the secret in an environment variable, or in the file that `<variable>_FILE` names.

    `key` is the setting that names the variable. Raises SettingsError, which never contains the
    secret.
    """
    if value := environ.get(variable, "").strip():
        return _check_secret(value, f"{key}: the variable")
    if path := environ.get(f"{variable}_FILE"):
        try:
            return _check_secret(Path(path).read_text().strip(), f"{key}: the file")
        except OSError as error:
            raise SettingsError(f"{key}: cannot read the file: {error.strerror}") from None
        except UnicodeDecodeError:
            raise SettingsError(f"{key}: cannot read the file: it is not text") from None
    raise SettingsError(
        f"{key}: must name an environment variable that holds the key, or that, with _FILE "
        "appended, names a file; neither is set"
    )


@contextmanager
def require_extra(extra: str, key: str) -> Iterator[None]:
    """Raise SettingsError if an import within the block fails.

    `extra` is the extra that installs the package, `key` the setting that requires it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        raise SettingsError(
            f"{key}: needs the package {package}, which comes with asgi-abridge[{extra}]"
        ) from None


def _check_secret(value: str, source: str) -> str:
    """Return a value that is safe in a header. Raises SettingsError if it is empty or not."""
    if not value:
        raise SettingsError(f"{source} is empty")
    if not all("!" <= character <= "~" for character in value):
        raise SettingsError(
            f"{source} must hold a key alone: visible ASCII characters, no spaces or line breaks"
        )
    return value


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise SettingsError(f"{path}: is not valid TOML: {error}") from None


def _read_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in sorted(environ.items(), key=lambda item: item[0].lower()):  # outer first
        if name.startswith(ENV_PREFIX) and ("__" in name or name == UPSTREAMS_VARIABLE):
            *tables, key = name.removeprefix(ENV_PREFIX).lower().split("__")
            table = found
            for part in tables:
                table = table.setdefault(part, {})
                if not isinstance(table, dict):
                    raise SettingsError(f"{name}: another variable sets {part} to a single value")
            table[key] = _parse_value(name, text)
    return found


def _parse_value(name: str, text: str) -> Any:
    if not text.lstrip().startswith(("[", "{")):
        return text
    try:
        return json.loads(text)
    except ValueError:
        raise SettingsError(f"{name}: is not valid JSON, which a list or table must be") from None


def _merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(lower)
    for key, value in upper.items():
        current = merged.get(key)
        if isinstance(value, Mapping) and isinstance(current, Mapping):
            merged[key] = _merge(current, value)
        else:
            merged[key] = value
    return merged
