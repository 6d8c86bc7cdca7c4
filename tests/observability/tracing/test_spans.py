"""Test the spans of requests and how trace context propagates."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from subprocess import run
from typing import Any

import httpx
import pytest
from opentelemetry.context import attach, detach
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import set_span_in_context
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.config.settings import Settings
from abridge.errors import SettingsError, SummarizerError
from abridge.middleware import AbridgeMiddleware
from abridge.observability.tracing import create_tracing
from abridge.sidecar.app import create_app
from tests.support.asgi import begin, call, say, start
from tests.support.deployments import Form, build_app, transport_to
from tests.support.servers import until
from tests.support.sidecar import environment
from tests.support.spans import PARENT, TRACE, TRACEPARENT, Spans
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
    thinking,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

ON = {"enabled": True}
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
SUMMARY = {"reasoning": {"summary": "auto"}}
REQUESTS: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": [{"role": "user", "content": "Hi"}], **SUMMARY},
    RESPONSES: {"model": "m", "input": "Hi", **SUMMARY},
}
STREAMING = {**REQUESTS[CHAT], "stream": True}
PLAIN = {"model": "m", "messages": []}
ITEMS = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
WHOLE = {
    CHAT: Answer.json(completion({"reasoning_content": THOUGHT, "content": "Hello."})),
    RESPONSES: Answer.json(response(ITEMS)),
}
STREAM = {
    CHAT: Answer(chat_stream(THOUGHT, "Hello.")),
    RESPONSES: Answer(responses_stream(ITEMS)),
}
NOT_FOUND = Answer.json({"error": {"message": "Not Found"}}, 404)


@pytest.fixture
def spans() -> Spans:
    return Spans()


def app(spans: Spans, upstream: Upstream, form: Form = "mounted", **more: Any) -> ASGIApp:
    more = {"writer": Scripted(), "tracing": ON, **more}
    return build_app(form, upstream, tracer_provider=spans.provider, **more)


def within(spans: Spans) -> None:
    """Check that each span lies within its parent, in time and trace."""
    drawn = {span.id: span for span in spans.all}
    assert len(drawn) == len(spans.all)
    for span in spans.all:
        if span.parent in drawn:
            above = drawn[span.parent]
            assert above.times[0] <= span.times[0] <= span.times[1] <= above.times[1]
            assert span.trace == above.trace


class TestShape:
    @pytest.mark.parametrize("form", ["mounted", "sidecar"])
    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize("path", [CHAT, RESPONSES])
    async def test_a_summarized_answer(
        self, spans: Spans, path: str, form: Form, *, stream: bool
    ) -> None:
        upstream = Upstream((STREAM if stream else WHOLE)[path])
        await call(app(spans, upstream, form), path, {**REQUESTS[path], "stream": stream})
        request = spans.request
        assert (request.name, request.kind, request.parent) == ("chat m", "SERVER", None)
        assert spans.tree() == {"chat m CLIENT": {}, "summarize scripted INTERNAL": {}}
        assert request["abridge.outcome"] == "ok"
        assert request["gen_ai.request.model"] == "m"
        assert request["gen_ai.request.stream"] is stream
        assert request["http.response.status_code"] == 200
        assert request["url.path"] == path
        assert request["abridge.summaries.ok"] == 1
        assert (request["abridge.style"], request["abridge.summarizer"]) == ("auto", "scripted")
        assert (request["abridge.output_tokens"], request["abridge.summary_input_tokens"]) == (
            70,
            10,
        )
        held = request["abridge.held_seconds"]
        assert isinstance(held, float)
        assert 0 <= held < 60
        assert [span.error for span in spans.all] == [None] * 3
        within(spans)

    async def test_an_upstream_call_is_an_inference_span(self, spans: Spans) -> None:
        upstream = Upstream(STREAM[CHAT])
        where = {"name": "far", "base_url": "https://upstream.test/v1", "profile": "mistral"}
        one = app(spans, upstream, "sidecar", upstreams=[where])
        await call(one, CHAT, STREAMING)
        child, _ = spans.below(spans.request)
        first = child["gen_ai.response.time_to_first_chunk"]
        assert isinstance(first, float)
        assert 0 < first < 60
        assert child.span.attributes == {
            "http.request.method": "POST",
            "url.path": CHAT,
            "abridge.upstream": "far",
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "mistral_ai",
            "gen_ai.request.model": "m",
            "server.address": "upstream.test",
            "server.port": 443,
            "http.response.status_code": 200,
            "gen_ai.response.id": "chatcmpl-1",
            "gen_ai.response.model": "thinker-1",
            "gen_ai.response.time_to_first_chunk": first,
            "gen_ai.usage.input_tokens": 11,
            "gen_ai.usage.output_tokens": 70,
            "gen_ai.usage.reasoning.output_tokens": 50,
            "gen_ai.usage.cache_read.input_tokens": 0,
            "gen_ai.usage.cache_creation.input_tokens": 0,
        }

    async def test_a_summarizers_call_is_an_inference_span(self, spans: Spans) -> None:
        await call(app(spans, Upstream(STREAM[CHAT])), CHAT, STREAMING)
        _, child = spans.below(spans.request)
        assert child.span.attributes == {
            "abridge.part": 1,
            "abridge.style": "auto",
            "abridge.summarizer": "scripted",
            "abridge.outcome": "ok",
            "gen_ai.operation.name": "chat",
            "gen_ai.response.model": "mini",
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.output_tokens": 5,
        }

    async def test_an_extract_asks_no_model(self, spans: Spans) -> None:
        await call(app(spans, Upstream(STREAM[CHAT]), writer=None), CHAT, STREAMING)
        _, child = spans.below(spans.request)
        assert (child.name, child.kind) == ("summarize extractive", "INTERNAL")
        assert child["abridge.outcome"] == "ok"
        assert not [name for name in child.span.attributes or () if name.startswith("gen_ai")]

    async def test_every_part_has_a_call_of_its_own(self, spans: Spans) -> None:
        upstream = Upstream(Answer(chat_stream(thinking(9000), "Hello.")))
        await call(app(spans, upstream), CHAT, STREAMING)
        parts = [span for span in spans.all if span.name == "summarize scripted"]
        assert len(parts) > 2
        assert {span.parent for span in parts} == {spans.request.id}
        assert [span["abridge.part"] for span in parts] == list(range(1, len(parts) + 1))
        within(spans)

    async def test_a_translated_request(self, spans: Spans) -> None:
        upstream = Upstream(STREAM[CHAT])
        one = app(spans, upstream, upstreams=[{"api": "chat"}])
        await call(one, RESPONSES, {**REQUESTS[RESPONSES], "stream": True})
        child, _ = spans.below(spans.request)
        assert (spans.request["url.path"], child["url.path"]) == (RESPONSES, CHAT)
        assert child["gen_ai.usage.output_tokens"] == 70
        assert spans.tree() == {"chat m CLIENT": {}, "summarize scripted INTERNAL": {}}

    async def test_an_upstream_that_turns_out_to_have_the_other_api(self, spans: Spans) -> None:
        upstream = Upstream(NOT_FOUND, STREAM[CHAT])
        one = app(spans, upstream, upstreams=[{"api": "auto"}])
        await call(one, RESPONSES, {**REQUESTS[RESPONSES], "stream": True})
        missing, child, _ = spans.below(spans.request)
        assert (missing["url.path"], missing.error) == (RESPONSES, "404")
        assert (child["url.path"], child.error) == (CHAT, None)
        assert "gen_ai.usage.output_tokens" not in missing
        assert child["gen_ai.usage.output_tokens"] == 70
        assert (spans.request["abridge.outcome"], spans.request.error) == ("ok", None)
        within(spans)

    async def test_an_untouched_request(self, spans: Spans, form: Form) -> None:
        upstream = Upstream(Answer.json(completion({"content": "Hi"})))
        prefix = "/llm" if form == "embedded" else ""
        await call(app(spans, upstream, form), prefix + CHAT, PLAIN)
        assert (spans.request.name, spans.request["abridge.outcome"]) == ("chat", "untouched")
        assert spans.request["http.response.status_code"] == 200
        assert spans.tree() == {"chat CLIENT": {}}
        within(spans)

    async def test_a_request_to_no_model_has_no_inference_span(self, spans: Spans) -> None:
        await call(app(spans, Upstream(Answer.json({}))), "/v1/models", b"", method="GET")
        assert (spans.request.name, spans.request.kind) == ("GET", "SERVER")
        assert spans.tree() == {"GET CLIENT": {}}
        assert "gen_ai" not in spans.text()

    async def test_an_unknown_method(self, spans: Spans) -> None:
        await call(app(spans, Upstream(Answer.json({}))), "/v1/x", b"", method="PRIVATE")
        assert spans.tree() == {"HTTP CLIENT": {}}
        assert (spans.request.name, spans.request["http.request.method"]) == ("HTTP", "_OTHER")
        assert "PRIVATE" not in spans.text()

    async def test_span_names_are_bounded(self, spans: Spans) -> None:
        await call(app(spans, Upstream(STREAM[CHAT])), CHAT, {**STREAMING, "model": "m" * 5000})
        for span in spans.all:
            assert len(span.name) < 300
            assert all(len(str(value)) < 300 for value in (span.span.attributes or {}).values())

    async def test_a_lone_surrogate_does_not_prevent_export(self, spans: Spans) -> None:
        await call(app(spans, Upstream(STREAM[CHAT])), CHAT, {**STREAMING, "model": "\ud83d"})
        sent = encode_spans([drawn.span for drawn in spans.all]).SerializeToString()
        assert b"chat ?" in sent

    async def test_a_span_within_the_applications_own(self, spans: Spans) -> None:
        tracer = spans.provider.get_tracer("app")
        outer = tracer.start_span("the application's")
        token = attach(set_span_in_context(outer))
        try:
            upstream = Upstream(STREAM[CHAT])
            await call(app(spans, upstream), CHAT, STREAMING, {"traceparent": TRACEPARENT})
        finally:
            detach(token)
        request = spans.request
        outer.end()
        assert (request.parent, request.kind) == (spans.all[-1].id, "INTERNAL")

    async def test_a_nested_abridge_adds_no_spans(self, spans: Spans) -> None:
        own = {"kind": "upstream"}
        within = build_app(
            "mounted",
            Upstream(STREAM[CHAT]),
            upstreams=[{"name": "within"}],
            summarizer=own,
            summary={"default": "auto"},
        )
        provider = spans.provider
        one = AbridgeMiddleware(
            within, Settings(tracing=ON, summarizer=own), tracer_provider=provider
        )
        answered = await call(one, CHAT, PLAIN)
        assert answered.complete
        assert spans.tree() == {"chat CLIENT": {}}

    async def test_the_current_span_is_reset_after_a_request(self, spans: Spans) -> None:
        one = app(spans, Upstream(STREAM[CHAT]))
        for _ in range(2):
            await call(one, CHAT, STREAMING)
        assert [span.parent for span in spans.all if span.kind == "SERVER"] == [None, None]


class TestTrouble:
    async def test_a_refusal(self, spans: Spans) -> None:
        await call(
            app(spans, Upstream(Answer())), CHAT, {**PLAIN, "reasoning": {"summary": "short"}}
        )
        (request,) = spans.all
        assert (request["abridge.outcome"], request["abridge.cause"]) == (
            "refused",
            "invalid_value",
        )
        assert (request["http.response.status_code"], request.error) == (400, None)

    @pytest.mark.parametrize(("status", "error"), [(429, None), (503, "503")])
    @pytest.mark.parametrize("body", [PLAIN, STREAMING])
    async def test_an_error_of_upstreams(
        self, spans: Spans, body: dict[str, Any], status: int, error: str | None
    ) -> None:
        upstream = Upstream(Answer.json({"error": {"message": "SECRET"}}, status))
        await call(app(spans, upstream), CHAT, body)
        (child,) = spans.below(spans.request)
        assert child.error == str(status)
        assert spans.request.error == error
        assert "SECRET" not in spans.text()

    @pytest.mark.parametrize("body", [PLAIN, STREAMING])
    async def test_an_unreachable_upstream(self, spans: Spans, body: dict[str, Any]) -> None:
        def absent(_: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("SECRET")

        one = create_app(
            Settings.model_validate({"upstreams": [{"base_url": "http://u.test"}], "tracing": ON}),
            transport=httpx.MockTransport(absent),
            registry=CollectorRegistry(),
            tracer_provider=spans.provider,
        )
        await call(one, CHAT, body)
        (child,) = spans.below(spans.request)
        assert child.error == spans.request.error == "upstream_unreachable"
        assert "http.response.status_code" not in child
        assert spans.request["http.response.status_code"] == 502
        assert "SECRET" not in spans.text()

    @pytest.mark.parametrize("body", [PLAIN, STREAMING])
    async def test_a_proxy_that_has_no_room(self, spans: Spans, body: dict[str, Any]) -> None:
        reached, go_on = asyncio.Event(), asyncio.Event()
        upstream = Upstream(Answer([reached.set, go_on, *chat_stream("", "Hi")]))
        one = app(spans, upstream, "sidecar", limits={"in_flight": 1})
        first = begin(one, CHAT, body)
        await reached.wait()
        await call(one, CHAT, body)
        (child,) = spans.below(spans.request)
        assert child.error == spans.request.error == "overloaded"
        assert "http.response.status_code" not in child
        assert spans.request["http.response.status_code"] == 503
        go_on.set()
        await first.finish()

    @pytest.mark.parametrize("body", [PLAIN, STREAMING])
    async def test_an_application_that_raises(self, spans: Spans, body: dict[str, Any]) -> None:
        steps = [*chat_stream(THOUGHT, "Hi")[:5], ValueError("SECRET")]
        with pytest.raises(ValueError, match="SECRET"):
            await call(app(spans, Upstream(Answer(steps))), CHAT, body)
        child = spans.below(spans.request)[0]
        assert child.error == "ValueError"
        assert spans.request["abridge.outcome"] == "failed"
        assert spans.request.error in ("_OTHER", "upstream_error")
        assert "SECRET" not in spans.text()
        within(spans)

    async def test_a_summarizer_that_fails(self, spans: Spans) -> None:
        writer = Scripted("", error=SummarizerError("timeout", "SECRET"))
        await call(app(spans, Upstream(STREAM[CHAT]), writer=writer), CHAT, STREAMING)
        _, child = spans.below(spans.request)
        assert (child["abridge.outcome"], child.error) == ("timeout", "timeout")
        assert (spans.request["abridge.summaries.timeout"], spans.request.error) == (1, None)
        assert "SECRET" not in spans.text()

    async def test_a_part_that_is_withheld_is_no_error(self, spans: Spans) -> None:
        async def review(_: str) -> None:
            return None

        await call(app(spans, Upstream(STREAM[CHAT]), review=review), CHAT, STREAMING)
        _, child = spans.below(spans.request)
        assert (child["abridge.outcome"], child.error) == ("withheld", None)
        assert spans.request["abridge.summaries.withheld"] == 1

    async def test_a_call_that_is_given_up(self, spans: Spans) -> None:
        stuck = Scripted(gate=asyncio.Event())
        one = app(
            spans,
            Upstream(STREAM[CHAT]),
            writer=stuck,
            summary={"grace": 0.01, "first_token": 5},
        )
        await call(one, CHAT, STREAMING)
        _, child = spans.below(spans.request)
        assert (child["abridge.outcome"], child.error) == ("cancelled", None)
        assert spans.request["abridge.summaries.deadline"] == 1
        within(spans)

    @pytest.mark.parametrize("form", ["mounted", "sidecar"])
    @pytest.mark.parametrize("body", [PLAIN, STREAMING])
    async def test_a_client_that_leaves(
        self, spans: Spans, body: dict[str, Any], form: Form
    ) -> None:
        reached = asyncio.Event()
        steps = [*chat_stream(THOUGHT, "Hi")[:9], reached.set, asyncio.Event()]
        request = begin(app(spans, Upstream(Answer(steps)), form), CHAT, body)
        await reached.wait()
        await request.leave()
        assert [span.error for span in spans.all] == [None] * len(spans.all)
        assert spans.request.kind == "SERVER"
        assert spans.below(spans.request)[0].kind == "CLIENT"
        within(spans)

    @pytest.mark.parametrize("body", [PLAIN, STREAMING])
    async def test_a_client_that_left_is_no_error_of_upstream(
        self, spans: Spans, body: dict[str, Any]
    ) -> None:
        reached, go_on = asyncio.Event(), asyncio.Event()
        first, *rest = chat_stream(THOUGHT, "Hi")

        async def answering(scope: Scope, receive: Receive, send: Send) -> None:
            await start(send)
            await say(send, first, more=True)
            reached.set()
            await go_on.wait()
            for frame in rest:
                await say(send, frame, more=True)

        settings = Settings.model_validate({"tracing": ON})
        one = AbridgeMiddleware(
            answering, settings, registry=CollectorRegistry(), tracer_provider=spans.provider
        )
        request = begin(one, CHAT, body)
        await reached.wait()
        request.left.set()
        await asyncio.sleep(0)
        go_on.set()
        with suppress(OSError):
            await request.finish()
        (child,) = spans.below(spans.request)
        assert child.error is None

    @pytest.mark.parametrize("body", [PLAIN, STREAMING])
    async def test_a_request_that_is_cancelled(self, spans: Spans, body: dict[str, Any]) -> None:
        reached, stuck = asyncio.Event(), Scripted(gate=asyncio.Event())
        steps = [*chat_stream(thinking(4000), "Hi")[:-9], reached.set, asyncio.Event()]
        request = begin(app(spans, Upstream(Answer(steps)), writer=stuck), CHAT, body)
        await reached.wait()
        if body is STREAMING:
            await until(lambda: stuck.running > 0)
        await request.cancel()
        assert spans.request.kind == "SERVER"
        assert spans.request.error
        assert spans.below(spans.request)[0].error == "cancelled"
        assert all(
            span["abridge.outcome"] == "cancelled"
            for span in spans.all
            if span.name == "summarize scripted"
        )
        within(spans)


class TestPropagation:
    """Test how `traceparent` propagates from clients to upstreams and summarizers."""

    @pytest.mark.parametrize("form", ["mounted", "sidecar"])
    @pytest.mark.parametrize("body", [PLAIN, STREAMING])
    async def test_to_upstream(self, spans: Spans, body: dict[str, Any], form: Form) -> None:
        upstream = Upstream(STREAM[CHAT])
        headers = {"traceparent": TRACEPARENT, "tracestate": "a=1,b=2", "baggage": "mine=1"}
        await call(app(spans, upstream, form), CHAT, body, headers)
        assert (spans.request.trace, spans.request.parent) == (TRACE, PARENT)
        (child,) = upstream.requests
        named = [value.decode() for name, value in child.headers if name == b"traceparent"]
        assert named == [spans.below(spans.request)[0].traceparent]
        assert child.header("tracestate") == "a=1,b=2"
        assert child.header("baggage") == "mine=1"

    async def test_to_a_summarizer_model(self, spans: Spans) -> None:
        upstream = Upstream(STREAM[CHAT])
        model = Upstream(Answer(chat_stream("", "I count.")))
        settings = Settings.model_validate(
            {
                "tracing": ON,
                "summarizer": {
                    "kind": "model",
                    "base_url": "http://s.test:81/v1",
                    "model": "small",
                    "profile": "groq",
                },
            }
        )
        one = AbridgeMiddleware(
            upstream,
            settings,
            transport=transport_to(model),
            registry=CollectorRegistry(),
            tracer_provider=spans.provider,
        )
        headers = {"traceparent": TRACEPARENT, "tracestate": "a=1", "baggage": "mine=1"}
        await call(one, CHAT, STREAMING, headers)
        _, child = spans.below(spans.request)
        assert (child.name, child.kind) == ("summarize model", "CLIENT")
        (exposition,) = model.requests
        assert exposition.header("traceparent") == child.traceparent
        assert exposition.header("tracestate") == "a=1"
        assert exposition.header("baggage") is None
        assert child["gen_ai.request.model"] == "small"
        assert child["gen_ai.response.model"] == "thinker-1"
        assert child["gen_ai.provider.name"] == "groq"
        assert (child["server.address"], child["server.port"]) == ("s.test", 81)
        assert child["gen_ai.usage.output_tokens"] == 70

    @pytest.mark.parametrize("form", ["mounted", "sidecar"])
    @pytest.mark.parametrize("api", ["same", "responses"])
    async def test_to_the_requests_own_model(self, spans: Spans, form: Form, api: str) -> None:
        """The call passes through Abridge again and is no second request."""
        answer = STREAM[CHAT if api == "same" else RESPONSES]
        upstream = Upstream(answer)
        where = {"api": api} if form == "mounted" else {"api": api, "base_url": "http://u.test/v1"}
        one = app(
            spans,
            upstream,
            form,
            writer=None,
            summarizer={"kind": "upstream"},
            upstreams=[where],
        )
        await call(one, CHAT, STREAMING, {"baggage": "mine=1"})
        assert spans.tree() == {
            "chat m CLIENT": {},
            "summarize upstream INTERNAL": {"POST CLIENT": {}},
        }
        first, summary = upstream.requests
        main, part = spans.below(spans.request)
        (inner,) = spans.below(part)
        assert first.header("traceparent") == main.traceparent
        assert summary.header("traceparent") == inner.traceparent
        assert (first.header("baggage"), summary.header("baggage")) == ("mine=1", None)
        assert part["gen_ai.request.model"] == "m"
        assert not [name for name in inner.span.attributes or () if "usage" in name]
        within(spans)

    async def test_an_unsampled_trace_propagates_as_unsampled(self) -> None:
        spans = Spans(TracerProvider(ParentBased(ALWAYS_OFF), shutdown_on_exit=False))
        upstream, registry = Upstream(STREAM[CHAT]), CollectorRegistry()
        one = app(spans, upstream, registry=registry)
        await call(one, CHAT, STREAMING, {"traceparent": TRACEPARENT[:-1] + "0"})
        assert not spans.all
        led = upstream.requests[0].header("traceparent") or ""
        assert led.startswith(f"00-{TRACE}-")
        assert led.endswith("-00")
        assert PARENT not in led
        assert b"trace_id" not in generate_latest(registry)

    @pytest.mark.parametrize(
        "expected", ["nothing", TRACEPARENT[:-3], f"00-{'0' * 32}-{PARENT}-01", "x" * 5000]
    )
    async def test_an_invalid_traceparent_is_ignored(self, spans: Spans, expected: str) -> None:
        upstream = Upstream(STREAM[CHAT])
        await call(app(spans, upstream), CHAT, STREAMING, {"traceparent": expected})
        assert spans.request.parent is None
        (child, _) = spans.below(spans.request)
        assert upstream.requests[0].header("traceparent") == child.traceparent

    @pytest.mark.parametrize("enabled", [True, False])
    async def test_without_spans_trace_context_is_left_alone(self, *, enabled: bool) -> None:
        """Test both no provider and tracing off."""
        upstream = Upstream(STREAM[CHAT])
        one = build_app("mounted", upstream, writer=Scripted(), tracing={"enabled": enabled})
        headers = {"traceparent": TRACEPARENT, "tracestate": "a=1"}
        for body in (PLAIN, STREAMING):
            await call(one, CHAT, body, headers)
        for sent in upstream.requests:
            assert sent.header("traceparent") == TRACEPARENT
            assert sent.header("tracestate") == "a=1"
        await call(one, CHAT, STREAMING)
        assert upstream.requests[-1].header("traceparent") is None


class TestCorrelation:
    """Test traces in logs and metrics."""

    async def test_the_log(self, spans: Spans, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO", "abridge.requests")
        await call(app(spans, Upstream(STREAM[CHAT])), CHAT, STREAMING)
        (expected,) = (record for record in caplog.records if record.name == "abridge.requests")
        assert vars(expected)["abridge"]["trace_id"] == spans.request.trace

    async def test_metrics_have_exemplars(self, spans: Spans) -> None:
        registry = CollectorRegistry()
        one = app(spans, Upstream(STREAM[CHAT]), "sidecar", registry=registry)
        await call(one, CHAT, STREAMING)
        accept = {"accept": "application/openmetrics-text; version=1.0.0"}
        exposition = await call(one, "/abridge/metrics", b"", accept, method="GET")
        expected = f' # {{span_id="{spans.request.id}",trace_id="{spans.request.trace}"}} '
        lines = [line for line in exposition.data.decode().splitlines() if expected in line]
        assert {line.partition("_bucket")[0] for line in lines} == {
            "abridge_request_seconds",
            "abridge_held_seconds",
            "abridge_first_part_seconds",
            "abridge_first_answer_seconds",
        }

    async def test_without_a_trace_there_are_none(self) -> None:
        registry = CollectorRegistry()
        one = build_app("mounted", Upstream(STREAM[CHAT]), writer=Scripted(), registry=registry)
        await call(one, CHAT, STREAMING)
        assert b" # {" not in generate_latest(registry)


PLANTED = ("PROMPT", "THOUGHT", "ANSWER", "SAID", "TOKEN", "QUERY", "COOKIE", "STATED")


class TestSecrets:
    @pytest.mark.parametrize("form", ["mounted", "sidecar"])
    @pytest.mark.parametrize("kind", ["object", "upstream", "extractive"])
    @pytest.mark.parametrize("stream", [True, False])
    @pytest.mark.parametrize("broken", [True, False])
    async def test_no_span_holds_any(
        self, spans: Spans, form: Form, kind: str, *, stream: bool, broken: bool
    ) -> None:
        thought = "I keep my THOUGHT to myself. " * 40
        message = {"reasoning_content": thought, "content": "The ANSWER."}
        frames = chat_stream(thought, "The ANSWER.")
        whole = json.dumps(completion(message)).encode()
        steps: list[Any] = frames if stream else [whole]
        if broken:
            steps = [*steps[:9], RuntimeError("the THOUGHT broke")] if stream else [whole[:99]]
        media = "text/event-stream" if stream else "application/json"
        upstream = Upstream(Answer(steps, headers={"content-type": media}))
        writer = Scripted("I SAID so.", error=ValueError("SAID") if broken else None)
        one = app(
            spans,
            upstream,
            form,
            writer=writer if kind == "object" else None,
            summarizer={"kind": kind},
        )
        request_body = {"model": "m", "stream": stream, **SUMMARY}
        request_body["messages"] = [{"role": "user", "content": "My PROMPT"}]
        headers = {
            "authorization": "Bearer TOKEN",
            "x-api-key": "TOKEN",
            "cookie": "COOKIE=1",
            "baggage": "COOKIE=1",
        }
        with suppress(Exception):
            await call(one, CHAT, request_body, headers, query_string=b"key=QUERY")
        text = spans.text()
        assert len(spans.all) > 1
        assert not [word for word in PLANTED if word in text]

    async def test_the_search_covers_every_field_of_a_span(self, spans: Spans) -> None:
        await call(app(spans, Upstream(STREAM[CHAT])), CHAT, STREAMING)
        text = spans.text()
        for word in ("chat m", "gen_ai.usage.output_tokens", "abridge.summaries.ok", CHAT):
            assert word in text


class TestWithout:
    """Test without OpenTelemetry, which is an extra."""

    @pytest.mark.parametrize("package", ["opentelemetry", "opentelemetry.trace"])
    def test_a_package_that_is_missing_is_named(
        self, package: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in [
            name for name in sys.modules if name.startswith("abridge.observability.tracing.")
        ]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(SettingsError) as raised:
            create_tracing(Settings.model_validate({"tracing": ON}))
        assert str(raised.value) == (
            "tracing.enabled: needs the package opentelemetry; pip install '.[otel]' in "
            "Abridge's repository"
        )

    def test_nothing_is_imported_if_tracing_is_off(self) -> None:
        """Run in a process that cannot import it: summaries work all the same."""
        expected = run(  # noqa: S603 -- fixed command
            [sys.executable, "-c", OFF],
            capture_output=True,
            check=True,
            text=True,
            env=environment(),
        )
        assert expected.stdout == "200\n"


OFF = """
import asyncio, sys
sys.modules["opentelemetry"] = None
import abridge.sidecar.cli
from abridge import AbridgeMiddleware, Settings

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"", "more_body": False})

async def main():
    scope = {"type": "http", "method": "POST", "path": "/v1/responses", "headers": []}
    sent, asked = [], [{"type": "http.request", "body": b"{}"}]
    async def receive():
        return asked.pop() if asked else await asyncio.Event().wait()
    async def send(message):
        sent.append(message)
    await AbridgeMiddleware(app, Settings(summary={"default": "auto"}))(scope, receive, send)
    print(sent[0]["status"])

asyncio.run(main())
assert not [name for name in sys.modules if name.startswith("opentelemetry.")]
"""
