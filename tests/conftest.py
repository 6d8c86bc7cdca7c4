"""Fixtures and settings shared by all tests."""

import gc
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

if sys.dont_write_bytecode:  # then workers, what they start and later runs share a folder of it
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": sys.pycache_prefix}

sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]  # jsonschema does without it, and it takes seconds to import

pytest.register_assert_rewrite("tests.end_to_end.histories.assertions", "tests.clients.rounds")

from tests.support.deployments import form  # noqa: E402 -- rewriting is registered first
from tests.support.log_watch import Watch  # noqa: E402
from tests.support.postgres_server import postgres_server  # noqa: E402
from tests.support.redis_server import redis_cluster, redis_server  # noqa: E402

__all__ = ["form", "postgres_server", "redis_cluster", "redis_server"]

pytest_plugins = ("tests.support.matrix", "tests.support.left_out")

WORKERS = 4
"""The most that help: each worker collects every test itself."""
STARTERS = {"tests.support.sidecar", "tests.sidecar.page.chromium", "tests.campaigns.stage"}
"""What starts processes."""
FEW = 3
"""The number of files that finish before workers would have started."""

os.environ.setdefault("SSL_CERT_FILE", str(Path(__file__).with_name("http") / "localhost.pem"))
# as each client of an HTTP library reads all roots, for some 50 ms

if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # as in a background job, and children inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Use two workers more than there are cores, as tests wait for processes and for time to pass;
    none for a few files, nor where output is not captured."""
    paths = [config.invocation_params.dir / arg.partition("::")[0] for arg in config.args]
    if config.option.capture == "no" or (len(paths) <= FEW and all(map(Path.is_file, paths))):
        return 0
    sees = getattr(os, "sched_getaffinity", None)
    cores = len(sees(0)) if sees else os.cpu_count() or 1
    return min(cores + 2, WORKERS) if cores > 1 else 0


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker begin with files of its own: what one has compiled, the others only load."""
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        number, root = int(worker["workerid"].removeprefix("gw")), Path(__file__).parents[1]
        folders = [session.config.invocation_params.dir / arg for arg in session.config.args]
        paths = [path for folder in folders for path in sorted(folder.rglob("test_*.py"))]
        for path in paths[number :: worker["workercount"]]:
            with suppress(Exception, pytest.skip.Exception):  # the collection reports it
                import_module(".".join(path.relative_to(root).with_suffix("").parts))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what starts processes. Each worker begins with a share of the tests as they are in
    order: so one worker waits for processes while the others keep the cores busy, and none waits at
    the end."""
    items.sort(key=lambda item: not _starts_processes(item.getparent(pytest.Module)))


@cache
def _starts_processes(module: pytest.Module) -> bool:
    return any(getattr(each, "__module__", "") in STARTERS for each in vars(module.obj).values())


gc.disable()  # while many tests are collected, of which none is garbage


def pytest_collection_finish() -> None:
    gc.freeze()  # else the next collection visits all of them
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def collectable() -> None:
    """Freeze existing objects, so that a test's own `gc.collect()` skips them and stays fast."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def watch() -> Iterator[Watch]:
    """Assert that no log record of the whole run holds a secret or a prompt."""
    watch, ours = Watch(), logging.getLogger("abridge")
    ours.addHandler(watch)
    ours.setLevel(logging.DEBUG)
    yield watch
    assert not watch.caught
