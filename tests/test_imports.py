"""What is imported, and when: nobody waits for the modules of what they do not use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.sidecar import environment

EXTRAS = frozenset({"cryptography", "opentelemetry", "redis"})

EXTRACTS = "abridge.summarizers.extractive.extract"

LATER = frozenset({*EXTRAS, "aiohttp", EXTRACTS, "uvicorn", "uvloop", "httptools"}) | {
    f"abridge.{folder}" for folder in ("server", "check", "demo")
}
"""What an import of the package leaves for when it is used."""

MODEL = (
    "from abridge import AbridgeMiddleware, Settings; "
    "summarizer = {'kind': 'model', 'model': 'm', 'base_url': 'http://127.0.0.1:1/v1'}; "
    "AbridgeMiddleware(print, Settings(summarizer=summarizer, summary={'on_failure': '%s'}))"
)


def modules_after(code: str) -> set[str]:
    """Return the names of the modules that a new process has after it ran `code`."""
    ran = subprocess.run(  # noqa: S603 -- fixed command
        [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"],
        capture_output=True,
        check=True,
        text=True,
        env=environment(),
    )
    return set(ran.stdout.split())


@pytest.mark.parametrize("module", ["abridge", "abridge.app", "abridge.cli.commands"])
def test_an_import_leaves_what_is_not_used_by_all(module: str) -> None:
    assert modules_after(f"import {module}") & LATER == set()


def test_the_server_imports_no_extras() -> None:
    modules = modules_after("import abridge.cli.serving")
    assert modules & {*EXTRAS, "abridge.check", "abridge.demo"} == set()


def test_a_middleware_has_all_that_its_requests_need() -> None:
    """Nothing of it is imported in the middle of traffic, where streams would wait for it."""
    made = "from abridge import AbridgeMiddleware; AbridgeMiddleware(print)"
    assert modules_after(made) >= {"aiohttp", EXTRACTS}


@pytest.mark.parametrize(("on_failure", "extracts"), [("omit", False), ("extract", True)])
def test_extracts_are_loaded_where_they_may_be_shown(on_failure: str, *, extracts: bool) -> None:
    assert (EXTRACTS in modules_after(MODEL % on_failure)) is extracts
