"""The files in which several processes share their metrics, on a disk that may be full.

prometheus_client maps a file into memory and lets the kernel find blocks for it as they are written
to. Where the disk is full, that write kills the process by SIGBUS. Here a file is written out
before it is mapped. If it cannot be, its values continue in memory, where no scrape sees them:
metrics are lost, requests are not. A file gets its name when it is complete, so that no scrape
reads half of one.
"""

from __future__ import annotations

import logging
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from prometheus_client import values
from prometheus_client.mmap_dict import MmapedDict

from abridge.errors import SettingsError
from abridge.observability.metrics import MULTIPROCESS_DIR_VARIABLE

INITIAL_BYTES = 64 << 10
"""Size of a new file; it doubles as needed."""

ENTRY_OVERHEAD = 4 + 8 + 16
"""Bytes of an entry beside its key, at most: length, padding, value and time."""

HEADER = struct.Struct("ii")
"""The number of bytes in use, and padding."""

_log = logging.getLogger(__name__)


class MetricsFile(MmapedDict):
    """The values of one process and one kind of metric."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:  # noqa: FBT001, FBT002 -- the library's signature
        if read_mode or os.path.exists(filename) or _create_file(filename):  # noqa: PTH110 -- the library has a string
            super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]
            return
        self._f = None  # type: ignore[assignment]
        self._capacity = INITIAL_BYTES
        self._m = mmap.mmap(-1, INITIAL_BYTES)
        self._used = HEADER.size
        self._positions: dict[str, int] = {}

    def _init_value(self, key: str) -> None:
        """Make room for a new value first, so that the library never enlarges the file."""
        while self._used + len(key.encode()) + ENTRY_OVERHEAD > self._capacity:
            self._double_capacity()
        super()._init_value(key)  # type: ignore[no-untyped-call]

    def _double_capacity(self) -> None:
        capacity = 2 * self._capacity
        if self._f is not None and _append_zeros(self._f.fileno(), self._capacity):
            self._m = mmap.mmap(self._f.fileno(), capacity)
        else:
            known = self._m[: self._used]
            self._m = mmap.mmap(-1, capacity)
            self._m[: self._used] = known
            self._close_file()
        self._capacity = capacity

    def _close_file(self) -> None:
        if self._f is not None:
            self._f.close()
            self._f = None  # type: ignore[assignment]


@contextmanager
def shared_metrics(workers: int) -> Iterator[None]:
    """Provide the metrics folder to the processes started within the block.

    Several workers get a temporary folder, unless the user names one in `PROMETHEUS_MULTIPROC_DIR`;
    that is used for any number of workers, and old metrics in it are deleted. Raises SettingsError.
    """
    if configured := os.environ.get(MULTIPROCESS_DIR_VARIABLE):
        _delete_metrics(Path(configured))
    write_files_before_mapping()
    if configured or workers == 1:
        yield
        return
    with TemporaryDirectory(prefix="abridge-", ignore_cleanup_errors=True) as temporary:
        os.environ[MULTIPROCESS_DIR_VARIABLE] = temporary
        try:
            yield
        finally:
            del os.environ[MULTIPROCESS_DIR_VARIABLE]


def _delete_metrics(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("*.db"):
            file.unlink()
    except OSError as error:
        raise SettingsError(
            f"{MULTIPROCESS_DIR_VARIABLE}: cannot use this folder: {error.strerror}"
        ) from None


def write_files_before_mapping() -> None:
    """Have prometheus_client use `MetricsFile` for metrics that this process creates from now."""
    values.MmapedDict = MetricsFile  # type: ignore[attr-defined]


def _create_file(filename: str) -> bool:
    """Create a file without values; return False if the disk has no room for it."""
    unfinished = f"{filename}.new"
    try:
        descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        try:
            os.write(descriptor, HEADER.pack(HEADER.size, 0))
            complete = _append_zeros(descriptor, INITIAL_BYTES - HEADER.size)
        finally:
            os.close(descriptor)
        if complete:
            os.replace(unfinished, filename)  # noqa: PTH105 -- the library has a string
            return True
    except OSError as error:
        _warn(error)
    with suppress(OSError):
        os.unlink(unfinished)  # noqa: PTH108 -- the library has a string
    return False


def _append_zeros(descriptor: int, count: int) -> bool:
    """Append `count` zeros; return False, with the file as it was, if the disk is full."""
    before = os.fstat(descriptor).st_size
    try:
        while (missing := before + count - os.fstat(descriptor).st_size) > 0:
            os.write(descriptor, bytes(missing))
    except OSError as error:
        _warn(error)
        os.ftruncate(descriptor, before)
        return False
    return True


def _warn(error: OSError) -> None:
    _log.warning("metrics are kept in memory and not exported: %s", error.strerror)
