"""What is counted."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from time import monotonic
from typing import Any
from unittest.mock import patch

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from starlette.types import ASGIApp

from abridge.core.events import STRAY_ARGUMENTS
from abridge.core.usage import SummarizerUsage, Tokens
from abridge.errors import UpstreamBroken
from abridge.observability.metrics import MAX_MODELS, metrics_for
from abridge.pipeline.client import Clock
from tests.apis.messages.scripts import begin as begin_message
from tests.apis.messages.scripts import delta
from tests.support.asgi import Call, begin, call
from tests.support.checker import check_responses
from tests.support.counters import total
from tests.support.deployments import build_app
from tests.support.servers import until
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    chunk,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
    thinking,
)
from tests.support.streams import call as tool_call
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "reasoning": {"summary": "auto"},
    "stream": True,
}
WHERE = {"api": "chat", "upstream": "default"}
PATIENT = {"grace": 60, "first_token": 60}
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses"}


class Counted:
    """A request, and what it moved."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

    def app(self, answer: Answer, writer: Any = None, **tables: Any) -> ASGIApp:
        tables = {"registry": self.registry, "writer": writer or Scripted(), **tables}
        return build_app("mounted", Upstream(answer), **tables)

    async def send(self, answer: Answer, writer: Any = None, **tables: Any) -> None:
        await call(self.app(answer, writer, **tables), PATHS["chat"], CHAT)

    def value(self, name: str, **labels: str) -> float:
        return total(self.registry, name, **labels)

    def outcomes(self, name: str = "summaries_total") -> dict[str, float]:
        return {outcome: value for (outcome,), value in self.ledger(name, "outcome").items()}

    def ledger(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """All that a metric has counted, by these labels."""
        samples = [sample for metric in self.registry.collect() for sample in metric.samples]
        return {
            tuple(sample.labels[label] for label in labels): sample.value
            for sample in samples
            if sample.name == f"abridge_{name}"
        }


@pytest.fixture
def counted() -> Counted:
    return Counted()


async def test_a_request_with_a_summary(counted: Counted) -> None:
    await counted.send(Answer(chat_stream(THOUGHT, "Hello.")))
    assert counted.value("requests_total", **WHERE, outcome="ok") == 1
    assert counted.outcomes() == {"ok": 1}
    assert counted.value("upstream_tokens_total", **WHERE, type="input") == 11
    assert counted.value("upstream_tokens_total", **WHERE, type="output") == 70
    assert counted.value("upstream_tokens_total", **WHERE, type="reasoning") == 50
    spent = {"upstream": "default", "style": "auto", "summarizer": "scripted"}
    assert counted.value("summarizer_tokens_total", **spent, type="input") == 10
    assert counted.value("summarizer_tokens_total", **spent, type="output") == 5
    assert counted.value("reasoning_characters_total", **WHERE) == len(THOUGHT)
    for name in ("first_part_seconds", "first_answer_seconds"):
        assert counted.value(f"{name}_count", **WHERE) == 1
    made = {"style": "auto", "summarizer": "scripted"}
    assert counted.value("held_seconds_count", **WHERE, **made) == 1
    assert counted.value("summarizer_seconds_count", summarizer="scripted", outcome="ok") == 1
    assert counted.value("overhead_seconds_count", api="chat") == 1
    assert counted.value("streams_open", api="chat") == 0
    assert counted.value("held_bytes") == 0


@pytest.mark.parametrize(
    ("answer", "writer", "outcome"),
    [
        (Answer(chat_stream("", "Hi")), Scripted(), None),
        (Answer(chat_stream(" \n ", "Hi")), Scripted(), None),
        (Answer(chat_stream(THOUGHT, "Hi")), Scripted(""), "empty"),
        (Answer(chat_stream(THOUGHT, "Hi")), Scripted("", error=ValueError("x")), "failed"),
        (Answer(chat_stream(THOUGHT, "Hi")), Scripted(error=ValueError("x")), "partial"),
    ],
    ids=["no reasoning", "blank", "empty", "failed", "partial"],
)
async def test_summaries_by_outcome(
    counted: Counted, answer: Answer, writer: Scripted, outcome: str | None
) -> None:
    await counted.send(answer, writer)
    assert counted.outcomes() == ({outcome: 1} if outcome else {})


async def test_outcomes_that_settings_bring_about(counted: Counted) -> None:
    stuck = Scripted(gate=asyncio.Event())
    stream = Answer(chat_stream(THOUGHT, "Hi"))
    await counted.send(stream, stuck, summary={"grace": 0.01, "first_token": 5})
    assert counted.outcomes() == {"deadline": 1}
    await counted.send(stream, stuck, summary={"grace": 5, "first_token": 0.01})
    assert counted.outcomes() == {"deadline": 1, "timeout": 1}
    await counted.send(stream, summary={"min_chars": 10_000})
    assert counted.outcomes()["skipped"] == 1


async def withhold(_: str) -> None:
    return None


async def test_a_part_that_a_review_withholds(counted: Counted) -> None:
    await counted.send(Answer(chat_stream(THOUGHT, "Hi")), review=withhold)
    assert counted.outcomes() == {"withheld": 1}
    assert counted.value("summarizer_seconds_count", outcome="withheld") == 1
    assert counted.value("review_seconds_count", outcome="withheld") == 1
    assert counted.value("requests_total", outcome="ok") == 1
    assert counted.value("breaker_open") == 0
    spent = {"style": "auto", "summarizer": "scripted"}
    assert counted.value("summarizer_tokens_total", **spent, type="output") == 5


async def test_what_the_bulkhead_sheds(counted: Counted) -> None:
    gate = asyncio.Event()
    writer = Scripted(gate=gate)
    app = counted.app(
        Answer(chat_stream(THOUGHT, "Hi")),
        writer,
        summary=PATIENT,
        summarizer={"max_in_flight": 1},
    )
    first = begin(app, PATHS["chat"], CHAT)
    await until(lambda: bool(writer.running))
    await call(app, PATHS["chat"], CHAT)
    assert counted.outcomes() == {"shed": 1}
    gate.set()
    await first.finish()
    assert counted.outcomes() == {"shed": 1, "ok": 1}


async def test_requests_by_outcome(counted: Counted) -> None:
    await counted.send(Answer(chat_stream(THOUGHT, "Hello.")[:-4]))
    await counted.send(Answer.json({"error": {}}, 500))
    await counted.send(Answer([b"<html>"], headers={"content-type": "text/html"}))
    for outcome in ("failed", "error", "passed"):
        assert counted.value("requests_total", **WHERE, outcome=outcome) == 1
    await counted.send(Answer([b"no JSON"], headers={"content-type": "application/json"}))
    assert counted.value("requests_total", **WHERE, outcome="passed") == 2


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("on_failure", "outcome"), [("omit", "ok"), ("fail", "failed")])
async def test_a_request_that_its_summary_ended_has_failed(
    counted: Counted, on_failure: str, outcome: str, *, stream: bool
) -> None:
    whole = Answer.json(completion({"content": "Hi", "reasoning": THOUGHT}))
    answer = Answer(chat_stream(THOUGHT, "Hi")) if stream else whole
    await counted.send(answer, Scripted(""), summary={"on_failure": on_failure})
    assert counted.outcomes("requests_total") == {outcome: 1}


