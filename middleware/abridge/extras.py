"""Packages that only some installations have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from abridge.errors import SettingsError


@contextmanager
def needed(extra: str, key: str) -> Iterator[None]:
    """What is imported within comes with `extra`, for which the setting `key` asks. Raises
    SettingsError."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        raise SettingsError(
            f"{key}: needs the package {package}, which comes with asgi-abridge[{extra}]"
        ) from None
