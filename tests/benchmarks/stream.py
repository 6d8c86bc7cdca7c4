"""Four hundred events, one every 5 ms or all at once: the cost of rewriting them, of translating
them from an upstream that speaks another API, and of hiding their reasoning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from tests.benchmarks import contenders
from tests.benchmarks.load import Job
from tests.benchmarks.options import Options
from tests.benchmarks.processes import Server
from tests.benchmarks.results import NO_TARGET, Finding, Row, Target, middle, percentile
from tests.benchmarks.rounds import run_jobs, run_undisturbed
from tests.benchmarks.scripts import events
from tests.benchmarks.turns import APIS, ENGAGED, PATHS, body

PACES = {"paced": "5 ms apart", "burst": "in one burst"}
WORDS = {
    "passed": "passed through",
    "rewritten": "rewritten",
    "modelled": "rewritten with a summarizer model",
    "bridged": "bridged from another API",
    "hidden": "hidden, without a summary",
    "parsing": "parsed and written anew by the bare transport",
    "nginx": "passed through by nginx",
    "litellm": "passed through by LiteLLM's proxy",
}
ASKING = dict.fromkeys(("rewritten", "modelled", "bridged"), ENGAGED)
HIDING = {"ABRIDGE_REASONING__EXPOSE": "none"}
OTHER = {"chat": "responses", "responses": "chat", "messages": "chat"}
STREAMS = {"litellm": 4}
MOST_STREAMS = 32

PACED: dict[tuple[str, str], Target] = {
    ("chat", "rewritten"): (1.6, "1.9"),
    ("chat", "modelled"): (1.35, "not measured"),
    ("chat", "bridged"): (1.5, "1.7 to 2.6"),
    ("chat", "hidden"): (1.25, "1.6 to 2.8"),
    ("responses", "rewritten"): (2, "2.7"),
    ("responses", "modelled"): (1.5, "not measured"),
    ("responses", "bridged"): (1.5, "1.7 to 2.6"),
    ("responses", "hidden"): (1.25, "1.6 to 2.8"),
    ("messages", "rewritten"): (1.6, "2.0"),
    ("messages", "modelled"): (1.35, "not measured"),
    ("messages", "bridged"): (1.5, "1.7 to 2.6"),
    ("messages", "hidden"): (1.25, "1.6 to 2.8"),
}
"""By API and way, relative to what is passed through."""

BURST: dict[str, Target] = {"rewritten": (12, "20 to 25"), "bridged": (15, "22 to 32")}
"""By way, in microseconds an event."""


def run(options: Options) -> Iterator[Row]:
    with contenders.upstream() as upstream, ExitStack() as stack:
        sidecar = partial(contenders.abridge, upstream.port, tree=options.tree)
        model = contenders.summarizer_model(upstream.port)
        plain, modelled, hiding = (
            stack.enter_context(sidecar(environ)) for environ in (None, model, HIDING)
        )
        others = stack.enter_context(contenders.others(upstream.port, options))
        parsing = stack.enter_context(contenders.app("parsing", upstream.port, options.tree))
        for api in PATHS:
            bridge = stack.enter_context(sidecar(None, "--api", OTHER[api]))
            servers = {"passed": plain, "rewritten": plain, "modelled": modelled}
            servers |= {"bridged": bridge, "hidden": hiding, "parsing": parsing}
            servers |= others if api == "chat" else {}
            for pace in ("burst", "paced"):
                yield from _compare(api, pace, servers, options)


def _compare(api: str, pace: str, servers: Mapping[str, Server], options: Options) -> Iterator[Row]:
    """Let all ways take turns; a burst also warms them up."""
    each = options.rounds(4, 1) if pace == "burst" else 1
    cases = [Case(api, pace, way, each) for way in servers]
    for case in cases if pace == "burst" else ():
        run_jobs(case.job(servers[case.way]))
    for number in range(options.rounds(5, 2)):
        for case in cases:
            yield case.round(servers[case.way], number, tries=options.rounds(3, 1))


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
            body(self.api, model=self.script),
            self.script,
            pid=sidecar.pid,
            connections=STREAMS.get(self.way, MOST_STREAMS),
            each=self.each,
            spread=0.2,
            headers={
                "authorization": f"Bearer {contenders.LITELLM_KEY}",
                **ASKING.get(self.way, {}),
            },
        )

    def round(self, sidecar: Server, number: int, tries: int) -> Row:
        job = self.job(sidecar)
        result = run_undisturbed(job, tries) if self.pace == "paced" else run_jobs(job)[0]
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
    for pace, words in PACES.items():
        for api, name in APIS.items():
            ways = {row["way"] for row in rows if row["api"] == api}
            cost = {
                way: middle(rows, "cpu_us", api=api, pace=pace, way=way)
                for way in WORDS
                if way in ways
            }
            if cost:
                yield from _found(f"{name}, {words}", api, pace, cost)


def _found(label: str, api: str, pace: str, cost: Mapping[str, float]) -> Iterator[Finding]:
    passed = cost["passed"]
    for way, spent in cost.items():
        most, before = BURST.get(way, NO_TARGET) if pace == "burst" else NO_TARGET
        name = f"{label}: {WORDS[way]}, CPU an event"
        yield Finding(name, spent, "µs", most, before=before)
    for way, spent in cost.items():
        most, before = PACED.get((api, way), NO_TARGET) if pace == "paced" else NO_TARGET
        if most is not None:
            name = f"{label}: {WORDS[way]}, relative to passed through"
            yield Finding(name, spent / passed, "×", most, before=before)
