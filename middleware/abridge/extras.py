"""Optional dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from abridge.errors import SettingsError


@contextmanager
def needed(extra: str, key: str) -> Iterator[None]:
    """Raise SettingsError if an import within the block fails.

    `extra` is the extra that installs the package, `key` the setting that requires it.
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        raise SettingsError(
            f"{key}: needs the package {package}, which comes with asgi-abridge[{extra}]"
        ) from None
