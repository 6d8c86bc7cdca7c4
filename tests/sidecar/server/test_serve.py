"""Test `abridge serve` as a process: its start, its shutdown and its log."""

from __future__ import annotations

import asyncio
import logging
import signal
from pathlib import Path

import httpx
import pytest

from abridge.sidecar.server.serve import filter_uvicorn_log
from tests.support.checker import check_responses
from tests.support.servers import HANG, connect, serve, soon, until
from tests.support.sidecar import (
    HANG_UP,
    IN_TERMINAL,
    client,
    in_front_of,
    sidecar,
    status,
    streaming,
    until_status,
)
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.upstream import Answer, Upstream

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="signals are sent as POSIX has them"
)

FRAMES = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")])
BEGINNING = FRAMES[:20]
REQUEST = {"model": "m", "input": "Hi", "stream": True, "reasoning": {"summary": "auto"}}
PLAIN = {"model": "m", "input": "Hi", "stream": True}
DRAIN, SOON_CUT = {"ABRIDGE_SERVER__DRAIN": "600"}, {"ABRIDGE_SERVER__DRAIN": "0.1"}
DELAYED = {"ABRIDGE_SERVER__DRAIN_DELAY": "600"}
BOTH = ("--admin-port", "0")


def reasoning_upstream() -> Upstream:
    return Upstream(Answer(FRAMES))


def pausing_upstream(gate: asyncio.Event) -> Upstream:
    """Return an upstream that pauses during its reasoning."""
    return Upstream(Answer([*BEGINNING, gate, *FRAMES[len(BEGINNING) :]]))


async def until_text(client: httpx.AsyncClient, url: str, expected: str) -> None:
    """Wait for a text in the metrics; a request may be counted after its client has read all."""
    async with asyncio.timeout(HANG):
        while expected not in (await client.get(url)).text:  # noqa: ASYNC110 -- another process
            await asyncio.sleep(0.02)


