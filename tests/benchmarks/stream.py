"""Four hundred events, one every 5 ms or all at once: the cost of rewriting them, of translating
them from an upstream that speaks another API, and of hiding their reasoning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from tests.benchmarks import contenders
from tests.benchmarks.load import Job
from tests.benchmarks.options import Options
from tests.benchmarks.processes import Server
from tests.benchmarks.results import Finding, Row, middle, percentile
from tests.benchmarks.rounds import run_jobs, run_undisturbed
from tests.benchmarks.scripts import events
from tests.benchmarks.turns import APIS, ENGAGED, PATHS, body

WAYS = {"passed": {}, "rewritten": ENGAGED, "bridged": ENGAGED, "hidden": {}}
HIDING = {"ABRIDGE_REASONING__EXPOSE": "none"}
OTHER = {"chat": "responses", "responses": "chat", "messages": "chat"}
STREAMS = 32


def run(options: Options) -> Iterator[Row]:
    with contenders.upstream() as upstream, ExitStack() as stack:
        plain = stack.enter_context(contenders.abridge(upstream.port))
        hiding = stack.enter_context(contenders.abridge(upstream.port, HIDING))
        for api in PATHS:
            other = OTHER[api]
            bridge = stack.enter_context(contenders.abridge(upstream.port, None, "--api", other))
            sidecars = {"passed": plain, "rewritten": plain, "bridged": bridge, "hidden": hiding}
            for pace, each in (("paced", 1), ("burst", options.rounds(5, 3))):
                yield from _compare(api, pace, each, sidecars, options)


def _compare(
    api: str, pace: str, each: int, sidecars: Mapping[str, Server], options: Options
) -> Iterator[Row]:
    cases = [Case(api, pace, way, each) for way in WAYS]
    for case in cases:
        run_jobs(case.job(sidecars[case.way]))  # warm-up, not counted
    for number in range(options.rounds(5, 3)):
        for case in cases:
            yield case.round(sidecars[case.way], number)


@dataclass(frozen=True)
class Case:
    """A case; `each` is how many streams follow each other on a connection."""

    api: str
    pace: str
    way: str
    each: int

    @property
    def script(self) -> str:
        said = OTHER[self.api] if self.way == "bridged" else self.api
        return f"{said}-{self.pace}"

    def job(self, sidecar: Server) -> Job:
        return Job(
            sidecar.port,
            PATHS[self.api],
            body(self.api),
            self.script,
            pid=sidecar.pid,
            connections=STREAMS,
            each=self.each,
            spread=0.2,
            headers=WAYS[self.way],
        )

    def round(self, sidecar: Server, number: int) -> Row:
        job = self.job(sidecar)
        result = run_undisturbed(job) if self.pace == "paced" else run_jobs(job)[0]
        count = events(self.script)
        return {
            "api": self.api,
            "pace": self.pace,
            "way": self.way,
            "round": number,
            "events": count,
            "cpu_us": 1e6 * result["cpu"] / (count * result["requests"]),
            "waited": result["waited"] / result["seconds"],
            "p50_ms": 1e3 * percentile(result["latencies"], 0.5),
        }


def findings(rows: list[Row]) -> Iterator[Finding]:
    for pace, words in (("paced", "5 ms apart"), ("burst", "in one burst")):
        for api, name in APIS.items():
            passed, rewritten, bridged, hidden = (
                middle(rows, "cpu_us", api=api, pace=pace, way=way) for way in WAYS
            )
            most = 25.0 if pace == "burst" else None
            label = f"{name}, {words}"
            yield Finding(f"{label}: passed through, CPU an event", passed, "µs")
            yield Finding(f"{label}: rewritten", rewritten, "µs", most)
            yield Finding(f"{label}: bridged from another API", bridged, "µs")
            yield Finding(f"{label}: hidden, without a summary", hidden, "µs")
            if pace == "paced":
                yield Finding(
                    f"{label}: rewritten, relative to passed through",
                    rewritten / passed,
                    "×",
                    most=1.6,
                )
                yield Finding(
                    f"{label}: bridged, relative to passed through", bridged / passed, "×", most=2.0
                )
                yield Finding(
                    f"{label}: hidden, relative to passed through", hidden / passed, "×", most=2.0
                )
