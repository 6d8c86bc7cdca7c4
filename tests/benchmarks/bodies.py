"""Requests with long bodies: not parsed if passed through, else parsed once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from time import perf_counter
from typing import Any
from unittest.mock import patch

import httpx
import orjson
from prometheus_client import CollectorRegistry

from abridge.config.settings import Settings
from abridge.sidecar.app import create_app
from tests.benchmarks import contenders
from tests.benchmarks.load import Job
from tests.benchmarks.options import Options
from tests.benchmarks.processes import Server
from tests.benchmarks.results import Finding, Row, middle
from tests.benchmarks.rounds import run_jobs
from tests.benchmarks.scripts import script
from tests.benchmarks.turns import APIS, ENGAGED, PATHS
from tests.support.streams import thinking

SIZES = {"10KB": 10_000, "100KB": 100_000, "1MB": 1_000_000, "10MB": 10_000_000}
WAYS = {
    "bare": "bare transport",
    "passed": "passed through",
    "not-json": "the same size, not JSON",
    "after": "passed through after a summary",
    "engaged": "engaged",
}
"""The second and third use a sidecar that has shown no summary yet, the rest one that has."""

TICK, STALLS = 0.0005, 5
"""Seconds between looks at the event loop, and how often a request is watched."""

READ = ("after", "engaged")
"""The ways in which a body is read, and so different on each API."""

CASES = [(api, way) for way in WAYS for api in APIS if api == "chat" or way in READ]

BEFORE = "17"


def body(size: int, way: str, api: str = "chat") -> str:
    """Return a long conversation, or as many bytes that are no JSON."""
    if way == "not-json":
        return "x" * size
    text, roles = thinking(1000), ("user", "assistant")
    messages = [{"role": roles[turn % 2], "content": text} for turn in range(size // 1060)]
    field = "input" if api == "responses" else "messages"
    data = json.dumps({"model": "thinker-1", "max_tokens": 4096, field: messages})
    return data[:-1] + " " * (size - len(data)) + "}"


def run(options: Options) -> Iterator[Row]:
    with (
        contenders.upstream() as upstream,
        contenders.app("bare", upstream.port) as bare,
        contenders.abridge(upstream.port) as fresh,
        contenders.abridge(upstream.port) as used,
    ):
        servers = {"bare": bare, "passed": fresh, "not-json": fresh, "after": used, "engaged": used}
        run_jobs(_job(used, "chat", "10KB", "engaged", each=1))
        sizes = [size for size in SIZES if not (options.quick and size == "10MB")]
        cases = [(*case, size) for size in sizes for case in CASES]
        counted = {case: asyncio.run(_count(*case)) for case in cases}
        seconds = options.seconds(1.5, 0.7)
        for number in range(options.rounds(3, 2)):
            for case, (read, stalled) in counted.items():
                api, way, size = case
                job = _job(servers[way], api, size, way, warm=seconds / 5, seconds=seconds)
                [result] = run_jobs(job)
                yield {
                    "api": api,
                    "size": size,
                    "way": way,
                    "round": number,
                    "requests": result["requests"],
                    "cpu_us": 1e6 * result["cpu"] / result["requests"],
                    "waited": result["waited"] / result["seconds"],
                    "parsed_bytes": read,
                    "stalled_ms": 1e3 * stalled,
                }


def _job(server: Server, api: str, size: str, way: str, **times: Any) -> Job:
    return Job(
        server.port,
        PATHS[api],
        body(SIZES[size], way, api),
        "json",
        pid=server.pid,
        connections=4,
        headers=_headers(way),
        **times,
    )


def _headers(way: str) -> dict[str, str]:
    return ENGAGED if way == "engaged" else {}


async def _count(api: str, way: str, size: str) -> tuple[int, float]:
    """Return how many bytes of JSON Abridge parses for one request, less its small answer, and the
    longest that its event loop stood still: the least of a few times. Counted in this process."""
    if way == "bare":
        return 0, 0.0
    answer, content = script("json").steps[0][1], body(SIZES[size], way, api)
    kind = {"content-type": "application/json"}
    upstream = httpx.MockTransport(lambda _: httpx.Response(200, headers=kind, content=answer))
    settings = Settings(upstreams=[{"base_url": "http://upstream/v1"}])
    app = create_app(settings, transport=upstream, registry=CollectorRegistry())
    sizes: list[int] = []
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app)) as client:
        if way == "after":
            await _post(client, "chat", body(1000, way), "engaged")
        with (
            patch("orjson.loads", _counting(orjson.loads, sizes)),
            patch("json.loads", _counting(json.loads, sizes)),
        ):
            await _post(client, api, content, way)
        stalled = [await _stalled(_post(client, api, content, way)) for _ in range(STALLS)]
    return sum(length for length in sizes if length > len(content) // 50), min(stalled)


async def _stalled(request: Coroutine[Any, Any, None]) -> float:
    """Return the longest that the event loop stood still during a request."""
    longest, last = 0.0, perf_counter()
    running = asyncio.create_task(request)
    while not running.done():
        await asyncio.sleep(TICK)
        now = perf_counter()
        longest, last = max(longest, now - last - TICK), now
    await running
    return longest


def _counting(parse: Callable[..., Any], sizes: list[int]) -> Callable[..., Any]:
    def count(data: Any, **more: Any) -> Any:
        sizes.append(len(data))
        return parse(data, **more)

    return count


async def _post(client: httpx.AsyncClient, api: str, content: str, way: str) -> None:
    headers = {"authorization": "Bearer sk-benchmark", **_headers(way)}
    response = await client.post(f"http://abridge{PATHS[api]}", content=content, headers=headers)
    response.raise_for_status()


def findings(rows: list[Row]) -> Iterator[Finding]:
    measured = [size for size in SIZES if size in {row["size"] for row in rows}]
    for api, way in CASES:
        name = f"{APIS[api]}, {WAYS[way]}" if way in READ else WAYS[way]
        cost = {size: middle(rows, "cpu_us", api=api, size=size, way=way) for size in measured}
        for size, value in cost.items():
            wanted = size == "1MB" and way in READ
            most, before = (8.0, BEFORE) if wanted else (None, "")
            yield Finding(f"{name}: {size}, CPU a request", value / 1e3, "ms", most, before=before)
        if way not in ("bare", "not-json"):
            times = cost["1MB"] / cost["100KB"]
            yield Finding(f"{name}: 1 MB, relative to 100 KB", times, "×", most=12)
            read = middle(rows, "parsed_bytes", api=api, size="1MB", way=way) / SIZES["1MB"]
            most = 0.0 if way == "passed" else 1.0
            yield Finding(f"{name}: times the body is parsed", read, most=most)
            stalled = [middle(rows, "stalled_ms", api=api, size=size, way=way) for size in measured]
            yield Finding(f"{name}: longest stall of the event loop", max(stalled), "ms", most=20)
