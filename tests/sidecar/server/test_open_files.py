"""Test that the files a process may open are enough for its connections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from abridge.config.tables import LimitSettings
from abridge.sidecar.server.open_files import fit_open_files

resource = pytest.importorskip("resource", reason="only POSIX bounds open files")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))


def test_the_limit_is_raised_for_the_connections() -> None:
    files, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files // 2, most))
    limits = LimitSettings(connections=files // 4)
    assert fit_open_files(limits, 10) is limits
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == files // 4 * 2 + 10 + 32


def test_a_limit_that_is_enough_stays() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    fit_open_files(LimitSettings(connections=10), 10)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


@pytest.mark.parametrize(
    ("files", "calls", "connections"),
    [
        (1024, 64, (1024 - 64 - 32) // 2),
        (100, 64, (100 - 25 - 32) // 2),  # calls have a quarter of few files at most
        (100, 0, 34),
        (20, 64, 1),
    ],
)
def test_where_it_cannot_be_raised_there_are_fewer_connections(
    files: int,
    calls: int,
    connections: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (16, files))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: None)
    assert fit_open_files(LimitSettings(connections=4096), calls).connections == connections
    assert (
        f"limits.connections is lowered to {connections}, because only {files} files" in caplog.text
    )
