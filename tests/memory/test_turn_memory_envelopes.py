"""Reasoning that its client carries, between replicas that share a key and no store."""

from __future__ import annotations

import re
import sys
from base64 import b64encode
from typing import Any, ClassVar

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.apis.chat.chunks import ChatMessageAccumulator
from tests.support.asgi import call
from tests.support.checker import check_chat, check_responses
from tests.support.deployments import build_app
from tests.support.streams import (
    DONE,
    THOUGHT,
    call_item,
    chat_stream,
    chunk,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.streams import call as tool_call
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
KEY = {"authorization": "Bearer sk-anna-1234567890"}
OTHER = {"authorization": "Bearer sk-bert-1234567890"}
USER = {"role": "user", "content": "Hi"}
ROOTS = {name: b64encode(bytes([number]) * 32).decode() for number, name in enumerate("ab")}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEAL_A", f"a:{ROOTS['a']}")
    monkeypatch.setenv("SEAL_BA", f"b:{ROOTS['b']},a:{ROOTS['a']}")
    monkeypatch.setenv("SEAL_B", f"b:{ROOTS['b']}")


def replica(
    upstream: Upstream,
    keys: str | None = "SEAL_A",
    registry: CollectorRegistry | None = None,
    **tables: Any,
) -> ASGIApp:
    history = {"store": "none", "seal_keys_env": keys, **tables.pop("history", {})}
    history = {key: value for key, value in history.items() if value is not None}
    return build_app(
        "mounted", upstream, writer=Scripted(), registry=registry, history=history, **tables
    )


EXPOSE = pytest.mark.parametrize("expose", ["auto", "both", "summary", "none"])
STREAM = pytest.mark.parametrize("stream", [False, True])
RAW = {"reasoning_content": THOUGHT}
CALLS = [tool_call("f", '{"a": 1}')]


async def chat_turn(app: ASGIApp, *, stream: bool, **more: Any) -> dict[str, Any]:
    """An assistant's message, as a client that keeps lists of reasoning returns it."""
    body = {"model": "m", "messages": [USER], "reasoning": {"summary": "auto"}, **more}
    answer = await call(app, CHAT, {**body, "stream": stream}, KEY)
    if not stream:
        message: dict[str, Any] = answer.json["choices"][0]["message"]
        return message
    checked = check_chat(answer.data)
    whole = ChatMessageAccumulator(sys.maxsize)
    for choice in (choice for each in checked.chunks for choice in each["choices"]):
        whole.add(choice["delta"])
    return whole.as_dict()


def chat_upstream(*, stream: bool) -> Upstream:
    message = {"role": "assistant", "content": "So.", **RAW}
    first = Answer(chat_stream(THOUGHT, "So.")) if stream else Answer.json(completion(message))
    return Upstream(first)


def done() -> Upstream:
    return Upstream(Answer.json(completion({"content": "Done."})))


class TestChat:
    @EXPOSE
    @STREAM
    @pytest.mark.parametrize("envelope", ["reasoning_details", "thinking_blocks"])
    async def test_another_replica_continues_from_an_envelope(
        self, expose: str, envelope: str, *, stream: bool
    ) -> None:
        shown = {"reasoning": {"expose": expose}, "chat": {"envelope": envelope}}
        returned = await chat_turn(replica(chat_upstream(stream=stream), **shown), stream=stream)
        if expose != "both":
            assert THOUGHT not in str(returned)
        assert ("abr1." in str(returned.get(envelope))) == (expose != "both")
        upstream = done()
        app = replica(upstream, "SEAL_BA", **shown)
        if expose == "both":  # there is nothing to seal: the client has it all
            returned = {"role": "assistant", "content": "So.", **RAW}
        await call(app, CHAT, {"model": "m", "messages": [USER, returned, USER]}, KEY)
        assert upstream.requests[0].json["messages"][1] == {
            "role": "assistant",
            "content": "So.",
            **RAW,
        }

    async def test_without_keys_nothing_is_sealed_and_a_blob_is_refused(self) -> None:
        returned = await chat_turn(replica(chat_upstream(stream=False)), stream=False)
        plain = await chat_turn(replica(chat_upstream(stream=False), None), stream=False)
        assert "abr1." not in str(plain)
        upstream, registry = done(), CollectorRegistry()
        app = replica(upstream, None, registry)
        body = {"model": "m", "messages": [USER, returned, USER]}
        answer = await call(app, CHAT, body, KEY)
        assert answer.status == 400
        assert answer.json["error"]["code"] == "invalid_encrypted_content"
        assert answer.json["error"]["param"] == "messages[1].reasoning_details[0].data"
        assert not upstream.requests
        labels = {"api": "chat", "upstream": "default"}
        assert registry.get_sample_value("abridge_blobs_refused_total", labels) == 1

    @pytest.mark.parametrize(
        ("headers", "model", "text", "reason"),
        [
            (OTHER, "m", "So.", "foreign"),
            (KEY, "n", "So.", "foreign"),
            ({}, "m", "So.", "foreign"),
            (KEY, "m", "Edited.", "edited"),
            (KEY, "org/m-2025-01-01", "So.", None),
        ],
    )
    async def test_envelopes_of_other_owners_or_turns_are_dropped(
        self, headers: dict[str, str], model: str, text: str, reason: str | None
    ) -> None:
        returned = await chat_turn(replica(chat_upstream(stream=False)), stream=False)
        upstream, registry = done(), CollectorRegistry()
        app = replica(upstream, registry=registry)
        messages = [USER, {**returned, "content": text, "reasoning_content": None}, USER]
        answer = await call(app, CHAT, {"model": model, "messages": messages}, headers)
        assert answer.status == 200
        sent = upstream.requests[0].json["messages"][1]
        assert (sent.get("reasoning_content") == THOUGHT) == (reason is None)
        assert "abr1." not in str(sent)
        assert sent["content"] == text
        where = {"api": "chat", "upstream": "default"}
        dropped = registry.get_sample_value(
            "abridge_reasoning_dropped_total", {**where, "reason": reason or "foreign"}
        )
        restored = registry.get_sample_value(
            "abridge_reasoning_restored_total", {**where, "source": "sealed"}
        )
        assert (dropped, restored) == ((None, 1) if reason is None else (1, None))

    async def test_no_envelope_where_settings_say_so(self) -> None:
        app = replica(chat_upstream(stream=False), chat={"envelope": "none"})
        assert "abr1." not in str(await chat_turn(app, stream=False))


ASKING = [{"include": ["reasoning.encrypted_content"]}, {"store": False}]
CALL = call_item(1, "f", '{"a": 1}')
OUTPUT = {"type": "function_call_output", "call_id": CALL["call_id"], "output": "7"}


async def response_items(app: ASGIApp, *, stream: bool, **more: Any) -> list[Any]:
    body = {"model": "m", "input": [USER], "reasoning": {"summary": "auto"}, "stream": stream}
    answer = await call(app, RESPONSES, {**body, **more}, KEY)
    if stream:
        output: list[Any] = check_responses(answer.data).response["output"]
        return output
    return list(answer.json["output"])


class TestResponses:
    SAID = (reasoning_item(0, THOUGHT), CALL)

    def upstream(self, *, stream: bool) -> Upstream:
        said = list(self.SAID)
        return Upstream(Answer(responses_stream(said)) if stream else Answer.json(response(said)))

    @EXPOSE
    @STREAM
    @pytest.mark.parametrize("asking", ASKING)
    async def test_encrypted_content_brings_reasoning_back(
        self, expose: str, asking: dict[str, Any], *, stream: bool
    ) -> None:
        shown = {"reasoning": {"expose": expose}}
        app = replica(self.upstream(stream=stream), **shown)
        thought, called = await response_items(app, stream=stream, **asking)
        assert thought["encrypted_content"].startswith("abr1.a.")
        upstream = Upstream(Answer.json(response([message_item(0, "Done.")])))
        app = replica(upstream, "SEAL_BA", **shown)
        returned = [{**thought, "content": []}, called, OUTPUT]
        await call(app, RESPONSES, {"model": "m", "input": [USER, *returned]}, KEY)
        assert upstream.requests[0].json["input"] == [USER, *self.SAID, OUTPUT]

    @STREAM
    async def test_encrypted_content_needs_no_summary(self, *, stream: bool) -> None:
        app = replica(self.upstream(stream=stream))
        thought, _ = await response_items(app, stream=stream, reasoning=None, **ASKING[0])
        assert thought["encrypted_content"].startswith("abr1.a.")
        assert thought["content"] == self.SAID[0]["content"]

    async def test_no_encrypted_content_unless_requested(self) -> None:
        thought, _ = await response_items(replica(self.upstream(stream=False)), stream=False)
        assert not thought.get("encrypted_content")

    async def test_a_blob_of_a_removed_key_is_a_clear_error(self) -> None:
        app = replica(self.upstream(stream=False))
        items = await response_items(app, stream=False, store=False)
        upstream = Upstream(Answer.json(response([])))
        answer = await call(
            replica(upstream, "SEAL_B"), RESPONSES, {"model": "m", "input": [USER, *items]}, KEY
        )
        assert answer.status == 400
        assert answer.json["error"]["param"] == "input[1].encrypted_content"
        assert not upstream.requests

    async def test_upstreams_own_state_is_returned_unchanged(self) -> None:
        native = {
            "id": "rs_9",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "I think."}],
            "encrypted_content": "gAAAA-opaque",
        }
        upstream = Upstream(Answer.json(response([native, CALL])), Answer.json(response([])))
        app = replica(upstream)
        items = await response_items(app, stream=False, store=False)
        assert items[0] == native
        await call(app, RESPONSES, {"model": "m", "input": [USER, *items, OUTPUT]}, KEY)
        assert upstream.requests[1].json["input"] == [USER, native, CALL, OUTPUT]


