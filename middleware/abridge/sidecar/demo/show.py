"""Run the demo: the scripted model, Abridge in front of it, and a client that shows one response.

Both are servers on loopback ports that the system chose, unless `--port` says which, and everything
on display comes from events received over HTTP, the bill at the end included. Abridge runs with its
default settings; it cannot know that this is a demo.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
import shutil
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from socket import socket
from time import monotonic

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.apis import sse
from abridge.apis.json import loads
from abridge.config.settings import Settings
from abridge.config.sources import read_environment
from abridge.config.tables import ServerSettings
from abridge.config.upstreams import UpstreamSettings
from abridge.core.conversation import Json
from abridge.core.usage import EXTRACTIVE
from abridge.http.asgi import get_header
from abridge.providers.catalog import PROFILES
from abridge.sidecar.app import create_app
from abridge.sidecar.demo.model import MODEL_NAME, scripted_model
from abridge.sidecar.demo.render import PlainRenderer, ResponseProgress, ScreenRenderer
from abridge.sidecar.demo.script import QUESTION
from abridge.sidecar.proxy.targets import VIA
from abridge.sidecar.server.browser_guard import BrowserGuard
from abridge.sidecar.server.serve import HttpServer, listen, listener_url
from abridge.sidecar.server.signals import catch_signals

NORMAL_PAUSE, FAST_PAUSE = 0.0065, 0.001
"""Seconds after each word: to be watched, and as fast as is useful."""

INTRODUCTION = "A scripted model, no AI, thinks aloud; Abridge in front of it summarizes."

NEXT_COMMANDS = """\
# To try curl or a client on this model:
abridge demo --serve --port 8400

# In front of a model of your own:
abridge serve --upstream http://127.0.0.1:8000/v1
"""

RUNNING_NOTE = """\
It keeps running, until ctrl-C, at {url}
Watch it at work in a browser, at {url}/abridge
"""

EXAMPLES = """\
# {first}, with curl:
curl -N {url}/v1/responses -H 'content-type: application/json' -d '{{
  "model": "{model}",
  "input": "{question}",
  "reasoning": {{"summary": "auto"}},
  "stream": true
}}'

# The same with the openai client:
python3 - <<'END'
from openai import OpenAI

client = OpenAI(base_url="{url}/v1", api_key="none")
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

# Claude Code:
ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY=none claude --model {model}

# The anthropic client:
# Anthropic(base_url="{url}", api_key="none")
"""

_BILL_INDENT = len("  model      ")

_HELD_SECONDS = re.compile(r"^abridge_held_seconds_sum\{.*\} (\S+)$", re.MULTILINE)


async def run_demo(listener: socket, *, fast: bool, keep_serving: bool) -> None:
    """Show a response, its usage and what to do next; with `keep_serving`, run until a signal.

    Abridge listens on `listener`.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every terminal has a degree sign
    watched = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
    renderer = ScreenRenderer if watched else PlainRenderer
    pause = NORMAL_PAUSE if watched and not fast else FAST_PAUSE
    async with (
        _serve(scripted_model(pause), listen("127.0.0.1", 0)) as model,
        _serve_abridge(model, listener, pause, page=keep_serving) as url,
    ):
        _print_line(INTRODUCTION)
        await _show_response(url, renderer(sys.stdout, QUESTION))
        with catch_signals() as received:
            print(*_next_steps(url if keep_serving else None), sep="\n", flush=True)
            if keep_serving:
                await received.get()


async def _show_response(url: str, renderer: PlainRenderer | ScreenRenderer) -> None:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client:
        progress, started = ResponseProgress(), monotonic()
        with renderer:
            async for event in stream_events(client):
                progress.apply(event, monotonic() - started)
                renderer.show(progress)
        renderer.finish(progress)
        if progress.usage is None:
            sys.exit("The response did not end as it should.")
        print("\nThe bill")
        for line in usage_lines(progress, await _read_held_seconds(client)):
            _print_line(line, indent=_BILL_INDENT)
        print()


def _print_line(line: str, *, indent: int = 0) -> None:
    """Print a line, broken at words where the terminal is narrower."""
    width = shutil.get_terminal_size().columns
    print(textwrap.fill(line, width, subsequent_indent=" " * indent), flush=True)


