"""A fleet: `python -m tests.campaigns.fleet [--streams N] [--seconds S] [--pieces N] [--write]`.

nginx spreads conversations over four replicas of `abridge serve`, which share a Redis with a
sentinel. One replica is killed, one paused, one rolled, and Redis fails over. A client sends its
second turn with the first answer, so the model must get its reasoning back. Three more keys send
more than their limits allow: what reaches the model is compared with the limits.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import random
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from starlette.types import Receive, Scope, Send

from tests.campaigns.constants import constants_of
from tests.campaigns.cores import Starvation
from tests.campaigns.script import SUMMARY
from tests.campaigns.stage import Log
from tests.support.metrics_text import scrape
from tests.support.redis_server import Server, free_port, sentinel
from tests.support.servers import serve, until
from tests.support.sidecar import Sidecar, client, sidecar
from tests.support.streams import DONE, chat_stream, frame

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
REPLICAS = 4

PATIENCE = 180.0
"""Seconds without a byte after which a client gives up."""

IDLE_SECONDS = 4.0
"""Seconds without a request in which the idle fleet is measured."""

PAUSE_SECONDS = 5.0
"""Seconds for which a replica is paused."""

ATTEMPTS = 5
"""How often a client sends a request that failed, as official clients do."""

TOKENS = 100
"""Tokens that upstream reports for each answer."""

KEYS: dict[str, dict[str, Any]] = {
    "conversations": {"team": "load", "streams": 100_000, "requests_per_minute": 10**7},
    "rate": {"requests_per_minute": 60},
    "day": {"tokens_per_day": 32_000},
    "open": {"streams": 8},
}
"""The keys and their limits. All but the first are kept at their limit."""

TEAM = {"team": "load", "tokens_per_day": 10**10}

CLIENTS = 4
"""Clients of each key that is kept at its limit, for each replica."""

CONFIG = """
[server]
keys_file = "{folder}/keys.jsonl"
drain = 60
[reasoning]
expose = "summary"
[summary]
default = "auto"
[summarizer]
kind = "model"
model = "small"
base_url = "{upstream}/summarizer/v1"
[history]
store = "{store}"
seal_keys_env = "CAMPAIGN_KEYS"
[ledger]
url = "store"
[limits]
client_share = 1.0
in_flight = 8000
[[upstreams]]
base_url = "{upstream}/v1"
api = "chat"
credential = "none"
"""

NGINX_CONFIG = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 8192; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream replicas {{ {servers} }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://replicas;
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_buffering off;
      proxy_read_timeout 120s;
      proxy_connect_timeout 10s;
      add_header x-replica $upstream_addr always;
    }}
  }}
}}
"""


def key_of(name: str) -> str:
    return "abr-" + hashlib.sha256(name.encode()).hexdigest()