A, B = "call_Ab3dEf6hIj", "call_Xy7zWv4uTs"


def output_of(call_id: str, text: str = "7") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


class TestForgedHistories:
    """A blob on Responses brings its reasoning back where it was made, and nowhere else, also from
    before the calls of its answer."""

    SAID = (
        reasoning_item(0, "I recall one. " * 3),
        {**call_item(1, "f", "{}"), "call_id": A},
        reasoning_item(2, "I recall two. " * 3),
        {**call_item(3, "f", "{}"), "call_id": B},
    )
    ELSEWHERE: ClassVar = {"role": "user", "content": "Repeat what you thought."}

    async def said(self, upstreams: dict[str, Any], *, stream: bool) -> list[dict[str, Any]]:
        """Return the items of an answer, as a client returns them that keeps no ids."""
        if upstreams:
            deltas = [
                {"reasoning": "I recall one. " * 3},
                {"tool_calls": [{**tool_call("f", "{}"), "id": A}]},
                {"reasoning": "I recall two. " * 3},
                {"tool_calls": [{**tool_call("f", "{}", 1), "id": B}]},
            ]
            upstream = Upstream(Answer([*map(chunk, deltas), chunk({}, finish="tool_calls"), DONE]))
            stream = True  # a message that is not streamed has one stretch of reasoning
        elif stream:
            upstream = Upstream(Answer(responses_stream(list(self.SAID))))
        else:
            upstream = Upstream(Answer.json(response(list(self.SAID))))
        shown = {"reasoning": {"expose": "summary"}, **upstreams}
        items = await response_items(replica(upstream, **shown), stream=stream, store=False)
        assert "I recall" not in str(items)
        assert str(items).count("abr1.") == 2
        return [
            {key: item[key] for key in item if key not in ("id", "status", "content")}
            for item in items
        ]

    async def restored(self, upstreams: dict[str, Any], *items: Any) -> list[str]:
        """Return what upstream is sent of the reasoning."""
        upstream = done() if upstreams else Upstream(Answer.json(response([])))
        shown = {"reasoning": {"expose": "summary"}, **upstreams}
        body = {"model": "m", "input": list(items), "store": False}
        answer = await call(replica(upstream, **shown), RESPONSES, body, KEY)
        assert answer.status == 200
        return re.findall(r"I recall (one|two)\. I", upstream.requests[0].body.decode())

    @pytest.mark.parametrize("upstreams", [{}, {"upstreams": [{"api": "chat"}]}])
    @STREAM
    async def test_where_it_was_made(self, upstreams: dict[str, Any], *, stream: bool) -> None:
        one, a, two, b = await self.said(upstreams, stream=stream)
        out_a, out_b = output_of(A), output_of(B)
        both = ["one", "two"]
        for history in (
            (USER, one, a, two, b, out_a, out_b),
            (USER, one, a, out_a, two, b, out_b),
            (USER, one, a, two, b, output_of(A, "…"), out_b, USER),
            (USER, one, two, a, b, out_a, out_b),
            ({**USER, "content": [{"type": "input_text", "text": "Hi"}]}, one, a, two, b),
            (self.ELSEWHERE, message_item(0, "No."), USER, one, a, two, b, out_a, out_b),
        ):
            assert await self.restored(upstreams, *history) == both

    @pytest.mark.parametrize("upstreams", [{}, {"upstreams": [{"api": "chat"}]}])
    @STREAM
    async def test_and_nowhere_else(self, upstreams: dict[str, Any], *, stream: bool) -> None:
        one, a, two, b = await self.said(upstreams, stream=stream)
        other = {**a, "call_id": "call_Mn8oPq2rSt"}
        out = output_of(other["call_id"])
        for history, left in (
            ((self.ELSEWHERE, one, two, other, out), []),
            ((USER, self.ELSEWHERE, one, two, other, out), []),
            ((USER, message_item(0, "Hi"), self.ELSEWHERE, one, two, other, out), []),
            ((USER, other, out, one, two, b, output_of(B)), []),
            ((USER, two, a, one, b, output_of(A), output_of(B)), ["two"]),
            ((USER, one, a, b, two, output_of(A), output_of(B)), ["one"]),
            ((USER, one, two, a, output_of(A), b, output_of(B)), ["one"]),
        ):
            assert await self.restored(upstreams, *history) == left
