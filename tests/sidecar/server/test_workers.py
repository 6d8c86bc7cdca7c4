"""Several processes that serve as one."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import sys
from collections import Counter
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from subprocess import Popen, run

import httpx
import pytest

from abridge.sidecar.server.workers import processor_use
from tests.support.checker import ResponsesStream, check_responses
from tests.support.metrics_text import Metrics, scrape, scrape_until
from tests.support.redis_server import Server
from tests.support.servers import soon, until
from tests.support.sidecar import (
    HANG_UP,
    IN_TERMINAL,
    Sidecar,
    client,
    environment,
    in_front_of,
    sidecar,
    status,
    streaming,
    until_status,
)
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.upstream import Answer, Upstream

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="workers are found as Linux lists them"
)
repeat = partial(pytest.param, marks=pytest.mark.repeat)

FRAMES = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")])
BEGINNING = FRAMES[:20]
REQUEST = {"model": "m", "input": "Hi", "stream": True, "reasoning": {"summary": "auto"}}
NOTHING_KEPT = {"ABRIDGE_HISTORY__STORE": "none"}
SOON_CUT = {**NOTHING_KEPT, "ABRIDGE_SERVER__DRAIN": "0.1"}
DELAYED = {"ABRIDGE_SERVER__DRAIN_DELAY": "600"}
LONG = {**NOTHING_KEPT, "ABRIDGE_SERVER__DRAIN": "600"}


TWO = ("--workers", "2", "--admin-port", "0")


def flags(number: int) -> tuple[str, ...]:
    """Have so many workers in front of nothing."""
    ports = "--upstream", "http://127.0.0.1:9/v1", "--admin-port", "0"
    return (*ports, "--workers", str(number))


def thinker() -> Upstream:
    return Upstream(Answer(FRAMES))


def stuck() -> Upstream:
    """It never comes to an end."""
    return Upstream(Answer([*BEGINNING, asyncio.Event()]))


class Account:
    """What a client counts of the answers it got."""

    def __init__(self, running: Sidecar) -> None:
        self._running = running
        self.of: Counter[str] = Counter()

    async def send_requests(self, session: httpx.AsyncClient, times: int) -> None:
        responses = (
            session.post(f"{self._running.url}/v1/responses", json=REQUEST) for _ in range(times)
        )
        for response in await soon(asyncio.gather(*responses)):
            self._add(check_responses(response.content))

    def _add(self, seen: ResponsesStream) -> None:
        usage = seen.response["usage"]
        self.of["requests_total"] += seen.kinds[-1] == "response.completed"
        self.of["summaries_total"] += bool(seen.summary)
        self.of["first_answer_seconds_count"] += bool(seen.text)
        self.of["first_part_seconds_count"] += bool(seen.summary)
        self.of["reasoning_characters_total"] += len(THOUGHT)
        self.of["upstream_tokens_total"] += usage["input_tokens"] + usage["output_tokens"]
        self.of["upstream_tokens_total"] += usage["output_tokens_details"]["reasoning_tokens"]

    def matches(self, scraped: Metrics) -> bool:
        return {name: scraped.total(name) for name in self.of} == self.of


def has_open(streams: int, scraped: Metrics) -> bool:
    gauges = ("streams_open", "requests_in_flight")
    return [scraped.total(gauge) for gauge in gauges] == [streams, streams]


def has_new_worker(running: Sidecar, before: set[int]) -> bool:
    return bool(set(running.workers) - before)


async def replaced(running: Sidecar, killed: int, of: int) -> None:
    await until(lambda: killed not in running.workers and len(running.workers) == of)
    await running.until(f"worker {killed} died")


async def test_the_figures_are_the_clients_own_whoever_dies(redis_server: Server) -> None:
    pytest.importorskip("cryptography")
    key = base64.b64encode(bytes(32)).decode()
    async with (
        in_front_of(
            thinker(),
            *TWO,
            ABRIDGE_HISTORY__STORE=redis_server.url,
            ABRIDGE_HISTORY__SEAL_KEYS_ENV="KEYS",
            KEYS=f"one:{key}",
        ) as (running, session),
    ):
        account = Account(running)
        for _ in range(2):
            await account.send_requests(session, 40)
            await scrape_until(session, running.metrics, account.matches)
            killed = running.workers[0]
            os.kill(killed, signal.SIGKILL)
            replacing = asyncio.create_task(replaced(running, killed, 2))
            while not replacing.done():
                assert account.matches(await scrape(session, running.metrics))
                await asyncio.sleep(0.1)
            await replacing
            scraped = await scrape(session, running.metrics)
            assert account.matches(scraped)
            assert scraped.total("workers") == 2


async def test_what_a_dead_worker_had_at_hand_is_no_more() -> None:
    async with (
        in_front_of(stuck(), *TWO, **SOON_CUT) as (running, session),
        AsyncExitStack() as open_ones,
    ):
        readings = [
            await open_ones.enter_async_context(streaming(session, running.url, REQUEST))
            for _ in range(12)
        ]
        await scrape_until(session, running.metrics, partial(has_open, 12))
        for worker in running.workers:
            os.kill(worker, signal.SIGKILL)
            await replaced(running, worker, 2)
            whole = [reading for reading in readings if not reading.done()]
            scraped = await scrape_until(session, running.metrics, partial(has_open, len(whole)))
            assert scraped.total("workers") == 2
            assert scraped.total("requests_total") == 0
        assert not whole
        assert all(isinstance(reading.exception(), httpx.HTTPError) for reading in readings)


async def test_a_frozen_worker_is_replaced_and_none_outlives_the_supervisor() -> None:
    async with sidecar(*flags(2), **LONG) as running, client() as session:
        frozen, other = running.workers
        os.kill(frozen, signal.SIGSTOP)
        await replaced(running, frozen, 2)
        assert other in running.workers
        assert (await scrape(session, running.metrics)).total("workers") == 2
        running.process.kill()
        assert await running.end() == -signal.SIGKILL  # at the end of all that was said
        assert running.output.count("not ready any more") == 2


class TestProcessorUse:
    def test_it_stands_still_while_a_process_is_stopped(self) -> None:
        stop_itself = "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)"
        process = Popen([sys.executable, "-c", stop_itself])  # noqa: S603 -- this test's own words
        try:
            os.waitid(os.P_PID, process.pid, os.WSTOPPED)
            assert processor_use(process.pid) == processor_use(process.pid) is not None
        finally:
            process.kill()
            process.wait()

    def test_it_is_unknown_while_a_process_runs_and_once_it_has_ended(self) -> None:
        assert processor_use(os.getpid()) is None
        assert processor_use(None) is None


async def test_on_defaults_they_say_what_is_not_shared_and_sighup_ends_none() -> None:
    async with in_front_of(thinker(), *TWO) as (running, session):
        assert "2 processes" in running.banner[1]
        await running.until("server.workers: 2 processes cannot share history.store")
        workers = running.workers
        assert len(workers) == 2
        for base in (f"{running.url}/abridge", running.admin):
            assert (await session.get(f"{base}/healthz")).text == "ok\n"
            assert (await session.get(f"{base}/readyz")).text == "ready\n"
        assert (await scrape(session, running.metrics)).total("workers") == 2
        running.interrupt(HANG_UP)
        await running.until("settings reloaded; changed: nothing")
        assert await status(session, f"{running.url}/abridge/readyz") == 200
        assert running.workers == workers
        running.signal()
        assert await running.end() == 0
        assert "SIGHUP" not in running.output


async def test_without_an_admin_port_any_worker_has_the_metrics_of_all() -> None:
    async with in_front_of(thinker(), "--workers", "2", **NOTHING_KEPT) as (running, session):
        account = Account(running)
        await account.send_requests(session, 12)
        await scrape_until(session, running.metrics, account.matches)
        each = [(await scrape(session, running.metrics)).counted for _ in range(12)]
        assert all(counted == each[0] for counted in each)


async def test_their_folder_goes_with_them_and_json_lines_carry_process_and_number(
    tmp_path: Path,
) -> None:
    words = (*flags(2), "--log-format", "json")
    async with sidecar(*words, **NOTHING_KEPT, TMPDIR=str(tmp_path)) as running:
        (folder,) = found(tmp_path, "abridge-*")
        assert found(folder, "counter_*.db")
        workers = running.workers
        running.signal()
        assert await running.end() == 0
    assert not found(tmp_path, "*")
    lines = [json.loads(line) for line in running.output.splitlines()]
    assert {line["pid"] for line in lines if "worker" not in line} <= {running.process.pid}
    drained = {line["pid"]: line["worker"] for line in lines if "not ready" in line["message"]}
    assert drained.keys() == set(workers)
    assert sorted(drained.values()) == [1, 2]


class TestFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """One with something left in it."""
        folder = tmp_path / "figures"
        folder.mkdir()
        (folder / "counter_1.db").write_bytes(b"left")
        (folder / "notes").touch()
        return folder

    async def test_the_users_own_is_emptied_of_what_was_left(self, folder: Path) -> None:
        at = {"PROMETHEUS_MULTIPROC_DIR": str(folder)}
        async with (
            sidecar(*flags(2), **NOTHING_KEPT, **at) as running,
            client() as session,
        ):
            scraped = await scrape(session, running.metrics)
            assert scraped.total("requests_in_flight_limit") == 2 * 1000
            gauges = {f"gauge_livesum_{worker}.db" for worker in running.workers}
            assert {file.name for file in found(folder, "gauge_livesum_*.db")} == gauges
            running.signal()
            assert await running.end() == 0
        assert found(folder, "notes")

    async def test_one_process_alone_begins_anew_in_it_too(self, tmp_path: Path) -> None:
        at = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path / "figures")}
        for _ in range(2):
            async with (
                sidecar(*flags(1), **at) as running,
                client() as session,
            ):
                scraped = await scrape_until(
                    session, running.metrics, lambda scraped: scraped.total("workers") > 0
                )
                assert scraped.total("workers") == 1
                assert scraped.total("requests_in_flight_limit") == 1000
                running.process.kill()
                assert await running.end() == -signal.SIGKILL

    @pytest.mark.parametrize("workers", [repeat(1), 2])
    def test_where_it_cannot_be_kept(self, folder: Path, workers: int) -> None:
        at = {"PROMETHEUS_MULTIPROC_DIR": str(folder / "notes")}
        words = ("-m", "abridge", "serve", "--port", "0", *flags(workers))
        ended = run(  # noqa: S603 -- this test's own words
            [sys.executable, *words],
            capture_output=True,
            check=False,
            text=True,
            env=environment({**NOTHING_KEPT, **at}),
        )
        assert ended.returncode == 2
        assert ended.stderr == (
            "Error: PROMETHEUS_MULTIPROC_DIR: cannot use this folder: File exists\n"
        )


def found(folder: Path, pattern: str) -> list[Path]:
    return list(folder.glob(pattern))


class TestEnd:
    @pytest.mark.parametrize(
        ("number", "prefix"),
        [repeat(signal.SIGINT, ()), (HANG_UP, IN_TERMINAL)],
    )
    async def test_idle_ones_leave_at_once_and_well(
        self, number: signal.Signals, prefix: tuple[str, ...]
    ) -> None:
        async with sidecar(*flags(2), **LONG, prefix=prefix) as running:
            running.signal(number)
            assert await running.end() == 0
            assert running.output.count("not ready any more") == 2
            assert "Traceback" not in running.output

    @pytest.mark.parametrize("number", [signal.SIGINT, repeat(HANG_UP)])
    async def test_what_a_terminal_sends_counts_once(self, number: signal.Signals) -> None:
        async with (
            in_front_of(stuck(), *TWO, **LONG, **DELAYED, prefix=IN_TERMINAL) as (running, session),
            streaming(session, running.url, REQUEST) as reading,
        ):
            running.interrupt(number)
            await until_status(session, f"{running.admin}/readyz", 503)
            for _ in range(5):  # for longer than a server takes to see that it shall exit
                assert await status(session, f"{running.url}/abridge/healthz") == 200
                await asyncio.sleep(0.1)
            running.interrupt(number)
            await until_status(session, f"{running.url}/abridge/healthz", 0)
            assert not reading.done()
            running.interrupt(number)
            assert check_responses(await soon(reading)).kinds[-1] == "response.failed"
            assert await running.end() == 0
            assert "Traceback" not in running.output

    async def test_no_worker_is_replaced_during_shutdown(self) -> None:
        async with in_front_of(stuck(), *TWO, **LONG, **DELAYED) as (running, session):
            running.signal()
            await until_status(session, f"{running.admin}/readyz", 503)
            killed, left = running.workers
            os.kill(killed, signal.SIGKILL)
            await running.until(f"worker {killed} ended with -9")
            assert running.workers == [left]
            running.signal()
            assert await running.end() == 1

    async def test_one_that_dies_as_it_starts_is_replaced_too(self) -> None:
        async with sidecar(*flags(2), **LONG) as running, client() as session:
            for number in (signal.SIGBUS, signal.SIGTERM):
                before = set(running.workers)
                os.kill(max(before), signal.SIGKILL)
                await until(partial(has_new_worker, running, before))
                os.kill(*(set(running.workers) - before), number)
                await running.until(f"died during startup: signal {number.value}")
                running.output = ""
                await running.until("replaces it")
                scraped = await scrape(session, running.metrics)
                assert scraped.total("workers") == len(running.workers) == 2

    async def test_what_cannot_start_again_is_tried_while_others_serve(
        self, tmp_path: Path
    ) -> None:
        key = tmp_path / "key"
        key.write_text("secret")
        upstreams = [{"base_url": "http://127.0.0.1:9/v1", "api_key_env": "KEY"}]
        async with sidecar(
            *("--workers", "2"),
            **LONG,
            ABRIDGE_UPSTREAMS=json.dumps(upstreams),
            KEY_FILE=str(key),
        ) as running:
            key.unlink()
            killed, left = running.workers
            os.kill(killed, signal.SIGKILL)
            await running.until("did not start; trying again in 2 s")
            assert running.output.count("did not start; trying again in 1 s") == 1
            assert running.workers == [left]
            async with client() as session:
                assert await status(session, f"{running.url}/abridge/healthz") == 200
                scraped = await scrape(session, running.metrics)
                assert scraped.total("worker_start_failures_total") == 2
            key.write_text("secret")
            await running.until("replaces it")
            assert len(running.workers) == 2
            key.unlink()
            for each in running.workers:
                os.kill(each, signal.SIGKILL)
            assert await running.end() == 3
            assert "api_key_env (of 'default'): the file that" in running.output
            assert "did not start" in running.output
            assert "Traceback" not in running.output
