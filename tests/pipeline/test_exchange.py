"""One engaged request: holds, disconnects, broken upstreams, slow clients, keep-alives.

Events drive time. Where a deadline itself is tested, it is a fraction of a second, and nothing
depends on how soon after it things happen.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.background import BackgroundTask
from starlette.responses import StreamingResponse

from abridge.apis.chat.reader import ChatReader
from abridge.apis.chat.writer import ChatWriter
from abridge.apis.delta_patterns import MAX_GATHERED
from abridge.apis.errors import UNREADABLE
from abridge.core.events import SummaryTextDelta
from abridge.errors import SummarizerError, UpstreamBroken
from abridge.memory.stores.memory import MemoryStore
from abridge.observability.record import SHUTTING_DOWN
from abridge.pipeline.client import HIGH_WATER, Client
from tests.end_to_end.translation.turn import PATHS
from tests.end_to_end.translation.turn import answer as translated_answer
from tests.support.asgi import Call, begin, say, scope_for, start
from tests.support.checker import check_chat, check_responses, comments
from tests.support.counters import total
from tests.support.deployments import ORIGIN, Form, build_app
from tests.support.servers import until
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    chunk,
    completion,
    message_item,
    pieces,
    reasoning_item,
    response,
    responses_stream,
    thinking,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Step, Upstream

ASKING = {"reasoning": {"summary": "auto"}, "stream": True, "model": "m"}
CHAT = {**ASKING, "messages": [{"role": "user", "content": "Hi"}]}
RESPONSES = {**ASKING, "input": "Hi"}
OUTPUT = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
SUMMARY = "**Adding up**\n\nI add the numbers."
KINDS = ["text/event-stream", "application/json", "text/html"]
PATIENT = {"grace": 60, "first_token": 60}


@pytest.fixture(autouse=True)
async def nothing_is_left_running() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() - before <= {asyncio.current_task()}


def ask(
    upstream: Any, writer: Scripted | None = None, path: str = PATHS["chat"], **tables: Any
) -> Call:
    """Send a request for a streamed summary to Abridge before an application."""
    app = build_app("mounted", upstream, writer=writer or Scripted(), **tables)
    return begin(app, path, CHAT if path == PATHS["chat"] else RESPONSES)


class TestHold:
    async def test_a_summary_comes_while_the_model_thinks(self) -> None:
        more = asyncio.Event()
        steps: list[Step] = [chunk({"role": "assistant", "content": ""})]
        steps += [chunk({"reasoning": text}) for text in pieces(thinking(1000))]
        steps += [more, *chat_stream("", "Hello.")[1:]]
        request = ask(Upstream(Answer(steps)), Scripted(), summary={"part_chars": 200})
        await request.until(b"numbers.")
        assert b"Hello" not in request.data
        more.set()
        await request.finish()
        assert check_chat(request.data).choices[0].text == "Hello."

    async def test_the_answer_waits_for_the_last_part_and_no_longer(self) -> None:
        gate = asyncio.Event()
        writer = Scripted(gate=gate)
        upstream = Upstream(Answer(chat_stream(THOUGHT, "Hello.")))
        request = ask(upstream, writer, summary=PATIENT)
        await until(lambda: bool(writer.running) and not upstream.running)
        assert b"Hello" not in request.data
        gate.set()
        await request.finish()
        seen = check_chat(request.data).choices[0]
        assert seen.order == ["reasoning_content", "content"]
        assert seen.fields["reasoning_content"] == SUMMARY

    async def test_after_two_misses_the_route_waits_no_more(self) -> None:
        writer = Scripted(gate=asyncio.Event())
        answers = [Answer(chat_stream(THOUGHT, "Hello.")) for _ in range(3)]
        app = build_app(
            "mounted",
            Upstream(*answers),
            writer=writer,
            summary={"grace": 0.4, "first_token": 0.2},
        )
        for _ in range(2):
            await begin(app, PATHS["chat"], CHAT).finish()
        assert writer.stopped == 2
        request = begin(app, PATHS["chat"], CHAT)
        await request.finish()
        seen = check_chat(request.data)
        assert seen.choices[0].text == "Hello."
        assert seen.choices[0].summary_error is not None
        assert len(writer.requests) == 2, "a part that cannot be awaited is not requested"
        assert seen.usage is not None
        assert "reasoning_summary" not in seen.usage

    async def test_a_part_requested_and_cancelled_in_one_batch(self) -> None:
        """The first-token timeout is over at once, and the breaker admits no call."""
        writer = Scripted(error=SummarizerError("upstream_error", "No."))
        app = build_app(
            "mounted",
            Upstream(Answer([b"".join(chat_stream(THOUGHT, "Hello."))])),
            writer=writer,
            summary={"first_token": 0},
            summarizer={"breaker_failures": 1},
        )
        for _ in range(2):
            request = begin(app, PATHS["chat"], CHAT)
            await request.finish()
            assert check_chat(request.data).choices[0].text == "Hello."

    async def test_a_body_waits_no_longer_than_a_stream(self) -> None:
        writer = Scripted(gate=asyncio.Event())
        request = begin(
            build_app(
                "mounted",
                Upstream(Answer.json(response(OUTPUT))),
                writer=writer,
                summary={"grace": 0.02},
            ),
            PATHS["responses"],
            {**RESPONSES, "stream": False},
        )
        await request.finish()
        assert request.headers["x-abridge-summary"] == "failed"
        assert request.json["output"][0]["summary_error"]["code"] == "deadline"


LIMIT = 10 * 1024
READ = 2000
"""Bytes of text that one read brings."""

FLOOD = 100 * LIMIT


class Flood:
    """An answer that goes on and on: reasoning, then text as long as anyone reads, up to `FLOOD`.

    `choices` of them reason. `text` is what each has said, `pushed` its characters altogether.
    """

    def __init__(self, *, choices: int = 1) -> None:
        self.open = True
        self.text = ""
        self.pushed = 0
        self._choices = range(choices)

    def steps(self) -> Iterator[Step]:
        for index in self._choices:
            yield chunk({"role": "assistant", "content": ""}, index=index)
            yield chunk({"reasoning_content": THOUGHT}, index=index)
        while self.open and self.pushed < FLOOD:
            piece = f"{len(self.text)} ".ljust(READ, "x")
            self.text += piece
            for index in self._choices:
                self.pushed += READ
                yield chunk({"content": piece}, index=index)
        for index in self._choices:
            yield chunk({}, finish="stop", index=index)
        yield b"data: [DONE]\n\n"


class TestHeldLimit:
    """Upstream is not read while too much waits, and nothing is lost by that."""

    def flood(
        self, writer: Scripted, *, choices: int = 1, **summary: float
    ) -> tuple[Flood, Upstream, Call]:
        flood = Flood(choices=choices)
        upstream = Upstream(Answer(flood.steps()))
        patient = {**PATIENT, **summary}
        return flood, upstream, ask(upstream, writer, summary=patient, limits={"held": LIMIT})

    @pytest.mark.parametrize("choices", [1, 3])
    async def test_no_more_is_read_than_the_limit_and_one_message(self, choices: int) -> None:
        gate = asyncio.Event()
        flood, upstream, request = self.flood(Scripted(gate=gate), choices=choices)
        await upstream.until_stalled()
        assert LIMIT - READ < flood.pushed <= LIMIT + READ
        assert b"xxx" not in request.data
        flood.open = False
        gate.set()
        await request.finish()
        seen = check_chat(request.data)
        assert [choice.text for choice in seen.choices.values()] == [flood.text] * choices
        for choice in seen.choices.values():
            assert choice.fields["reasoning_content"] == SUMMARY

    async def test_it_is_read_again_from_the_deadline_on(self) -> None:
        flood, upstream, request = self.flood(Scripted(gate=asyncio.Event()), grace=0.05)
        await request.until(b"xxx")
        await until(lambda: upstream.sent > 3 * LIMIT)
        flood.open = False
        await request.finish()
        seen = check_chat(request.data).choices[0]
        assert seen.text == flood.text
        assert seen.summary_error is not None
        assert seen.summary_error["code"] == "deadline"

    async def test_the_gauge_says_how_much_waits(self) -> None:
        registry = CollectorRegistry()
        gate = asyncio.Event()
        upstream = Upstream(Answer(chat_stream(THOUGHT, "x" * 2 * LIMIT)))
        tables: dict[str, Any] = {"summary": PATIENT, "limits": {"held": LIMIT}}
        request = ask(upstream, Scripted(gate=gate), registry=registry, **tables)
        await until(lambda: (registry.get_sample_value("abridge_held_bytes") or 0) > LIMIT)
        gate.set()
        await request.finish()
        assert registry.get_sample_value("abridge_held_bytes") == 0
        assert total(registry, "summaries_total", outcome="ok") == 1

    async def test_a_client_that_leaves_is_not_waited_for(self) -> None:
        writer = Scripted(gate=asyncio.Event())
        _, upstream, request = self.flood(writer)
        await upstream.until_stalled()
        await request.leave()
        assert (upstream.running, upstream.left, writer.running) == (0, 1, 0)

    async def test_a_shutdown_ends_the_wait(self) -> None:
        _, upstream, request = self.flood(Scripted(gate=asyncio.Event()))
        await upstream.until_stalled()
        await request.cancel(SHUTTING_DOWN)
        assert request.complete
        assert b"shutting down" in request.data

    async def test_an_app_that_stops_sending_meanwhile_ends_the_wait(self) -> None:
        """It gives its `send` up after a while of its own, and returns."""
        flood = Flood()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await start(send)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    for step in flood.steps():
                        await say(send, step, more=True)

        stuck = Scripted(gate=asyncio.Event())
        request = await ask(app, stuck, summary=PATIENT, limits={"held": LIMIT}).finish()
        seen = check_chat(request.data)
        assert seen.error is not None
        assert seen.choices[0].text == flood.text

    async def test_while_the_client_is_slow_the_grace_lasts_on(self) -> None:
        gate = asyncio.Event()
        flood, upstream, request = self.flood(Scripted(gate=gate), grace=0.2)
        request.gate.clear()
        await upstream.until_stalled()
        await asyncio.sleep(0.5)
        flood.open = False
        gate.set()
        request.gate.set()
        await request.finish()
        seen = check_chat(request.data).choices[0]
        assert (seen.text, seen.fields["reasoning_content"]) == (flood.text, SUMMARY)


class TestDisconnects:
    """Everything stops when the client leaves, in every phase of a request."""

    async def test_a_mounted_app_is_notified_and_not_cancelled(self) -> None:
        notified = asyncio.Event()
        ready = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await start(send)
            ready.set()
            assert (await receive())["type"] == "http.disconnect"
            with pytest.raises(OSError, match="left"):
                await say(send, b"x", more=True)
            await asyncio.sleep(0.01)
            notified.set()

        request = ask(app, path=PATHS["responses"])
        await ready.wait()
        await request.leave()
        assert notified.is_set()

    @pytest.mark.parametrize("kind", KINDS)
    async def test_an_app_that_waits_after_its_answer_is_told_of_the_end(self, kind: str) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await start(send, kind)
            whole = json.dumps(completion({"content": "Hello."})).encode()
            body = whole if "json" in kind else b"".join(chat_stream("", "Hello."))
            await say(send, body)
            assert (await receive())["type"] == "http.disconnect"
            assert (await receive())["type"] == "http.disconnect"

        request = await ask(app).finish()
        assert request.complete

    async def test_a_background_task_follows_the_answer(self) -> None:
        sequence: list[str] = []
        gate = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            async def body() -> AsyncIterator[bytes]:
                for frame in chat_stream(THOUGHT, "Hello."):
                    yield frame
                sequence.append("answered")

            task = BackgroundTask(sequence.append, "background")
            response = StreamingResponse(body(), media_type="text/event-stream", background=task)
            await response(scope, receive, send)
            gate.set()

        writer = Scripted(gate=gate)
        request = begin(build_app("mounted", app, writer=writer), PATHS["chat"], CHAT)  # type: ignore[arg-type]
        await request.finish()
        assert sequence == ["answered", "background"]
        assert check_chat(request.data).choices[0].text == "Hello."

    async def test_an_app_whose_answer_was_refused_is_told_to_stop(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await start(send, "text/html", 200)
            await say(send, b"<html>", more=True)
            assert (await receive())["type"] == "http.disconnect"

        request = await ask(app, reasoning={"expose": "none"}).finish()
        assert (request.status, request.complete) == (502, True)


class TestStreamsOfOtherTypes:
    """Some servers stream under a type that is none of a stream, or without any."""

    @pytest.mark.parametrize("kind", ["text/plain", "application/json", "text/html", None])
    @pytest.mark.parametrize("expose", ["both", "summary", "none"])
    @pytest.mark.parametrize("form", ["mounted", "sidecar"])
    async def test_a_body_that_begins_as_one_is_read_as_it_comes(
        self, form: Form, expose: str, kind: str | None
    ) -> None:
        rest, frames = asyncio.Event(), chat_stream(THOUGHT, "Hello.")
        steps: list[Step] = [b": a\n\n", frames[0][:3], frames[0][3:], rest, *frames[1:]]
        upstream = Upstream(Answer(steps, headers={} if kind is None else {"content-type": kind}))
        app = build_app(form, upstream, writer=Scripted(SUMMARY), reasoning={"expose": expose})
        request = begin(app, PATHS["chat"], CHAT)
        await request.until(b"data:")
        rest.set()
        await request.finish()
        assert request.headers["content-type"] == "text/event-stream"
        assert check_chat(request.data).choices[0].text == "Hello."
        assert (SUMMARY in text_of(request)) is (expose != "none")
        assert (THOUGHT in text_of(request)) is (expose == "both")

    @pytest.mark.parametrize("path", [PATHS["responses"], PATHS["messages"]])
    async def test_it_is_translated(self, path: str) -> None:
        frames = chat_stream(THOUGHT, "Hello.")
        upstream = Upstream(Answer(frames, headers={"content-type": "text/plain"}))
        entry = {"base_url": f"{ORIGIN}/v1", "api": "chat"}
        app = build_app("sidecar", upstream, writer=Scripted(), upstreams=[entry])
        request = await begin(app, path, {**CHAT, "input": "Hi", "max_tokens": 99}).finish()
        assert request.headers["content-type"] == "text/event-stream"
        assert b"Hello." in request.data

    @pytest.mark.parametrize("expose", ["both", "none"])
    @pytest.mark.parametrize("body", [b"database: down", b"\n\n", b"eve", b"", THOUGHT.encode()])
    async def test_another_body_passes_where_nothing_is_hidden(
        self, body: bytes, expose: str
    ) -> None:
        steps = [body[at : at + 1] for at in range(len(body))]
        upstream = Upstream(Answer(steps, headers={"content-type": "text/plain"}))
        request = await ask(upstream, reasoning={"expose": expose}).finish()
        passes = expose == "both"
        assert request.status == (200 if passes else 502)
        assert (request.data == body) is passes
        assert (request.headers["content-type"] == "text/plain") is passes

    async def test_of_one_that_breaks_off_at_once_the_head_passes(self) -> None:
        broken = UpstreamBroken("cut", code="upstream_broken", upstream="u")
        request = ask(Upstream(Answer([b"eve", broken], headers={"content-type": "text/plain"})))
        with pytest.raises(UpstreamBroken):
            await request.finish()
        assert (request.status, request.data, request.complete) == (200, b"eve", False)


def text_of(request: Call) -> str:
    fields = check_chat(request.data).choices[0].fields
    return "".join(map(str, fields.values()))


class TestCancellation:
    """Whoever cancels a request before its answer has begun may answer it."""

    @pytest.mark.parametrize("form", ["mounted", "sidecar"])
    async def test_a_timeout_around_the_app_answers_by_itself(self, form: Form) -> None:
        stuck = Upstream(Answer(before=[asyncio.Event()]))
        app = build_app(form, stuck, writer=Scripted())

        async def limited(scope: Any, receive: Any, send: Any) -> None:
            try:
                async with asyncio.timeout(0.05):
                    await app(scope, receive, send)
            except TimeoutError:
                await send({"type": "http.response.start", "status": 504, "headers": []})
                await say(send, b"too slow")

        request = await begin(limited, PATHS["chat"], CHAT).finish()
        assert (request.status, request.data) == (504, b"too slow")

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("form", ["mounted", "sidecar"])
    async def test_nothing_is_sent_of_an_answer_that_has_not_begun(
        self, form: Form, kind: str
    ) -> None:
        reached = asyncio.Event()
        answer = (
            Answer([b'{"a":', reached.set, asyncio.Event()], headers={"content-type": kind})
            if "json" in kind
            else Answer(before=[reached.set, asyncio.Event()], headers={"content-type": kind})
        )
        registry = CollectorRegistry()
        app = build_app(form, Upstream(answer), writer=Scripted(), registry=registry)
        request = begin(app, PATHS["chat"], CHAT)
        await reached.wait()
        await request.cancel()
        assert not request.sent
        labels = {"api": "chat", "upstream": "default", "outcome": "failed"}
        assert total(registry, "requests_total", **labels) == 1

    @pytest.mark.parametrize("form", ["mounted", "sidecar"])
    @pytest.mark.parametrize("path", [PATHS["chat"], PATHS["responses"]])
    async def test_a_stream_that_has_begun_ends_with_an_error(self, form: Form, path: str) -> None:
        frames = responses_stream(OUTPUT) if "responses" in path else chat_stream(THOUGHT, "Hello.")
        upstream = Upstream(Answer([*frames[:20], asyncio.Event()]))
        app = build_app(form, upstream, writer=Scripted())
        request = begin(app, path, RESPONSES if "responses" in path else CHAT)
        await request.until(b"data:")
        await request.cancel()
        assert request.complete
        if "responses" in path:
            seen = check_responses(request.data)
            assert seen.kinds[-1] == "response.failed"
            error = seen.response["error"]
        else:
            error = check_chat(request.data).error
        assert error["message"] == "The request was cancelled."

    async def test_a_whole_answer_waits_for_its_summary_no_longer(self) -> None:
        writer = Scripted(gate=asyncio.Event())
        upstream = Upstream(Answer(chat_stream(THOUGHT, "Hello.")))
        request = ask(upstream, writer, summary=PATIENT)
        await until(lambda: bool(writer.running and request.sent) and not upstream.running)
        assert b"Hello" not in request.data
        await request.cancel()
        seen = check_chat(request.data)
        assert (seen.error, seen.choices[0].text) == (None, "Hello.")

    @pytest.mark.parametrize("expose", ["both", "summary"])
    async def test_a_body_that_is_complete_is_sent_without_its_summary(self, expose: str) -> None:
        request, upstream = await held_body(reasoning={"expose": expose})
        await request.cancel()
        assert (request.status, request.complete, upstream.left) == (200, True, 0)
        message = request.json["choices"][0]["message"]
        assert message["content"] == "Hello."
        assert ("odd numbers" in str(request.json)) is (expose == "both")

    async def test_a_complete_body_is_an_error_with_its_answer_where_a_summary_must_be(
        self,
    ) -> None:
        request, _ = await held_body(summary={"on_failure": "fail"})
        await request.cancel()
        assert (request.status, request.complete) == (502, True)
        assert b"Hello." in request.data


async def held_body(**tables: Any) -> tuple[Call, Upstream]:
    """Return a request whose body is complete and waits for its summary."""
    upstream = Upstream(Answer.json(completion({"content": "Hello.", "reasoning": THOUGHT})))
    writer = Scripted(gate=asyncio.Event())
    waiting = {"grace": 60, "first_token": 60, "default": "auto", **tables.pop("summary", {})}
    app = build_app("mounted", upstream, writer=writer, summary=waiting, **tables)
    request = begin(app, PATHS["chat"], {**CHAT, "stream": False})
    await until(lambda: bool(writer.running) and not upstream.running)
    assert not request.sent
    return request, upstream


class TestBrokenUpstreams:
    async def test_an_app_that_stops_halfway_breaks_off(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await start(send)
            await say(send, b"".join(chat_stream(THOUGHT)[:5]), more=True)

        request = await ask(app).finish()
        assert check_chat(request.data).error is not None

    async def test_an_untouched_response_breaks_off_like_upstreams(self) -> None:
        broken = UpstreamBroken("cut", code="upstream_broken", upstream="u")
        answer = Answer([b"<html>", broken], headers={"content-type": "text/html"})
        registry = CollectorRegistry()
        request = ask(Upstream(answer), registry=registry)
        with pytest.raises(UpstreamBroken):
            await request.finish()
        assert request.data == b"<html>"
        assert not request.complete
        labels = {"api": "chat", "upstream": "default", "outcome": "error"}
        assert total(registry, "requests_total", **labels) == 1

    async def test_a_shutdown_sends_the_client_an_error(self) -> None:
        reached, never = asyncio.Event(), asyncio.Event()
        stream = chat_stream(THOUGHT, "Hello.")
        request = ask(Upstream(Answer([*stream[:20], reached.set, never])))
        await reached.wait()
        await request.cancel(SHUTTING_DOWN)
        assert request.complete
        error = check_chat(request.data).error
        assert error is not None
        assert "shutting down" in error["message"]

    @pytest.mark.parametrize("stream", [True, False])
    async def test_a_shutdown_while_an_answer_is_remembered_loses_nothing_of_it(
        self, monkeypatch: pytest.MonkeyPatch, *, stream: bool
    ) -> None:
        reached, gate = asyncio.Event(), asyncio.Event()

        async def remember(*_: object) -> None:
            reached.set()
            await gate.wait()

        monkeypatch.setattr(MemoryStore, "remember", remember)
        message = {"role": "assistant", "content": "Hello.", "reasoning_content": THOUGHT}
        whole = Answer.json(completion(message))
        upstream = Upstream(Answer(chat_stream(THOUGHT, "Hello.")) if stream else whole)
        app = build_app("mounted", upstream, writer=Scripted())
        request = begin(app, PATHS["chat"], {**CHAT, "stream": stream}, {"api-key": "sk-anna"})
        await reached.wait()
        assert request.task is not None
        request.task.cancel(SHUTTING_DOWN)
        await asyncio.sleep(0)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await request.finish()
        assert request.complete
        assert b"Hello." in request.data

    async def test_a_shutdown_before_the_answer_is_a_503(self) -> None:
        reached = asyncio.Event()
        request = ask(Upstream(Answer(before=[reached.set, asyncio.Event()])))
        await reached.wait()
        await request.cancel(SHUTTING_DOWN)
        assert (request.status, request.complete) == (503, True)


class TestOddAnswers:
    """What cannot be read or written ends its response, and nothing waits for ever."""

    @pytest.mark.parametrize("stream", [True, False])
    async def test_a_rewritten_answer_has_no_framing_but_the_servers(self, *, stream: bool) -> None:
        answer = (
            Answer(chat_stream(THOUGHT, "Hello."))
            if stream
            else Answer.json(completion({"content": "Hello.", "reasoning": THOUGHT}))
        )
        answer.headers["transfer-encoding"] = "chunked"
        request = await ask(Upstream(answer)).finish()
        assert "transfer-encoding" not in request.headers
        length = None if stream else str(len(request.data))
        assert request.headers.get("content-length") == length

    @pytest.mark.parametrize("status", [200, 404])
    @pytest.mark.parametrize("api", ["same", "responses"])
    async def test_a_start_without_headers_passes(self, status: int, api: str) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": status})
            await say(send, b"hello")

        request = await ask(app, upstreams=[{"api": api}]).finish()
        refused = api != "same" and status == 200
        assert request.status == (502 if refused else status)
        assert (request.data == b"hello") is not refused

    @pytest.mark.parametrize("tracing", [True, False])
    @pytest.mark.parametrize("default", ["off", "auto"])
    async def test_headers_may_be_any_iterable(self, default: str, *, tracing: bool) -> None:
        given = {"content-type": "application/json", "x-mine": "1"}
        headers = ((key.encode(), value.encode()) for key, value in given.items())
        request = await ask_whole(
            {"headers": headers}, summary={"default": default}, tracing={"enabled": tracing}
        )
        received = request.headers
        assert {name: received[name] for name in given} == given
        assert ("x-abridge-summary" in received) is (default == "auto")

    @pytest.mark.parametrize("tracing", [True, False])
    async def test_headers_may_be_none(self, *, tracing: bool) -> None:
        request = await ask_whole({"headers": None}, tracing={"enabled": tracing})
        assert (request.status, request.json["id"]) == (200, "chatcmpl-1")

    @pytest.mark.parametrize("default", ["off", "auto"])
    @pytest.mark.parametrize("kind", ["application/json", "text/html"])
    async def test_trailers_are_announced_only_where_they_pass(
        self, default: str, kind: str
    ) -> None:
        headers = [(b"content-type", kind.encode())]
        begun = {"headers": headers, "trailers": True}
        request = await ask_whole(begun, Untiring, summary={"default": default})
        announced = request.sent[0].get("trailers", False)
        passed = request.sent[-1]["type"] == "http.response.trailers"
        assert announced is passed is (default == "off")

    @pytest.mark.parametrize("expose", ["auto", "none"])
    @pytest.mark.parametrize(
        ("part", "method"), [(ChatReader, "read_whole"), (ChatWriter, "write_whole")]
    )
    async def test_an_error_in_the_writer_passes_a_whole_answer(
        self, part: type, method: str, expose: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(part, method, fail)
        odd = Answer.json(completion({"content": "Hello.", "reasoning": THOUGHT}))
        exposing = {"reasoning": {"expose": expose}}
        app = build_app("mounted", Upstream(odd), writer=Scripted(), **exposing)
        request = begin(app, PATHS["chat"], {**CHAT, "stream": False})
        await request.finish()
        assert request.status == (502 if expose == "none" else 200)
        assert (b"odd numbers" in request.data) is (expose == "auto")

    @pytest.mark.parametrize("place", [0, 3, -2])
    @pytest.mark.parametrize("together", [True, False])
    async def test_an_error_in_the_reader_fails_the_stream(
        self, place: int, *, together: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        odd = b'data: {"odd": 1}\n\n'
        read = ChatReader.read

        def read_all_but_one(self: ChatReader, frame: bytes) -> Any:
            return fail() if frame == odd else read(self, frame)

        monkeypatch.setattr(ChatReader, "read", read_all_but_one)
        frames = chat_stream(THOUGHT, "Hello.")
        frames = [*frames[:place], odd, odd, *frames[place:]]
        writer = Scripted()
        request = await ask(
            Upstream(Answer([b"".join(frames)] if together else frames)), writer
        ).finish()
        assert odd not in request.data
        assert request.data.count(b'"error"') == 1
        seen = check_chat(request.data)
        assert (seen.error or {})["message"] == UNREADABLE.message
        assert not seen.done

    @pytest.mark.parametrize(
        "failing",
        [
            chunk({"content": "Hello."})[:-3] + b"\n\n",
            chunk({}, finish="error"),
            chunk(error={"message": "Overloaded"}),
        ],
    )
    @pytest.mark.parametrize("client", [CHAT, RESPONSES], ids=["chat", "responses"])
    async def test_what_upstream_fails_with_is_counted_as_failed(
        self, failing: bytes, client: dict[str, Any]
    ) -> None:
        registry = CollectorRegistry()
        upstream = Upstream(Answer([*chat_stream(THOUGHT, "So. ")[:-3], failing, b": bye\n\n"]))
        upstreams = [{"base_url": f"{ORIGIN}/v1", "api": "chat"}]
        app = build_app(
            "sidecar", upstream, writer=Scripted(), registry=registry, upstreams=upstreams
        )
        path = PATHS["chat"] if client is CHAT else PATHS["responses"]
        request = begin(app, path, client)
        await request.finish()
        assert total(registry, "requests_total", outcome="failed") == 1
        assert b"[DONE]" not in request.data

    @pytest.mark.parametrize("expose", ["auto", "none"])
    async def test_a_whole_answer_that_finished_with_an_error_is_counted_as_one(
        self, expose: str
    ) -> None:
        registry, body = CollectorRegistry(), completion({"content": "So.", "reasoning": THOUGHT})
        body["choices"][0] |= {"finish_reason": "error", "error": {"message": "Overloaded"}}
        upstream, reasoning = Upstream(Answer.json(body)), {"expose": expose}
        app = build_app(
            "mounted", upstream, writer=Scripted(), registry=registry, reasoning=reasoning
        )
        request = begin(app, PATHS["chat"], {**CHAT, "stream": False})
        await request.finish()
        assert (b"Overloaded" in request.data) is (expose == "auto")
        assert (b"odd numbers" in request.data) is (expose == "auto")
        assert total(registry, "requests_total", outcome="ok") == 0

    async def test_an_error_in_reading_the_end_fails_the_stream(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ChatReader, "_finish_choices", fail)
        request = await ask(Upstream(Answer(chat_stream(THOUGHT, "Hello.")))).finish()
        assert check_chat(request.data).error is not None

    async def test_a_stream_that_cannot_be_written_is_cut(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ChatWriter, "write", fail)
        request = ask(Upstream(Answer(chat_stream(THOUGHT, "Hello."))))
        with pytest.raises(TypeError, match="a fault"):
            await request.finish()
        assert request.sent
        assert not request.complete

    async def test_a_summary_that_cannot_be_written_leaves_nothing_waiting(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write = ChatWriter.write

        def write_no_summary(self: ChatWriter, event: Any) -> bytes:
            return fail() if isinstance(event, SummaryTextDelta) else write(self, event)

        monkeypatch.setattr(ChatWriter, "write", write_no_summary)
        steps: list[Step] = [chunk({"role": "assistant", "content": ""})]
        steps += [chunk({"reasoning": text}) for text in pieces(thinking(1000))]
        waiting = Upstream(Answer([*steps, asyncio.Event()]))
        request = ask(waiting, Scripted(), summary={"part_chars": 200})
        with pytest.raises(TypeError, match="a fault"):
            await request.finish()
        gc.collect()  # a coroutine that nobody awaited fails the test

    async def test_an_error_that_is_no_exception_comes_out_as_it_is(self) -> None:
        class Halt(BaseException):
            pass

        async def app(scope: Any, receive: Any, send: Any) -> None:
            raise Halt from KeyError("cause")

        with pytest.raises(Halt) as raised:
            await ask(app).finish()
        assert isinstance(raised.value.__cause__, KeyError)


class Untiring(Call):
    """A client that takes trailers, too."""

    async def send(self, message: Any) -> None:
        self.sent.append(message)


async def ask_whole(begun: dict[str, Any], client: type[Call] = Call, **tables: Any) -> Call:
    """Ask an application that begins its answer so, and ends it with trailers."""
    body = json.dumps(completion({"content": "Hello.", "reasoning": THOUGHT})).encode()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, **begun})
        await say(send, body)
        if begun.get("trailers"):
            await send({"type": "http.response.trailers", "headers": []})

    asked = json.dumps({"model": "m", "messages": CHAT["messages"]}).encode()
    tables = {"summary": {"default": "auto"}, **tables}
    outer = build_app("mounted", app, writer=Scripted(), **tables)  # type: ignore[arg-type]
    return await client(outer, scope_for(PATHS["chat"], asked), asked).start().finish()


def fail(*_: Any) -> Any:
    raise TypeError("a fault")


class TestSlowClient:
    async def test_a_slow_client_slows_its_own_upstream(self) -> None:
        frames = [chunk({"content": "x" * 1000}) for _ in range(1000)]
        stream = [*chat_stream(THOUGHT)[:-3], *frames, *chat_stream("", "")[1:]]
        upstream = Upstream(Answer(stream))
        request = ask(upstream)
        await request.until(b"x" * 1000, 400)  # more than waited for the summary
        request.gate.clear()
        await upstream.until_stalled()
        assert upstream.sent - len(request.data) < 2 * HIGH_WATER
        request.gate.set()
        await request.finish()
        assert len(check_chat(request.data).choices[0].text) == 1000 * 1000

    async def test_the_clock_of_the_grace_stops_while_the_client_is_slow(self) -> None:
        gate = asyncio.Event()
        writer = Scripted(gate=gate)
        stream = chat_stream(THOUGHT, "Hello.")
        upstream = Upstream(Answer(stream))
        request = ask(upstream, writer, summary={"grace": 0.2, "first_token": 0.2})
        request.gate.clear()
        await until(lambda: bool(writer.running))
        await asyncio.sleep(0.5)
        gate.set()
        request.gate.set()
        await request.finish()
        assert check_chat(request.data).choices[0].fields["reasoning_content"] == SUMMARY

    async def test_a_slow_client_may_leave(self) -> None:
        frames = [chunk({"content": "x" * 1000}) for _ in range(1000)]
        upstream = Upstream(Answer([*chat_stream("", "a")[:2], *frames]))
        request = ask(upstream)
        request.gate.clear()
        await until(lambda: upstream.sent > HIGH_WATER // 2)
        request.left.set()
        request.gate.set()
        await request.finish()
        assert upstream.running == 0


class TestKeepAlives:
    @pytest.fixture(autouse=True)
    def hasty(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Client, "KEEP_ALIVE_SECONDS", 0.005)

    async def test_comments_while_holding_and_each_third_an_event(self) -> None:
        gate = asyncio.Event()
        request = ask(
            Upstream(Answer(responses_stream(OUTPUT))),
            Scripted(gate=gate),
            PATHS["responses"],
            summary=PATIENT,
        )
        await request.until(b": keep-alive", 4)
        await request.until(b"event: response.in_progress", 3)
        gate.set()
        await request.finish()
        seen = check_responses(request.data)
        assert seen.text == "Hello."
        assert seen.kinds.count("response.in_progress") >= 3

    async def test_comments_while_hidden_reasoning_goes_by(self) -> None:
        more = asyncio.Event()
        stream = chat_stream(THOUGHT, "Hello.")
        request = ask(Upstream(Answer([*stream[:20], more, *stream[20:]])))
        await request.until(b": keep-alive", 3)
        more.set()
        await request.finish()
        assert set(comments(request.data)) == {"keep-alive"}

    @pytest.mark.parametrize(
        ("upstream", "sign"),
        [
            ("chat", b": PROCESSING\n\n"),
            ("messages", b'event: ping\ndata: {"type": "ping"}\n\n'),
            ("responses", b'data: {"type": "response.in_progress", "response": {}}\n\n'),
        ],
    )
    async def test_comments_while_upstream_sends_events_that_are_dropped(
        self, upstream: str, sign: bytes
    ) -> None:
        more = asyncio.Event()
        first, *rest = translated_answer(upstream, stream=True).steps
        client = "responses" if upstream == "chat" else "chat"
        request = ask(
            Upstream(Answer([first, sign, more, *rest])),
            Scripted(),
            PATHS[client],
            upstreams=[{"api": upstream, "base_url": f"{ORIGIN}/v1"}],
        )
        await request.until(b": keep-alive", 2)
        more.set()
        await request.finish()
        assert set(comments(request.data)) == {"keep-alive"}

    @pytest.mark.parametrize("size", [10, MAX_GATHERED])
    async def test_no_comments_after_reasoning_that_is_shown(self, size: int) -> None:
        reached, more = asyncio.Event(), asyncio.Event()
        thoughts = [chunk({"reasoning_content": f"{number:{size}}"}) for number in range(5)]
        first, *rest = chat_stream("", "Hello.")
        upstream = Upstream(Answer([first, *thoughts, reached.set, more, *rest]))
        whole = {"live": False}
        request = ask(upstream, reasoning={"expose": "both"}, summary=whole)
        await request.until(f"{4:{size}}".encode())
        await reached.wait()
        before = len(comments(request.data))
        await asyncio.sleep(0.2)
        assert len(comments(request.data)) - before < 5
        more.set()
        await request.finish()
        assert check_chat(request.data).choices[0].text == "Hello."

    async def test_comments_after_what_is_dropped_among_shown_reasoning(self) -> None:
        more = asyncio.Event()
        thoughts = [chunk({"reasoning_content": f"{number}, "}) for number in range(5)]
        first, *rest = chat_stream("", "Hello.")
        request = ask(
            Upstream(Answer([first, *thoughts, chunk({}), more, *rest])),
            Scripted(),
            PATHS["responses"],
            reasoning={"expose": "both"},
            upstreams=[{"api": "chat", "base_url": f"{ORIGIN}/v1"}],
        )
        await request.until(b": keep-alive", 2)
        more.set()
        await request.finish()
        assert check_responses(request.data).text == "Hello."

    async def test_no_comments_while_upstream_is_silent(self) -> None:
        reached, more = asyncio.Event(), asyncio.Event()
        stream = chat_stream("", "Hello.")
        request = ask(Upstream(Answer([*stream[:2], reached.set, more, *stream[2:]])))
        await reached.wait()
        await asyncio.sleep(0.2)  # forty times as long as between two comments
        more.set()
        await request.finish()
        assert len(comments(request.data)) < 5  # of before and after the silence, if work is slow


async def test_several_frames_of_one_read_leave_in_one_send() -> None:
    request = await ask(Upstream(Answer([b"".join(chat_stream(THOUGHT, "Hello."))]))).finish()
    bodies = [message for message in request.sent if message["type"] == "http.response.body"]
    assert len(bodies) < 6


async def test_a_summarizers_odd_output_is_cleaned() -> None:
    writer = Scripted("**Title**\n\nSee [this](https://evil.example/x?q=1) <img src=x>now.")
    request = await ask(Upstream(Answer(chat_stream(THOUGHT, "Hello."))), writer).finish()
    summary = check_chat(request.data).choices[0].fields["reasoning_content"]
    assert summary == "**Title**\n\nSee this now."
