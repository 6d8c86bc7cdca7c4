"""Any client API over any upstream API, in each way to deploy Abridge."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.apis.credentials import CREDENTIAL_HEADERS
from abridge.apis.display import Exposure
from abridge.apis.registry import APIS
from tests.end_to_end.translation.turn import (
    ALL_BRIDGES,
    ARGUMENTS,
    BRIDGES,
    PATHS,
    TOOL,
    WORDS,
    answer,
    read_answer,
    request_body,
)
from tests.support.answers import read_said
from tests.support.asgi import call
from tests.support.counters import total
from tests.support.deployments import FORMS, ORIGIN, PREFIX, Form, build_app
from tests.support.streams import THOUGHT, chunk, completion, response
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

SUMMARY = "**Adding up**\n\nI add the numbers."
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
EACH = pytest.mark.parametrize(("client", "upstream"), BRIDGES)
ALL = pytest.mark.parametrize(("client", "upstream"), ALL_BRIDGES)
KEY = {"authorization": "Bearer sk-anna-1234"}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "chat": [{"type": "function", "function": {"name": TOOL, "parameters": {"type": "object"}}}],
    "responses": [{"type": "function", "name": TOOL, "parameters": {"type": "object"}}],
    "messages": [{"name": TOOL, "input_schema": {"type": "object"}}],
}
ENDS = {
    "chat": ("stop", "tool_calls"),
    "responses": ("completed", "completed"),
    "messages": ("end_turn", "tool_use"),
}
"""How an answer ends, and one that calls."""


def bridge(
    upstream: Upstream, api: str, form: Form = "sidecar", *, expose: Exposure = "auto", **more: Any
) -> ASGIApp:
    """Abridge before an upstream that speaks one API."""
    entry = {"api": api, "base_url": f"{ORIGIN}/v1", **more.pop("entry", {})}
    more.setdefault("writer", Scripted(SUMMARY))
    return build_app(form, upstream, upstreams=[entry], reasoning={"expose": expose}, **more)


class TestAnswers:
    @pytest.mark.matrix(2)
    @BOTH
    @ALL
    @pytest.mark.parametrize("form", FORMS)
    async def test_answer_summary_and_usage_are_translated(
        self, form: Form, client: str, upstream: str, *, stream: bool
    ) -> None:
        played = Upstream(answer(upstream, stream=stream))
        app = bridge(played, upstream, form)
        path = PREFIX[form] + PATHS[client]
        reply = await call(app, path, request_body(client, stream=stream), KEY)
        received = read_answer(client, reply, stream=stream)
        assert reply.status == 200
        assert played.requests[0].path.startswith({**PATHS, **OWN_PATHS}[upstream])
        assert (received.text, received.summary) == (WORDS, SUMMARY)
        assert received.raw == (THOUGHT if client == "responses" else "")
        assert received.finish == ENDS[client][0]
        assert received.usage is not None
        share = received.usage["reasoning_summary"]
        assert (share["input_tokens"], share["output_tokens"]) == (10, 5)
        assert received.usage[_OUTPUT[client]] == 70 + 5
        assert ("request-id" in reply.headers) is (client == "messages")

    @BOTH
    @ALL
    async def test_a_call_ends_the_turn(self, client: str, upstream: str, *, stream: bool) -> None:
        played = Upstream(answer(upstream, stream=stream, text="", calls=True))
        body = request_body(client, stream=stream, tools=TOOLS[client])
        reply = await call(bridge(played, upstream), PATHS[client], body, KEY)
        received = read_answer(client, reply, stream=stream)
        assert received.calls == [(TOOL, ARGUMENTS)]
        assert received.finish == ENDS[client][1]
        assert received.call_ids[0].startswith(CALL_IDS.get(upstream, "call_"))
        assert received.summary == SUMMARY

    @BOTH
    @pytest.mark.parametrize("upstream", ["chat", "messages"])
    @pytest.mark.parametrize(
        ("expose", "summary", "echoed"),
        [("auto", "detailed", "detailed"), ("raw", "detailed", None), ("auto", None, None)],
    )
    async def test_a_summary_is_echoed_only_where_one_is_made(
        self,
        upstream: str,
        expose: Exposure,
        summary: str | None,
        echoed: str | None,
        *,
        stream: bool,
    ) -> None:
        app = bridge(Upstream(answer(upstream, stream=stream)), upstream, expose=expose)
        body = request_body("responses", stream=stream, summary=summary)
        reply = await call(app, PATHS["responses"], body, KEY)
        received = read_answer("responses", reply, stream=stream)
        assert received.body["reasoning"]["summary"] == echoed
        assert bool(received.summary) is (echoed is not None)

    @EACH
    async def test_no_history_is_lost_behind_an_id(self, client: str, upstream: str) -> None:
        """A reference that upstream cannot resolve is refused, even where settings drop fields."""
        played = Upstream(answer(upstream, stream=False))
        body = request_body(client, stream=False, previous_response_id="resp_1")
        reply = await call(bridge(played, upstream), PATHS[client], body, KEY)
        if client == "responses":
            assert (reply.status, reply.json["error"]["param"]) == (400, "previous_response_id")
            assert not played.requests
        else:
            assert played.requests[0].json.get("previous_response_id") in (None, "resp_1")

    @BOTH
    @EACH
    async def test_requests_without_a_summary_are_translated_too(
        self, client: str, upstream: str, *, stream: bool
    ) -> None:
        writer = Scripted(SUMMARY)
        played = Upstream(answer(upstream, stream=stream))
        body = request_body(client, stream=stream, summary=None)
        reply = await call(bridge(played, upstream, writer=writer), PATHS[client], body, KEY)
        received = read_answer(client, reply, stream=stream)
        assert received.text == WORDS
        assert not writer.requests
        assert received.usage is not None
        assert "reasoning_summary" not in received.usage

    @ALL
    async def test_a_broken_upstream_looks_broken(self, client: str, upstream: str) -> None:
        frames = list(answer(upstream, stream=True).steps)
        played = Upstream(Answer([*frames[: len(frames) // 2], ConnectionError("gone")]))
        app = bridge(played, upstream)
        reply = await call(app, PATHS[client], request_body(client, stream=True), KEY)
        assert read_said(_API[client], reply.data).failure is not None

    async def test_an_upstream_that_forgets_done_is_repaired(self) -> None:
        frames = list(answer("chat", stream=True).steps)[:-1]
        app = bridge(Upstream(Answer(frames)), "chat")
        reply = await call(app, PATHS["responses"], request_body("responses", stream=True), KEY)
        assert read_answer("responses", reply, stream=True).finish == "completed"

    @ALL
    async def test_a_body_of_another_api_is_an_error(self, client: str, upstream: str) -> None:
        played = Upstream(Answer([b"<html>"], 200, {"content-type": "text/html"}))
        reply = await call(
            bridge(played, upstream), PATHS[client], request_body(client, stream=True), KEY
        )
        assert reply.status == 502
        assert reply.json["error"]["type"] == ("api_error" if client == "messages" else SERVER)


_API = {api.name: api for api in APIS}
SERVER = "server_error"
OWN_PATHS = {"gemini": "/v1/models/", "interactions": "/v1/interactions"}
CALL_IDS = {"messages": "toolu", "gemini": "fc_1", "interactions": "fc_1"}
_OUTPUT = {"chat": "completion_tokens", "responses": "output_tokens", "messages": "output_tokens"}


class TestErrors:
    @EACH
    async def test_an_error_comes_in_the_clients_shape(self, client: str, upstream: str) -> None:
        error = {"type": "invalid_request_error", "message": "No such model."}
        own = {"type": "error", "error": error} if upstream == "messages" else {"error": error}
        played = Upstream(Answer.json(own, 400, **{"retry-after": "3"}))
        reply = await call(
            bridge(played, upstream), PATHS[client], request_body(client, stream=True), KEY
        )
        assert reply.status == 400
        assert reply.headers["retry-after"] == "3"
        assert reply.json["error"]["message"] == "No such model."
        assert "type" not in reply.json

    @EACH
    @pytest.mark.parametrize(
        ("expose", "message"), [("both", "It broke."), ("none", "Upstream failed to answer.")]
    )
    async def test_a_partial_answer_beside_an_error_is_not_shown(
        self, expose: Exposure, message: str, client: str, upstream: str
    ) -> None:
        own = {"type": "error", "error": {"type": "api_error", "message": "It broke."}}
        half = {"choices": [{"message": {"reasoning": THOUGHT}}], "output": [THOUGHT]}
        played = Upstream(Answer.json({**own, **half}, 500))
        app = bridge(played, upstream, expose=expose)
        reply = await call(app, PATHS[client], request_body(client, stream=True), KEY)
        assert reply.status == 500
        assert reply.json["error"]["message"] == message
        assert b"squared" not in reply.data

    @EACH
    @pytest.mark.parametrize("status", [204, 304, 307])
    async def test_a_body_that_is_no_answer_and_no_error_is_a_bad_gateway(
        self, client: str, upstream: str, status: int
    ) -> None:
        played = Upstream(Answer([], status, {"location": f"{ORIGIN}{PATHS[upstream]}"}))
        reply = await call(
            bridge(played, upstream), PATHS[client], request_body(client, stream=True), KEY
        )
        assert reply.status == 502
        assert reply.json["error"]["type"] == "server_error"
        assert "location" not in reply.headers

    @EACH
    async def test_an_error_that_comes_as_an_answer_keeps_its_message(
        self, client: str, upstream: str
    ) -> None:
        error = {"type": "overloaded_error", "message": "We are overloaded."}
        own = {"type": "error", "error": error} if upstream == "messages" else {"error": error}
        played = Upstream(Answer.json(own))
        body = request_body(client, stream=False)
        reply = await call(bridge(played, upstream), PATHS[client], body, KEY)
        assert reply.status == 502
        assert reply.json["error"]["message"] == "We are overloaded."

    async def test_a_failed_response_keeps_its_message(self) -> None:
        error = {"code": "server_error", "message": "It broke."}
        played = Upstream(Answer.json({**response([]), "status": "failed", "error": error}))
        body = request_body("chat", stream=False)
        reply = await call(bridge(played, "responses"), PATHS["chat"], body, KEY)
        assert reply.status == 502
        assert reply.json["error"]["message"] == "It broke."

    async def test_a_choice_that_ends_in_error_keeps_its_message(self) -> None:
        body_sent = completion({"content": "It is"})
        body_sent["choices"][0] |= {"finish_reason": "error", "error": {"message": "It broke."}}
        played = Upstream(Answer.json(body_sent))
        body = request_body("responses", stream=False)
        reply = await call(bridge(played, "chat"), PATHS["responses"], body, KEY)
        assert reply.status == 502
        assert reply.json["error"]["message"] == "It broke."

    async def test_what_upstream_cannot_carry_is_refused_by_name(self) -> None:
        played = Upstream(answer("responses", stream=False))
        body = request_body("chat", stream=False, stop=["\n"])
        reply = await call(bridge(played, "responses"), PATHS["chat"], body, KEY)
        assert reply.status == 400
        assert reply.json["error"]["param"] == "stop"
        assert not played.requests

    async def test_unsupported_fields_are_dropped_where_settings_allow(self) -> None:
        registry = CollectorRegistry()
        played = Upstream(answer("responses", stream=False))
        entry = {"unsupported": "drop"}
        app = bridge(played, "responses", entry=entry, registry=registry)
        body = request_body("chat", stream=False, stop=["\n"])
        reply = await call(app, PATHS["chat"], body, KEY)
        assert reply.status == 200
        assert "stop" not in played.requests[0].json
        assert registry.get_sample_value("abridge_dropped_fields_total", {"api": "chat"}) == 1

    async def test_a_body_that_is_no_object_is_refused(self) -> None:
        played = Upstream(answer("chat", stream=False))
        reply = await call(bridge(played, "chat"), PATHS["responses"], b"[]", KEY)
        assert reply.status == 400
        assert not played.requests


class TestRequests:
    async def test_a_messages_upstream_gets_anthropics_headers(self) -> None:
        played = Upstream(answer("messages", stream=False))
        await call(
            bridge(played, "messages"),
            PATHS["responses"],
            request_body("responses", stream=False),
            KEY,
        )
        request = played.requests[0]
        assert request.header("x-api-key") == "sk-anna-1234"
        assert request.header("authorization") is None
        assert request.header("anthropic-version") == "2023-06-01"
        assert request.json["max_tokens"] > 0

    @pytest.mark.parametrize(
        ("shown", "sent"),
        [
            ({"authorization": "bearer  sk-anna "}, [(b"x-api-key", b"sk-anna")]),
            ({"x-api-key": "sk-anna"}, [(b"x-api-key", b"sk-anna")]),
            ({"authorization": "Basic YTpi"}, [(b"authorization", b"Basic YTpi")]),
            (
                {"authorization": "Bearer sk-gate", "x-api-key": "sk-anna"},
                [(b"authorization", b"Bearer sk-gate"), (b"x-api-key", b"sk-anna")],
            ),
        ],
    )
    async def test_a_clients_key_goes_there_once(
        self, shown: dict[str, str], sent: list[tuple[bytes, bytes]]
    ) -> None:
        played = Upstream(answer("messages", stream=False))
        body = request_body("responses", stream=False)
        await call(bridge(played, "messages"), PATHS["responses"], body, shown)
        assert [
            pair for pair in played.requests[0].headers if pair[0] in CREDENTIAL_HEADERS
        ] == sent

    async def test_an_upstreams_key_goes_in_the_header_it_reads(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("THEIR_KEY", "sk-ours")
        played = Upstream(answer("messages", stream=False))
        app = bridge(played, "messages", entry={"api_key_env": "THEIR_KEY"})
        await call(app, PATHS["responses"], request_body("responses", stream=False), KEY)
        credentials = [pair for pair in played.requests[0].headers if pair[0] in CREDENTIAL_HEADERS]
        assert credentials == [(b"x-api-key", b"sk-ours")]

    @EACH
    async def test_the_length_and_the_path_fit_the_body(self, client: str, upstream: str) -> None:
        played = Upstream(answer(upstream, stream=False))
        app = bridge(played, upstream, "mounted")
        await call(app, PATHS[client], request_body(client, stream=False), KEY)
        request = played.requests[0]
        assert request.header("content-length") == str(len(request.body))
        assert request.raw_path in (b"", PATHS[upstream].encode())


class TestSummarizers:
    @EACH
    async def test_the_requests_model_summarizes_through_translation(
        self, client: str, upstream: str
    ) -> None:
        registry = CollectorRegistry()
        played = Upstream(
            answer(upstream, stream=True),
            answer(upstream, stream=True, thought="", text="**Adding up**\n\nI add."),
        )
        app = bridge(
            played, upstream, writer=None, summarizer={"kind": "upstream"}, registry=registry
        )
        reply = await call(app, PATHS[client], request_body(client, stream=True), KEY)
        assert read_answer(client, reply, stream=True).summary == "**Adding up**\n\nI add."
        assert [request.path for request in played.requests] == [PATHS[upstream]] * 2
        where = {"api": client, "upstream": "default", "outcome": "ok"}
        assert total(registry, "requests_total", **where) == 1

    async def test_parts_come_while_the_model_still_thinks(self) -> None:
        """As without translation."""
        frames = [chunk({"reasoning_content": THOUGHT * 6}), *answer("chat", stream=True).steps]
        app = bridge(Upstream(Answer(frames)), "chat")
        reply = await call(app, PATHS["responses"], request_body("responses", stream=True), KEY)
        kinds = [line for line in reply.data.decode().splitlines() if line.startswith("event: ")]
        part = kinds.index("event: response.reasoning_summary_part.added")
        assert part < len(kinds) - 1 - kinds[::-1].index("event: response.reasoning_text.delta")
