"""A provider's own summary is written in its reader's language, and upstream gets its own again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.apis.messages import scripts as messages
from tests.end_to_end.translation.test_translation import KEY
from tests.end_to_end.translation.turn import PATHS, TOOL, answer, read_answer
from tests.support.asgi import Call, begin, call
from tests.support.checker import check_responses
from tests.support.deployments import ORIGIN, build_app
from tests.support.servers import until
from tests.support.streams import (
    call_item,
    chat_stream,
    completion,
    message_item,
    response,
    responses_stream,
)
from tests.support.upstream import Answer, ReceivedRequest, Upstream

MODELS = {
    "messages": "claude-sonnet-4-5-20250929",
    "gemini": "gemini-2.5-pro",
    "responses": "gpt-5.2",
}
PROFILES = {"messages": "anthropic", "gemini": "gemini-native", "responses": "openai"}
ENGLISH = (
    "I recall that the sum of the first odd numbers is a square. So I think that it is one hundred,"
    " and I want to check this with the next number."
)
GERMAN = (
    "Ich erinnere mich, dass die Summe der ersten ungeraden Zahlen ein Quadrat ist. Also denke ich,"
    " dass es hundert ist, und ich möchte das mit der nächsten Zahl prüfen."
)
QUESTION = "Was ist die Summe der ersten zehn ungeraden Zahlen, und warum ist das so?"
STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
CLIENTS = pytest.mark.parametrize("client", ["responses", "chat", "messages"])
UPSTREAMS = pytest.mark.parametrize("api", ["messages", "gemini", "responses"])
TRANSLATES = {"translate": True}


def reasoning(thought: str) -> Any:
    """Return OpenAI's reasoning: a summary, and state that only upstream can read."""
    summary = [{"type": "summary_text", "text": thought}]
    item = {"type": "reasoning", "id": "rs_1", "summary": summary}
    return {**item, "encrypted_content": "gAAAAABstate"}


def openai_answer(thought: str, *, stream: bool, calls: bool) -> Answer:
    output = [reasoning(thought), message_item(1, "It is one hundred.")]
    output += [call_item(2, TOOL, '{"where":"here"}')] if calls else []
    if stream:
        return Answer(responses_stream(output, store=False))
    return Answer.json(response(output, store=False))


class Translating(Upstream):
    """A provider whose reasoning is a summary, and at the same address the summarizer model."""

    def __init__(
        self,
        api: str,
        translation: Answer | str = GERMAN,
        *,
        thought: str = ENGLISH,
        stream: bool,
        calls: bool = False,
    ) -> None:
        super().__init__(
            openai_answer(thought, stream=stream, calls=calls)
            if api == "responses"
            else answer(api, stream=stream, thought=thought, calls=calls)
        )
        self.translation = translation
        self.translated: list[ReceivedRequest] = []

    def answer(self, request: ReceivedRequest) -> Answer:
        if request.header("x-abridge-call") != "summary":
            return super().answer(request)
        self.requests.remove(request)
        self.translated.append(request)
        if isinstance(self.translation, Answer):
            return self.translation
        return Answer.json(completion({"content": self.translation}))


class Stage:
    def __init__(self, client: str, api: str, upstream: Upstream, **tables: Any) -> None:
        self.client, self.api, self.upstream = client, api, upstream
        self.registry = CollectorRegistry()
        summarizer = {"kind": "model", "base_url": "http://model.test/v1", "model": "small"}
        tables = {"summary": TRANSLATES, "summarizer": summarizer, **tables}
        profile = PROFILES[api]
        entry = {"api": api, "profile": profile, "base_url": f"{ORIGIN}/v1"}
        self.app = build_app(
            "sidecar", upstream, upstreams=[entry], registry=self.registry, **tables
        )

    def body(self, *turns: Any, stream: bool, question: str = QUESTION) -> Any:
        model = MODELS[self.api]
        asked = [{"role": "user", "content": question}, *turns]
        body = {"model": model, "stream": stream}
        if self.client == "responses":
            return {**body, "input": asked, "reasoning": {"summary": "auto"}}
        if self.client == "chat":
            return {**body, "messages": asked, "reasoning": {"summary": "auto"}}
        thinking = {"type": "enabled", "budget_tokens": 2048}
        return {**body, "messages": asked, "max_tokens": 4096, "thinking": thinking}

    async def ask(self, *turns: Any, stream: bool, **more: Any) -> Call:
        body = self.body(*turns, stream=stream, **more)
        reply = await call(self.app, PATHS[self.client], body, KEY)
        assert reply.status == 200, reply.data
        return reply

    def shown(self, reply: Call, *, stream: bool) -> str:
        """Return what is shown of the reasoning."""
        seen = read_answer(self.client, reply, stream=stream)
        return f"{seen.summary}{seen.raw}"


