"""Run a real Prometheus on loopback if it is installed."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.grafana.committed import RULES_FILE
from tests.support.redis_server import free_port
from tests.support.servers import until

PROGRAM, TOOL = shutil.which("prometheus"), shutil.which("promtool")
ATTEMPTS = 5
READY = "Server is ready to receive web requests."

needs_prometheus = pytest.mark.skipif(PROGRAM is None, reason="no prometheus on this machine")
needs_promtool = pytest.mark.skipif(TOOL is None, reason="no promtool on this machine")


def promtool(*words: str, read: str = "") -> tuple[bool, str]:
    """Run promtool; return whether it succeeded and what it printed."""
    done = subprocess.run(  # noqa: S603 -- found on this machine's own path
        (str(TOOL), *words),
        input=read,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        text=True,
    )
    return done.returncode == 0, done.stdout


@dataclass
class Prometheus:
    """A Prometheus that keeps scraping and evaluating the committed rules."""

    client: httpx.AsyncClient

    async def get(self, path: str, **parameters: str) -> Any:
        """Return data from its API; raise ValueError with the error it reports."""
        answer = (await self.client.get(f"/api/v1/{path}", params=parameters)).json()
        if answer["status"] != "success":
            raise ValueError(answer["error"])
        return answer["data"]

    async def query(
        self, expression: str, at: float | None = None
    ) -> list[tuple[dict[str, str], float]]:
        """Return the labels and values that an expression has, or had at a time in seconds."""
        when = {} if at is None else {"time": str(at)}
        found = await self.get("query", query=expression, **when)
        return [(each["metric"], float(each["value"][1])) for each in found["result"]]

    async def values(self, label: str, series: str) -> list[str]:
        return list(await self.get(f"label/{label}/values", **{"match[]": series}))


@asynccontextmanager
async def prometheus(
    folder: Path, targets: Iterable[str], **more: Any
) -> AsyncIterator[Prometheus]:
    """Run a Prometheus that scrapes `targets`, addresses of metrics, as a job named abridge; `more`
    are other settings of it."""
    settings, log = folder / "prometheus.yml", folder / "prometheus.log"
    settings.write_text(json.dumps(_settings(targets) | more))  # JSON is YAML
    flags = (f"--config.file={settings}", f"--storage.tsdb.path={folder / 'data'}")
    for _ in range(ATTEMPTS):  # somebody else may take the port first
        address = f"127.0.0.1:{free_port()}"
        with log.open("wb") as log_file:
            process = await asyncio.create_subprocess_exec(
                str(PROGRAM), *flags, f"--web.listen-address={address}", stderr=log_file
            )
        try:
            await until(lambda: READY in log.read_text() or process.returncode is not None)  # noqa: B023
            if process.returncode is None:
                async with httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as one:
                    yield Prometheus(one)
                return
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
    raise ChildProcessError(f"{PROGRAM} does not start: {log.read_text()}")


def _settings(targets: Iterable[str]) -> dict[str, Any]:
    hosts = [target.removeprefix("http://").partition("/") for target in targets]
    return {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "1s"},
        "rule_files": [str(RULES_FILE)],
        "scrape_configs": [
            {
                "job_name": "abridge",
                "static_configs": [
                    {"targets": [host], "labels": {"__metrics_path__": f"/{path}"}}
                    for host, _, path in hosts
                ],
            }
        ],
    }
