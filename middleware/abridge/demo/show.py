"""Run the demo: the scripted model, Abridge in front of it, and a client that shows one response.

Both are servers on loopback ports that the system chose, and everything on display comes from
events received over HTTP. Abridge runs with its default settings and cannot know that this is a
demo.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from time import monotonic

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.app import create_app
from abridge.demo.bill import bill
from abridge.demo.model import scripted_model
from abridge.demo.plain import Plain
from abridge.demo.scene import Scene, View
from abridge.demo.screen import Screen
from abridge.demo.script import QUESTION
from abridge.demo.spelling import MODEL
from abridge.serve import Server, address, listen, signals
from abridge.settings import Server as ServerSettings
from abridge.settings import Settings, Upstream
from abridge.wire import sse
from abridge.wire.codec import Json, loads

PAUSE, FAST = 0.0065, 0.001
"""Seconds after each word: to be watched, and as fast as is useful."""

INTRODUCTION = "A scripted model, no AI, thinks aloud; Abridge stands before it and summarizes."

NEXT = """\
# To try curl or a client on this model:
abridge demo --serve

# Before a model of your own:
abridge serve --upstream http://127.0.0.1:8000/v1
"""

RUNNING = """\
It goes on running, until ctrl-C, at {url}
Watch it work, in a browser, at {url}/abridge
"""

EXAMPLES = """\
# {first}, with curl:
curl -N {url}/responses -H 'content-type: application/json' -d '{{
  "model": "{model}",
  "input": "{question}",
  "reasoning": {{"summary": "auto"}},
  "stream": true
}}'

# The same with the openai client:
python3 - <<'END'
from openai import OpenAI

client = OpenAI(base_url="{url}", api_key="none")
request = dict(
    model="{model}",
    input="{question}",
    reasoning={{"summary": "auto"}},
)
with client.responses.stream(**request) as stream:
    for event in stream:
        if event.type in ("response.reasoning_summary_text.delta", "response.output_text.delta"):
            print(event.delta, end="", flush=True)
        elif event.type == "response.reasoning_summary_part.done":
            print(end="\\n\\n")
END
"""

_HELD = re.compile(r"^abridge_held_seconds_sum\{.*\} (\S+)$", re.MULTILINE)


async def demonstrate(*, fast: bool, keep: bool) -> None:
    """Show a response, its usage and what to do next; with `keep_serving`, run until a signal."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every terminal has a degree sign
    shown = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    pause = PAUSE if shown and not fast else FAST
    async with _running(scripted_model(pause)) as model, _abridged(model, page=keep) as url:
        print(INTRODUCTION, flush=True)
        await _perform(url, Screen(sys.stdout, QUESTION) if shown else Plain(sys.stdout, QUESTION))
        with signals() as heard:
            print(*_next_steps(url if keep else None), sep="\n", flush=True)
            if keep:
                await heard.get()


async def _perform(url: str, view: View) -> None:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
        scene, began = Scene(), monotonic()
        with view:
            async for event in _ask(client):
                scene.see(event, monotonic() - began)
                view.show(scene)
        view.finish(scene)
        if scene.usage is None:
            sys.exit("The response did not end as it should.")
        print("\nThe bill", *bill(scene, await _held(client)), "", sep="\n")


async def _ask(client: httpx.AsyncClient) -> AsyncIterator[Json]:
    """Yield the events of a response as they arrive."""
    question = {
        "model": MODEL,
        "input": QUESTION,
        "reasoning": {"summary": "auto"},
        "stream": True,
    }
    decoder = sse.Decoder(1 << 20)
    async with client.stream("POST", "/v1/responses", json=question) as response:
        async for piece in response.raise_for_status().aiter_bytes():
            for frame in decoder.feed(piece):
                if (data := sse.data(frame)) is not None:
                    yield loads(data)


async def _held(client: httpx.AsyncClient) -> float | None:
    """Read from Abridge's metrics how many seconds the answer waited for its summary."""
    found = _HELD.search((await client.get("/abridge/metrics")).text)
    return float(found[1]) if found else None


def _next_steps(url: str | None) -> Iterator[str]:
    """Yield what to type next, with Abridge still running at `url` or, if None, not."""
    yield NEXT if url is None else RUNNING.format(url=url)
    yield EXAMPLES.format(
        first="Now" if url else "Then",
        url=f"{url or 'http://127.0.0.1:8400'}/v1",
        model=MODEL if url else "your-model",
        question=QUESTION,
    )


@asynccontextmanager
async def _abridged(model: str, *, page: bool) -> AsyncIterator[str]:
    upstream = Upstream(name="demo", base_url=f"{model}/v1")
    settings = Settings(upstreams=(upstream,), server=ServerSettings(page=page))
    app = create_app(settings, registry=CollectorRegistry())
    async with aclosing(app), _running(app) as url:
        yield url


@asynccontextmanager
async def _running(app: ASGIApp) -> AsyncIterator[str]:
    """Serve an app and yield its URL; open connections are cut at the end."""
    server, listener = Server(app), listen("127.0.0.1", 0)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield address(listener)
    finally:
        server.should_exit = True
        server.cut()
        await serving
