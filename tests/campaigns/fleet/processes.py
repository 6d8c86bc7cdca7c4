"""The processes of a fleet: its replicas, nginx, and Redis with a replica and a sentinel."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.campaigns.stage import Log
from tests.support.metrics_text import scrape
from tests.support.redis_server import Server, free_port, sentinel
from tests.support.servers import until
from tests.support.sidecar import Sidecar, client, sidecar

NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
REPLICAS = 4

KEYS: dict[str, dict[str, Any]] = {
    "conversations": {"team": "load", "streams": 100_000, "requests_per_minute": 10**7},
    "rate": {"requests_per_minute": 60},
    "day": {"tokens_per_day": 32_000},
    "open": {"streams": 8},
}
"""The keys and their limits. All but the first are kept at their limit."""

TEAM = {"team": "load", "tokens_per_day": 10**10}

CONFIG = """
[server]
keys_file = "{folder}/keys.jsonl"
drain = {drain}
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


class Fleet:
    """The replicas. There is one port more, for the replica that takes over from a rolled one."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder, self._stack = folder, stack
        self.ports = [free_port() for _ in range(REPLICAS + 1)]
        self.running: dict[int, Sidecar] = {}
        self.logs: list[Log] = []

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
        one.signal(number)
        return await one.process.wait()

    def address(self, place: int) -> str:
        return f"127.0.0.1:{self.ports[place]}"

    async def rounds_alone(self) -> float:
        """Return how often replicas found Redis out of reach, or too slow, for limits."""
        async with client() as session:
            found = [await scrape(session, one.metrics) for one in self.running.values()]
        return sum(each.total("limit_rounds_total", result="failed") for each in found)


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
