"""The folder in which processes count together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client.multiprocess import mark_process_dead

from abridge.errors import SettingsError
from abridge.metrics import FOLDER


@contextmanager
def counting(workers: int) -> Iterator[None]:
    """Where processes that are started meanwhile keep what they count: several in a fresh folder;
    or any number in the one that the user names, which is emptied of what others left there. Raises
    SettingsError."""
    if given := os.environ.get(FOLDER):
        _clear(Path(given))
    if given or workers == 1:
        yield
        return
    with TemporaryDirectory(prefix="abridge-", ignore_cleanup_errors=True) as fresh:
        os.environ[FOLDER] = fresh
        try:
            yield
        finally:
            del os.environ[FOLDER]


def _clear(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("*.db"):
            left.unlink()
    except OSError as error:
        raise SettingsError(f"{FOLDER}: takes a folder of its own: {error.strerror}") from None


def forget_gauges(process: int | None) -> None:
    """Of a process that has ended, or serves nothing; what it counted stays."""
    mark_process_dead(process)  # type: ignore[no-untyped-call]
