"""Test the proxy's metrics and its fields of a request's record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import httpx
import pytest
from prometheus_client import CollectorRegistry

from abridge.errors import UpstreamBroken
from abridge.observability.record import RECORD, Record
from abridge.sidecar.proxy.proxy import Proxy
from tests.sidecar.proxy.upstreams import FakeUpstream, settings
from tests.support.asgi import begin, call, scope_for
from tests.support.counters import total


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def proxy(answer: httpx.Response | Exception, registry: CollectorRegistry) -> Proxy:
    return Proxy(settings("http://u.test"), FakeUpstream(answer).transport, registry)


@pytest.mark.parametrize("status", [200, 404, 429, 500])
async def test_responses_by_status(registry: CollectorRegistry, status: int) -> None:
    record = Record.start(scope_for("/v1/x"))
    one = proxy(httpx.Response(status, text="x"), registry)
    await call(one, "/v1/x", {}, **{RECORD: record})
    where = {"upstream": "default", "status": str(status)}
    assert total(registry, "upstream_responses_total", **where) == 1
    assert total(registry, "upstream_seconds_count", upstream="default") == 1
    assert total(registry, "upstream_failures_total") == 0
    assert record.status == status
    assert record.cause is None


@pytest.mark.parametrize(
    ("error", "status", "cause"),
    [
        (httpx.ConnectError("no"), 502, "unreachable"),
        (httpx.ReadTimeout("slow"), 504, "timeout"),
        (httpx.ReadError("cut"), 502, "broken"),
        (httpx.LocalProtocolError("odd"), 400, "malformed"),
    ],
)
async def test_failures_by_cause(
    registry: CollectorRegistry, error: Exception, status: int, cause: str
) -> None:
    record = Record.start(scope_for("/v1/x"))
    await call(proxy(error, registry), "/v1/x", {}, **{RECORD: record})
    where = {"upstream": "default", "cause": cause}
    assert total(registry, "upstream_failures_total", **where) == 1
    assert total(registry, "upstream_responses_total") == 0
    assert record.status == status
    assert record.cause is not None
    assert record.cause.endswith(cause)


class Breaks(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"one"
        raise httpx.ReadError("cut")


async def test_a_break_within_a_list_of_models_is_a_failure(registry: CollectorRegistry) -> None:
    two = [{"name": name, "base_url": f"http://{name}.test"} for name in "ab"]
    cut = httpx.MockTransport(lambda _: httpx.Response(200, stream=Breaks()))
    await call(Proxy(settings(*two), cut, registry), "/v1/models", b"", method="GET")
    assert total(registry, "upstream_failures_total", cause="broken") == 2


async def test_a_break_within_the_response_is_a_failure(registry: CollectorRegistry) -> None:
    with suppress(UpstreamBroken):
        await call(proxy(httpx.Response(200, stream=Breaks()), registry), "/v1/x", {})
    assert total(registry, "upstream_responses_total", status="200") == 1
    assert total(registry, "upstream_failures_total", cause="broken") == 1


async def test_requests_in_flight_and_refused_are_counted(registry: CollectorRegistry) -> None:
    go = asyncio.Event()

    async def answer(_: httpx.Request) -> httpx.Response:
        await go.wait()
        return httpx.Response(200, text="ok")

    chosen = settings("http://u.test", limits={"in_flight": 2})
    one = Proxy(chosen, httpx.MockTransport(answer), registry)
    running = [begin(one, "/v1/x", {}) for _ in range(2)]
    await asyncio.sleep(0)
    assert total(registry, "requests_in_flight", upstream="default") == 2
    assert total(registry, "requests_in_flight_limit") == 2
    record = Record.start(scope_for("/v1/x"))
    await call(one, "/v1/x", {}, **{RECORD: record})
    assert total(registry, "refusals_total", code="overloaded") == 1
    assert (record.status, record.cause) == (503, "overloaded")
    go.set()
    for request in running:
        await request.finish()
    assert total(registry, "requests_in_flight") == 0


async def test_lists_of_models_are_counted_for_each_upstream(registry: CollectorRegistry) -> None:
    chosen = settings(
        {"name": "a", "base_url": "http://a.test"}, {"name": "b", "base_url": "http://b.test"}
    )
    listed = FakeUpstream(httpx.Response(200, json={"data": []}))
    await call(Proxy(chosen, listed.transport, registry), "/v1/models", b"", method="GET")
    for name in ("a", "b"):
        assert total(registry, "upstream_responses_total", upstream=name, status="200") == 1
