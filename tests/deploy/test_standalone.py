"""Run the standalone form on loopback: its settings, environment and store arguments."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from abridge.sidecar.demo.model import scripted_model
from tests.deploy.manifests import Object, abridges, built, containers, one, pod, variables
from tests.support.redis_server import Server
from tests.support.servers import serve
from tests.support.sidecar import Sidecar, sidecar
from tests.support.upstream import Answer, Upstream

PASSWORD = "0123456789abcdef"
THOUGHT = "The oven is free at noon, so the tart goes first. Then the chicken takes its place. " * 9


class Valkey(Server):
    """A Valkey server with the settings that the manifest's shell hands it."""

    def _settings(self) -> list[str]:
        valkey = containers(one(built("standalone"), "Deployment", "abridge-valkey"))["valkey"]
        shell, flag, script = valkey["command"]
        assert "exec valkey-server - <<END" in script
        written = subprocess.run(
            [shell, flag, script.replace("exec valkey-server -", "cat")],
            env={"PATH": os.environ["PATH"], "VALKEY_PASSWORD": PASSWORD},
            capture_output=True,
            check=True,
        )
        file = Path(self._folder.name) / "valkey.conf"
        file.write_bytes(written.stdout)
        return [str(file), *super()._settings()]


@pytest.fixture
def valkey() -> Iterator[Server]:
    with Valkey() as server:
        yield server


def answering() -> Answer:
    message = {"role": "assistant", "content": "At noon.", "reasoning": THOUGHT}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return Answer.json({"object": "chat.completion", "model": "m", "choices": [choice]})


def replica(config: Path, valkey: Server) -> Any:
    deployment = abridges(built("standalone"))
    environ = variables(containers(deployment)["abridge"])
    store = environ["ABRIDGE_HISTORY__STORE"]
    assert PASSWORD in store
    environ["ABRIDGE_HISTORY__STORE"] = store.replace("abridge-valkey:6379", valkey.address)
    return sidecar("--config", str(config), "--host", "127.0.0.1", "--admin-port", "0", **environ)


def configured(folder: Path, places: dict[str, str]) -> Path:
    """Write the ConfigMap's file with addresses on loopback."""
    objects: list[Object] = built("standalone")
    name = pod(abridges(objects))["volumes"][0]["configMap"]["name"]
    text = one(objects, "ConfigMap", name)["data"]["abridge.toml"]
    for place, here in places.items():
        assert place in text
        text = text.replace(place, here)
    file = folder / "abridge.toml"
    file.write_text(text)
    return file


async def send_messages(replica: Sidecar, *messages: Object) -> Object:
    async with httpx.AsyncClient(trust_env=False, timeout=20) as client:
        answer = await client.post(
            f"{replica.url}/v1/chat/completions",
            json={"model": "m", "messages": messages},
            headers={"authorization": "Bearer somebody-s-own-key"},
        )
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]


async def test_one_replica_restores_reasoning_that_another_remembered(
    valkey: Server, tmp_path: Path
) -> None:
    upstream, question = Upstream(answering()), {"role": "user", "content": "When is the tart due?"}
    async with serve(upstream) as model, serve(scripted_model(pause=0)) as summarizer:
        places = {
            "http://vllm.models.svc:8000": model,
            "http://summarizer.models.svc:8000": summarizer,
        }
        config = configured(tmp_path, places)
        async with replica(config, valkey) as first, replica(config, valkey) as second:
            reply = await send_messages(first, question)
            reasoning = reply["reasoning"]
            assert reasoning
            assert reasoning != THOUGHT
            history = {name: reply[name] for name in ("role", "content", "reasoning")}
            await send_messages(
                second, question, history, {"role": "user", "content": "And the chicken?"}
            )
            for leaving in (first, second):
                leaving.signal()
                await leaving.until("not ready any more")
                leaving.signal(signal.SIGTERM)  # which ends the drain delay
            assert [await first.end(), await second.end()] == [0, 0]
    returned = upstream.requests[-1].json["messages"][1]
    assert returned["reasoning"] == THOUGHT
    with valkey.client(password=PASSWORD) as inside:
        assert inside.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}
        assert inside.dbsize()
