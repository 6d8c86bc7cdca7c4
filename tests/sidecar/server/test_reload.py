"""Test that `abridge serve` takes over changed settings, by SIGHUP and from its file, and what it
says of them."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from abridge.config.loading import SettingsOrigin
from abridge.config.settings import Settings
from abridge.sidecar.app import create_app
from abridge.sidecar.server import reload
from abridge.sidecar.server.reload import Reloader
from tests.support.checker import check_responses
from tests.support.metrics_text import Metrics, scrape, scrape_until
from tests.support.servers import serve, soon, until
from tests.support.sidecar import HANG_UP, Sidecar, client, sidecar, streaming
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.upstream import Answer, Upstream

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="signals are sent as POSIX has them"
)

REQUEST = {"model": "m", "input": "Hi", "stream": True, "reasoning": {"summary": "auto"}}


def saying(text: str, *, gate: asyncio.Event | None = None) -> Upstream:
    frames = responses_stream([reasoning_item(0, THOUGHT), message_item(1, text)])
    return Upstream(Answer([*frames[:20], gate, *frames[20:]] if gate else frames))


def toml(url: str, **tables: Any) -> str:
    """Return a file of settings with one upstream."""
    text = f'[[upstreams]]\nname = "a"\nbase_url = "{url}/v1"\n'
    for table, keys in tables.items():
        lines = (f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
        text += f"[{table}]\n{''.join(lines)}"
    return text


class Mounted:
    """A file as a ConfigMap is mounted: a link to one in a folder that is a link itself."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        self.path = folder / "abridge.toml"
        self.path.symlink_to("data/abridge.toml")

    def write(self, text: str) -> None:
        """Change all files of the map at once."""
        self._number += 1
        version, new = self._folder / f"v{self._number}", self._folder / "new"
        version.mkdir()
        (version / "abridge.toml").write_text(text)
        new.symlink_to(version.name)
        new.replace(self._folder / "data")


@pytest.fixture
def file(tmp_path: Path) -> Mounted:
    return Mounted(tmp_path)


@asynccontextmanager
async def configured(
    file: Mounted, *flags: str, **environ: str
) -> AsyncIterator[tuple[Sidecar, httpx.AsyncClient]]:
    words = ("--config", str(file.path), *flags)
    async with sidecar(*words, **environ) as running, client() as session:
        yield running, session


async def text_of(session: httpx.AsyncClient, url: str) -> str:
    response = await session.post(f"{url}/v1/responses", json=REQUEST)
    return check_responses(response.content).text


async def test_a_changed_file_is_taken_over_while_streams_end_as_they_began(
    file: Mounted,
) -> None:
    gate = asyncio.Event()
    async with (
        serve(saying("First.", gate=gate), log_level="critical") as first,
        serve(saying("Second."), log_level="critical") as second,
    ):
        file.write(toml(first))
        async with (
            configured(file) as (running, session),
            streaming(session, running.url, REQUEST) as reading,
        ):
            file.write(toml(second, summary={"allow": ["concise"]}, server={"drain": 1}))
            await running.until("settings reloaded; changed: upstreams, summary.allow")
            await running.until("settings that need a restart stay as they were: server.drain")
            refused = await session.post(f"{running.url}/v1/responses", json=REQUEST)
            assert refused.status_code == 400
            await session.post(
                f"{running.url}/v1/responses",
                json={**REQUEST, "reasoning": {"summary": "concise"}},
            )
            gate.set()
            ended = check_responses(await soon(reading))
            assert (ended.text, len(ended.summary)) == ("First.", 1)
            counted = await scrape(session, running.metrics)
            assert counted.total("reloads_total", outcome="applied") == 1


async def test_a_mistake_leaves_the_settings_in_force_and_is_said_once(file: Mounted) -> None:
    async with serve(saying("Hello."), log_level="critical") as url:
        file.write(toml(url))
        async with configured(file) as (running, session):
            before = (await scrape(session, running.metrics)).total("settings_hash")
            file.write(toml(url, limits={"in_flight": 0}))
            await running.until("limits.in_flight")
            assert await text_of(session, running.url) == "Hello."
            counted = await scrape(session, running.metrics)
            assert counted.total("settings_refused") == 1
            assert counted.total("reloads_total", outcome="refused") == 1
            assert counted.total("settings_hash") == before
            file.path.unlink()
            await running.until("cannot be read")
            file.path.symlink_to("data/abridge.toml")
            file.write(toml(url, limits={"in_flight": 7}, review={"base_url": "http://m/v1"}))
            await running.until("changed: review.base_url, limits.in_flight")
            await running.until("reload: review.base_url: ")
            counted = await scrape(session, running.metrics)
            assert counted.total("settings_refused") == 0
            assert counted.total("requests_in_flight_limit") == 7
            assert counted.total("settings_hash") != before
            running.signal()
            assert await running.end() == 0
            lines = [line for line in running.output.splitlines() if "not reloaded" in line]
            assert len(lines) == 2
            assert f"{file.path}:5: limits.in_flight: " in lines[0]


