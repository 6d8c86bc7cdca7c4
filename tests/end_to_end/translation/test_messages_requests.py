"""What upstream hears of a request for Messages, and of one that asks Claude for nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.end_to_end.translation.test_messages_clients import (
    EACH,
    KEY,
    PATH,
    THINKS,
    body,
    message_of,
)
from tests.end_to_end.translation.test_translation import KEY as BEARER
from tests.end_to_end.translation.test_translation import SUMMARY, bridge
from tests.end_to_end.translation.turn import PATHS, answer, request_body
from tests.support.asgi import call
from tests.support.messages_checker import check_error
from tests.support.upstream import Upstream

Json = dict[str, Any]
CLAUDE = "claude-opus-4-8"
SHOWN = {"type": "adaptive", "display": "summarized"}
DEFAULT = {"default": "auto"}
FOREIGN = [{"type": "thinking", "thinking": "Foreign.", "signature": "c2ln"}]
BETA = {**KEY, "anthropic-beta": "context-1m-2025-08-07"}


class TestHeaders:
    @EACH
    async def test_that_only_anthropic_knows_stay_here(self, upstream: str) -> None:
        played = Upstream(answer(upstream, stream=False))
        reply = await call(
            bridge(played, upstream), PATH, body(), BETA, query_string=b"beta=true&api-version=1"
        )
        assert reply.status == 200
        request = played.requests[0]
        headers = dict(request.headers)
        assert headers[b"authorization"] == f"Bearer {KEY['x-api-key']}".encode()
        assert not any(name.startswith((b"anthropic-", b"x-api-key")) for name in headers)
        assert request.query == b"api-version=1"

    async def test_pass_to_anthropic_with_the_body_as_it_is(self) -> None:
        played = Upstream(answer("messages", stream=False))
        sent = json.dumps(body()).encode()
        reply = await call(bridge(played, "same"), PATH, sent, BETA, query_string=b"beta=true")
        assert reply.status == 200
        request = played.requests[0]
        assert request.body == sent
        assert request.query == b"beta=true"
        assert (
            BETA.items()
            <= {name.decode(): value.decode() for name, value in request.headers}.items()
        )


class TestThinkingThatIsDue:
    """By the settings' default or a header: it is asked for where it would not come unasked."""

    async def heard(self, client: str, sent: Json, **more: Any) -> Json:
        """Return what a Messages upstream hears."""
        played = Upstream(answer("messages", stream=False))
        headers = {**(KEY if client == "messages" else BEARER), **more.pop("headers", {})}
        app = bridge(played, "messages", **more)
        assert (await call(app, PATHS[client], sent, headers)).status == 200
        heard: Json = played.requests[0].json
        return heard

    @pytest.mark.parametrize("client", ["chat", "responses"])
    async def test_for_a_client_of_another_api(self, client: str) -> None:
        sent = {**request_body(client, stream=False, summary=None), "model": CLAUDE}
        assert "thinking" not in await self.heard(client, sent)
        assert (await self.heard(client, sent, summary=DEFAULT))["thinking"] == SHOWN
        header = {"x-abridge-summary": "concise"}
        assert (await self.heard(client, sent, headers=header))["thinking"] == SHOWN

    async def test_for_a_messages_client(self) -> None:
        sent = {**body(), "model": CLAUDE, "max_tokens": 9000}
        assert await self.heard("messages", sent) == sent
        assert await self.heard("messages", sent, summary=DEFAULT) == {**sent, "thinking": SHOWN}

    async def test_a_client_that_wants_none_hears_none(self) -> None:
        sent = {**body(), "model": CLAUDE, "max_tokens": 9000, "thinking": {"type": "disabled"}}
        assert await self.heard("messages", sent, summary=DEFAULT) == sent

    async def test_a_header_shows_what_the_body_would_omit(self) -> None:
        omitted = {"type": "adaptive", "display": "omitted"}
        sent = {**body(), "model": CLAUDE, "thinking": omitted}
        assert await self.heard("messages", sent) == sent
        header = {"x-abridge-summary": "auto"}
        assert (await self.heard("messages", sent, headers=header))["thinking"] == SHOWN

    async def test_a_model_that_thinks_unasked_is_asked_for_nothing(self) -> None:
        sent = {**body(), "max_tokens": 9000}
        assert await self.heard("messages", sent, summary=DEFAULT) == sent


