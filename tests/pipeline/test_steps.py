"""The steps by which a client's request becomes upstream's, and the headers it then has."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.apis.display import Exposure
from tests.end_to_end.translation.test_translation import BOTH, KEY, bridge
from tests.end_to_end.translation.turn import (
    CLIENTS,
    PATHS,
    UPSTREAMS,
    WORDS,
    answer,
    read_answer,
    request_body,
)
from tests.support.asgi import call
from tests.support.counters import total
from tests.support.deployments import FORMS, PREFIX, Form, build_app
from tests.support.streams import chat_stream
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, ReceivedRequest, Upstream

ROOT = Path(__file__).parents[2]
EACH_CLIENT = pytest.mark.parametrize("client", CLIENTS)
EACH_UPSTREAM = pytest.mark.parametrize("upstream", UPSTREAMS)
REVEALING: dict[str, Any] = {
    "logit_bias": {"151668": -100},
    "prompt_logprobs": 1,
    "echo": True,
    "stop": ["</think>"],
    "reasoning_format": "raw",
    "include": ["message.output_text.thoughts"],
    "chat_template": "x",
}
HARMLESS = {"cache_salt": "x", "keep_alive": 5}


class TestDropRevealingFields:
    @BOTH
    @EACH_UPSTREAM
    @EACH_CLIENT
    @pytest.mark.parametrize("form", FORMS)
    async def test_they_do_not_reach_upstream(
        self, form: Form, client: str, upstream: str, *, stream: bool
    ) -> None:
        registry = CollectorRegistry()
        played = Upstream(answer(upstream, stream=stream))
        app = bridge(played, upstream, form, expose="summary", registry=registry)
        body = request_body(client, stream=stream, **REVEALING, **HARMLESS)
        reply = await call(app, PREFIX[form] + PATHS[client], body, KEY)
        assert read_answer(client, reply, stream=stream).text == WORDS
        sent = played.requests[0].json
        assert not REVEALING.keys() & sent.keys() - {"include"}
        assert "thoughts" not in json.dumps(sent)
        assert HARMLESS.items() <= sent.items()
        assert total(registry, "dropped_fields_total", api=client) >= len(REVEALING)

    @EACH_UPSTREAM
    @EACH_CLIENT
    async def test_a_switch_that_leaves_thinking_in_the_text_does_not(
        self, client: str, upstream: str
    ) -> None:
        played = Upstream(answer(upstream, stream=False))
        switches = {"enable_thinking": False, "guided_regex": "a+"}
        body = request_body(client, stream=False, **switches)
        await call(bridge(played, upstream, expose="summary"), PATHS[client], body, KEY)
        assert not switches.keys() & played.requests[0].json.keys()

    async def test_who_declines_thinking_is_not_asked_to_think(self) -> None:
        played = Upstream(answer("messages", stream=False))
        off = {"type": "disabled"}
        body = request_body("messages", stream=False, thinking=off) | {"model": "claude-opus-4-5"}
        app = bridge(played, "messages", expose="summary")
        await call(app, PATHS["messages"], body, KEY)
        assert "thinking" not in played.requests[0].json

    @pytest.mark.parametrize(
        "opened",
        [{"profile": "openai"}, {"effort": "none"}, {"reasoning": {"hold_text": False}}],
        ids=["servers that parse", "the upstream's own effort", "text that is no thinking"],
    )
    async def test_it_does_where_that_is_known_not_to_happen(self, opened: dict[str, Any]) -> None:
        played = Upstream(answer("chat", stream=False))
        body = request_body("chat", stream=False, enable_thinking=False)
        app = bridge(played, "chat", expose="summary", entry=opened)
        await call(app, PATHS["chat"], body, KEY)
        assert played.requests[0].json["enable_thinking"] is False

    @EACH_CLIENT
    @pytest.mark.parametrize("expose", ["auto", "both", "raw"])
    async def test_they_reach_upstream_where_nothing_is_hidden(
        self, client: str, expose: Exposure
    ) -> None:
        played = Upstream(answer(client, stream=False))
        body = request_body(client, stream=False, **REVEALING)
        await call(bridge(played, client, expose=expose), PATHS[client], body, KEY)
        assert REVEALING.items() <= played.requests[0].json.items()
        del body["reasoning"]
        await call(bridge(played, client, expose=expose), PATHS[client], body, KEY)
        assert played.requests[1].body == json.dumps(body).encode()

    @EACH_CLIENT
    async def test_a_field_that_is_named_twice_is_sent_once(self, client: str) -> None:
        played = Upstream(answer(client, stream=False))
        body = json.dumps(request_body(client, stream=False))[:-1]
        twice = f'{body}, "reasoning_format": "raw", "reasoning_format": "parsed"}}'.encode()
        await call(bridge(played, client, expose="summary"), PATHS[client], twice, KEY)
        assert b'"raw"' not in played.requests[0].body
        assert played.requests[0].json["reasoning_format"] == "parsed"

    @EACH_CLIENT
    async def test_a_client_cannot_pose_as_a_summarizer(self, client: str) -> None:
        played = Upstream(answer(client, stream=False))
        headers = {**KEY, "x-abridge-call": "summary"}
        body = request_body(client, stream=False, summary=None, echo=True)
        await call(bridge(played, client, expose="summary"), PATHS[client], body, headers)
        assert "echo" not in played.requests[0].json

    @pytest.mark.parametrize("upstream", ["chat", "responses"])
    async def test_a_summarizers_own_call_keeps_its_fields(self, upstream: str) -> None:
        client = "responses" if upstream == "chat" else "chat"
        played = Upstream(
            answer(upstream, stream=False), answer(upstream, stream=True, text="I add.")
        )
        summarizer = {"kind": "upstream", "extra_body": {"odd": 1}}
        app = bridge(played, upstream, expose="summary", writer=None, summarizer=summarizer)
        reply = await call(app, PATHS[client], request_body(client, stream=False), KEY)
        assert reply.status == 200
        assert played.requests[1].json["odd"] == 1

    async def test_what_a_stored_item_begins_is_not_continued(self) -> None:
        """References are resolved before."""
        played = Upstream(answer("chat", stream=False))
        app = bridge(played, "chat", expose="summary")
        begun = {"type": "message", "role": "assistant", "content": "<think>\nWell"}
        body = request_body("responses", stream=False)
        user = {"role": "user", "content": "Hi"}
        first = await call(app, PATHS["responses"], {**body, "input": [user, begun, user]}, KEY)
        path = f"{PATHS['responses']}/{first.json['id']}/input_items"
        listed = (await call(app, path, b"", KEY, method="GET")).json["data"]
        reference = {"type": "item_reference", "id": listed[1]["id"]}
        assert listed[1]["role"] == "assistant"
        await call(app, PATHS["responses"], {**body, "input": [user, reference]}, KEY)
        assert [message["role"] for message in played.requests[-1].json["messages"]] == ["user"]


PLAIN: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
ASKING = {**PLAIN, "reasoning": {"summary": "auto"}}
DIGESTS = {
    "content-digest": "sha-256=:AAAA:",
    "repr-digest": "sha-256=:AAAA:",
    "digest": "sha-256=AAAA",
    "content-md5": "AAAA",
}


async def forward(form: Form, data: bytes, headers: dict[str, str], **tables: Any) -> Any:
    upstream = Upstream(Answer(chat_stream("", "Hello.")))
    app = build_app(form, upstream, writer=Scripted(), **tables)
    await call(app, f"{PREFIX[form]}/v1/chat/completions", data, headers)
    return upstream.requests[0]


def names(request: ReceivedRequest) -> set[str]:
    return {name.decode() for name, _ in request.headers}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("body", "tables"),
    [
        pytest.param(ASKING, {}, id="engaged"),
        pytest.param(PLAIN, {"upstreams": [{"effort": "low"}]}, id="not engaged"),
    ],
)
async def test_a_changed_body_has_no_digest_of_the_old_one(
    form: Form, body: dict[str, Any], tables: dict[str, Any]
) -> None:
    if form != "mounted" and tables:
        tables = {"upstreams": [{**tables["upstreams"][0], "base_url": "http://upstream.test/v1"}]}
    request = await forward(form, json.dumps(body).encode(), DIGESTS, **tables)
    assert request.json != body
    assert names(request).isdisjoint(DIGESTS)
    assert request.header("content-length") == str(len(request.body))


@pytest.mark.parametrize("default", ["auto", "off"])
async def test_an_unchanged_body_keeps_its_digest(default: str) -> None:
    data = json.dumps(PLAIN).encode()
    request = await forward("mounted", data, DIGESTS, summary={"default": default})
    assert request.body == data
    assert names(request) >= set(DIGESTS)


async def test_a_decoded_body_has_no_digest_of_the_encoded_one() -> None:
    data = json.dumps(PLAIN).encode()
    headers = {**DIGESTS, "content-encoding": "gzip"}
    request = await forward("mounted", gzip.compress(data), headers, summary={"default": "auto"})
    assert request.body == data
    assert names(request).isdisjoint({*DIGESTS, "content-encoding"})


@pytest.mark.parametrize("body", [ASKING, PLAIN])
async def test_a_whole_body_is_framed_by_its_length_alone(body: dict[str, Any]) -> None:
    headers = {"transfer-encoding": "chunked"}
    data = json.dumps(body).encode()
    request = await forward("mounted", data, headers, summary={"default": "auto"})
    assert "transfer-encoding" not in names(request)
    assert request.header("content-length") == str(len(request.body))