async def test_a_client_that_left(counted: Counted) -> None:
    reached = asyncio.Event()
    frames = [chunk({"role": "assistant"}), *[chunk({"reasoning_content": "So. "})] * 9]
    upstream = Upstream(Answer([*frames, reached.set, asyncio.Event()]))
    app = build_app("mounted", upstream, writer=Scripted(), registry=counted.registry)
    request = begin(app, PATHS["chat"], CHAT)
    await reached.wait()
    assert counted.value("streams_open", api="chat") == 1
    await request.leave()
    assert counted.value("requests_total", **WHERE, outcome="left") == 1
    assert counted.value("streams_open", api="chat") == 0
    assert counted.value("reasoning_characters_total", **WHERE) == 9 * len("So. ")


async def test_what_is_held_is_seen_while_it_is(counted: Counted) -> None:
    gate = asyncio.Event()
    writer = Scripted(gate=gate)
    upstream = Upstream(Answer(chat_stream(THOUGHT, "Hello.")))
    tables = {"summary": PATIENT, "registry": counted.registry}
    app = build_app("mounted", upstream, writer=writer, **tables)
    request = begin(app, PATHS["chat"], CHAT)
    await until(lambda: bool(writer.running) and not upstream.running)
    assert counted.value("held_bytes") > 100
    gate.set()
    await request.finish()
    assert counted.value("held_bytes") == 0


