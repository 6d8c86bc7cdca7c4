"""Test that `abridge serve` sends its spans to a collector."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest
from click.testing import CliRunner
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from starlette.types import Receive, Scope, Send

from abridge.observability.tracing.export import RepeatFilter
from abridge.sidecar.cli.commands import main
from tests.support.asgi import body_of
from tests.support.servers import HANG, serve, unused_address
from tests.support.sidecar import sidecar
from tests.support.spans import TRACE, TRACEPARENT
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.upstream import Answer, Upstream

posix = pytest.mark.skipif(
    not hasattr(signal, "SIGKILL"), reason="signals are sent as POSIX has them"
)

REQUEST = {"model": "m", "input": "Hi", "stream": True, "reasoning": {"summary": "auto"}}
FRAMES = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")])
ON = {"ABRIDGE_TRACING__ENABLED": "true"}
NEVER = {"OTEL_BSP_SCHEDULE_DELAY": "600000"}
"""Spans are sent only at the end."""
ALONE = {"ABRIDGE_HISTORY__STORE": "none"}
"""Several workers need a shared store or none."""


@dataclass
class Collector:
    """A collector that records the requests it gets."""

    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.requests.append(ExportTraceServiceRequest.FromString(await body_of(receive)))
        self.paths.add(scope["path"])
        headers = [(b"content-type", b"application/x-protobuf")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    @property
    def spans(self) -> list[Span]:
        return [
            span
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]

    @property
    def resource(self) -> dict[str, str]:
        output = self.requests[0].resource_spans[0].resource.attributes
        return {one.key: one.value.string_value for one in output}


@asynccontextmanager
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False, timeout=HANG) as one:
        yield one


async def traced(collector: str, *flags: str, requests: int = 1, **environ: str) -> str:
    """Return the output of a sidecar that served this many requests and was stopped."""
    environ = {**ON, "OTEL_EXPORTER_OTLP_ENDPOINT": collector, **environ}
    async with (
        serve(Upstream(Answer(FRAMES))) as url,
        client() as one,
        sidecar("--upstream", f"{url}/v1", *flags, **environ) as running,
    ):
        address, headers = f"{running.url}/v1/responses", {"traceparent": TRACEPARENT}
        for _ in range(requests):
            response = await one.post(address, json=REQUEST, headers=headers)
            assert response.status_code == 200
        running.signal()
        assert await running.end() == 0
        return running.output


@posix
@pytest.mark.parametrize("workers", [pytest.param("1", marks=pytest.mark.repeat), "2"])
async def test_spans_are_sent_before_it_ends(workers: str) -> None:
    team = {"OTEL_RESOURCE_ATTRIBUTES": "team=thinkers"}
    collector = Collector()
    async with serve(collector) as url:
        output = await traced(url, "--workers", workers, **team, **NEVER, **ALONE)
    assert collector.paths == {"/v1/traces"}
    assert sorted((span.name, span.kind) for span in collector.spans) == [
        ("chat m", Span.SPAN_KIND_SERVER),
        ("chat m", Span.SPAN_KIND_CLIENT),
        ("summarize extractive", Span.SPAN_KIND_INTERNAL),
    ]
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert collector.resource["service.name"] == "abridge"
    assert collector.resource["team"] == "thinkers"
    assert "lost" not in output


@posix
async def test_the_service_name_can_be_set() -> None:
    collector = Collector()
    async with serve(collector) as url:
        await traced(url, OTEL_SERVICE_NAME="llm-edge")
    assert collector.resource["service.name"] == "llm-edge"


@posix
async def test_nothing_is_exported_if_nothing_is_sampled() -> None:
    collector = Collector()
    async with serve(collector) as url:
        await traced(url, OTEL_TRACES_SAMPLER="always_off")
    assert not collector.requests


@posix
async def test_a_missing_collector_blocks_nothing_and_is_logged_once() -> None:
    patient = {"OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_EXPORTER_OTLP_TIMEOUT": "600000"}
    output = await traced(unused_address(), requests=20, **patient)
    lines = [line for line in output.splitlines() if "opentelemetry" in line]
    assert 0 < len(lines) <= 3, output
    assert "the last spans are lost" in output
    assert "Traceback" not in output
    assert len(output.splitlines()) < 10, output


def test_a_missing_extra_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "abridge.observability.tracing.export")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    words = ("serve", "--upstream", "http://127.0.0.1:9/v1")
    result = CliRunner().invoke(main, words, env=ON)
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: ABRIDGE_TRACING__ENABLED: needs the package opentelemetry; pip install "
        "'.[otel]' in Abridge's repository\n"
    )


def test_repeated_messages_are_logged_once() -> None:
    def output(message: str, *about: object) -> bool:
        line = logging.LogRecord("x", logging.WARNING, "x", 1, message, about, None)
        return seldom.filter(line)

    seldom = RepeatFilter(3600)
    assert output("retrying in %s", 1)
    assert not output("retrying in %s", 2)
    assert output("gave up")
    assert not output("gave up")
    seldom = RepeatFilter(0)
    assert output("gave up")
    assert output("gave up")
