"""CPU from the start of a process to its first answer, from modules that are compiled already.
The first round, which is not counted, compiles them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial

import httpx

from tests.benchmarks import contenders
from tests.benchmarks.options import Options
from tests.benchmarks.processes import COMPILED, MEASURED, Server, cpu, module, prepare
from tests.benchmarks.results import Finding, Row, middle
from tests.benchmarks.turns import ENGAGED, PATHS, body

PACKAGES = (
    "import aiohappyeyeballs, cachetools, click, httpx, orjson, prometheus_client, pydantic; "
    "import uvloop, starlette.routing, uvicorn.protocols.http.httptools_impl; "
    "import uvicorn.protocols.websockets.websockets_sansio_impl; pydantic.create_model('Table')"
)
"""What others wrote of a sidecar. A model needs the larger part of pydantic."""

COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "packages": [sys.executable, "-c", PACKAGES],
    "import": [sys.executable, "-c", "import abridge"],
    "version": module("abridge", "--version"),
}

Serving = Callable[..., AbstractContextManager[Server]]

SERVERS: dict[str, tuple[Serving, Mapping[str, str]]] = {
    "passed": (contenders.abridge, {}),
    "summarized": (contenders.abridge, ENGAGED),
}


def run(options: Options) -> Iterator[Row]:
    with contenders.upstream() as upstream:
        for number in range(options.rounds(9, 3) + 1):
            taken = {name: _run_command(command, options) for name, command in COMMANDS.items()}
            for name, (serving, headers) in SERVERS.items():
                with serving(upstream.port, tree=options.tree) as server:
                    taken[name] = _first_answer(server, headers)
            if number:
                for name, seconds in taken.items():
                    yield {"case": name, "round": number, "cpu_s": seconds}


def _run_command(command: list[str], options: Options) -> float:
    """Return the CPU seconds of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        check=True,
        env={**os.environ, **COMPILED, **contenders.path(options.tree)},
        preexec_fn=partial(prepare, MEASURED),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _first_answer(server: Server, headers: Mapping[str, str]) -> float:
    """Return the CPU seconds of a server once it has answered its first request."""
    scripted = {**headers, "content-type": "application/json", "openai-script": "chat-burst"}
    url = f"http://127.0.0.1:{server.port}{PATHS['chat']}"
    httpx.post(url, content=body("chat"), headers=scripted, timeout=30).raise_for_status()
    return cpu(server.pid)


def findings(rows: list[Row]) -> Iterator[Finding]:
    labels = {
        "python": "`python -c pass`",
        "packages": "import of the packages that a sidecar is built on",
        "import": "`import abridge`",
        "version": "`abridge --version`",
        "summarized": "`abridge serve`, to its first answer with a summary",
    }
    for case, label in labels.items():
        yield Finding(label, middle(rows, "cpu_s", case=case), "s")
    passed, packages = (middle(rows, "cpu_s", case=case) for case in ("passed", "packages"))
    label = "`abridge serve`, to its first answer, CPU"
    yield Finding(label, passed, "s", most=0.5, before="0.76 s")
    yield Finding("what of it is not the packages'", passed - packages, "s")