class TestRefusals:
    @EACH
    @pytest.mark.parametrize(
        ("sent", "field"),
        [
            (
                {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
                "messages.0.content.0.source",
            ),
            ({"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]}, "tools.0"),
            ({"mcp_servers": [{"type": "url", "url": "https://x", "name": "x"}]}, "mcp_servers"),
        ],
    )
    async def test_name_the_field_in_anthropics_shape(
        self, upstream: str, sent: Json, field: str
    ) -> None:
        played = Upstream(answer(upstream, stream=False))
        reply = await call(bridge(played, upstream), PATH, body(**sent), KEY)
        assert reply.status == 400
        assert check_error(reply.json)["type"] == "invalid_request_error"
        assert field in reply.json["error"]["message"]
        assert played.requests == []

    @EACH
    async def test_what_is_refused_is_left_out_where_the_settings_say_so(
        self, upstream: str
    ) -> None:
        played = Upstream(answer(upstream, stream=False))
        app = bridge(played, upstream, entry={"unsupported": "drop"})
        reply = await call(app, PATH, body(container="container_1"), KEY)
        assert reply.status == 200
        assert "container" not in played.requests[0].json


@pytest.mark.parametrize("upstream", ["chat", "responses", "messages"])
async def test_the_clients_own_model_can_summarize(upstream: str) -> None:
    summary = answer(upstream, stream=True, thought="", text="I add the numbers.")
    played = Upstream(answer(upstream, stream=False), summary)
    app = bridge(played, upstream, writer=None, summarizer={"kind": "upstream"})
    thinking = {"type": "enabled", "budget_tokens": 2000}
    reply = await call(app, PATH, body(thinking=thinking), BETA)
    title, _, said = reply.json["content"][0]["thinking"].partition("\n\n")
    assert title.startswith("**")
    assert said == "I add the numbers."
    assert [request.path for request in played.requests] == [PATHS[upstream]] * 2


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("api", ["same", "auto", "messages"])
async def test_asking_for_thinking_is_asking_for_its_summary(api: str, *, stream: bool) -> None:
    """Whatever makes Abridge look at the body: here nothing else does."""
    played = Upstream(answer("messages", stream=stream))
    sent = body(stream=stream, thinking={"type": "enabled", "budget_tokens": 2000})
    reply = await call(bridge(played, api), PATH, sent, KEY)
    if stream:
        lines = [line for line in reply.data.splitlines() if line.startswith(b"data:")]
        deltas = [json.loads(line[5:]).get("delta", {}) for line in lines]
        assert "".join(delta.get("thinking", "") for delta in deltas) == SUMMARY
    else:
        assert reply.json["content"][0]["thinking"] == SUMMARY


class TestThinkingBoundToItsConversation:
    @staticmethod
    def turn(blocks: list[Json], behavior: Json, *, stream: bool = False) -> Json:
        """Return a request whose earlier turn has these blocks, and what it says of others."""
        said = [*blocks, {"type": "text", "text": "Hello."}]
        messages = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": said},
            {"role": "user", "content": "Again"},
        ]
        thinking = {"type": "adaptive", "block_binding": behavior}
        return {**body(stream=stream), "messages": messages, "thinking": thinking}

    @EACH
    @pytest.mark.parametrize("behavior", [{}, {"prefix_mismatch_behavior": "error"}], ids=str)
    async def test_a_block_of_another_is_refused_by_its_name(
        self, upstream: str, behavior: Json
    ) -> None:
        played = Upstream(answer(upstream, stream=False))
        sent = self.turn(FOREIGN, behavior)
        reply = await call(bridge(played, upstream), PATH, sent, KEY)
        assert reply.status == 400
        assert "messages.1.content.0" in check_error(reply.json)["message"]
        assert not played.requests

    @EACH
    @pytest.mark.parametrize("stream", [False, True])
    async def test_or_dropped_and_the_answer_says_so(self, upstream: str, *, stream: bool) -> None:
        played = Upstream(answer(upstream, stream=stream))
        sent = self.turn(FOREIGN, {"prefix_mismatch_behavior": "drop_block"}, stream=stream)
        reply = await call(bridge(played, upstream), PATH, sent, KEY)
        assert "Foreign." not in json.dumps(played.requests[0].json)
        message = message_of(reply, stream=stream)
        path, reason = "messages.1.content.0", "model_binding_mismatch"
        assert message["input_transformations"] == [
            {"type": "thinking_dropped", "path": path, "reason": reason}
        ]

    @EACH
    async def test_what_abridge_gave_the_client_is_no_others(self, upstream: str) -> None:
        played = Upstream(answer(upstream, stream=False))
        app = bridge(played, upstream)
        first = (await call(app, PATH, body(**THINKS), KEY)).json
        own = [block for block in first["content"] if block["type"] == "thinking"]
        assert own
        reply = await call(app, PATH, self.turn(own, {}), KEY)
        assert reply.status == 200
        assert "input_transformations" not in reply.json
