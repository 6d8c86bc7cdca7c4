"""How fifty streams, and what was counted of them, come to their end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from itertools import chain, repeat

import httpx
import pytest

from abridge.sidecar.admin import LEAST_SCRAPES
from tests.support.checker import check_responses
from tests.support.metrics_text import Metrics, scrape, scrape_until
from tests.support.servers import HANG, serve, soon, until
from tests.support.sidecar import (
    Sidecar,
    client,
    in_front_of,
    sidecar,
    status,
    streaming,
    until_status,
)
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.upstream import Answer, ReceivedRequest, Upstream
from tests.support.websockets import checked, opened

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="signals are sent as POSIX has them"
)
alone = partial(pytest.param, marks=pytest.mark.repeat)
"""A case of one process, of which the other tests here are as well."""

FRAMES = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")])
BEGINNING, REST = FRAMES[:20], FRAMES[20:]
PATIENT = {"ABRIDGE_SERVER__DRAIN_DELAY": "600", "ABRIDGE_SERVER__DRAIN": "600"}
NOTHING_KEPT = {"ABRIDGE_HISTORY__STORE": "none"}
FINISHED, STUCK, LATE = 40, 10, 5
FRESH = 20
"""So many new connections in a row have found every worker there is, as good as surely."""


def asking_for(kind: str) -> dict[str, object]:
    return {"model": "m", "input": kind, "stream": True, "reasoning": {"summary": "auto"}}


class Slow(Upstream):
    """What is asked to wait does so in the midst of thinking, and in vain if it is stuck."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    def answer(self, request: ReceivedRequest) -> Answer:
        waits = {"waiting": [self.gate], "stuck": [asyncio.Event()], "quick": []}
        return Answer([*BEGINNING, *waits[request.json["input"]], *REST])