async def test_sighup_reads_secrets_again_even_if_the_file_is_as_it_was(
    file: Mounted, tmp_path: Path
) -> None:
    upstream, secret = saying("Hello."), tmp_path / "key"
    secret.write_text("key-one")
    async with serve(upstream, log_level="critical") as url:
        file.write(toml(url).replace("name", 'api_key_env = "UP_KEY"\nname'))
        async with configured(file, UP_KEY_FILE=str(secret)) as (running, session):
            await text_of(session, running.url)
            secret.write_text("key-two")
            running.signal(HANG_UP)
            await running.until("settings reloaded; changed: nothing")
            await text_of(session, running.url)
            secret.unlink()
            running.signal(HANG_UP)
            await running.until("upstreams[0].api_key_env (of 'a'): the file that")
            await text_of(session, running.url)
    sent = [request.header("authorization") for request in upstream.requests]
    assert sent == ["Bearer key-one", "Bearer key-two", "Bearer key-two"]


def upstreams(seen: Metrics) -> list[float]:
    """Return whether the upstreams `a` and `b` are served. A worker says so after its limits."""
    return [seen.total("upstream_info", upstream=name) for name in "ab"]


async def test_every_worker_takes_over_a_changed_file_and_sighup_and_so_does_a_new_one(
    file: Mounted, tmp_path: Path
) -> None:
    """Though the settings that they began with hold no longer."""
    two, secret = ("--workers", "2", "--admin-port", "0"), tmp_path / "key"
    secret.write_text("key-one")
    environ = {"UP_KEY_FILE": str(secret), "ABRIDGE_HISTORY__STORE": "none"}
    async with serve(saying("Hello."), log_level="critical") as url:
        first = toml(url).replace("name", 'api_key_env = "UP_KEY"\nname')
        file.write(first)
        async with configured(file, *two, **environ) as (running, session):
            workers = running.workers
            before = (await scrape(session, running.metrics)).total("settings_hash")
            file.write(toml(url, limits={"in_flight": 7}).replace('"a"', '"b"'))
            limit = "requests_in_flight_limit"
            seen = await scrape_until(
                session,
                running.metrics,
                lambda seen: seen.total(limit) == 14 and upstreams(seen) == [0, 1],
            )
            after = seen.total("settings_hash")
            running.signal(HANG_UP)
            await scrape_until(
                session,
                running.metrics,
                lambda seen: seen.total("reloads_total", outcome="applied") == 4,
            )
            assert running.workers == workers
            secret.unlink()
            os.kill(workers[0], signal.SIGKILL)
            await until(lambda: workers[0] not in running.workers and len(running.workers) == 2)
            await running.until(f"worker {workers[0]} died")
            await scrape_until(session, running.metrics, lambda seen: seen.total(limit) == 14)
            assert await text_of(session, running.url) == "Hello."
            secret.write_text("key-one")
            file.write(first)
            seen = await scrape_until(
                session,
                running.metrics,
                lambda seen: seen.total(limit) == 2000 and upstreams(seen) == [1, 0],
            )
            assert seen.total("settings_hash") == before != after
            running.signal()
            assert await running.end() == 0


@pytest.mark.parametrize("is_asked", [False, True])
async def test_a_file_is_read_once_it_is_found_the_same_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_asked: bool
) -> None:
    """One that is being written changes between two looks."""
    monkeypatch.setattr(reload, "LOOK_SECONDS", 0.01)
    file = tmp_path / "abridge.toml"
    file.write_text(toml("http://127.0.0.1:9"))
    origin = SettingsOrigin(file)
    app = create_app(origin.read().load_served())
    reloader, looks = Reloader(app, origin), list[float]()
    loop = asyncio.get_running_loop()

    def stamp(_: Path) -> tuple[float, ...]:
        looks.append(limit := app.settings.limits.in_flight)
        if is_asked:
            loop.call_soon_threadsafe(reloader.ask)
        if len(looks) < 30:
            file.write_text(toml("http://127.0.0.1:9", limits={"in_flight": 2000 + len(looks)}))
            return (len(looks),)
        return (limit and 30,)

    monkeypatch.setattr(reload, "current_stamp", stamp)
    running = asyncio.create_task(reloader.run())
    await until(lambda: app.settings.limits.in_flight == 2029)
    running.cancel()
    assert set(looks[2:31]) <= {1000, 2001}
    await app.aclose()


def test_the_origin_of_settings_reaches_a_worker_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "abridge.toml"
    file.write_text(toml("http://127.0.0.1:9"))
    origin = SettingsOrigin(file, {"server": {"port": 1}}, {"server.port": "--port"})
    again: SettingsOrigin = pickle.loads(pickle.dumps(origin))  # noqa: S301 -- its own
    assert isinstance(again.read().load_served(), Settings)
    assert again.read().load_served().server.port == 1