async def stream_events(client: httpx.AsyncClient) -> AsyncIterator[Json]:
    """Yield the events of a response as they arrive."""
    request = {
        "model": MODEL_NAME,
        "input": QUESTION,
        "reasoning": {"summary": "auto"},
        "stream": True,
    }
    decoder = sse.FrameDecoder(1 << 20)
    async with client.stream("POST", "/v1/responses", json=request) as response:
        async for piece in response.raise_for_status().aiter_bytes():
            for frame in decoder.feed(piece):
                if (data := sse.frame_data(frame)) is not None:
                    yield loads(data)


async def _read_held_seconds(client: httpx.AsyncClient) -> float | None:
    """Read from Abridge's metrics how many seconds the answer waited for its summary, if it did."""
    match = _HELD_SECONDS.search((await client.get("/abridge/metrics")).text)
    return float(match[1]) if match else None


def usage_lines(progress: ResponseProgress, held_seconds: float | None) -> Iterator[str]:
    """Format usage and times. The answer waited `held_seconds`, by Abridge's metrics."""
    if progress.usage is not None:
        yield from _token_lines(progress.usage)
    if progress.first_summary is not None and progress.thinking_ended is not None:
        yield (
            f"  time       first summary text after {progress.first_summary:.1f} s, "
            f"thinking ended after {progress.thinking_ended:.1f} s"
        )
        waited = "did not wait" if held_seconds is None else f"waited {held_seconds:.2f} s"
        yield f"  held       the answer {waited} for its summary"


def _token_lines(usage: Json) -> Iterator[str]:
    share = usage.get("reasoning_summary") or {}
    summary_tokens = share.get("total_tokens") or 0
    input_tokens = usage["input_tokens"] - (share.get("input_tokens") or 0)
    reasoning_tokens = usage["output_tokens_details"]["reasoning_tokens"]
    answer_tokens = usage["output_tokens"] - (share.get("output_tokens") or 0) - reasoning_tokens
    yield (
        f"  model      {input_tokens + reasoning_tokens + answer_tokens:,} tokens: "
        f"{input_tokens:,} input, {reasoning_tokens:,} reasoning, {answer_tokens:,} answer"
    )
    writer = share.get("model")
    by = "extracted without a model" if writer == EXTRACTIVE else f"written by {writer}"
    yield (
        f"  summary    {summary_tokens:,} tokens, "
        f"{summary_tokens / usage['total_tokens']:.1%} of the bill: "
        f"{share.get('parts', 0)} parts, {by}"
    )
    yield f"  total      {usage['total_tokens']:,} tokens"


def _next_steps(url: str | None) -> Iterator[str]:
    """Yield what to type next, with Abridge still running at `url` or, if None, not."""
    yield NEXT_COMMANDS if url is None else RUNNING_NOTE.format(url=url)
    yield EXAMPLES.format(
        first="Now" if url else "Then",
        url=url or "http://127.0.0.1:8400",
        model=MODEL_NAME if url else "your-model",
        question=QUESTION,
    )


def demo_server(environ: Mapping[str, str], *, page: bool) -> ServerSettings:
    """Return the settings of the server: of those in the environment only the origins of web pages
    count, so that one can be tried on it. Raises SettingsError."""
    source = read_environment(environ)
    origins = {
        name: value
        for name, value in source.values.get("server", {}).items()
        if name == "allowed_origins"
    }
    return ServerSettings(page=page, **origins)


@asynccontextmanager
async def _serve_abridge(
    model: str, listener: socket, pause: float, *, page: bool
) -> AsyncIterator[str]:
    # The model stores no responses, so Abridge does, as for any server that forgets them.
    forgetful = next(name for name in PROFILES if PROFILES[name].forgets_responses)
    upstream = UpstreamSettings(name="demo", base_url=f"{model}/v1", profile=forgetful)
    settings = Settings(upstreams=(upstream,), server=demo_server(os.environ, page=page))
    app = create_app(settings, registry=CollectorRegistry())
    alone = scripted_model(pause, chat_alone=True)

    async def choose(scope: Scope, receive: Receive, send: Send) -> None:
        """To another Abridge, be a model's server and no more: that is what it asks for."""
        is_forwarded = scope["type"] == "http" and get_header(scope["headers"], VIA) != b""
        await (alone if is_forwarded else app)(scope, receive, send)

    async with aclosing(app), _serve(BrowserGuard(choose, settings.server), listener) as url:
        yield url


@asynccontextmanager
async def _serve(app: ASGIApp, listener: socket) -> AsyncIterator[str]:
    """Serve an app and yield its URL; open connections are cut at the end."""
    server = HttpServer(app, websockets=True)
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield listener_url(listener)
    finally:
        server.should_exit = True
        server.abort_connections()
        await serving