def write_keys(folder: Path) -> None:
    lines: list[dict[str, Any]] = [TEAM]
    for name, limits in KEYS.items():
        digest = hashlib.sha256(key_of(name).encode()).hexdigest()
        lines.append({"name": name, "sha256": digest, **limits})
    (folder / "keys.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "keys.jsonl").chmod(0o600)


@dataclass(frozen=True)
class Shape:
    """A stream: so many pieces of reasoning, as many of text, and seconds between two."""

    pieces: int
    pause: float


class Model:
    """Upstream. Each prompt names a key and a request, and so does each piece of the answer."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.taken: Counter[str] = Counter()
        self.tokens: Counter[str] = Counter()
        self.first: dict[str, float] = {}
        self.last: dict[str, float] = {}
        self.open: Counter[str] = Counter()
        self.most_open: Counter[str] = Counter()
        self.second_turns = self.remembered = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        if scope["path"].startswith("/summarizer"):
            await self._summarize(send, body)
            return
        messages = json.loads(body)["messages"]
        name, number = messages[-1]["content"].split()
        self._count(name, messages)
        try:
            await self._answer(send, name, number, short=name != "conversations")
        finally:
            self.open[name] -= 1

    def _count(self, name: str, messages: list[dict[str, Any]]) -> None:
        self.taken[name] += 1
        self.first.setdefault(name, time.monotonic())
        self.last[name] = time.monotonic()
        self.open[name] += 1
        self.most_open[name] = max(self.most_open[name], self.open[name])
        if len(messages) > 1:
            self.second_turns += 1
            self.remembered += "reasoning" in json.dumps(messages[1])

    async def _summarize(self, send: Send, body: bytes) -> None:
        if found := SUBJECT.search(body):
            self.tokens[found[1].decode()] += SUMMARY_TOKENS
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"".join(chat_stream("", SUMMARY))})

    async def _answer(self, send: Send, name: str, number: str, *, short: bool) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        shape = Shape(1, 0.2) if short else self._shape
        for kind, said in (("reasoning_content", REASONING), ("content", TEXT)):
            for piece in range(shape.pieces):
                await self._send(send, {kind: said.format(name=name, number=number, piece=piece)})
                await asyncio.sleep(2 * shape.pause * random())
        await self._send(send, {}, finish_reason="stop")
        self.tokens[name] += TOKENS
        usage = {"prompt_tokens": 10, "completion_tokens": 90, "total_tokens": TOKENS}
        await self._send(send, None, usage=usage)
        await send({"type": "http.response.body", "body": DONE})

    async def _send(self, send: Send, delta: object, **more: object) -> None:
        reason = more.pop("finish_reason", None)
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        choices = [] if delta is None else [choice]
        data = frame({**chunk, "choices": choices, **more})
        await send({"type": "http.response.body", "body": data, "more_body": True})


REASONING = (
    "Part {piece} of request {number} of {name} needs care, so I look at it from all sides. "
)
SUMMARY_TOKENS = 81
"""What `chat_stream` reports."""

SUBJECT = re.compile(rb"of request \d+ of (\w+) needs")
TEXT = "<{number}.{piece}> "


@dataclass
class Answer:
    """What a client read of one attempt. `replica` is the address that answered."""

    status: int = 0
    replica: str = ""
    text: str = ""
    summary: str = ""
    ended: bool = False


@dataclass
class Tally:
    """What clients saw."""

    whole: int = 0
    retried: Counter[str] = field(default_factory=Counter)  # attempts that failed, by why
    lost: list[str] = field(default_factory=list)
    without_summary: int = 0


class Clients:
    """Runs conversations of two turns, so many at once, until told to stop."""

    def __init__(self, session: httpx.AsyncClient, url: str, pieces: int) -> None:
        self._session, self._url, self._pieces = session, url, pieces
        self._number = 0
        self._stopped = False
        self.killed: set[str] = set()
        """The addresses whose replica was killed, while it may still be noticed."""
        self.tally = Tally()
        self.statuses: Counter[tuple[str, int]] = Counter()

    def stop(self) -> None:
        self._stopped = True

    async def converse(self, spread: float) -> None:
        await asyncio.sleep(spread * random())
        while not self._stopped:
            history: list[dict[str, str]] = []
            for _ in range(2):
                self._number += 1
                history.append({"role": "user", "content": f"conversations {self._number}"})
                if (answer := await self._ask(history, self._number)) is None:
                    break
                said = {"role": "assistant", "content": answer.text}
                history.append(said | {"reasoning_content": answer.summary})

    async def _ask(self, history: list[dict[str, str]], number: int) -> Answer | None:
        """Ask until the answer is whole."""
        why = ""
        for attempt in range(ATTEMPTS):
            answer = await self._attempt("conversations", history)
            if answer.ended and answer.text == self._whole(number):
                self.tally.whole += 1
                self.tally.without_summary += not answer.summary.strip()
                return answer
            why = self._why(answer)
            self.tally.retried[why] += 1
            if why != "killed":
                self.tally.lost.append(f"request {number}: {why}: {answer.text[:80]!r}")
            await asyncio.sleep(0.2 * 2**attempt * random())
        self.tally.lost.append(f"request {number}: given up ({why})")
        return None

    def _whole(self, number: int) -> str:
        return "".join(TEXT.format(number=number, piece=piece) for piece in range(self._pieces))

    def _why(self, answer: Answer) -> str:
        if answer.replica.rpartition(", ")[2] in self.killed:
            return "killed"
        if answer.status != 200:
            return f"status {answer.status}"
        return "altered" if answer.ended else "cut"

    async def _attempt(self, name: str, messages: list[dict[str, str]]) -> Answer:
        asked = {"model": "m", "stream": True, "messages": messages}
        answer, headers = Answer(), {"authorization": f"Bearer {key_of(name)}"}
        url = f"{self._url}/v1/chat/completions"
        try:
            async with self._session.stream("POST", url, json=asked, headers=headers) as response:
                answer.status = response.status_code
                answer.replica = response.headers.get("x-replica", "")
                async for line in response.aiter_lines():
                    answer.ended = answer.ended or line == "data: [DONE]"
                    if line.startswith("data: {"):
                        _add(json.loads(line[6:]), answer)
        except httpx.HTTPError:
            answer.ended = False
        return answer

    async def press(self, name: str) -> None:
        """Send more than the key's limit allows."""
        while not self._stopped:
            self._number += 1
            message = {"role": "user", "content": f"{name} {self._number}"}
            answer = await self._attempt(name, [message])
            self.statuses[name, answer.status] += 1
            await asyncio.sleep(0.5 * (1 if answer.status == 429 else 0.2) * (0.5 + random()))


def _add(chunk: dict[str, Any], answer: Answer) -> None:
    for choice in chunk.get("choices", ()):
        answer.text += choice["delta"].get("content") or ""
        answer.summary += choice["delta"].get("reasoning_content") or ""


# The processes


class Fleet:
    """The replicas. There is one port more, for the replica that takes over from a rolled one."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.ports = [free_port() for _ in range(REPLICAS + 1)]
        self.running: dict[int, Sidecar] = {}
        self.logs: list[Log] = []
        self._cpu_of_ended = 0.0

    async def start(self, place: int) -> None:
        words = ("--config", str(self._folder / "abridge.toml"), "--admin-port", "0")
        seal = f"a:{'A' * 43}="
        one = await self._stack.enter_async_context(
            sidecar(*words, "--port", str(self.ports[place]), CAMPAIGN_KEYS=seal)
        )
        log = Log(one)
        reading = asyncio.create_task(log.read())
        self._stack.callback(reading.cancel)
        self.logs.append(log)
        self.running[place] = one

    async def end(self, place: int, number: signal.Signals) -> int:
        """Signal a replica and wait until it has ended. Return its exit code."""
        one = self.running.pop(place)
        self._cpu_of_ended += cpu_of(one.process.pid)
        one.signal(number)
        return await one.process.wait()

    def address(self, place: int) -> str:
        return f"127.0.0.1:{self.ports[place]}"

    async def rounds_alone(self) -> float:
        """Return how often replicas found Redis out of reach, or too slow, for limits."""
        async with client() as session:
            found = [await scrape(session, one.metrics) for one in self.running.values()]
        return sum(each.total("limit_rounds_total", result="failed") for each in found)

    @property
    def cpu(self) -> float:
        """Seconds of CPU of all replicas, without what one used after its end was asked for."""
        running = sum(cpu_of(one.process.pid) for one in self.running.values())
        return self._cpu_of_ended + running


def cpu_of(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def nginx(folder: Path, ports: Sequence[int]) -> Iterator[str]:
    port = free_port()
    servers = " ".join(f"server 127.0.0.1:{each} max_fails=1 fail_timeout=1s;" for each in ports)
    file = folder / "nginx.conf"
    file.write_text(NGINX_CONFIG.format(folder=folder, servers=servers, port=port))
    process = subprocess.Popen(
        [NGINX, "-p", str(folder), "-c", str(file)], stderr=subprocess.DEVNULL
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@dataclass
class Redis:
    """The primary, its replica, and the sentinel's port."""

    primary: Server
    replica: Server
    sentinel: int

    async def fail_over(self) -> float:
        """Kill the primary. Return after how many seconds the sentinel named the other."""
        began = time.monotonic()
        self.primary.kill()
        watcher = Server.client_at(self.sentinel)
        await until(
            lambda: watcher.sentinel_get_master_addr_by_name("main")[1] == self.replica.port
        )
        return time.monotonic() - began


@asynccontextmanager
async def redis(folder: Path) -> AsyncIterator[Redis]:
    with Server() as primary, Server() as replica:
        replica.client().replicaof("127.0.0.1", primary.port)
        with sentinel(folder, primary, patience=3.0) as port:
            watcher = Server.client_at(port)
            await until(lambda: watcher.sentinel_master("main")["num-slaves"] == 1)
            yield Redis(primary, replica, port)


# What Redis did

COUNTED = ("eval", "mget", "exec", "xadd", "xtrim")


@dataclass(frozen=True)
class Work:
    """What a Redis did, and when that was read. `reads` are those of its sockets: a round trip
    each, and those of its replica and its sentinel."""

    at: float
    reads: int
    cpu: float
    calls: dict[str, int]
    microseconds: dict[str, float]
    replicas_cpu: float
    whole: int

    @classmethod
    def of(cls, server: Server, fleet: Fleet, whole: int) -> Work:
        with server.client() as inspector:
            info = inspector.info("everything")
        stats = {name: info.get(f"cmdstat_{name}", {}) for name in COUNTED}
        return cls(
            time.monotonic(),
            info["total_reads_processed"],
            info["used_cpu_user"] + info["used_cpu_sys"],
            {name: int(each.get("calls", 0)) for name, each in stats.items()},
            {name: float(each.get("usec", 0)) for name, each in stats.items()},
            fleet.cpu,
            whole,
        )

    def since(self, before: Work) -> dict[str, float]:
        """Return what was done since, a second."""
        seconds = self.at - before.at
        calls = {name: self.calls[name] - before.calls[name] for name in COUNTED}
        spent = {name: self.microseconds[name] - before.microseconds[name] for name in COUNTED}
        whole = self.whole - before.whole
        return {
            "reads": (self.reads - before.reads) / seconds,
            "redis_cpu": (self.cpu - before.cpu) / seconds,
            "replicas_cpu": (self.replicas_cpu - before.replicas_cpu) / seconds,
            "whole": whole / seconds,
            "limits": (calls["eval"] - calls["xtrim"]) / seconds,
            "ledger": calls["xtrim"] / seconds,
            "store_reads": calls["mget"] / seconds,
            "store_writes": calls["exec"] / seconds,
            **{f"{name}_us": spent[name] / max(1, calls[name]) for name in COUNTED},
        }


# The campaign


@dataclass
class Report:
    """What a run measured. `wrong` is what must not be."""

    idle: dict[str, float] = field(default_factory=dict)
    load: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    starved: bool = False

    def print(self) -> None:
        for name, value in self.notes.items():
            print(f"{name:34} {value}")
        for name in self.load:
            print(f"{name:34} {self.idle[name]:10.2f} idle {self.load[name]:10.2f} under load")
        for text in self.wrong[:20]:
            print(f"WRONG: {text}")
        print(f"{len(self.wrong)} things were wrong")


async def campaign(streams: int, seconds: float, shape: Shape) -> Report:
    report, model = Report(), Model(shape)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        redises = await stack.enter_async_context(redis(folder))
        url = await stack.enter_async_context(serve(model, log_level="critical", backlog=4096))
        write_keys(folder)
        store = f"redis-sentinel://127.0.0.1:{redises.sentinel}/main/0"
        config = CONFIG.format(folder=folder, store=store, upstream=url)
        (folder / "abridge.toml").write_text(config)
        fleet = Fleet(folder, stack)
        await asyncio.gather(*(fleet.start(place) for place in range(REPLICAS)))
        front = stack.enter_context(nginx(folder, fleet.ports))
        session = await stack.enter_async_context(
            httpx.AsyncClient(
                trust_env=False,
                timeout=PATIENCE,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            )
        )
        clients = Clients(session, front, shape.pieces)
        run = Run(clients, fleet, redises, model, report)
        await run.play(streams, seconds, 2 * shape.pieces * shape.pause)
        judge(run)
    return report


@dataclass
class Run:
    clients: Clients
    fleet: Fleet
    redises: Redis
    model: Model
    report: Report

    async def play(self, streams: int, seconds: float, lasts: float) -> None:
        """Measure the idle fleet, then under load, then make trouble."""
        before = self._work()
        await asyncio.sleep(IDLE_SECONDS)
        self.report.idle = self._work().since(before)
        last = self.fleet.running[REPLICAS - 1].process.pid
        starvation = Starvation({"a replica": last, "load": os.getpid()})
        clients, start = self.clients, asyncio.create_task
        tasks = [start(clients.converse(lasts)) for _ in range(streams)]
        await asyncio.sleep(max(lasts, seconds / 6))
        before = self._work()
        await asyncio.sleep(seconds / 6)
        self.report.load = self._work().since(before)
        self.report.notes["before the trouble"] = self._seen()
        pressed = [name for name in KEYS if name != "conversations"] * (CLIENTS * REPLICAS)
        tasks += [start(clients.press(name)) for name in pressed]
        await self._trouble(seconds / 6)
        await asyncio.sleep(seconds / 6)
        self.clients.stop()
        await asyncio.gather(*tasks)
        self.report.notes["at the end"] = self._seen()
        self.report.notes["CPU"] = starvation.report()
        self.report.starved = starvation.starved()

    def _seen(self) -> str:
        tally, model = self.clients.tally, self.model
        return (
            f"{tally.whole} answers whole, {tally.without_summary} without a summary; of"
            f" {model.second_turns} second turns {model.remembered} with their reasoning"
        )

    def _work(self) -> Work:
        return Work.of(self.redises.primary, self.fleet, self.clients.tally.whole)

    async def _trouble(self, pause: float) -> None:
        fleet = self.fleet
        self.clients.killed = {fleet.address(0)}
        await fleet.end(0, signal.SIGKILL)
        await asyncio.sleep(pause)
        self.clients.killed = set()
        await fleet.start(0)
        fleet.running[1].signal(signal.SIGSTOP)
        await asyncio.sleep(PAUSE_SECONDS)
        fleet.running[1].signal(signal.SIGCONT)
        await asyncio.sleep(pause)
        await fleet.start(REPLICAS)
        code = await fleet.end(2, signal.SIGTERM)
        self.report.notes["exit code of the rolled replica"] = f"{code}"
        alone = await self.fleet.rounds_alone()
        self.report.notes["rounds without Redis"] = f"{alone:g} before the failover"
        judge_limits(self.model, self.report, "before the failover", alone=alone > 0)
        took = await self.redises.fail_over()
        self.report.notes["seconds of the failover"] = f"{took:.1f}"
        await asyncio.sleep(pause)


def judge(run: Run) -> None:
    """Note what clients and the model saw, and what of it is wrong."""
    tally, model, report = run.clients.tally, run.model, run.report
    with run.redises.replica.client() as inspector:
        entries = inspector.xlen("abridge:{ledger}")
    report.notes |= {
        "attempts that failed": f"{dict(tally.retried)}",
        "ledger": f"{entries} entries of {sum(model.taken.values())} requests",
        "statuses of limited keys": f"{dict(run.clients.statuses)}",
    }
    report.wrong += tally.lost
    if tally.without_summary and not report.starved:
        report.wrong.append(f"{tally.without_summary} answers had no summary")
    for log in run.fleet.logs:
        report.wrong += list(log.faults)
    judge_limits(model, report, "at the end", alone=True)


def judge_limits(model: Model, report: Report, when: str, *, alone: bool) -> None:
    """Compare what reached the model with the limits. If replicas had to do without Redis, `alone`,
    each may have let one request more through: a share is at least one."""
    shares = alone * (REPLICAS + 1)
    minutes = (model.last.get("rate", 0) - model.first.get("rate", 0)) / 60
    rate = KEYS["rate"]["requests_per_minute"]
    used = {
        "rate": (model.taken["rate"], int(rate * (1 + minutes)) + 1),
        "day": (model.tokens["day"], KEYS["day"]["tokens_per_day"]),
        "open": (model.most_open["open"], KEYS["open"]["streams"]),
    }
    in_flight = {"day": CLIENTS * REPLICAS * (TOKENS + SUMMARY_TOKENS)}
    for name, (amount, limit) in used.items():
        report.notes[f"limit of {name} {when}"] = f"{amount} of {limit}"
        if amount > limit + in_flight.get(name, shares):
            report.wrong.append(f"limit of {name} {when}: {amount} of {limit}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Return how many things were wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.fleet", description=__doc__)
    parser.add_argument("--streams", type=int, default=2000, help="open at once")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--pieces", type=int, default=10, help="of the reasoning and of the text")
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two pieces")
    parser.add_argument("--write", action="store_true", help="keep the constants of this run")
    parsed = parser.parse_args(arguments)
    shape = Shape(parsed.pieces, parsed.pause)
    report = asyncio.run(campaign(parsed.streams, parsed.seconds, shape))
    report.print()
    if parsed.write and not report.wrong:
        asyncio.run(constants_of(report.idle, report.load)).save()
    return len(report.wrong)


if __name__ == "__main__":
    sys.exit(min(main(), 1))
