"""The folder in which processes share their metrics."""

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
    """Provide the metrics folder to the processes started within the block.

    Several workers get a temporary folder, unless the user names one in `PROMETHEUS_MULTIPROC_DIR`;
    that is used for any number of workers, and old metrics in it are deleted. Raises SettingsError.
    """
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
    """Delete the gauges of a process that has ended or serves nothing; its counters stay."""
    mark_process_dead(process)  # type: ignore[no-untyped-call]
