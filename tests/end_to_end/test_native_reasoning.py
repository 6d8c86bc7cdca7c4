"""Reasoning that is a summary already is shown as the summary it is, and not summed up again."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.apis.display import Exposure
from tests.apis.messages import scripts as messages
from tests.end_to_end.recordings.recordings import Recording, recordings
from tests.end_to_end.translation.test_translation import KEY, TOOLS
from tests.end_to_end.translation.turn import (
    ALL_UPSTREAMS,
    ARGUMENTS,
    CLIENTS,
    PATHS,
    TOOL,
    WORDS,
    answer,
    read_answer,
    request_body,
)
from tests.support.asgi import Call, begin, call
from tests.support.checker import check_chat, check_responses
from tests.support.counters import total
from tests.support.deployments import ORIGIN, build_app
from tests.support.shared import needs_recordings
from tests.support.streams import chat_stream, chunk, completion, frame
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, NamingUpstream

CLAUDE, GEMINI, RAW = "claude-sonnet-4-5-20250929", "gemini-2.5-pro", "claude-3-7-sonnet-20250219"
FIRST = "**Adding odd numbers**\n\nI recall that the sum of the first n odd numbers is n squared."
SECOND = "**Checking the case**\n\nFor n = 10 that makes 100."
TITLED = f"{FIRST}\n\n\n{SECOND}\n"
PLAIN = "The user asks for a sum. It is n squared.\n\nSo it is 100."
VOUCHING = {
    "chat": "openrouter",
    "responses": "openrouter",
    "messages": "anthropic",
    "gemini": "gemini-native",
    "interactions": "gemini-native",
}
SAME = {
    "chat": ["anthropic/claude-sonnet-4.5", "anthropic/claude-4.5-sonnet-20250929", CLAUDE, ""],
    "responses": ["anthropic/claude-4.6-sonnet-20260217", CLAUDE],
    "messages": ["claude-sonnet-4-5", "us.anthropic/claude-sonnet-4-5", CLAUDE],
    "gemini": ["models/gemini-2.5-pro", "gemini-2.5-pro-preview-05-06", "gemini-3-pro-preview"],
    "interactions": ["models/gemini-2.5-pro", "gemini-3.8-flash"],
}
"""Names under which upstreams answer (recorded): with a date, a prefix, in another order."""
ASKED = {
    **dict.fromkeys(("chat", "responses", "messages"), CLAUDE),
    **dict.fromkeys(("gemini", "interactions"), GEMINI),
}
STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EVERYWHERE = pytest.mark.parametrize(
    ("client", "upstream"), [(client, upstream) for client in CLIENTS for upstream in ALL_UPSTREAMS]
)
CLAUDE_4 = [
    recording
    for recording in recordings("messages", "chat")
    if b"claude-sonnet-4" in recording.data and recording.content.raw
]


class Stage:
    """Abridge between a client and an upstream that reasons in summaries."""

    def __init__(
        self, client: str, upstream: str, *answers: Answer, stream: bool = True, **tables: Any
    ) -> None:
        self.client, self.stream = client, stream
        self.played = NamingUpstream(*answers)
        self.writer = Scripted("**Ours**\n\nThis was written by a summarizer.")
        self.registry = CollectorRegistry()
        entry = {"api": upstream, "base_url": f"{ORIGIN}/v1", **tables.pop("entry", {})}
        self.app: ASGIApp = build_app(
            "sidecar",
            self.played,
            upstreams=[entry],
            writer=self.writer,
            registry=self.registry,
            **tables,
        )

    async def ask(self, model: str = CLAUDE, *, headers: Any = None, **more: Any) -> Call:
        body = {**request_body(self.client, stream=self.stream), "model": model, **more}
        reply = await call(self.app, PATHS[self.client], body, {**KEY, **(headers or {})})
        assert reply.status == 200
        if self.stream:
            (check_chat if self.client == "chat" else check_responses)(reply.data)
        return reply

    def outcomes(self, outcome: str) -> float:
        return total(self.registry, "summaries_total", outcome=outcome)

    def shown_parts(self, reply: Call) -> list[str]:
        """Return the parts of the summary that a client of Responses was shown."""
        final = check_responses(reply.data).response if self.stream else reply.json
        return [
            part["text"]
            for item in final["output"]
            if item["type"] == "reasoning"
            for part in item["summary"]
        ]


class TestShown:
    @STREAMED
    @EVERYWHERE
    async def test_reasoning_is_shown_once_as_the_summary_and_nothing_is_paid(
        self, client: str, upstream: str, *, stream: bool
    ) -> None:
        stage = Stage(
            client, upstream, answer(upstream, stream=stream, thought=PLAIN), stream=stream
        )
        reply = await stage.ask()
        received = read_answer(client, reply, stream=stream)
        assert (received.text, received.summary, received.raw) == (WORDS, PLAIN, "")
        assert stage.writer.requests == []
        assert stage.outcomes("native") == 1
        assert total(stage.registry, "summaries_total") == 1
        assert received.usage is not None
        assert "reasoning_summary" not in received.usage

    @STREAMED
    @pytest.mark.parametrize("upstream", ALL_UPSTREAMS)
    async def test_each_title_begins_a_part(self, upstream: str, *, stream: bool) -> None:
        played = answer(upstream, stream=stream, thought=TITLED)
        stage = Stage("responses", upstream, played, stream=stream)
        assert stage.shown_parts(await stage.ask(GEMINI)) == [FIRST, SECOND]

    @STREAMED
    @pytest.mark.parametrize("upstream", ALL_UPSTREAMS)
    async def test_no_title_is_made_up(self, upstream: str, *, stream: bool) -> None:
        played = answer(upstream, stream=stream, thought=PLAIN)
        stage = Stage("responses", upstream, played, stream=stream)
        assert stage.shown_parts(await stage.ask()) == [PLAIN]

    async def test_a_chat_stream_passes_byte_for_byte(self) -> None:
        frames = [
            chunk({"role": "assistant", "content": ""}),
            chunk({"reasoning": "I add ", "reasoning_details": [_text("I add ")]}),
            chunk({"reasoning": "them.", "reasoning_details": [_text("them.")]}),
            chunk({"reasoning_details": [{**_text(""), "signature": "c2ln"}]}),
            chunk({"content": WORDS}),
            chunk({}, finish="stop"),
            frame("[DONE]"),
        ]
        stage = Stage("chat", "chat", Answer(frames))
        reply = await stage.ask("anthropic/claude-opus-4.1")
        assert reply.data == b"".join(frames).replace(b"thinker-1", b"anthropic/claude-opus-4.1")
        assert stage.outcomes("native") == 1

    @STREAMED
    async def test_thoughts_between_tags_are_moved_out_of_the_answer(self, *, stream: bool) -> None:
        text = f"<thought>{PLAIN}</thought>{WORDS}"
        played = (
            Answer(chat_stream("", text)) if stream else Answer.json(completion({"content": text}))
        )
        stage = Stage("chat", "chat", played, stream=stream, entry={"profile": "gemini"})
        received = read_answer("chat", await stage.ask(GEMINI), stream=stream)
        assert (received.text, received.summary, received.raw) == (WORDS, PLAIN, "")
        assert stage.writer.requests == []

    async def test_the_summary_streams_as_it_comes(self) -> None:
        stage = Stage("responses", "messages", answer("messages", stream=True, thought=TITLED))
        kinds = check_responses((await stage.ask()).data).kinds
        first = kinds.index("response.reasoning_summary_text.delta")
        done = kinds.index("response.reasoning_summary_text.done")
        assert kinds[first:done].count("response.reasoning_summary_text.delta") > 5

    async def test_the_configured_field_holds_it(self) -> None:
        played = answer("chat", stream=True, thought=PLAIN)
        stage = Stage("chat", "chat", played, chat={"summary_field": "reasoning"})
        seen = check_chat((await stage.ask()).data).choices[0]
        assert seen.fields["reasoning"] == PLAIN
        assert "reasoning_content" not in seen.fields

    @STREAMED
    @EVERYWHERE
    async def test_a_call_is_attributed_a_summary(
        self, client: str, upstream: str, *, stream: bool
    ) -> None:
        played = answer(upstream, stream=stream, thought=PLAIN, text="", calls=True)
        stage = Stage(client, upstream, played, stream=stream, attribution={"enabled": True})
        reply = await stage.ask(tools=TOOLS[client])
        assert b'"summary_text"' in reply.data
        assert b'"reasoning_text"' not in reply.data


def _text(text: str) -> dict[str, Any]:
    return {"type": "reasoning.text", "text": text, "format": "anthropic-claude-v1", "index": 0}


class TestRecorded:
    """What Anthropic and OpenRouter sent, as recorded."""

    @needs_recordings
    @pytest.mark.parametrize("client", CLIENTS)
    @pytest.mark.parametrize("recording", CLAUDE_4, ids=lambda recording: recording.name)
    async def test_claudes_thinking_is_shown_word_for_word(
        self, recording: Recording, client: str
    ) -> None:
        played = Answer([recording.data], headers={"content-type": recording.content_type})
        stage = Stage(client, str(recording.api), played, stream=recording.streamed)
        received = read_answer(client, await stage.ask(), stream=recording.streamed)
        sent = recording.content
        shown = received.raw + received.summary  # OpenRouter's field is `reasoning`
        assert "".join(shown.split()) == "".join(sent.raw.split())
        assert stage.writer.requests == []


class TestChosen:
    @pytest.mark.parametrize("client", CLIENTS)
    async def test_a_model_that_shows_all_of_its_thinking_is_summarized(self, client: str) -> None:
        stage = Stage(client, "messages", answer("messages", stream=True, thought=PLAIN))
        received = read_answer(client, await stage.ask(RAW), stream=True)
        assert received.summary == stage.writer.text
        assert stage.outcomes("native") == 0

    async def test_full_thinking_is_summarized(self) -> None:
        stage = Stage("responses", "messages", answer("messages", stream=True, thought=PLAIN))
        beta = {"anthropic-beta": "interleaved-thinking-2025-05-14,dev-full-thinking-2025-05-14"}
        assert stage.shown_parts(await stage.ask(headers=beta)) == [stage.writer.text]

    @pytest.mark.parametrize(
        ("kind", "model", "native"), [("raw", CLAUDE, 0), ("summary", "my-alias", 1)]
    )
    async def test_the_settings_have_the_last_word(
        self, kind: str, model: str, native: int
    ) -> None:
        played = answer("messages", stream=True, thought=PLAIN)
        stage = Stage("responses", "messages", played, reasoning={"kind": kind})
        await stage.ask(model)
        assert stage.outcomes("native") == native
        assert len(stage.writer.requests) == 1 - native

    @pytest.mark.parametrize("client", CLIENTS)
    async def test_a_review_sees_every_summary(self, client: str) -> None:
        seen = []

        async def review(text: str) -> str:
            seen.append(text)
            return text

        played = answer("messages", stream=True, thought=PLAIN)
        stage = Stage(client, "messages", played, review=review)
        received = read_answer(client, await stage.ask(), stream=True)
        assert [received.summary] == seen == [stage.writer.text]

    async def test_a_fallback_that_reasons_otherwise_counts(self) -> None:
        stage = Stage("chat", "chat", answer("chat", stream=True, thought=PLAIN))
        await stage.ask("anthropic/claude-opus-4.1", models=["deepseek/deepseek-r1"])
        assert len(stage.writer.requests) == 1

    @STREAMED
    @EVERYWHERE
    async def test_without_a_wish_all_passes_as_ever(
        self, client: str, upstream: str, *, stream: bool
    ) -> None:
        def replies(model: str) -> Stage:
            return Stage(client, upstream, answer(upstream, stream=stream), stream=stream)

        asked = {"reasoning": {"effort": "high"}} if client == "responses" else {"reasoning": None}
        native, raw = replies(CLAUDE), replies(RAW)
        shown = [
            read_answer(client, await stage.ask(model, **asked), stream=stream)
            for stage, model in ((native, CLAUDE), (raw, RAW))
        ]
        assert (shown[0].summary, shown[0].raw) == (shown[1].summary, shown[1].raw)
        assert native.outcomes("native") == 0


class TestHidden:
    @STREAMED
    @EVERYWHERE
    @pytest.mark.parametrize("expose", ["summary", "none"])
    async def test_a_vouched_summary_is_shown_where_summaries_are(
        self, client: str, upstream: str, expose: Exposure, *, stream: bool
    ) -> None:
        profile = "anthropic" if upstream == "messages" else "openrouter"
        stage = Stage(
            client,
            upstream,
            answer(upstream, stream=stream, thought=PLAIN),
            stream=stream,
            reasoning={"expose": expose},
            entry={"profile": profile},
        )
        received = read_answer(client, await stage.ask(), stream=stream)
        assert received.text == WORDS
        assert (received.summary, received.raw) == (PLAIN if expose == "summary" else "", "")
        assert stage.writer.requests == []

    @EVERYWHERE
    async def test_a_name_alone_reveals_nothing(self, client: str, upstream: str) -> None:
        """Any server may be asked for a model of this name."""
        played = answer(upstream, stream=True, thought=PLAIN)
        stage = Stage(client, upstream, played, reasoning={"expose": "summary"})
        reply = await stage.ask()
        assert b"squared" not in reply.data
        assert read_answer(client, reply, stream=True).summary == stage.writer.text

    @pytest.mark.parametrize("client", CLIENTS)
    async def test_a_request_cannot_have_full_thinking_shown(self, client: str) -> None:
        played = answer("messages", stream=True, thought=PLAIN)
        hiding = {"expose": "summary"}
        entry = {"profile": "anthropic"}
        stage = Stage(client, "messages", played, reasoning=hiding, entry=entry)
        reply = await stage.ask(headers={"anthropic-beta": "dev-full-thinking-2025-05-14"})
        assert b"squared" not in reply.data

    @STREAMED
    @pytest.mark.parametrize("client", CLIENTS)
    @pytest.mark.parametrize("upstream", ["chat", "responses", "messages"])
    async def test_thinking_that_a_model_writes_into_its_text_is_no_summary(
        self, client: str, upstream: str, *, stream: bool
    ) -> None:
        text = f"<think>{PLAIN}</think>{WORDS}"
        stage = Stage(
            client,
            upstream,
            answer(upstream, stream=stream, thought="", text=text),
            stream=stream,
            reasoning={"expose": "summary"},
            entry={"profile": "anthropic" if upstream == "messages" else "openrouter"},
        )
        reply = await stage.ask()
        assert b"squared" not in reply.data
        assert read_answer(client, reply, stream=stream).text == WORDS


def answered_by(name: str, upstream: str, *, stream: bool) -> Answer:
    """Return an answer that names this model."""
    played = answer(upstream, stream=stream, thought=PLAIN)
    said = b"".join(step for step in played.steps if isinstance(step, bytes))
    for given in (b'"thinker-1"', b'"claude-opus-4-5"', b'"gemini-3-flash-preview"'):
        said = said.replace(given, json.dumps(name).encode())
    return replace(played, steps=[part + b"\n\n" for part in said.split(b"\n\n") if part])


class TestAnsweringModel:
    """What answers need not be what was asked for."""

    @STREAMED
    @EVERYWHERE
    @pytest.mark.parametrize("expose", ["auto", "summary"])
    async def test_reasoning_of_another_model_is_raw(
        self, client: str, upstream: str, expose: Exposure, *, stream: bool
    ) -> None:
        stage = Stage(
            client,
            upstream,
            answered_by("deepseek/deepseek-r1", upstream, stream=stream),
            stream=stream,
            reasoning={"expose": expose},
            entry={"profile": VOUCHING[upstream]},
        )
        reply = await stage.ask(ASKED[upstream])
        received = read_answer(client, reply, stream=stream)
        assert (received.text, received.summary) == (WORDS, stage.writer.text)
        assert stage.outcomes("native") == 0
        if expose == "summary":
            assert b"squared" not in reply.data

    @STREAMED
    @EVERYWHERE
    async def test_a_name_that_says_the_same_is_no_other(
        self, client: str, upstream: str, *, stream: bool
    ) -> None:
        for name in SAME[upstream]:
            stage = Stage(
                client,
                upstream,
                answered_by(name, upstream, stream=stream),
                stream=stream,
                reasoning={"expose": "summary"},
                entry={"profile": VOUCHING[upstream]},
            )
            received = read_answer(client, await stage.ask(ASKED[upstream]), stream=stream)
            assert (received.text, received.summary, received.raw) == (WORDS, PLAIN, "")
            assert stage.writer.requests == []

    @STREAMED
    async def test_a_name_of_the_operators_stands_for_upstreams(self, *, stream: bool) -> None:
        stage = Stage(
            "chat",
            "chat",
            answered_by("anthropic/claude-sonnet-4.5", "chat", stream=stream),
            stream=stream,
            reasoning={"expose": "summary"},
            entry={"profile": "openrouter", "rename": {"quick": "anthropic/claude-sonnet-4.5"}},
        )
        reply = await stage.ask("quick")
        assert read_answer("chat", reply, stream=stream).summary == PLAIN
        assert b'"quick"' in reply.data

    async def test_the_first_name_counts_and_comments_do_not_wait_for_it(self) -> None:
        played = answered_by("deepseek/deepseek-r1", "chat", stream=True)
        azure = frame({"choices": [], "model": "", "object": ""})
        named = asyncio.Event()
        played.steps = [b": PROCESSING\n\n", azure, named, *played.steps]
        stage = Stage("chat", "chat", played, entry={"profile": "openrouter"})
        body = {**request_body("chat", stream=True), "model": CLAUDE}
        reply = begin(stage.app, PATHS["chat"], body, KEY)
        await reply.until(b": PROCESSING")
        named.set()
        await reply.finish()
        assert len(stage.writer.requests) == 1
        assert reply.data.startswith(b": PROCESSING")

    async def test_without_a_name_the_requested_model_counts(self) -> None:
        played = answer("chat", stream=True, thought=PLAIN)
        said = b"".join(step for step in played.steps if isinstance(step, bytes))
        played.steps = [said.replace(b'"model": "thinker-1", ', b"")]
        assert b"thinker" not in played.steps[0]
        stage = Stage("chat", "chat", played, entry={"profile": "openrouter"})
        assert read_answer("chat", await stage.ask(), stream=True).summary == PLAIN
        assert stage.writer.requests == []


class TestHistory:
    @STREAMED
    @pytest.mark.parametrize("client", CLIENTS)
    @pytest.mark.parametrize("expose", ["auto", "summary"])
    async def test_thinking_and_signature_go_back_word_for_word(
        self, client: str, expose: Exposure, *, stream: bool
    ) -> None:
        first = answer("messages", stream=stream, thought=TITLED, text="", calls=True)
        stage = Stage(
            client,
            "messages",
            first,
            answer("messages", stream=stream, thought=PLAIN),
            stream=stream,
            reasoning={"expose": expose},
            entry={"profile": "anthropic"},
        )
        opening = {"tools": TOOLS[client]}
        reply = await stage.ask(**opening)
        await stage.ask(**opening, **_next_turn(client, reply, stream=stream))
        sent = stage.played.requests[1].json["messages"]
        assert messages.thinking(TITLED) in sent[1]["content"]
        assert sent[1]["content"][0]["type"] == "thinking"
        assert len([block for block in sent[1]["content"] if block["type"] == "thinking"]) == 1

    @STREAMED
    async def test_what_was_copied_into_parts_goes_back_as_it_came(self, *, stream: bool) -> None:
        first = answer("responses", stream=stream, thought=TITLED, text="", calls=True)
        stage = Stage(
            "responses", "responses", first, answer("responses", stream=stream), stream=stream
        )
        reply = await stage.ask(tools=TOOLS["responses"])
        await stage.ask(**_next_turn("responses", reply, stream=stream))
        (sent,) = (
            item
            for item in stage.played.requests[1].json["input"]
            if item.get("type") == "reasoning"
        )
        assert sent["content"] == [{"type": "reasoning_text", "text": TITLED}]
        assert sent["summary"] == []

    @pytest.mark.parametrize("store", ["memory", "none"])
    async def test_a_chat_client_returns_what_upstream_sent(self, store: str) -> None:
        message = {
            "role": "assistant",
            "content": WORDS,
            "reasoning": PLAIN,
            "reasoning_details": [{**_text(PLAIN), "signature": "c2ln"}],
        }
        played = Answer.json(completion(message))
        stage = Stage("chat", "chat", played, stream=False, history={"store": store})
        reply = await stage.ask("anthropic/claude-sonnet-4.5")
        said = reply.json["choices"][0]["message"]
        question = {"role": "user", "content": "And then?"}
        turns = [{"role": "user", "content": "Hi"}, said, question]
        await stage.ask("anthropic/claude-sonnet-4.5", messages=turns)
        sent = stage.played.requests[1].json["messages"][1]
        assert {key: sent[key] for key in message} == message

    async def test_reasoning_that_could_not_be_restored_stays_where_it_stands(self) -> None:
        stage = Stage(
            "responses",
            "responses",
            answer("responses", stream=True, thought=PLAIN),
            history={"store": "none"},
        )
        received = read_answer("responses", await stage.ask(), stream=True)
        assert (received.summary, received.raw) == ("", PLAIN)
        assert stage.writer.requests == []


def _next_turn(client: str, reply: Call, *, stream: bool) -> dict[str, Any]:
    """Return the body fields in which a client returns the answer with its call's output."""
    received = read_answer(client, reply, stream=stream)
    (call_id,) = received.call_ids
    if client == "responses":
        output = {"type": "function_call_output", "call_id": call_id, "output": "There."}
        user = {"role": "user", "content": "Hi"}
        return {"input": [user, *received.body["output"], output]}
    function = {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}
    said = {
        "role": "assistant",
        "content": None,
        "reasoning_content": received.summary,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }
    output = {"role": "tool", "tool_call_id": call_id, "content": "There."}
    return {"messages": [{"role": "user", "content": "Hi"}, said, output]}
