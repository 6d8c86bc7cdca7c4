"""Fixtures that all tests share."""

import gc
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

pytest.register_assert_rewrite("tests.end_to_end.histories.assertions", "tests.clients.rounds")

from tests.support.deployments import form  # noqa: E402 -- what is imported may not be rewritten any more
from tests.support.log_watch import Watch  # noqa: E402
from tests.support.redis_server import redis_server  # noqa: E402

__all__ = ["form", "redis_server"]

pytest_plugins = ("tests.support.matrix", "tests.support.left_out")

WORKERS = 4
"""More hardly help: each collects all tests for itself."""
FEW = 3
"""So many files are done before workers have started."""

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")


if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as in the background, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One for each core; none for a few files, nor where the output is to be seen as it comes."""
    paths = [config.invocation_params.dir / arg.partition("::")[0] for arg in config.args]
    if config.option.capture == "no" or (len(paths) <= FEW and all(map(Path.is_file, paths))):
        return 0
    sees = getattr(os, "sched_getaffinity", None)
    cores = len(sees(0)) if sees else os.cpu_count() or 1
    return min(cores, WORKERS) if cores > 1 else 0


@pytest.fixture(autouse=True, scope="module")
def collectable() -> None:
    """What was there before is not looked through each time a test looks for what is left. With all
    that was collected in this process it would take longer than the tests themselves."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def watch() -> Iterator[Watch]:
    """Nothing that is logged in all the tests holds a secret or a prompt."""
    watch, ours = Watch(), logging.getLogger("abridge")
    ours.addHandler(watch)
    ours.setLevel(logging.DEBUG)
    yield watch
    assert not watch.caught
