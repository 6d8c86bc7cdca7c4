"""Abridge beside other gateways, with the workloads that GoModel published for comparing them.

Its harness (https://github.com/ENTERPILOT/ai-gateway-reproducible-benchmark, README.md and
remote/run-on-instance.sh of 2026-08-21) asks for Chat Completions, Responses and Messages, each
streamed and whole, over ten connections, of an upstream that answers at once, with five trials and
medians over them. Here the upstream is the scripted one, whose answers have reasoning before as
many deltas of text; every gateway is one process on one core; and all take turns, so that other
load on the machine affects all of them.

    python -m tests.benchmarks.peers [--quick] [--litellm PYTHON] [--portkey FOLDER] [--write]

prints Markdown tables, and all rounds as JSON; `--write` saves the rounds and puts the tables into
docs/cost.md.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import httpx

from abridge import __version__
from tests.benchmarks import contenders, results
from tests.benchmarks.load import Job
from tests.benchmarks.options import Options
from tests.benchmarks.processes import Server
from tests.benchmarks.results import Row, percentile, short
from tests.benchmarks.rounds import run_jobs
from tests.benchmarks.turns import APIS, ENGAGED, PATHS, body

CONNECTIONS = 10
SECONDS = 4.0  # of a round, about
WARM = 3  # requests on each connection
FORMS = {"whole": "whole", "stream": "streamed"}
WORKLOADS = [(api, form) for api in PATHS for form in FORMS]
OTHER = {"chat": "messages", "responses": "messages", "messages": "responses"}
"""What upstream speaks if a gateway translates. LiteLLM asks OpenAI for Responses if clients speak
Messages."""

SAID = b"sum of the first n odd"
SUMMARIZED = b'"model":"extractive"'
MIB = 1024**2

PAGE = Path(__file__).parents[2] / "docs" / "cost.md"
BEGIN, END = "<!-- peers -->\n", "<!-- end of peers -->\n"


class Peer(NamedTuple):
    """A way to use a gateway: its process, whether upstream speaks another API, what clients ask
    for in headers, and what shows that they got it."""

    label: str
    server: str
    bridged: bool = False
    headers: Mapping[str, str] = {}
    proof: bytes = SAID


PEERS = {
    "direct": Peer("upstream, without a gateway", "direct"),
    "nginx": Peer("nginx", "nginx"),
    "portkey": Peer("Portkey", "portkey"),
    "portkey-bridging": Peer("Portkey, bridging", "portkey", bridged=True),
    "litellm": Peer("LiteLLM", "litellm"),
    "litellm-bridging": Peer("LiteLLM, bridging", "litellm", bridged=True),
    "passing": Peer("Abridge, passing through", "passing"),
    "bridging": Peer("Abridge, bridging", "bridging", bridged=True),
    "summarizing": Peer("Abridge, summarizing", "summarizing", headers=ENGAGED, proof=SUMMARIZED),
}


MEASURES = {
    "p50_ms": "Latency, median (ms)",
    "p99_ms": "Latency, 99th percentile (ms)",
    "per_second": "Requests a second",
    "cpu_s": "CPU seconds for a thousand requests",
}
"""Columns of the rounds that have tables of their own."""

Start = Callable[[], AbstractContextManager[Server]]


@dataclass(frozen=True)
class Case:
    """A workload of a peer; `upstream` is a port."""

    name: str
    api: str
    form: str
    server: Server
    upstream: int

    @property
    def peer(self) -> Peer:
        return PEERS[self.name]

    @property
    def script(self) -> str:
        return f"{OTHER[self.api] if self.peer.bridged else self.api}-{self.form}"

    def job(self, each: int) -> Job:
        headers = {"authorization": f"Bearer {contenders.LITELLM_KEY}", **self.peer.headers}
        if self.peer.server == "portkey":
            headers |= contenders.portkey_headers(self.script, self.upstream)
        return Job(
            self.server.port,
            PATHS[self.api],
            body(self.api, model=self.script, stream=self.form == "stream"),
            self.script,
            pid=self.server.pid,
            connections=CONNECTIONS,
            each=each,
            headers=headers,
        )

    def answered(self) -> bool:
        """Ask once: not every gateway has every API."""
        job = self.job(1)
        url = f"http://127.0.0.1:{job.port}{job.path}"
        headers = {**job.headers, "openai-script": job.script, "content-type": "application/json"}
        answer = httpx.post(url, content=job.body, headers=headers, timeout=60)
        return answer.is_success and SAID in answer.content and self.peer.proof in answer.content

    def each(self, seconds: float) -> int:
        """Return how many requests a connection can send in about that time; this warms up."""
        [result] = run_jobs(self.job(WARM))
        return max(WARM, int(seconds * WARM / result["seconds"]))

    def round(self, each: int) -> Row:
        memory: list[int] = []
        job = self.job(each)
        [result] = run_jobs(job, meanwhile=lambda: memory.append(self.server.memory()))
        return {
            "requests": result["requests"],
            "per_second": result["requests"] / result["seconds"],
            "p50_ms": 1e3 * percentile(result["latencies"], 0.5),
            "p99_ms": 1e3 * percentile(result["latencies"], 0.99),
            "cpu_s": 1e3 * result["cpu"] / result["requests"],
            "waited": result["waited"] / result["seconds"],
            "load_mib": max(memory) / MIB,
        }


def run(
    options: Options,
    names: Sequence[str] = tuple(PEERS),
    workloads: Sequence[tuple[str, str]] = WORKLOADS,
    seconds: float = SECONDS,
) -> Iterator[Row]:
    """Let all peers take turns at each workload, in every round."""
    with serving(options, names) as servers:
        versions = {name: _version(name, options) for name in servers}
        found = answering(servers, names, workloads, options)
        cases = [(case, case.each(seconds)) for case in found]
        rest = {name: server.memory() / MIB for name, server in servers.items()}
        for number in range(options.rounds(5, 2)):
            for case, each in cases:
                own = case.peer.server
                yield {
                    "peer": case.name,
                    "version": versions[own],
                    "api": case.api,
                    "form": case.form,
                    "round": number,
                    **case.round(each),
                    "rest_mib": rest[own],
                }


def answering(
    servers: Mapping[str, Server],
    names: Sequence[str],
    workloads: Sequence[tuple[str, str]],
    options: Options,
) -> Iterator[Case]:
    """Yield those cases that can be measured."""
    for api, form in workloads:
        for name in names:
            if server := servers.get(PEERS[name].server):
                case = Case(name, api, form, server, servers["direct"].port)
                if case.answered():
                    yield case
                else:
                    options.say(f"{case.peer.label} does not answer {APIS[api]}, {FORMS[form]}")


@contextmanager
def serving(options: Options, names: Sequence[str]) -> Iterator[dict[str, Server]]:
    """Run the upstream and what peers need, if it is installed."""
    wanted = {PEERS[name].server for name in names} - {"direct"}
    with contenders.upstream() as upstream, ExitStack() as stack:
        ways = _installed(options, upstream.port)
        for name in sorted(wanted - set(ways)):
            options.say(f"{name} is not installed: skipped")
        started = {name: stack.enter_context(ways[name]()) for name in ways if name in wanted}
        yield {"direct": upstream, **started}


def _installed(options: Options, port: int) -> dict[str, Start]:
    """Return how to start each gateway before an upstream."""
    ways: dict[str, Start] = {
        "passing": partial(contenders.abridge, port),
        "bridging": partial(contenders.bridge, port),
        "summarizing": partial(contenders.abridge, port),
    }
    if shutil.which("nginx"):
        ways["nginx"] = partial(contenders.nginx, port)
    if options.portkey:
        ways["portkey"] = partial(contenders.portkey, options.portkey)
    if options.litellm:
        scripts = [f"{api}-{form}" for api, form in WORKLOADS]
        ways["litellm"] = partial(contenders.litellm, options.litellm, port, scripts)
    return ways


def _version(server: str, options: Options) -> str:
    package = f"{options.portkey}/node_modules/@portkey-ai/gateway/package.json"
    program = "from importlib.metadata import version; print(version('litellm'))"
    commands = {
        "nginx": ["nginx", "-v"],
        "portkey": ["node", "-p", f"require({json.dumps(package)}).version"],
        "litellm": [options.litellm or "", "-c", program],
    }
    if server not in commands:
        return __version__
    ran = subprocess.run(commands[server], capture_output=True, text=True, check=True)
    return (ran.stdout + ran.stderr).strip().rpartition("/")[2]


# What was found


def _values(rows: Iterable[Row], key: str, **where: str) -> list[float]:
    return [
        float(row[key]) for row in rows if all(row[name] == value for name, value in where.items())
    ]


def _cell(values: Sequence[float]) -> str:
    """Return a median and half of the interquartile range."""
    if not values:
        return "–"
    least, middle, most = quantiles(values, n=4, method="inclusive")
    return f"{short(middle)} ± {short((most - least) / 2)}"


def tables(rows: Sequence[Row]) -> str:
    """Return a table for each measure, and one of memory, in Markdown."""
    return "\n".join(_lines(rows, [name for name in PEERS if _values(rows, "round", peer=name)]))


def _lines(rows: Sequence[Row], names: Sequence[str]) -> Iterator[str]:
    workloads = [each for each in WORKLOADS if _values(rows, "round", api=each[0], form=each[1])]
    titles = " | ".join(f"{APIS[api]}, {FORMS[form]}" for api, form in workloads)
    for key, title in MEASURES.items():
        yield f"| {title} | {titles} |\n|---|{'---:|' * len(workloads)}"
        for name in names:
            found = [_values(rows, key, peer=name, api=api, form=form) for api, form in workloads]
            yield f"| {PEERS[name].label} | {' | '.join(map(_cell, found))} |"
        yield ""
    yield "| Memory (MiB) | version | at rest | most under load |\n|---|---|---:|---:|"
    for name in [name for name in names if name != "direct"]:
        version = next(row["version"] for row in rows if row["peer"] == name)
        rest, load = (max(_values(rows, key, peer=name)) for key in ("rest_mib", "load_mib"))
        yield f"| {PEERS[name].label} | {version} | {short(rest)} | {short(load)} |"
    yield ""


def section() -> str:
    """Return the generated part of the page, from the last run that was saved."""
    rows = results.read("peers")
    waited = _values(rows, "waited")
    rounds = len({row["round"] for row in rows})
    return (
        f"{tables(rows)}\nMedians of {rounds} rounds, ± half of the interquartile range, on "
        f"{results.where('peers')}. The share of a round for which the measured process waited "
        f"for its core: {short(median(waited))} in the median, {short(max(waited))} at most.\n"
    )


def write() -> None:
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + section() + END + rest.partition(END)[2])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.peers")
    parser.add_argument("--quick", action="store_true", help="two short rounds")
    parser.add_argument("--litellm", metavar="PYTHON", help="a Python with litellm[proxy]")
    parser.add_argument("--portkey", metavar="FOLDER", help="where npm installed Portkey's gateway")
    parser.add_argument("--write", action="store_true", help="save the rounds and rewrite the page")
    parsed = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that servers are stopped
    options = Options(parsed.quick, parsed.litellm, parsed.portkey)
    rows = list(run(options, seconds=options.seconds(SECONDS, 1.0)))
    print(tables(rows))
    print(json.dumps(rows))
    if parsed.write:
        results.write("peers", rows)
        write()


if __name__ == "__main__":
    main()