@pytest.mark.parametrize("figure", [-1, 10**400, 1.5, True, "many"])
async def test_figures_that_are_none(counted: Counted, figure: object) -> None:
    usage = {"prompt_tokens": figure, "completion_tokens": 70, "total_tokens": figure}
    whole = {**completion({"content": "Hi", "reasoning": THOUGHT}), "usage": usage}
    await counted.send(Answer.json(whole))
    assert counted.value("upstream_tokens_total", type="input") == 0
    assert counted.value("upstream_tokens_total", type="output") == 70
    assert counted.value("requests_total", outcome="ok") == 1


async def test_fields_and_faults_are_counted(counted: Counted) -> None:
    message = {"content": "Hi", "reasoning": THOUGHT, "vendor": 1, "mood": 2}
    await counted.send(Answer.json(completion(message)), reasoning={"expose": "none"})
    assert counted.value("dropped_fields_total", api="chat") == 2
    stream = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hi")])
    late = next(frame for frame in stream if b"reasoning_text.delta" in frame)
    app = counted.app(Answer([*stream[:-2], late, *stream[-2:]]))
    await call(app, PATHS["responses"], {**CHAT, "input": "Hi"})
    where = {"api": "responses", "upstream": "default"}
    assert counted.value("reader_faults_total", **where) == 1


async def test_final_texts_unlike_their_deltas_are_counted(counted: Counted) -> None:
    stream = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hi")])
    last = stream[-1].replace(b'"Hi"', b'"Ho"')
    app = counted.app(Answer([*stream[:-1], last]))
    answer = await call(app, PATHS["responses"], {**CHAT, "input": "Hi"})
    output = check_responses(answer.data, texts_agree=False).response["output"]
    assert output[1]["content"][0]["text"] == "Ho"
    where = {"api": "responses", "upstream": "default"}
    assert counted.value("final_text_mismatches_total", **where) == 1


async def test_requests_that_pass_untouched_are_counted_too(counted: Counted) -> None:
    app = build_app("mounted", Upstream(Answer(chat_stream("", "Hi"))), registry=counted.registry)
    await call(app, PATHS["chat"], {"model": "m", "messages": [], "stream": True})
    assert counted.value("requests_total", **WHERE, outcome="untouched") == 1


def test_two_instances_share_a_registry() -> None:
    registry = CollectorRegistry()
    assert metrics_for(registry) is metrics_for(registry)
    assert metrics_for(registry) is not metrics_for(CollectorRegistry())
    assert metrics_for() is metrics_for(None)


@pytest.mark.parametrize("mode", ["mounted", "sidecar"])
async def test_no_label_comes_from_a_client(counted: Counted, mode: str) -> None:
    body = {**CHAT, "model": "model-of-the-client", "user": "user-of-the-client"}
    refused = Answer.json({"error": {"message": "no such model: model-of-the-client"}}, 404)
    app = build_app(mode, Upstream(refused), writer=Scripted(), registry=counted.registry)
    headers = {"x-abridge-summary": "concise", "x-request-id": "id-of-the-client"}
    await call(app, PATHS["chat"], body, headers)
    assert counted.value("requests_total", model="other", outcome="error") == 1
    labels = {
        value
        for metric in counted.registry.collect()
        for sample in metric.samples
        for value in sample.labels.values()
    }
    assert not {label for label in labels if "of-the-client" in label}


async def test_what_is_asked_on_another_api_is_counted_once(counted: Counted) -> None:
    answered: list[float] = []
    steps = [0.2, lambda: answered.append(monotonic()), b"{}"]
    lacking = Answer(steps, 404, {"content-type": "application/json"})
    upstream = Upstream(lacking, Answer(chat_stream(THOUGHT, "Hi")))
    tables = {"upstreams": [{"api": "auto"}], "registry": counted.registry}
    app = build_app("mounted", upstream, writer=Scripted(), **tables)
    failed = {"type": "reasoning", "summary": [], "summary_error": {"code": "timeout"}}
    said = {"role": "assistant", "content": "So."}
    given = [{"role": "user", "content": "Hi"}, failed, said, {"role": "user", "content": "And?"}]
    request_body = {"model": "m", "input": given, "stream": True, "reasoning": {"summary": "auto"}}
    await call(app, PATHS["responses"], request_body)
    assert len(upstream.requests) == 2
    assert counted.value("requests_total", outcome="ok") == 1
    for name in ("marks_removed_total", "reasoning_missed_total", "overhead_seconds_count"):
        assert counted.value(name) == 1
    assert counted.value("overhead_seconds_sum") < monotonic() - answered[0]
    assert counted.value("streams_open") == 0


