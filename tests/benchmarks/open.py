"""A thousand streams open at once on one core, each with an event every half second."""

from __future__ import annotations

from collections.abc import Iterator

from tests.benchmarks import contenders
from tests.benchmarks.load import Job
from tests.benchmarks.options import Options
from tests.benchmarks.processes import Server
from tests.benchmarks.results import Finding, Row, middle, percentile
from tests.benchmarks.rounds import run_jobs
from tests.benchmarks.turns import APIS, ENGAGED, PATHS, body

CASES = {
    f"{api}-{way}": (api, headers)
    for api in APIS
    for way, headers in (("passed", {}), ("rewritten", ENGAGED))
}
STREAMS = 1000
KIB = 1024


def run(options: Options) -> Iterator[Row]:
    """Run each case in a new process, since memory is seldom returned."""
    streams = options.rounds(STREAMS, 200)
    with contenders.upstream() as upstream:
        for number in range(options.rounds(2, 1)):
            for case in CASES:
                with contenders.abridge(upstream.port) as sidecar:
                    yield {"case": case, "round": number, **_round(sidecar, case, streams)}


def _round(sidecar: Server, case: str, streams: int) -> Row:
    run_jobs(_job(sidecar, case, "burst", streams=4))
    idle, seen = sidecar.memory(), [0]
    job = _job(sidecar, case, "open", streams=streams)
    [result] = run_jobs(job, meanwhile=lambda: seen.append(sidecar.memory()))
    return {
        "streams": streams,
        "idle_mib": idle / KIB**2,
        "most_mib": max(seen) / KIB**2,
        "kib_each": (max(seen) - idle) / KIB / streams,
        "cpu_share": result["cpu"] / result["seconds"],
        "waited": result["waited"] / result["seconds"],
        "p50_ms": 1e3 * percentile(result["delays"], 0.5),
        "p99_ms": 1e3 * percentile(result["delays"], 0.99),
    }


def _job(sidecar: Server, case: str, script: str, streams: int) -> Job:
    """Spread the first requests over two seconds, so that events do not coincide."""
    api, headers = CASES[case]
    return Job(
        sidecar.port,
        PATHS[api],
        body(api),
        f"{api}-{script}",
        pid=sidecar.pid,
        connections=streams,
        each=1,
        spread=2.0,
        headers=headers,
    )


def findings(rows: list[Row]) -> Iterator[Finding]:
    for case, (api, headers) in CASES.items():
        label = f"{APIS[api]}, {'rewritten' if headers else 'passed through'}"
        memory, late = (middle(rows, key, case=case) for key in ("kib_each", "p99_ms"))
        yield Finding(f"{label}: memory a stream", memory, "KiB", most=64)
        yield Finding(f"{label}: p99 delay of an event", late, "ms", most=250)
        busy = 100 * middle(rows, "cpu_share", case=case)
        yield Finding(f"{label}: the core was busy", busy, "%")
