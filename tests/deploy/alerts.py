"""Let an alert go all the way: `python -m tests.deploy.alerts`.

It needs Debian's `prometheus` and `prometheus-alertmanager`. A sidecar whose summarizer cannot be
reached opens its circuit breaker. Prometheus evaluates the rules as they are deployed, with their
links to runbooks and their own patience; Alertmanager sends what fires to a webhook. That takes two
minutes.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from abridge.sidecar.demo.model import scripted_model
from tests.deploy.rule import rules
from tests.grafana.prometheus import Prometheus, prometheus
from tests.support.redis_server import free_port
from tests.support.servers import serve
from tests.support.sidecar import Sidecar, sidecar

RUNBOOKS = "https://wiki.example/abridge"
ALERT = "AbridgeBreakerOpen"
PATIENCE = 240.0
"""Seconds for the alert to arrive: its two minutes, and as much again."""


class Receiver:
    """A webhook that keeps the alerts it is sent."""

    def __init__(self) -> None:
        self.alerts: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.app = Starlette(routes=[Route("/", self._take, methods=["POST"])])

    async def _take(self, request: Request) -> Response:
        for alert in (await request.json())["alerts"]:
            self.alerts.put_nowait(alert)
        return Response()

    async def expect(self, name: str) -> dict[str, Any]:
        while (alert := await self.alerts.get())["labels"]["alertname"] != name:
            pass
        return alert


@asynccontextmanager
async def alertmanager(folder: Path, webhook: str) -> AsyncIterator[str]:
    """Run an Alertmanager that sends everything to a webhook; yield its address."""
    program = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager")
    if program is None:
        sys.exit("there is no alertmanager: apt-get install prometheus-alertmanager")
    route = {"receiver": "webhook", "group_by": ["alertname"], "group_wait": "1s"}
    receiver = {"name": "webhook", "webhook_configs": [{"url": webhook}]}
    settings = folder / "alertmanager.yml"
    settings.write_text(json.dumps({"route": route, "receivers": [receiver]}))  # JSON is YAML
    address = f"127.0.0.1:{free_port()}"
    flags = (f"--config.file={settings}", f"--storage.path={folder / 'alertmanager'}")
    listening = (f"--web.listen-address={address}", "--cluster.listen-address=")
    with (folder / "alertmanager.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(program, *flags, *listening, stderr=log)
        try:
            yield address
        finally:
            process.kill()
            await process.wait()


async def ask(replica: Sidecar, times: int) -> None:
    """Ask for summaries, none of which will come."""
    body = {"model": "m", "reasoning": {"summary": "auto"}}
    question = {**body, "messages": [{"role": "user", "content": "When is the tart due?"}]}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        for _ in range(times):
            answer = await client.post(f"{replica.url}/v1/chat/completions", json=question)
            answer.raise_for_status()


async def until_pending(watching: Prometheus) -> None:
    pending = f'ALERTS{{alertname="{ALERT}"}}'
    async with asyncio.timeout(60):
        while not await watching.query(pending):  # noqa: ASYNC110 -- another process's state
            await asyncio.sleep(1)


async def main() -> None:
    receiver = Receiver()
    dead = {
        "ABRIDGE_SUMMARIZER__KIND": "model",
        "ABRIDGE_SUMMARIZER__BASE_URL": f"http://127.0.0.1:{free_port()}/v1",
        "ABRIDGE_SUMMARIZER__MODEL": "none",
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        deployed = folder / "rules.yaml"
        deployed.write_text(rules(RUNBOOKS))
        async with (
            serve(scripted_model(pause=0)) as model,
            serve(receiver.app) as webhook,
            sidecar("--upstream", f"{model}/v1", "--admin-port", "0", **dead) as replica,
            alertmanager(folder, webhook) as manager,
            prometheus(
                folder,
                [replica.metrics],
                rule_files=[str(deployed)],
                alerting={"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
            ) as watching,
        ):
            await ask(replica, times=6)
            await until_pending(watching)
            print(f"   {ALERT} is pending", flush=True)
            alert = await asyncio.wait_for(receiver.expect(ALERT), PATIENCE)
    assert alert["status"] == "firing"
    assert alert["annotations"]["runbook_url"] == f"{RUNBOOKS}#{ALERT.lower()}"
    print(json.dumps({each: alert[each] for each in ("status", "labels", "annotations")}, indent=2))


if __name__ == "__main__":
    asyncio.run(main())