class TestModels:
    """Which are told apart."""

    async def send(self, counted: Counted, app: ASGIApp, *models: str) -> None:
        for model in models:
            await call(app, PATHS["chat"], {**CHAT, "model": model})

    async def test_a_limited_number_of_models_get_a_label(self, counted: Counted) -> None:
        app = counted.app(Answer(chat_stream(THOUGHT, "Hi")))
        await self.send(counted, app, *(f"m{number}" for number in range(MAX_MODELS + 2)), "m0")
        assert counted.value("requests_total", model="m0") == 2
        assert counted.value("requests_total", model="other") == 2
        for name in ("upstream_tokens_total", "summarizer_tokens_total", "held_seconds_count"):
            assert counted.value(name, model="other")
            assert counted.value(name, model="m1")

    async def test_configured_models_get_a_label(self, counted: Counted) -> None:
        models = [{"models": ["known", "a-*"]}]
        app = counted.app(Answer.json({"error": {}}, 500), upstreams=models)
        await self.send(counted, app, "known", "a-b")
        assert counted.value("requests_total", model="known") == 1
        assert counted.value("requests_total", model="other") == 1

    @pytest.mark.parametrize("name", ["m" * 256, "half a \ud83d"], ids=["long", "half"])
    async def test_what_no_model_is_called(self, counted: Counted, name: str) -> None:
        app = counted.app(Answer(chat_stream(THOUGHT, "Hi")))
        await self.send(counted, app, name)
        assert len(generate_latest(counted.registry)) < 100_000
        assert counted.value("requests_total", outcome="ok") == 1

    async def test_no_model_label_if_the_body_was_not_read(self, counted: Counted) -> None:
        app = counted.app(Answer(chat_stream(THOUGHT, "Hi")))
        await call(app, PATHS["chat"], {"model": "m", "messages": []})
        assert counted.value("requests_total", model="unknown", outcome="untouched") == 1


@pytest.mark.parametrize(
    ("profile", "api", "wish"),
    [
        ("deepseek", "chat", "demanded"),
        ("anthropic", "messages", "demanded"),
        ("minimax", "chat", "wanted"),
        ("vllm", "chat", "free"),
    ],
)
def test_which_upstreams_want_their_reasoning_back(
    counted: Counted, profile: str, api: str, wish: str
) -> None:
    upstream = {"name": "u", "profile": profile, "api": api}
    build_app("mounted", Upstream(), registry=counted.registry, upstreams=[upstream])
    given = {"upstream": "u", "profile": profile}
    assert counted.value("upstream_info", **given, reasoning=wish) == 1
    assert counted.value("upstream_info", **given) == 1


class TestSummarizer:
    """How it is doing, while it does."""

    async def test_calls_that_are_under_way(self, counted: Counted) -> None:
        gate = asyncio.Event()
        app = counted.app(
            Answer(chat_stream(THOUGHT, "Hi")),
            writer := Scripted(gate=gate),
            summary=PATIENT,
            summarizer={"max_in_flight": 7},
        )
        request = begin(app, PATHS["chat"], CHAT)
        await until(lambda: bool(writer.running))
        assert counted.value("summarizer_in_flight") == 1
        assert counted.value("summarizer_in_flight_limit") == 7
        gate.set()
        await request.finish()
        assert counted.value("summarizer_in_flight") == 0

    async def test_the_breaker(self, counted: Counted) -> None:
        writer = Scripted("", error=ValueError("x"))
        settings = {"breaker_failures": 2, "breaker_seconds": 0.01}
        app = counted.app(Answer(chat_stream(THOUGHT, "Hi")), writer, summarizer=settings)
        for opened in (0, 1, 1):
            await call(app, PATHS["chat"], CHAT)
            assert counted.value("breaker_open") == opened
        writer.error = None
        writer.text = "All is well."
        await asyncio.sleep(0.02)
        await call(app, PATHS["chat"], CHAT)
        assert counted.value("breaker_open") == 0


