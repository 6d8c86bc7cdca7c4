"""Clients that speak Messages, over upstreams that speak another API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from abridge.apis.display import Exposure
from abridge.core.envelope import UNSEALED
from tests.end_to_end.translation.test_translation import SUMMARY, bridge
from tests.end_to_end.translation.turn import PATHS, TOOL, WORDS, answer
from tests.support.asgi import Call, call
from tests.support.messages_checker import check_error, check_message, check_messages
from tests.support.streams import THOUGHT, chunk, completion, response, responses_stream
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

PATH = PATHS["messages"]
KEY = {"x-api-key": "sk-ant-anna-1234", "anthropic-version": "2023-06-01"}
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 2000}}
TOOLS = [{"name": TOOL, "input_schema": {"type": "object"}}]
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize("upstream", ["chat", "responses"])


def body(**more: Any) -> dict[str, Any]:
    user = {"role": "user", "content": "Hi"}
    return {"model": "thinker-1", "max_tokens": 4000, "messages": [user], **more}


def message_of(reply: Call, *, stream: bool) -> dict[str, Any]:
    assert reply.status == 200, reply.data
    return check_messages(reply.data).message if stream else check_message(reply.json)


def shown(message: dict[str, Any]) -> list[str]:
    """The texts of the thinking blocks."""
    return [block["thinking"] for block in message["content"] if block["type"] == "thinking"]


async def test_a_round_of_calls_keeps_its_effort() -> None:
    """Though the summary that began it is taken out before the request is translated."""
    played = Upstream(
        answer("chat", stream=False, text="", calls=True), answer("chat", stream=False)
    )
    app = bridge(played, "chat")
    asked = body(tools=TOOLS, **THINKS)
    content = message_of(await call(app, PATH, asked, KEY), stream=False)["content"]
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "None."}
        for block in content
        if block["type"] == "tool_use"
    ]
    turns = [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
    await call(app, PATH, {**asked, "messages": [*asked["messages"], *turns]}, KEY)
    first, second = (request.json for request in played.requests)
    assert first["reasoning_effort"]
    assert second["reasoning_effort"] == first["reasoning_effort"]


class TestAnswers:
    @BOTH
    @EACH
    @pytest.mark.parametrize(
        ("expose", "texts"),
        [
            ("auto", [SUMMARY]),
            ("summary", [SUMMARY]),
            ("both", [THOUGHT, SUMMARY]),
            ("raw", [THOUGHT]),
            ("none", [""]),
        ],
    )
    async def test_what_the_settings_show(
        self, expose: Exposure, texts: list[str], upstream: str, *, stream: bool
    ) -> None:
        app = bridge(Upstream(answer(upstream, stream=stream)), upstream, expose=expose)
        reply = await call(app, PATH, body(stream=stream, **THINKS), KEY)
        assert shown(message_of(reply, stream=stream)) == texts
        if THOUGHT not in texts:
            assert b"squared" not in reply.data

    @BOTH
    @EACH
    @pytest.mark.parametrize(
        ("wish", "texts"),
        [
            ({}, []),
            ({"thinking": {"type": "disabled"}}, []),
            ({"thinking": {"type": "adaptive", "display": "omitted"}}, [""]),
            ({"thinking": {"type": "adaptive"}}, [SUMMARY]),
            ({"reasoning": {"summary": "auto"}}, [SUMMARY]),
        ],
        ids=["nothing", "disabled", "omitted", "adaptive", "summary"],
    )
    async def test_what_the_client_wishes_to_see(
        self, wish: dict[str, Any], texts: list[str], upstream: str, *, stream: bool
    ) -> None:
        app = bridge(Upstream(answer(upstream, stream=stream)), upstream)
        message = message_of(await call(app, PATH, body(stream=stream, **wish), KEY), stream=stream)
        assert shown(message) == texts
        assert message["content"][-1] == {"type": "text", "text": WORDS}

    @BOTH
    async def test_the_wish_is_heard_before_an_upstream_that_is_not_told_apart(
        self, *, stream: bool
    ) -> None:
        played = answer("messages", stream=stream)
        app = bridge(Upstream(played), "same")
        reply = await call(app, PATH, body(stream=stream, **THINKS), KEY)
        assert shown(message_of(reply, stream=stream)) == [SUMMARY]
        reply = await call(app, PATH, body(stream=stream), KEY)
        assert reply.data == b"".join(step for step in played.steps if isinstance(step, bytes))

    @BOTH
    async def test_opaque_state_of_a_responses_model_is_redacted_thinking(
        self, *, stream: bool
    ) -> None:
        summary = [{"type": "summary_text", "text": "I add."}]
        item = {"id": "rs_0", "type": "reasoning", "summary": summary, "encrypted_content": "gA=="}
        output = [item]
        played = Answer(responses_stream(output)) if stream else Answer.json(response(output))
        reply = await call(
            bridge(Upstream(played), "responses"), PATH, body(stream=stream, **THINKS), KEY
        )
        assert message_of(reply, stream=stream)["content"] == [
            {"type": "thinking", "thinking": "I add.", "signature": UNSEALED},
            {"type": "redacted_thinking", "data": "gA=="},
        ]

    @BOTH
    @pytest.mark.parametrize("name", ["stop_reason", "matched_stop"])
    async def test_the_stop_sequence_is_told_where_upstream_names_it(
        self, name: str, *, stream: bool
    ) -> None:
        whole = completion({"content": "A"})
        whole["choices"][0][name] = "END"
        finish = {"index": 0, "delta": {"content": "A"}, "finish_reason": "stop", name: "END"}
        played = Answer([chunk(choices=[finish])]) if stream else Answer.json(whole)
        sent = body(stream=stream, stop_sequences=["END"])
        reply = await call(bridge(Upstream(played), "chat"), PATH, sent, KEY)
        message = message_of(reply, stream=stream)
        assert (message["stop_reason"], message["stop_sequence"]) == ("stop_sequence", "END")

    @BOTH
    @pytest.mark.parametrize("upstream", ["chat", "responses", "messages"])
    @pytest.mark.parametrize("edit", ["", " Edited."])
    async def test_no_summary_goes_upstream_after_a_restart(
        self, upstream: str, edit: str, *, stream: bool
    ) -> None:
        """Not where nothing was sealed either, whatever the client made of its text."""
        reply = await call(
            bridge(Upstream(answer(upstream, stream=stream)), upstream),
            PATH,
            body(stream=stream, **THINKS),
            KEY,
        )
        content = message_of(reply, stream=stream)["content"]
        content[0]["thinking"] += edit
        again = Upstream(answer(upstream, stream=False))
        sent = body(**THINKS)
        sent["messages"] += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": "And?"},
        ]
        assert (await call(bridge(again, upstream), PATH, sent, KEY)).status == 200
        received = json.dumps(again.requests[0].json)
        assert WORDS in received
        assert SUMMARY.splitlines()[-1] not in received

    async def test_a_call_that_clients_would_refuse_returns_to_upstream_as_it_was(self) -> None:
        function = {"name": TOOL, "arguments": "[1]"}
        fragment = {"index": 0, "id": "functions.look:0", "type": "function", "function": function}
        asked = Answer([chunk({"tool_calls": [fragment]}), chunk({}, finish="tool_calls")])
        upstream = Upstream(asked, answer("chat", stream=False))
        app = bridge(upstream, "chat")
        first = check_messages(
            (await call(app, PATH, body(stream=True, tools=TOOLS), KEY)).data
        ).message
        result = {"type": "tool_result", "tool_use_id": first["content"][0]["id"], "content": "x"}
        turns = [
            *body()["messages"],
            {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": [result]},
        ]
        await call(app, PATH, body(messages=turns, tools=TOOLS), KEY)
        _, called, answered = upstream.requests[1].json["messages"]
        assert called["tool_calls"] == [{key: fragment[key] for key in ("id", "type", "function")}]
        assert answered["tool_call_id"] == "functions.look:0"


class TestErrors:
    @EACH
    @pytest.mark.parametrize(
        ("told", "seen"),
        [
            ((400, "invalid_request_error"), (400, "invalid_request_error")),
            ((401, "invalid_request_error"), (401, "authentication_error")),
            ((403, "invalid_request_error"), (403, "permission_error")),
            ((404, "invalid_request_error"), (404, "not_found_error")),
            ((429, "tokens"), (429, "rate_limit_error")),
            ((429, "insufficient_quota"), (429, "billing_error")),
            ((500, "server_error"), (500, "api_error")),
            ((503, "server_error"), (529, "overloaded_error")),
            ((504, "server_error"), (504, "timeout_error")),
        ],
    )
    @pytest.mark.parametrize("expose", ["auto", "none"])
    async def test_an_error_of_upstreams_is_told_in_anthropics_types(
        self, told: tuple[int, str], seen: tuple[int, str], expose: Exposure, upstream: str
    ) -> None:
        (status, kind), (seen_status, seen_type) = told, seen
        error = {"message": "It failed.", "type": kind, "param": None, "code": None}
        headers = {"retry-after": "3", "x-request-id": "up-1"}
        played = Upstream(Answer.json({"error": error}, status, **headers))
        reply = await call(bridge(played, upstream, expose=expose), PATH, body(), KEY)
        assert reply.status == seen_status
        read = check_error(reply.json)
        assert read["type"] == seen_type
        assert (read["message"] == "It failed.") is (expose == "auto" or status < 500)
        assert (reply.headers["retry-after"], reply.headers["request-id"]) == ("3", "up-1")
        assert reply.json["request_id"] == "up-1"

    async def test_a_refused_request_names_the_field(self) -> None:
        upstream = Upstream()
        reply = await call(bridge(upstream, "chat"), PATH, body(messages=5), KEY)
        assert reply.status == 400
        error = check_error(reply.json)
        assert error["type"] == "invalid_request_error"
        assert "messages" in error["message"]
        assert reply.json["request_id"] == reply.headers["request-id"]
        assert not upstream.requests

    @pytest.mark.parametrize("upstream", ["chat", "responses", "messages"])
    async def test_an_upstream_that_does_not_answer_is_a_bad_gateway(self, upstream: str) -> None:
        gone = Upstream(Answer(before=[ConnectionError("refused")]))
        reply = await call(bridge(gone, upstream), PATH, body(), KEY)
        assert reply.status == 502
        assert check_error(reply.json)["type"] == "api_error"
        assert reply.json["request_id"] == reply.headers["request-id"]

    @BOTH
    @EACH
    async def test_a_summary_that_fails_is_said_on_its_block(
        self, upstream: str, *, stream: bool
    ) -> None:
        failing = Scripted("", error=ValueError("no"))
        played = Upstream(answer(upstream, stream=stream))
        reply = await call(
            bridge(played, upstream, writer=failing), PATH, body(stream=stream, **THINKS), KEY
        )
        thought = message_of(reply, stream=stream)["content"][0]
        assert thought["thinking"] == ""
        assert thought["summary_error"]["code"] == "upstream_error"