def returned(client: str, reply: Call, *, stream: bool) -> list[Any]:
    """Return what a client sends back of an answer that calls, and the output of the call."""
    seen = read_answer(client, reply, stream=stream)
    call_id = seen.call_ids[0]
    if client == "responses":
        output = {"type": "function_call_output", "call_id": call_id, "output": "42"}
        return [*seen.body["output"], output]
    if client == "messages":
        result = {"type": "tool_result", "tool_use_id": call_id, "content": "42"}
        content = seen.body["content"]
        return [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    function = {"name": TOOL, "arguments": '{"where":"here"}'}
    called = {"id": call_id, "type": "function", "function": function}
    message = {"role": "assistant", "content": seen.text or None, "tool_calls": [called]}
    shown = {"reasoning_content": f"{seen.summary}{seen.raw}"}
    return [{**message, **shown}, {"role": "tool", "tool_call_id": call_id, "content": "42"}]


@STREAMED
@CLIENTS
@UPSTREAMS
async def test_it_is_translated_for_a_reader_of_another_language(
    client: str, api: str, *, stream: bool
) -> None:
    stage = Stage(client, api, upstream := Translating(api, stream=stream))
    reply = await stage.ask(stream=stream)
    assert stage.shown(reply, stream=stream) == GERMAN
    (request,) = upstream.translated
    system, user = (message["content"] for message in request.json["messages"])
    assert "Write in German" in system
    assert ENGLISH in user


@STREAMED
@CLIENTS
async def test_upstream_gets_its_own_thinking_again(client: str, *, stream: bool) -> None:
    upstream = Translating("messages", stream=stream, calls=True)
    stage = Stage(client, "messages", upstream)
    reply = await stage.ask(stream=stream)
    await stage.ask(*returned(client, reply, stream=stream), stream=stream)
    first, *_ = upstream.requests[1].json["messages"][1]["content"]
    assert first == messages.thinking(ENGLISH)
    assert GERMAN not in upstream.requests[1].body.decode()


@STREAMED
@CLIENTS
async def test_openai_gets_its_own_summary_again(client: str, *, stream: bool) -> None:
    upstream = Translating("responses", stream=stream, calls=True)
    stage = Stage(client, "responses", upstream)
    reply = await stage.ask(stream=stream)
    await stage.ask(*returned(client, reply, stream=stream), stream=stream)
    (sent,) = [item for item in upstream.requests[1].json["input"] if item.get("summary")]
    assert {**sent, "id": "rs_1"} == reasoning(ENGLISH)
    assert GERMAN not in upstream.requests[1].body.decode()


@STREAMED
@CLIENTS
@UPSTREAMS
async def test_what_the_reader_understands_is_shown_as_it_is(
    client: str, api: str, *, stream: bool
) -> None:
    upstream = Translating(api, thought=GERMAN, stream=stream)
    stage = Stage(client, api, upstream)
    assert stage.shown(await stage.ask(stream=stream), stream=stream) == GERMAN
    assert upstream.translated == []


@STREAMED
@CLIENTS
@pytest.mark.parametrize(
    "translation",
    [
        Answer.json({}, status=500),
        "",
        ENGLISH.replace("I ", "You "),
        "eins zwei drei vier " * 40,
        Answer(chat_stream("", GERMAN, finish="length")),
    ],
    ids=["error", "nothing", "another language", "a loop", "cut off"],
)
async def test_where_the_translation_fails_the_original_is_shown(
    client: str, translation: Any, *, stream: bool
) -> None:
    upstream = Translating("messages", translation, stream=stream)
    stage = Stage(client, "messages", upstream)
    reply = await stage.ask(stream=stream)
    assert stage.shown(reply, stream=stream) == ENGLISH
    assert b"summary_error" not in reply.data
    assert len(upstream.translated) == 1


@CLIENTS
@pytest.mark.parametrize(
    "tables",
    [
        {"summary": {}},
        {"summarizer": {"kind": "extractive"}},
        {"summary": {**TRANSLATES, "language": "reasoning"}},
        {"history": {"store": "none"}},
    ],
    ids=["not set", "extractive", "no language", "nothing could be put back"],
)
async def test_otherwise_it_is_shown_as_upstream_wrote_it(client: str, tables: Any) -> None:
    upstream = Translating("messages", stream=True)
    stage = Stage(client, "messages", upstream, **tables)
    assert stage.shown(await stage.ask(stream=True), stream=True) == ENGLISH
    assert upstream.translated == []


@STREAMED
@CLIENTS
@pytest.mark.parametrize("api", ["messages", "gemini"])
async def test_what_a_provider_vouches_for_is_translated_where_reasoning_is_hidden(
    client: str, api: str, *, stream: bool
) -> None:
    upstream = Translating(api, stream=stream)
    stage = Stage(client, api, upstream, reasoning={"expose": "summary"})
    reply = await stage.ask(stream=stream)
    assert stage.shown(reply, stream=stream) == GERMAN


@STREAMED
async def test_where_it_is_hidden_nothing_beside_a_summary_is_taken_for_one(
    *, stream: bool
) -> None:
    """OpenAI sends no reasoning but its summary; that it never does is not relied on."""
    raw = {**reasoning(ENGLISH), "content": [{"type": "reasoning_text", "text": "Secret."}]}
    output = [raw, message_item(1, "So.")]
    upstream = Translating("responses", stream=stream)
    frames = Answer(responses_stream(output)) if stream else Answer.json(response(output))
    upstream.answers = [frames]
    stage = Stage("responses", "responses", upstream, reasoning={"expose": "summary"})
    reply = await stage.ask(stream=stream)
    assert stage.shown(reply, stream=stream) == ENGLISH
    assert b"Secret" not in reply.data
    assert upstream.translated == []


async def test_the_language_may_be_set() -> None:
    upstream = Translating("messages", stream=True)
    summary = {**TRANSLATES, "language": "de"}
    stage = Stage("responses", "messages", upstream, summary=summary)
    assert stage.shown(await stage.ask(stream=True, question="Why?"), stream=True) == GERMAN


async def test_its_tokens_are_merged_as_those_of_other_summaries() -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
    translation = Answer.json({**completion({"content": GERMAN}), "usage": usage})
    shown = []
    for written in (GERMAN, translation):
        upstream = Translating("messages", written, stream=False)
        reply = await Stage("responses", "messages", upstream).ask(stream=False)
        shown.append(reply.json["usage"])
    free, spent = shown
    assert spent["reasoning_summary"]["total_tokens"] == 1500
    own = free["total_tokens"] - free["reasoning_summary"]["total_tokens"]
    assert spent["total_tokens"] == own + 1500


async def test_it_comes_a_part_at_a_time_while_the_model_thinks() -> None:
    gate = asyncio.Event()
    thought = "\n\n".join([ENGLISH] * 30)
    frames = messages.stream([messages.thinking(thought), messages.text("So.")])
    half = next(n for n, frame in enumerate(frames) if b"signature_delta" in frame)
    upstream = Translating("messages", stream=True)
    upstream.answers = [Answer([*frames[:half], gate, *frames[half:]])]
    stage = Stage("responses", "messages", upstream)
    running = begin(stage.app, PATHS["responses"], stage.body(stream=True), KEY)
    await until(lambda: b"response.reasoning_summary_part.done" in running.data)
    assert not running.complete
    gate.set()
    reply = await running.finish()
    parts = stage.shown(reply, stream=True).split("\n\n")
    assert len(upstream.translated) > 2
    assert set(parts) == {GERMAN}


async def test_nothing_of_a_long_one_is_left_out() -> None:
    """A part whose translation fails is shown as it was, in its place."""
    numbered = [f"{ENGLISH} That was step {number}." for number in range(30)]
    upstream = Translating("messages", Answer.json({}, status=500), stream=True)
    frames = messages.stream([messages.thinking("\n\n".join(numbered)), messages.text("So.")])
    upstream.answers = [Answer(frames)]
    stage = Stage("responses", "messages", upstream)
    shown = stage.shown(await stage.ask(stream=True), stream=True)
    assert shown.split("\n\n") == numbered


async def test_a_part_that_no_translation_would_hold_is_shown_as_it_is() -> None:
    thought = " ".join([ENGLISH] * 100)
    upstream = Translating("messages", thought=thought, stream=False)
    summary = {**TRANSLATES, "part_chars": 60_000}
    stage = Stage("responses", "messages", upstream, summary=summary)
    assert stage.shown(await stage.ask(stream=False), stream=False) == thought
    assert upstream.translated == []


TITLED = [f"**Schritt {number}**\n\n{GERMAN}" for number in range(3)]


@STREAMED
@pytest.mark.parametrize("api", ["gemini", "responses"])
async def test_each_title_begins_a_part(api: str, *, stream: bool) -> None:
    upstream = Translating(api, thought="\n\n".join(TITLED), stream=stream)
    if api == "responses":
        parts = [{"type": "summary_text", "text": text} for text in TITLED]
        output = [{**reasoning(""), "summary": parts}, message_item(1, "So.")]
        whole = Answer.json(response(output))
        upstream.answers = [Answer(responses_stream(output)) if stream else whole]
    reply = await Stage("responses", api, upstream).ask(stream=stream)
    final = check_responses(reply.data).response if stream else reply.json
    assert [part["text"] for part in final["output"][0]["summary"]] == TITLED