class TestTimes:
    async def test_the_time_of_a_request_and_between_its_chunks(self, counted: Counted) -> None:
        await counted.send(Answer(chat_stream(THOUGHT, "Hello, who is there?")))
        for name in ("request_seconds", "chunk_seconds"):
            assert counted.value(f"{name}_count", **WHERE, model="m") == 1
        whole = counted.value("request_seconds_sum", **WHERE)
        assert whole >= counted.value("first_answer_seconds_sum", **WHERE)

    async def test_a_whole_answer_has_no_pieces(self, counted: Counted) -> None:
        await counted.send(Answer.json(completion({"content": "Hi", "reasoning": THOUGHT})))
        assert counted.value("request_seconds_count") == 1
        assert counted.value("chunk_seconds_count") == 0


class TestOutcomes:
    """What `requests_total` says of requests that were not answered as wished."""

    async def test_a_refusal(self, counted: Counted) -> None:
        app = counted.app(Answer())
        request_body = {**CHAT, "reasoning": {"summary": "short"}}
        assert (await call(app, PATHS["chat"], request_body)).status == 400
        assert counted.outcomes("requests_total") == {"refused": 1}
        assert counted.value("refusals_total", code="invalid_value") == 1

    async def test_a_body_that_is_no_turn(self, counted: Counted) -> None:
        app = counted.app(Answer.json({"choices": None}))
        await call(app, PATHS["chat"], {**CHAT, "stream": False})
        assert counted.outcomes("requests_total") == {"passed": 1}

    async def test_an_untouched_request_that_breaks(self, counted: Counted) -> None:
        app = counted.app(Answer([b"a", ValueError("broken")]))
        with pytest.raises(ValueError, match="broken"):
            await call(app, PATHS["chat"], {"model": "m", "messages": []})
        assert counted.outcomes("requests_total") == {"failed": 1}

    async def test_an_answer_that_broke_off_is_told_in_a_line(
        self, counted: Counted, caplog: pytest.LogCaptureFixture
    ) -> None:
        broken = UpstreamBroken("The upstream fell silent.")
        app = counted.app(Answer([*chat_stream(THOUGHT, "Hello.")[:5], broken]))
        await call(app, PATHS["chat"], CHAT)
        assert counted.outcomes("requests_total") == {"failed": 1}
        assert "upstream default: The upstream fell silent." in caplog.text

    @pytest.mark.parametrize("came", [0, 5], ids=["before its answer", "in the middle of it"])
    async def test_the_line_names_what_the_application_raised(
        self, counted: Counted, caplog: pytest.LogCaptureFixture, came: int
    ) -> None:
        frames = [*chat_stream(THOUGHT, "Hello.")[:came], ValueError("A secret.")]
        with pytest.raises(ValueError, match=r"A secret\."):
            await call(counted.app(Answer(frames)), PATHS["chat"], CHAT)
        lines = [line for line in caplog.messages if line.startswith("upstream default: ")]
        assert lines == ["upstream default: the application raised ValueError"]

    @pytest.mark.parametrize(
        ("last", "cause"),
        [
            ([], "The connection to upstream ended before the answer did."),
            ([b"data: {cut\n\n"], "Upstream's answer could not be read."),
            ([b'data: {"error":{"message":"A secret."}}\n\n'], "no whole answer came"),
        ],
        ids=["cut", "garbage", "upstream's own words"],
    )
    async def test_the_line_says_what_was_wrong_with_an_answer(
        self, counted: Counted, caplog: pytest.LogCaptureFixture, last: list[bytes], cause: str
    ) -> None:
        app = counted.app(Answer([*chat_stream(THOUGHT, "Hello.")[:5], *last]))
        await call(app, PATHS["chat"], CHAT)
        lines = [line for line in caplog.messages if line.startswith("upstream default: ")]
        assert lines == [f"upstream default: {cause}"]

    async def test_the_line_names_arguments_of_a_call_that_had_not_begun(
        self, counted: Counted, caplog: pytest.LogCaptureFixture
    ) -> None:
        stray = delta(3, "input_json", partial_json="{}")
        app = counted.app(Answer([begin_message(), stray]))
        body = {**CHAT, "max_tokens": 100}
        await call(app, "/v1/messages", body, {"x-abridge-summary": "auto"})
        assert f"upstream default: {STRAY_ARGUMENTS.message}" in caplog.messages

    @pytest.mark.parametrize(
        ("reported", "output"),
        [((10, 5, 115), 105), ((10, 105, 115), 105), ((10, 105, 0), 105), ((0, 5, 0), 5)],
        ids=["outside", "inside", "a total that is none", "nothing known"],
    )
    async def test_reasoning_is_output_wherever_it_is_reported(
        self, counted: Counted, reported: tuple[int, int, int], output: int
    ) -> None:
        """xAI's completion_tokens are without it, and are paid for with it."""
        usage = dict(
            zip(("prompt_tokens", "completion_tokens", "total_tokens"), reported, strict=True)
        )
        usage["completion_tokens_details"] = {"reasoning_tokens": 100}
        app = counted.app(Answer(chat_stream(THOUGHT, "Hello.", usage=usage)))
        await call(app, PATHS["chat"], CHAT)
        assert counted.value("upstream_tokens_total", **WHERE, type="output") == output
        assert counted.value("upstream_tokens_total", **WHERE, type="reasoning") == 100