class Scraper:
    """Prometheus, with no rest: `last` is what it was told last."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.last = Metrics("")

    async def __call__(self) -> None:
        """Until nobody is there any more."""
        async with client() as session:
            while await status(session, self._url):
                try:
                    self.last = await scrape(session, self._url)
                except httpx.TransportError:
                    continue
                await asyncio.sleep(0.05)


@asynccontextmanager
async def scraped_sidecar(
    *flags: str, drain: str = "600", **variables: str
) -> AsyncIterator[tuple[Sidecar, httpx.AsyncClient]]:
    """Run a sidecar with an admin port, in front of a server that may be slow."""
    drained = {**variables, "ABRIDGE_SERVER__DRAIN": drain}
    async with in_front_of(Slow(), "--admin-port", "0", *flags, **drained) as (running, session):
        yield running, session


async def scrape_at_an_interval(session: httpx.AsyncClient, running: Sidecar) -> None:
    for _ in range(LEAST_SCRAPES):
        await scrape(session, running.metrics)


async def until_none_is_ready(session: httpx.AsyncClient, running: Sidecar) -> None:
    async with asyncio.timeout(HANG):
        in_a_row = 0
        while in_a_row < FRESH:
            found = await status(session, f"{running.url}/abridge/readyz")
            assert found in (200, 503)
            in_a_row = in_a_row + 1 if found == 503 else 0


@pytest.mark.parametrize("workers", [alone(1), 2])
async def test_every_stream_gets_its_end_and_the_last_scrape_has_all(workers: int) -> None:
    upstream = Slow()
    async with (
        in_front_of(
            upstream,
            *("--admin-port", "0", "--workers", str(workers)),
            **PATIENT,
            **NOTHING_KEPT,
        ) as (running, session),
        AsyncExitStack() as streams,
    ):
        kinds = chain(repeat("waiting", FINISHED), repeat("stuck", STUCK))
        readings = [
            await streams.enter_async_context(streaming(session, running.url, asking_for(kind)))
            for kind in kinds
        ]
        await scrape_until(
            session, running.metrics, lambda scraped: scraped.total("streams_open") == 50
        )
        scraper = Scraper(running.metrics)
        scraping = asyncio.create_task(scraper())

        running.signal()
        await until_status(session, f"{running.admin}/readyz", 503)
        await until_none_is_ready(session, running)
        for _ in range(LATE):
            late = await session.post(f"{running.url}/v1/responses", json=asking_for("quick"))
            assert check_responses(late.content).text == "Hello."

        running.signal()  # enough of the delay
        await until_status(session, f"{running.url}/abridge/readyz", 0)
        upstream.gate.set()
        for reading in readings[:FINISHED]:
            assert check_responses(await soon(reading)).kinds[-1] == "response.completed"
        assert not any(reading.done() for reading in readings[FINISHED:])

        running.signal()  # enough of waiting
        for reading in readings[FINISHED:]:
            assert check_responses(await soon(reading)).kinds[-1] == "response.failed"
        assert await running.end() == 0
        await soon(scraping)
        assert scraper.last.total("requests_total", outcome="ok") == FINISHED + LATE
        assert scraper.last.total("requests_total", outcome="failed") == STUCK
        assert scraper.last.total("streams_open") == 0


class TestLastScrape:
    """With an admin port, on which somebody collects the metrics."""

    @pytest.mark.parametrize("workers", [alone(1), 2])
    async def test_the_server_waits_for_the_last_scrape(self, workers: int) -> None:
        flags = "--workers", str(workers)
        async with scraped_sidecar(*flags, **NOTHING_KEPT) as (running, session):
            await scrape_at_an_interval(session, running)
            await session.post(f"{running.url}/v1/responses", json=asking_for("quick"))
            running.signal()
            await running.until("waiting up to")
            await asyncio.sleep(0.5)  # for longer than a server takes to end
            assert await status(session, f"{running.admin}/readyz") == 503
            scraped = await scrape(session, running.metrics)
            assert scraped.total("requests_total", outcome="ok") == 1
            assert await running.end() == 0

    async def test_the_wait_for_a_scrape_ends_in_time_or_at_a_signal(self) -> None:
        for drain, signals in (("0.5", 1), ("600", 2)):
            async with scraped_sidecar(drain=drain) as (running, session):
                await scrape_at_an_interval(session, running)
                await session.post(f"{running.url}/v1/responses", json=asking_for("quick"))
                running.signal()
                await running.until("waiting up to")
                for _ in range(signals - 1):
                    running.signal()
                assert await running.end() == 0

    async def test_no_wait_if_everything_was_scraped(self) -> None:
        async with scraped_sidecar() as (running, session):
            await scrape(session, running.metrics)
            await session.post(f"{running.url}/v1/responses", json=asking_for("quick"))
            await scrape_until(
                session, running.metrics, lambda scraped: scraped.total("requests_total") == 1
            )
            running.signal()
            assert await running.end() == 0
            assert "waiting" not in running.output

    async def test_no_wait_if_somebody_only_had_a_look(self) -> None:
        async with scraped_sidecar() as (running, session):
            await scrape(session, running.metrics)
            await session.post(f"{running.url}/v1/responses", json=asking_for("quick"))
            running.signal()
            assert await running.end() == 0
            assert "not waiting for the last metrics" in running.output


@pytest.mark.parametrize("workers", [alone(1), 2])
async def test_a_websocket_is_closed_once_its_answer_is_complete(workers: int) -> None:
    upstream = Slow()
    async with (
        serve(upstream) as url,
        sidecar("--upstream", f"{url}/v1", "--workers", str(workers), **NOTHING_KEPT) as running,
        opened(running.url) as client,
        opened(running.url) as idle,
    ):
        await client.create(input="waiting")
        await until(lambda: upstream.running == 1)
        running.signal()
        assert await idle.close_code() == 1012
        upstream.gate.set()
        checked(await client.answer())
        assert await client.close_code() == 1012
        assert await running.end() == 0


async def test_a_websocket_whose_answer_is_stuck_is_told_and_closed() -> None:
    upstream = Slow()
    stop_soon = {"ABRIDGE_SERVER__DRAIN": "0.5"}
    async with (
        serve(upstream) as url,
        sidecar("--upstream", f"{url}/v1", **stop_soon) as running,
        opened(running.url) as client,
    ):
        await client.create(input="stuck")
        await until(lambda: upstream.running == 1)
        running.signal()
        assert (await client.answer())[-1]["type"] == "response.failed"
        assert await client.close_code() == 1012
        assert await running.end() == 0
