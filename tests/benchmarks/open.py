"""Up to five thousand streams open at once on one core, each with an event every half second; and
two hundred with fifty events a second.

Streams begin over `SPREAD` seconds and take 21 (Chat Completions) or 26 (Responses), so that there
are a few in which all of them are open. Upstream and the load generator share the other core: their
share of it and the generator's own lateness, which is part of every delay, are in the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import contenders
from tests.benchmarks.load import Job
from tests.benchmarks.options import Options
from tests.benchmarks.processes import Server, cpu
from tests.benchmarks.results import NO_TARGET, Finding, Row, Target, percentile
from tests.benchmarks.rounds import run_jobs
from tests.benchmarks.turns import APIS, ENGAGED, PATHS, body

STREAMS = (100, 500, 1000, 2500, 5000)
MODELLED = "rewritten with a summarizer model"


class Case(NamedTuple):
    """A way to run streams; one `asks` for a summary or not. `punctual` is how many are to have a
    p99 under `LATE_MS`, `memory` what one may take in KiB, and `fast` the share of a core that
    `FAST_STREAMS` of them may."""

    api: str
    words: str
    asks: bool = True
    punctual: Target = NO_TARGET
    memory: Target = NO_TARGET
    fast: Target = NO_TARGET
    streams: Sequence[int] = STREAMS


MANY = STREAMS[2:]
CASES = {
    "chat-passed": Case("chat", "passed through", asks=False),
    "chat-rewritten": Case(
        "chat",
        "rewritten",
        punctual=(2500, "1,000"),
        memory=(48, "60 to 72 KiB"),
        fast=(0.45, "0.62"),
    ),
    "responses-rewritten": Case(
        "responses",
        "rewritten",
        punctual=(2500, "1,000"),
        memory=(48, "68 to 80 KiB"),
        fast=(0.55, "0.85"),
    ),
    "chat-modelled": Case("chat", MODELLED, punctual=(5000, "not measured"), streams=MANY),
    "responses-modelled": Case(
        "responses", MODELLED, punctual=(5000, "not measured"), streams=MANY
    ),
}
FAST_STREAMS = 200
SPREAD = 15.0
"""Seconds over which streams begin. As many end within them, whose last parts are written then."""
EVENTS_A_SECOND = 2
"""Of each stream, while it is open."""
LATE_MS = 250
MEMORY_AT = 1000
LIMITS = {
    "ABRIDGE_LIMITS__IN_FLIGHT": "6000",
    "ABRIDGE_LIMITS__CONNECTIONS": "6000",
    "ABRIDGE_LIMITS__CLIENT_SHARE": "1",
}
KIB = 1024


def run(options: Options) -> Iterator[Row]:
    """Run each case in a new process, since memory is seldom returned."""
    with contenders.upstream() as upstream:
        for name, case in CASES.items():
            for streams in (200,) if options.quick else case.streams:
                try:
                    row = _round(upstream, case, "open", streams, options.tree)
                except RuntimeError:  # requests fail: the next number would only be worse
                    options.say(f"{name}: {streams} streams are too many")
                    break
                yield {"case": name, **row}
            streams = options.rounds(FAST_STREAMS, 50)
            yield {"case": f"{name}-fast", **_round(upstream, case, "fast", streams, options.tree)}


def _round(upstream: Server, case: Case, script: str, streams: int, tree: Path | None) -> Row:
    model = contenders.summarizer_model(upstream.port) if case.words == MODELLED else {}
    with contenders.abridge(upstream.port, {**LIMITS, **model}, tree=tree) as sidecar:
        run_jobs(_job(sidecar, case, "burst", streams=4))
        idle, seen, upstreams = sidecar.memory(), [0], cpu(upstream.pid)
        job = _job(sidecar, case, script, streams)
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
        "upstream_share": (cpu(upstream.pid) - upstreams) / result["seconds"],
        "load_share": result["own_cpu"] / result["seconds"],
        "load_p99_ms": 1e3 * percentile(result["own_delays"], 0.99),
    }


def _job(sidecar: Server, case: Case, script: str, streams: int) -> Job:
    return Job(
        sidecar.port,
        PATHS[case.api],
        body(case.api),
        f"{case.api}-{script}",
        pid=sidecar.pid,
        connections=streams,
        each=1,
        spread={"open": SPREAD, "fast": 1.0}.get(script, 0.0),
        headers=ENGAGED if case.asks else {},
    )


def findings(rows: list[Row]) -> Iterator[Finding]:
    for name, case in CASES.items():
        label = f"{APIS[case.api]}, {case.words}"
        if made := [row for row in rows if row["case"] == name]:
            yield from _findings_of_open(label, case, made)
        for fast in [row for row in rows if row["case"] == f"{name}-fast"]:
            yield from _findings_of_fast(label, case, fast)
    idle = max(float(row["idle_mib"]) for row in rows)
    yield Finding("memory, idle", idle, "MiB", 60, before="68 MiB")


def _findings_of_fast(label: str, case: Case, row: Row) -> Iterator[Finding]:
    streams = f"{int(float(row['streams']))}"
    most, before = case.fast
    name = f"{label}: {streams} streams at 50 events a second, share of a core"
    yield Finding(name, float(row["cpu_share"]), "", most, before=before)
    name = f"{label}: memory a stream, of {streams} at 50 events a second"
    yield Finding(name, float(row["kib_each"]), "KiB")


def _findings_of_open(label: str, case: Case, rows: list[Row]) -> Iterator[Finding]:
    goal, before = case.punctual
    punctual = [float(row["streams"]) for row in rows if float(row["p99_ms"]) <= LATE_MS]
    what = f"{label}: the most streams with a p99 delay under {LATE_MS} ms, of those tried"
    yield Finding(what, max(punctual, default=0), least=goal, before=before)
    near = min(rows, key=lambda row: abs(float(row["streams"]) - MEMORY_AT))
    most, before = case.memory
    what = f"{label}: memory a stream, of {int(float(near['streams'])):,}"
    yield Finding(what, float(near["kib_each"]), "KiB", most, before=before)
    spent = 1e6 * float(near["cpu_share"]) / (float(near["streams"]) * EVENTS_A_SECOND)
    yield Finding(f"{label}: CPU an event, {int(float(near['streams'])):,} streams", spent, "µs")
    for row in rows:
        streams = f"{label}, {int(float(row['streams'])):,} streams"
        yield Finding(f"{streams}: p99 delay of an event", float(row["p99_ms"]), "ms")
        yield Finding(f"{streams}: the core was busy", 100 * float(row["cpu_share"]), "%")
