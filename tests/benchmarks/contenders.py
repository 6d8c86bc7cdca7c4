"""Contender and baselines: each a server process on the measured core.

Run as a module, this serves the baselines that are ASGI apps, on Abridge's server and settings.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.http.transport import Transport
from tests.benchmarks.options import Options
from tests.benchmarks.processes import BESIDE, MEASURED, Server, free_port, module, serving
from tests.benchmarks.turns import PATHS

FRAMING = frozenset({b"connection", b"keep-alive", b"transfer-encoding"})


# Processes


@contextmanager
def upstream() -> Iterator[Server]:
    port = free_port()
    with serving(module("tests.benchmarks.upstream", str(port)), port, BESIDE) as server:
        yield server


@contextmanager
def abridge(
    port: int,
    environ: Mapping[str, str] | None = None,
    *flags: str,
    tree: Path | None = None,
) -> Iterator[Server]:
    """Run the sidecar as users do, before the upstream on `port`; `environ` sets settings, `tree`
    is another checkout that it comes from."""
    where = ("--upstream", f"{_url(port)}/v1", *flags)
    with _sidecar(where, {**path(tree), **(environ or {})}) as server:
        yield server


def summarizer_model(port: int) -> dict[str, str]:
    """Return the settings of a model as summarizer, which the upstream on `port` plays."""
    return {
        "ABRIDGE_SUMMARIZER__KIND": "model",
        "ABRIDGE_SUMMARIZER__BASE_URL": f"{_url(port)}/summarizer/v1",
        "ABRIDGE_SUMMARIZER__MODEL": "scripted",
    }


@contextmanager
def bridge(port: int) -> Iterator[Server]:
    """Run the sidecar before an upstream that speaks of each script only the API in its name."""
    upstreams = [
        {"name": api, "base_url": f"{_url(port)}/v1", "api": api, "models": [f"{api}-*"]}
        for api in PATHS
    ]
    with _sidecar((), {"ABRIDGE_UPSTREAMS": json.dumps(upstreams)}) as server:
        yield server


@contextmanager
def _sidecar(flags: Sequence[str], environ: Mapping[str, str]) -> Iterator[Server]:
    own = free_port()
    command = module("abridge", "serve", "--port", str(own), *flags)
    with serving(command, own, MEASURED, environ) as server:
        yield server


@contextmanager
def app(name: str, port: int, tree: Path | None = None) -> Iterator[Server]:
    own = free_port()
    command = module("tests.benchmarks.contenders", name, str(own), _url(port))
    with serving(command, own, MEASURED, path(tree)) as server:
        yield server


def path(tree: Path | None) -> dict[str, str]:
    return {"PYTHONPATH": str(tree / "middleware")} if tree else {}


NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log stderr crit; worker_processes 1;
events {{ worker_connections 4096; }}
http {{
  access_log off; keepalive_requests 1000000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  upstream model {{ server 127.0.0.1:{upstream}; keepalive 64; keepalive_requests 1000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=2048;
    location / {{
      proxy_pass http://model; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off;
    }}
  }}
}}
"""


@contextmanager
def nginx(port: int) -> Iterator[Server]:
    own, program = free_port(), shutil.which("nginx")
    assert program is not None
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "nginx.conf")
        config.write_text(NGINX.format(folder=folder, port=own, upstream=port))
        with serving([program, "-p", folder, "-c", str(config)], own, MEASURED) as server:
            yield server


LITELLM_KEY = f"sk-{secrets.token_hex(32)}"
"""LiteLLM does not start without a key."""

LITELLM_PLAYS = ("json", "chat-paced", "chat-burst")
LITELLM_QUIET = {
    "litellm_settings": {"num_retries": 0, "drop_params": True},
    "general_settings": {"disable_spend_logs": True},
}
"""Neither retries nor logs, as in GoModel's benchmark (`peers.py` has its address)."""