LONG = thinking(4000)
STREAMS = {
    "chat": chat_stream(LONG, "Hello."),
    "responses": responses_stream([reasoning_item(0, LONG), message_item(1, "Hello.")]),
}


@pytest.mark.parametrize("api", PATHS)
class TestLedger:
    """What summaries cost beside the answers: who wrote them, and in which style."""

    def begin(self, counted: Counted, api: str, style: str, writer: Scripted, *steps: Any) -> Call:
        """A request for a summary in this style, of an answer in these steps, if not in full."""
        app = build_app(
            "sidecar",
            Upstream(Answer(steps or STREAMS[api])),
            writer=writer,
            registry=counted.registry,
            summary=PATIENT,
        )
        body = {"model": "m", "stream": True, "reasoning": {"summary": style}}
        given: dict[str, Any] = {"messages": []} if api == "chat" else {"input": "Hi"}
        return begin(app, PATHS[api], {**body, **given})

    async def test_tokens_per_style_and_summarizer(self, counted: Counted, api: str) -> None:
        expected: dict[tuple[str, ...], float] = {}
        for name, spent in (("large", Tokens(100, 20, 120)), ("small", Tokens(7, 3, 10))):
            for style in ("concise", "auto", "detailed"):
                writer = Scripted(spent=SummarizerUsage(spent, name))
                writer.name = name
                request = await self.begin(counted, api, style, writer).finish()
                calls = len(writer.requests)
                assert (calls > 1) == (style != "concise")
                share = _share(request)
                assert share["input_tokens"] == calls * (spent.input or 0)
                assert share["output_tokens"] == calls * (spent.output or 0)
                for kind in ("input", "output"):
                    expected[style, name, kind] = share[f"{kind}_tokens"]
        columns = "style", "summarizer", "type"
        assert counted.ledger("summarizer_tokens_total", *columns) == expected
        own = counted.ledger("upstream_tokens_total", "api", "type")
        assert own == {(api, "input"): 6 * 11, (api, "output"): 6 * 70, (api, "reasoning"): 6 * 50}

    async def test_seconds_held_per_style_and_summarizer(self, counted: Counted, api: str) -> None:
        now = 0.0
        waits = {("concise", "slow"): 2.5, ("detailed", "slow"): 1.5, ("detailed", "fast"): 0.25}
        with patch("abridge.pipeline.exchange.Clock", partial(Clock, lambda: now)):
            for (style, name), wait in waits.items():
                given = asyncio.Event()
                writer = Scripted(gate=asyncio.Event())
                writer.name = name
                request = self.begin(counted, api, style, writer, *STREAMS[api], given.set)
                await given.wait()
                assert b"Hello." not in request.data
                now += wait
                assert writer.gate is not None
                writer.gate.set()
                await request.finish()
        columns = "api", "style", "summarizer"
        expected = {(api, *made): wait for made, wait in waits.items()}
        assert counted.ledger("held_seconds_sum", *columns) == expected
        once = dict.fromkeys(expected, 1)
        assert counted.ledger("held_seconds_count", *columns) == once

    async def test_what_was_spent_for_a_client_that_left(self, counted: Counted, api: str) -> None:
        frames = [frame for frame in STREAMS[api] if b"Hello" not in frame]
        writer = Scripted()
        thought = [*frames[: len(frames) // 2], asyncio.Event()]
        request = self.begin(counted, api, "auto", writer, *thought)
        await until(lambda: len(writer.requests) == 1 and not writer.running)
        await request.leave()
        assert counted.value("requests_total", api=api, upstream="default", outcome="left") == 1
        columns = "style", "summarizer", "type"
        spent = {("auto", "scripted", "input"): 10, ("auto", "scripted", "output"): 5}
        assert counted.ledger("summarizer_tokens_total", *columns) == spent

    async def test_an_extract_costs_no_tokens(self, counted: Counted, api: str) -> None:
        app = build_app("sidecar", Upstream(Answer(STREAMS[api])), registry=counted.registry)
        request_body = {"model": "m", "stream": True, "reasoning": {"summary": "auto"}}
        await call(app, PATHS[api], {**request_body, "messages": [], "input": "Hi"})
        assert counted.ledger("summarizer_tokens_total", "type") == {}
        made = {"api": api, "upstream": "default", "style": "auto", "summarizer": "extractive"}
        assert counted.value("held_seconds_count", **made) == 1


def _share(request: Call) -> dict[str, Any]:
    """The summarizer's share, as the client sees it."""
    frames = [line[6:] for line in request.data.splitlines() if b'reasoning_summary":{' in line]
    event = json.loads(frames[-1])
    usage: dict[str, Any] = event.get("response", event)["usage"]
    share: dict[str, Any] = usage["reasoning_summary"]
    return share


SECRET = "I wonder whether"
FORMS_OF_THINKING = {
    "tag": f"<think>{SECRET}</think>Hello.",
    "token": f"<|think|>{SECRET}<|/think|>Hello.",
    "phrase": f"THOUGHT: {SECRET}\n\nHello.",
    "closing_tag": f"{SECRET}</think>Hello.",
}


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("kind", FORMS_OF_THINKING)
async def test_what_is_hidden_is_counted_by_what_told_of_it(
    counted: Counted, caplog: pytest.LogCaptureFixture, kind: str, api: str, *, is_stream: bool
) -> None:
    said = FORMS_OF_THINKING[kind]
    items = [message_item(0, said)]
    whole = completion({"content": said}) if api == "chat" else response(items)
    events = chat_stream("", said) if api == "chat" else responses_stream(items)
    played = Answer(events) if is_stream else Answer.json(whole)
    app = counted.app(played, reasoning={"expose": "none"})
    with caplog.at_level("INFO", "abridge.requests"):
        received = await call(app, PATHS[api], {**CHAT, "input": "Hi", "stream": is_stream})
    assert b"wonder" not in received.data
    assert counted.value("hidden_total", profile="auto", kind=kind) == 1
    (record,) = caplog.records
    fields = record.abridge  # type: ignore[attr-defined]
    assert (fields["profile"], fields["hidden"]) == ("auto", {kind: 1})
    assert SECRET not in caplog.text


async def test_text_outside_the_json_of_arguments_is_counted(counted: Counted) -> None:
    message = {"tool_calls": [tool_call("look", f'{SECRET}: {{"a": 1}}')]}
    app = build_app(
        "mounted",
        Upstream(Answer.json(completion(message))),
        registry=counted.registry,
        reasoning={"expose": "none"},
    )
    received = await call(app, "/v1/chat/completions", CHAT)
    assert b"wonder" not in received.data
    assert counted.value("hidden_total", profile="auto", kind="stray") == 1


async def test_fields_state_and_errors_that_are_hidden_are_counted(counted: Counted) -> None:
    item = {**reasoning_item(0, THOUGHT), "encrypted_content": "aGVsbG8gd29ybGQ=", "odd": 1}
    error = {"message": SECRET, "type": "server_error", "code": "odd"}
    body = {**response([item, message_item(1, "Hi")]), "error": error, "odd": SECRET}
    app = counted.app(Answer.json(body), reasoning={"expose": "none"})
    await call(app, PATHS["responses"], {"model": "m", "input": "Hi"})
    for kind in ("field", "state", "error"):
        assert counted.value("hidden_total", profile="auto", kind=kind) >= 1


async def test_nothing_is_counted_as_hidden_where_nothing_is(counted: Counted) -> None:
    for said in FORMS_OF_THINKING.values():
        await counted.send(Answer.json(completion({"content": said, "odd": 1})))
    assert total(counted.registry, "hidden_total") == 0
