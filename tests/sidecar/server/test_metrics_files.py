"""Metrics files on a disk that is full, and while they are being created."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from prometheus_client.mmap_dict import MmapedDict

from abridge.sidecar.server import metrics_files
from abridge.sidecar.server.metrics_files import INITIAL_BYTES, MetricsFile

COUNT_ON = """
import os
from abridge.sidecar.server.metrics_files import write_files_before_mapping
write_files_before_mapping()
from prometheus_client import CollectorRegistry, Counter
counter = Counter("requests", "Requests.", ["model"], registry=CollectorRegistry())
for number in range(2000):
    counter.labels(f"model-{number:0100}").inc()
print(counter.labels(f"model-{1999:0100}")._value.get())
"""


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Refuse to let a file grow beyond `size` bytes, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def read(path: Path) -> dict[str, float]:
    return {key: value for key, value, *_ in MmapedDict.read_all_values_from_file(str(path))}


class TestMetricsFile:
    def test_the_library_reads_what_was_written(self, tmp_path: Path) -> None:
        path = tmp_path / "counter_1.db"
        written = {f"key {number} {'x' * (number % 40)}": float(number) for number in range(3000)}
        file = MetricsFile(str(path))
        for key, value in written.items():
            file.write_value(key, value, 0.0)
        file.close()
        assert path.stat().st_size > INITIAL_BYTES
        assert read(path) == written

    def test_a_file_that_is_there_is_continued(self, tmp_path: Path) -> None:
        path = tmp_path / "counter_1.db"
        for value in (1.0, 2.0):
            file = MetricsFile(str(path))
            file.write_value("key", file.read_value("key")[0] + value, 0.0)
            file.close()
        assert read(path) == {"key": 3.0}

    def test_all_its_blocks_are_allotted(self, tmp_path: Path) -> None:
        path = tmp_path / "counter_1.db"
        file = MetricsFile(str(path))
        for number in range(3000):
            file.write_value(f"key {number}", 1.0, 0.0)
        file.close()
        assert path.stat().st_blocks * 512 >= path.stat().st_size

    def test_it_is_complete_as_soon_as_it_has_its_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "counter_1.db"
        seen = []

        def replace(source: str, target: str) -> None:
            assert not path.exists()
            assert read(Path(source)) == {}
            seen.append(Path(source).stat().st_size)
            Path(source).rename(target)

        monkeypatch.setattr(metrics_files.os, "replace", replace)
        MetricsFile(str(path)).close()
        assert seen == [INITIAL_BYTES]

    def test_values_continue_in_memory_where_it_cannot_be_created(self, tmp_path: Path) -> None:
        path = tmp_path / "counter_1.db"
        with file_size_limit(INITIAL_BYTES - 1):
            file = MetricsFile(str(path))
        for number in range(3000):
            file.write_value(f"key {number}", float(number), 0.0)
        assert file.read_value("key 2999")[0] == 2999.0
        assert list(tmp_path.iterdir()) == []
        file.close()

    def test_values_continue_in_memory_where_it_cannot_grow(self, tmp_path: Path) -> None:
        path = tmp_path / "counter_1.db"
        file = MetricsFile(str(path))
        with file_size_limit(INITIAL_BYTES):
            for number in range(3000):
                file.write_value(f"key {number}", float(number), 0.0)
        assert [file.read_value(f"key {number}")[0] for number in (0, 2999)] == [0.0, 2999.0]
        assert path.stat().st_size == INITIAL_BYTES
        assert read(path)["key 0"] == 0.0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a file system of its own to fill")
def test_a_full_disk_ends_no_process(tmp_path: Path) -> None:
    mounted = subprocess.run(  # noqa: S603 -- this test's own words
        ["/bin/mount", "-t", "tmpfs", "-o", "size=128k", "none", str(tmp_path)], check=False
    )
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        ended = subprocess.run(  # noqa: S603 -- this test's own words
            [sys.executable, "-c", COUNT_ON],
            env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout) == (0, "1.0\n")
        assert "metrics are kept in memory" in ended.stderr
    finally:
        subprocess.run(["/bin/umount", str(tmp_path)], check=True)  # noqa: S603 -- as above