@contextmanager
def litellm(python: str, port: int, plays: Sequence[str] = LITELLM_PLAYS) -> Iterator[Server]:
    """Run LiteLLM's proxy with another environment's Python. It forwards no client headers, so each
    script is a model of its own, whose path tells the upstream what to play."""
    own = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "config.yaml")
        models = [_model(name, port) for name in plays]
        config.write_text(json.dumps({"model_list": models, **LITELLM_QUIET}))
        program = "from litellm import run_server; run_server()"
        options = ["--config", str(config), "--host", "127.0.0.1", "--port", str(own)]
        environ = {"LITELLM_MASTER_KEY": LITELLM_KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        with serving([python, "-c", program, *options], own, MEASURED, environ) as server:
            yield server


def _model(name: str, port: int) -> dict[str, Any]:
    version = "/v1" if provider(name) == "openai" else ""  # which it adds for Anthropic
    params = {"model": f"{provider(name)}/{name}", "api_base": f"{_url(port)}/{name}{version}"}
    params["api_key"] = "none"
    return {"model_name": name, "litellm_params": params}


def provider(script: str) -> str:
    """Return whose API a script speaks."""
    return "anthropic" if script.startswith("messages-") else "openai"


@contextmanager
def portkey(folder: str) -> Iterator[Server]:
    """Run Portkey's gateway from a folder into which npm installed it; requests name upstream."""
    own = free_port()
    program = Path(folder, "node_modules/@portkey-ai/gateway/build/start-server.js")
    command = ["node", str(program), "--headless", f"--port={own}"]
    with serving(command, own, MEASURED, {"TRUSTED_CUSTOM_HOSTS": "127.0.0.1"}) as server:
        yield server


def portkey_headers(script: str, port: int) -> dict[str, str]:
    return {
        "x-portkey-provider": provider(script),
        "x-portkey-custom-host": f"{_url(port)}/{script}/v1",
    }


@contextmanager
def others(port: int, options: Options) -> Iterator[dict[str, Server]]:
    """Run nginx and LiteLLM's proxy where they are and other proxies are wanted."""
    if not options.beside:
        yield {}
        return
    with ExitStack() as stack:
        servers = {}
        if shutil.which("nginx"):
            servers["nginx"] = stack.enter_context(nginx(port))
        else:
            options.say("nginx is not on the path: skipped")
        if options.litellm:
            servers["litellm"] = stack.enter_context(litellm(options.litellm, port))
        else:
            options.say("no environment with LiteLLM was given: skipped")
        yield servers


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


# Apps


def bare(upstream: str) -> ASGIApp:
    """Return Abridge's transport with almost nothing around it."""
    return _forwarding(upstream, lambda pieces: pieces)


def parsing(upstream: str) -> ASGIApp:
    """Return the same with each event parsed and written anew, as any proxy does that changes
    events, and nothing else."""
    return _forwarding(upstream, _parsed)


async def _parsed(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *frames, rest = (rest + piece).split(b"\n\n")
        yield b"".join(map(_anew, frames))
    yield rest


def _anew(frame: bytes) -> bytes:
    before, field, data = frame.partition(b"data: ")
    said = data if data == b"[DONE]" else orjson.dumps(orjson.loads(data))
    return b"%b%b%b\n\n" % (before, field, said)


def _forwarding(
    upstream: str, read: Callable[[AsyncIterable[bytes]], AsyncIterable[bytes]]
) -> ASGIApp:
    transport = Transport(connect=5, headers=600, idle=300)

    async def forward(scope: Scope, receive: Receive, send: Send) -> None:
        request = httpx.Request(
            scope["method"],
            upstream + scope["path"],
            headers=scope["headers"],
            stream=httpx.ByteStream(await _body(receive)),
        )
        response = await transport.handle_async_request(request)
        assert isinstance(response.stream, httpx.AsyncByteStream)
        await _relay(response.status_code, response.headers.raw, read(response.stream), send)

    return forward


def httpx_stock(upstream: str) -> ASGIApp:
    """Return a reverse proxy as usually written: Starlette and httpx with its defaults."""
    return _httpx_app(upstream, httpx.AsyncClient(timeout=None))  # noqa: S113 -- answers may be slow


def httpx_unlimited(upstream: str) -> ASGIApp:
    """Return the same with every connection kept alive; httpx keeps 20 by default."""
    return _httpx_app(upstream, httpx.AsyncClient(timeout=None, limits=httpx.Limits()))  # noqa: S113


def _httpx_app(upstream: str, client: httpx.AsyncClient) -> ASGIApp:
    async def forward(request: Request) -> Response:
        outgoing = client.build_request(
            request.method,
            upstream + request.url.path,
            headers=request.headers.raw,
            content=await request.body(),
        )
        response = await client.send(outgoing, stream=True)
        streaming = StreamingResponse(
            response.aiter_raw(), response.status_code, background=BackgroundTask(response.aclose)
        )
        streaming.raw_headers = [
            header for header in response.headers.raw if header[0].lower() not in FRAMING
        ]
        return streaming

    return Starlette(routes=[Route("/{path:path}", forward, methods=["POST"])])


APPS = {
    "bare": bare,
    "parsing": parsing,
    "httpx": httpx_stock,
    "httpx-unlimited": httpx_unlimited,
}


async def _body(receive: Receive) -> bytes:
    message = await receive()
    pieces = [message["body"]]
    while message.get("more_body"):
        message = await receive()
        pieces.append(message["body"])
    return b"".join(pieces)


async def _relay(
    status: int, headers: list[tuple[bytes, bytes]], pieces: AsyncIterable[bytes], send: Send
) -> None:
    headers = [(name.lower(), value) for name, value in headers if name.lower() not in FRAMING]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    async for piece in pieces:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


if __name__ == "__main__":
    uvicorn.run(
        APPS[sys.argv[1]](sys.argv[3]),
        port=int(sys.argv[2]),
        lifespan="off",
        log_config=None,
        access_log=False,
        ws="none",
        proxy_headers=False,
        server_header=False,
        date_header=False,
    )
