"""Requests with long bodies: not parsed if passed through, else parsed once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import httpx
import orjson
from prometheus_client import CollectorRegistry

from abridge.app import create_app
from abridge.config.settings import Settings
from tests.benchmarks import contenders
from tests.benchmarks.load import Job
from tests.benchmarks.options import Options
from tests.benchmarks.processes import Server
from tests.benchmarks.results import Finding, Row, middle
from tests.benchmarks.rounds import run_jobs
from tests.benchmarks.scripts import script
from tests.benchmarks.turns import ENGAGED, PATHS
from tests.support.streams import thinking

PATH = PATHS["chat"]
SIZES = {"100KB": 100_000, "1MB": 1_000_000}
WAYS = {
    "bare": "bare transport",
    "passed": "passed through",
    "not-json": "the same size, not JSON",
    "after": "passed through after a summary",
    "engaged": "engaged",
}
"""The second and third use a sidecar that has shown no summary yet, the rest one that has."""


def body(size: int, way: str) -> str:
    """Return a long conversation, or as many bytes that are no JSON."""
    if way == "not-json":
        return "x" * size
    text, roles = thinking(1000), ("user", "assistant")
    messages = [{"role": roles[turn % 2], "content": text} for turn in range(size // 1060)]
    data = json.dumps({"model": "thinker-1", "messages": messages})
    return data[:-1] + " " * (size - len(data)) + "}"


def run(options: Options) -> Iterator[Row]:
    with (
        contenders.upstream() as upstream,
        contenders.app("bare", upstream.port) as bare,
        contenders.abridge(upstream.port) as fresh,
        contenders.abridge(upstream.port) as used,
    ):
        servers = {"bare": bare, "passed": fresh, "not-json": fresh, "after": used, "engaged": used}
        run_jobs(_job(used, "100KB", "engaged", each=1))
        parsed = {(size, way): _parsed(size, way) for size in SIZES for way in WAYS}
        seconds = options.seconds(1.5, 0.7)
        for number in range(options.rounds(5, 3)):
            for (size, way), read in parsed.items():
                job = _job(servers[way], size, way, warm=seconds / 5, seconds=seconds)
                [result] = run_jobs(job)
                yield {
                    "size": size,
                    "way": way,
                    "round": number,
                    "requests": result["requests"],
                    "cpu_us": 1e6 * result["cpu"] / result["requests"],
                    "waited": result["waited"] / result["seconds"],
                    "parsed_bytes": read,
                }


def _job(server: Server, size: str, way: str, **times: Any) -> Job:
    return Job(
        server.port,
        PATH,
        body(SIZES[size], way),
        "json",
        pid=server.pid,
        connections=4,
        headers=_headers(way),
        **times,
    )


def _headers(way: str) -> dict[str, str]:
    return ENGAGED if way == "engaged" else {}


def _parsed(size: str, way: str) -> int:
    """Return how many bytes of JSON Abridge parses for one request, less its small answer."""
    return 0 if way == "bare" else asyncio.run(_count(body(SIZES[size], way), way))


async def _count(content: str, way: str) -> int:
    """Count in this process."""
    answer = script("json").steps[0][1]
    kind = {"content-type": "application/json"}
    upstream = httpx.MockTransport(lambda _: httpx.Response(200, headers=kind, content=answer))
    settings = Settings(upstreams=[{"base_url": "http://upstream/v1"}])
    app = create_app(settings, transport=upstream, registry=CollectorRegistry())
    sizes: list[int] = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        if way == "after":
            await _post(client, body(1000, way), "engaged")
        with (
            patch("orjson.loads", _counting(orjson.loads, sizes)),
            patch("json.loads", _counting(json.loads, sizes)),
        ):
            await _post(client, content, way)
    return sum(length for length in sizes if length > len(content) // 50)


def _counting(parse: Callable[..., Any], sizes: list[int]) -> Callable[..., Any]:
    def count(data: Any, **more: Any) -> Any:
        sizes.append(len(data))
        return parse(data, **more)

    return count


async def _post(client: httpx.AsyncClient, content: str, way: str) -> None:
    headers = {"authorization": "Bearer sk-benchmark", **_headers(way)}
    response = await client.post(f"http://abridge{PATH}", content=content, headers=headers)
    response.raise_for_status()


def findings(rows: list[Row]) -> Iterator[Finding]:
    for way, words in WAYS.items():
        small, large = (middle(rows, "cpu_us", size=size, way=way) for size in SIZES)
        yield Finding(f"{words}: 100 KB, CPU a request", small, "µs")
        yield Finding(f"{words}: 1 MB", large, "µs")
        if way not in ("bare", "not-json"):
            read = middle(rows, "parsed_bytes", size="1MB", way=way) / SIZES["1MB"]
            yield Finding(f"{words}: 1 MB, relative to 100 KB", large / small, "×", most=12)
            most = 0.0 if way == "passed" else 1.0
            yield Finding(f"{words}: times the body is parsed", read, most=most)