class TestStart:
    async def test_the_banner_names_the_addresses(self) -> None:
        flags = ("--summary", "concise", "--profile", "vllm", "--api", "chat", *BOTH)
        async with sidecar("--upstream", "http://127.0.0.1:9/v1", *flags) as running:
            first, upstream, summarizer, style, metrics = running.banner
            assert first.startswith("abridge ")
            assert not running.url.endswith(":0")
            assert "default: http://127.0.0.1:9/v1, models *, profile vllm, api chat" in upstream
            assert "extractive" in summarizer
            assert "concise" in style
            assert metrics.endswith("/metrics")
            assert running.admin != running.url

    async def test_flags_override_the_environment_which_overrides_the_file(
        self, tmp_path: Path
    ) -> None:
        file = tmp_path / "abridge.toml"
        file.write_text(
            '[summary]\ndefault = "concise"\n'
            '[summarizer]\nkind = "model"\nmodel = "of-file"\nbase_url = "http://127.0.0.1:9/v1"\n'
            '[[upstreams]]\nname = "one"\nbase_url = "http://127.0.0.1:9/v1"\nmodels = ["a*"]\n'
            '[[upstreams]]\nname = "two"\nbase_url = "http://127.0.0.1:9/v2"\n'
        )
        flags = ("--config", str(file), "--summarizer-model", "of-flags")
        async with sidecar(*flags, ABRIDGE_SUMMARY__DEFAULT="detailed") as running:
            output = "\n".join(running.banner)
            assert "one: http://127.0.0.1:9/v1, models a*" in output
            assert "two: http://127.0.0.1:9/v2, models *" in output
            assert "model of-flags at http://127.0.0.1:9/v1" in output
            assert "detailed" in output

    async def test_health_is_on_both_ports_and_the_metrics_on_the_admin_port(self) -> None:
        async with in_front_of(reasoning_upstream(), *BOTH) as (running, session):
            for base in (f"{running.url}/abridge", running.admin):
                assert (await session.get(f"{base}/healthz")).text == "ok\n"
                assert (await session.get(f"{base}/readyz")).text == "ready\n"
            await session.post(f"{running.url}/v1/responses", json=REQUEST)
            await until_text(session, running.metrics, 'outcome="ok"')
            closed = await session.get(f"{running.url}/abridge/metrics")
            assert (closed.status_code, closed.text) == (
                404,
                "The metrics are on the admin port.\n",
            )

    async def test_one_port_has_summaries_metrics_and_the_settings_times_for_idle_ones(
        self,
    ) -> None:
        times = {"ABRIDGE_SERVER__KEEP_ALIVE": "0.2", "ABRIDGE_LIMITS__CLIENT": "1"}
        async with in_front_of(reasoning_upstream(), **times) as (running, session):
            response = await session.post(f"{running.url}/v1/responses", json=REQUEST)
            assert check_responses(response.content).summary
            assert not {"server", "date"} & set(response.headers)
            assert running.metrics == f"{running.url}/abridge/metrics"
            await until_text(session, running.metrics, 'outcome="ok"')
            async with connect(running.url) as peer:
                await peer.send(b"GET /abridge/healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                assert (await soon(peer.response())).body == b"ok\n"
                assert await soon(peer.reader.read()) == b""


class TestEnd:
    @pytest.mark.parametrize(
        ("number", "prefix"),
        [(signal.SIGINT, ()), (HANG_UP, IN_TERMINAL)],
    )
    async def test_an_idle_server_exits_at_once_with_code_0(
        self, number: signal.Signals, prefix: tuple[str, ...]
    ) -> None:
        flags = ("--upstream", "http://127.0.0.1:9/v1", *BOTH)
        async with sidecar(*flags, **DRAIN, prefix=prefix) as running, client() as session:
            await session.get(f"{running.admin}/healthz")
            running.signal(number)
            assert await running.end() == 0
            assert number.name in running.output
            assert "Traceback" not in running.output

    async def test_without_a_terminal_sighup_ends_nothing(self) -> None:
        flags = ("--upstream", "http://127.0.0.1:9/v1", *BOTH)
        async with sidecar(*flags, **DRAIN) as running, client() as session:
            running.signal(HANG_UP)
            await running.until("settings reloaded; changed: nothing")
            assert await status(session, f"{running.url}/abridge/readyz") == 200
            running.signal()
            assert await running.end() == 0
            assert "SIGTERM" in running.output

    async def test_during_the_drain_delay_it_is_unready_but_accepts(self) -> None:
        async with in_front_of(reasoning_upstream(), *BOTH, **DELAYED) as (running, session):
            running.signal()
            await until_status(session, f"{running.admin}/readyz", 503)
            assert await status(session, f"{running.url}/abridge/readyz") == 503
            assert await status(session, f"{running.admin}/healthz") == 200
            for _ in range(5):  # longer than a server takes to notice a signal
                async with client() as newcomer:
                    response = await newcomer.post(f"{running.url}/v1/responses", json=REQUEST)
                assert check_responses(response.content).text == "Hello."
                await asyncio.sleep(0.1)
            running.signal()
            assert await running.end() == 0

    async def test_a_running_stream_finishes_after_the_port_is_closed(self) -> None:
        gate = asyncio.Event()
        async with (
            in_front_of(pausing_upstream(gate), *BOTH, **DRAIN) as (running, session),
            streaming(session, running.url, REQUEST) as reading,
        ):
            running.signal()
            await until_status(session, f"{running.url}/abridge/readyz", 0)
            assert await status(session, f"{running.admin}/readyz") == 503
            gate.set()
            seen = check_responses(await soon(reading))
            assert seen.kinds[-1] == "response.completed"
            assert seen.text == "Hello."
            assert await running.end() == 0

    async def test_a_stream_past_the_drain_time_gets_an_error(self) -> None:
        async with (
            in_front_of(pausing_upstream(asyncio.Event()), *BOTH, **SOON_CUT) as (running, session),
            streaming(session, running.url, REQUEST) as reading,
        ):
            running.signal()
            seen = check_responses(await soon(reading))
            assert seen.kinds[-1] == "response.failed"
            assert "shutting down" in seen.response["error"]["message"]
            assert await running.end() == 0
            assert "cancelling 1 requests" in running.output
            assert "Traceback" not in running.output

    async def test_a_client_still_waiting_gets_an_error_response(self) -> None:
        upstream = Upstream(Answer(before=[asyncio.Event()]))
        async with in_front_of(upstream, **SOON_CUT) as (running, session):
            posts = [session.post(f"{running.url}/v1/responses", json=b) for b in (PLAIN, REQUEST)]
            reading = asyncio.gather(*posts)
            await until(lambda: len(upstream.requests) == len(posts))
            running.signal()
            for response in await soon(reading):
                assert response.status_code == 503
                assert "shutting down" in response.json()["error"]["message"]
                assert response.headers["retry-after"] == "1"
            assert await running.end() == 0
            assert "Traceback" not in running.output

    async def test_a_second_signal_ends_draining(self) -> None:
        async with (
            in_front_of(pausing_upstream(asyncio.Event()), **DRAIN) as (running, session),
            streaming(session, running.url, REQUEST) as reading,
        ):
            running.signal()
            await running.until("closing; 1 requests")
            running.signal(signal.SIGINT)
            assert check_responses(await soon(reading)).kinds[-1] == "response.failed"
            assert await running.end() == 0

    async def test_a_client_that_does_not_read_does_not_delay_the_exit(self) -> None:
        flood = Answer([b"data: x\n\n" * 100_000] * 50)
        async with (
            serve(Upstream(flood)) as upstream,
            sidecar(*("--upstream", f"{upstream}/v1"), **SOON_CUT) as running,
        ):
            host, _, port = running.url.removeprefix("http://").partition(":")
            reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
            writer.write(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n")
            await soon(reader.readexactly(100))
            running.signal()
            await running.until("cancelling 1 requests")
            running.signal()
            assert await running.end() == 0
            writer.close()


class TestLog:
    async def test_a_broken_upstream_is_logged_in_one_line(self) -> None:
        broken = Answer([*BEGINNING, OSError("gone")])
        async with in_front_of(Upstream(broken)) as (running, session):
            with pytest.raises(httpx.RemoteProtocolError):
                await session.post(f"{running.url}/v1/responses?k=secret", json=PLAIN)
            running.signal()
            assert await running.end() == 0
            lines = [line for line in running.output.splitlines() if "INFO" not in line]
            assert len(lines) == 1, running.output
            assert "upstream default" in lines[0]
            assert "secret" not in running.output


@pytest.mark.parametrize(
    ("error", "path", "stays"),
    [
        (ValueError("odd"), "websockets_impl.py", True),
        (asyncio.CancelledError(), "httptools_impl.py", False),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "websockets_impl.py", False),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "httptools_impl.py", True),
    ],
)
def test_nothing_is_logged_that_a_client_alone_brings_about(
    error: BaseException, path: str, *, stays: bool
) -> None:
    cause = (type(error), error, None)
    record = logging.LogRecord("uvicorn.error", logging.ERROR, path, 0, "It failed.", (), cause)
    assert filter_uvicorn_log(record) is stays
