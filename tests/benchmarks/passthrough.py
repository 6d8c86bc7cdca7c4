"""A small JSON answer over 32 connections, on one core: the cost of passing through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from tests.benchmarks import contenders
from tests.benchmarks.load import Job
from tests.benchmarks.options import Options
from tests.benchmarks.processes import Server
from tests.benchmarks.results import Finding, Row, middle, percentile
from tests.benchmarks.rounds import run_jobs

PATH = "/v1/chat/completions"
BODY = json.dumps(
    {
        "model": "json",
        "messages": [
            {"role": "system", "content": "You are a careful mathematician. Be brief."},
            {"role": "user", "content": "What is the sum of the first ten odd numbers? " * 4},
        ],
        "temperature": 0.6,
        "max_tokens": 1000,
    }
)
CONNECTIONS = 32


def run(options: Options) -> Iterator[Row]:
    with ExitStack() as stack:
        upstream = stack.enter_context(contenders.upstream())
        servers = _servers(stack, upstream, options)
        for server in servers.values():
            run_jobs(_job(server, each=4))  # warm-up, not counted
        seconds = options.seconds(2.0, 1.0)
        for number in range(options.rounds(5, 3)):
            for name, server in servers.items():
                job = _job(server, warm=seconds / 5, seconds=seconds)
                yield _round(name, number, server, job)


def _servers(stack: ExitStack, upstream: Server, options: Options) -> dict[str, Server]:
    port = upstream.port
    tree = options.tree
    servers = {"abridge": stack.enter_context(contenders.abridge(port, tree=tree))}
    for name in ("bare", "httpx", "httpx-unlimited") if options.beside else ("bare",):
        servers[name] = stack.enter_context(contenders.app(name, port, tree))
    servers |= stack.enter_context(contenders.others(port, options))
    return {**servers, "direct": upstream}


def _job(server: Server, **times: Any) -> Job:
    return Job(
        server.port,
        PATH,
        BODY,
        "json",
        pid=server.pid,
        connections=CONNECTIONS,
        headers={"authorization": f"Bearer {contenders.LITELLM_KEY}"},
        **times,
    )


def _round(name: str, number: int, server: Server, job: Job) -> Row:
    [result] = run_jobs(job)
    return {
        "contender": name,
        "round": number,
        "requests": result["requests"],
        "cpu_us": 1e6 * result["cpu"] / result["requests"],
        "waited": result["waited"] / result["seconds"],
        "per_second": result["requests"] / result["seconds"],
        "p50_ms": 1e3 * percentile(result["latencies"], 0.5),
        "p99_ms": 1e3 * percentile(result["latencies"], 0.99),
    }


NAMES = {
    "abridge": "`abridge serve`",
    "bare": "bare transport",
    "httpx": "stock httpx",
    "httpx-unlimited": "httpx, all kept alive",
    "nginx": "nginx",
    "litellm": "LiteLLM proxy",
}


def findings(rows: list[Row]) -> Iterator[Finding]:
    measured = {row["contender"] for row in rows}
    cost = {name: middle(rows, "cpu_us", contender=name) for name in NAMES if name in measured}
    yield Finding(
        "passed through, relative to the bare transport",
        cost["abridge"] / cost["bare"],
        "×",
        most=1.2,
        before="1.28",
    )
    for name, spent in cost.items():
        yield Finding(f"{NAMES[name]}, CPU a request", spent, "µs")
    if "httpx" in cost:
        relative = cost["httpx"] / cost["abridge"]
        yield Finding("CPU of stock httpx, relative to ours", relative, "×", least=10)
    for name in ("abridge", "httpx", "direct"):
        if name in measured:
            latency = middle(rows, "p50_ms", contender=name)
            yield Finding(f"{NAMES.get(name, name)}, p50 at full load", latency, "ms")
