"""Test that upstream gets opaque state back that its client was never shown, where reasoning is
hidden and nobody vouches that the state is encrypted: out of the store, or sealed into what the
client returns, over two turns."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from tests.apis.messages import scripts as messages
from tests.end_to_end.translation.tool_loops import client_items, results
from tests.end_to_end.translation.turn import PATHS, UPSTREAMS, request_body
from tests.support.asgi import Call, call
from tests.support.deployments import ORIGIN, build_app
from tests.support.messages_checker import check_message, check_messages
from tests.support.streams import (
    DONE,
    chunk,
    completion,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

Json = dict[str, Any]

STATE = "8JKjTx0r7OQ9n1uVdW3kZp5yH2sLbXcEaMgRfYtB4wI="
KEY = {"authorization": "Bearer sk-anna-1234"}
CALL_ID = "call_x7Kq9ZtR4mP2s"
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
STORES = {"store": {}, "sealed": {"store": "none", "seal_keys_env": "SEAL"}}

ITEM = {**reasoning_item(0, ""), "content": [], "encrypted_content": STATE}
DETAIL = {"type": "reasoning.encrypted", "data": STATE, "index": 0}

CHUNK = {"type": "thinking", "thinking": [{"type": "text", "text": "Let me look."}]}

ANSWERS: dict[tuple[str, str, str], list[Json]] = {
    ("responses", "vllm", "item"): [ITEM],
    ("messages", "vllm", "redacted"): [messages.redacted(STATE)],
    ("messages", "vllm", "signature"): [messages.thinking("", STATE)],
    ("messages", "vllm", "signed text"): [messages.thinking("Let me look.", STATE)],
    ("chat", "sglang", "details"): [
        {"reasoning_content": "Let me look.", "reasoning_details": [DETAIL]}
    ],
    ("chat", "mistral", "chunk"): [{"content": [{**CHUNK, "signature": STATE}]}],
    ("chat", "sglang", "call"): [{"extra_content": {"google": {"thought_signature": STATE}}}],
}
"""What comes before a call, by API and profile."""

CASES = [
    (client, case, kept)
    for client in UPSTREAMS
    for case in ANSWERS
    for kept in STORES
    if kept == "store" or case[0] in (client, "responses", "messages")
]
"""No client of another API carries what a chat upstream puts beside its reasoning."""


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEAL", f"a:{b64encode(bytes(32)).decode()}")


def play(api: str, thinking: list[Json], *, stream: bool) -> Answer:
    """Return an answer that thinks so, and calls a tool."""
    arguments = '{"city": "Paris"}'
    if api == "responses":
        called = {"id": "fc_1", "type": "function_call", "status": "completed"}
        called |= {"call_id": CALL_ID, "name": "look", "arguments": arguments}
        items = [*thinking, called]
        return Answer(responses_stream(items)) if stream else Answer.json(response(items))
    if api == "messages":
        blocks = [*thinking, {**messages.tool_use(0, "look", city="Paris"), "id": CALL_ID}]
        if stream:
            return Answer(messages.stream(blocks, "tool_use"))
        return Answer.json(messages.message(blocks, "tool_use"))
    fields, function = dict(thinking[0]), {"name": "look", "arguments": arguments}
    extra = {key: fields.pop(key) for key in ("extra_content",) if key in fields}
    called = {"id": CALL_ID, "type": "function", "function": function, **extra}
    if not stream:
        body = completion({"content": None, **fields, "tool_calls": [called]})
        body["choices"][0]["finish_reason"] = "tool_calls"
        return Answer.json(body)
    said = [{"role": "assistant", "content": ""}, *({key: fields[key]} for key in fields)]
    chunks = [*map(chunk, said), chunk({"tool_calls": [{**called, "index": 0}]})]
    return Answer([*chunks, chunk({}, finish="tool_calls"), DONE])


def continue_from(client: str, body: Json, reply: Call, *, stream: bool) -> Json:
    """Return the request that answers the call, with all that the client was shown."""
    if client == "messages":
        whole = check_messages(reply.data).message if stream else check_message(reply.json)
        content = whole["content"]
        result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "None."}
        answers = [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
        return {**body, "messages": [*body["messages"], *answers]}
    shown = client_items(client, reply, stream=stream)
    if client == "chat":
        return {**body, "messages": [*body["messages"], *shown, *results(shown)]}
    return {**body, "input": [{"role": "user", "content": "Hi"}, *shown, *results(shown)]}


@BOTH
@pytest.mark.parametrize(
    ("client", "case", "kept"),
    CASES,
    ids=(f"{one[0]} {' '.join(one[1])} {one[2]}" for one in CASES),
)
async def test_upstream_gets_its_state_back_that_the_client_never_saw(
    client: str,
    case: tuple[str, str, str],
    kept: str,
    *,
    stream: bool,
) -> None:
    api, profile, _ = case
    upstream = Upstream(play(api, ANSWERS[case], stream=stream))
    app = build_app(
        "sidecar",
        upstream,
        upstreams=[{"api": api, "base_url": f"{ORIGIN}/v1", "profile": profile}],
        reasoning={"expose": "none"},
        history=STORES[kept],
    )
    more: Json = {"include": ["reasoning.encrypted_content"]} if client == "responses" else {}
    more |= {"thinking": {"type": "enabled", "budget_tokens": 2000}} if client == "messages" else {}
    body = request_body(client, stream=stream, summary=None, **more)
    reply = await call(app, PATHS[client], body, KEY)
    assert reply.status == 200
    assert STATE.encode() not in reply.data
    await call(app, PATHS[client], continue_from(client, body, reply, stream=stream), KEY)
    assert json.dumps(upstream.requests[1].json).count(STATE) == 1


@BOTH
@pytest.mark.parametrize("kept", STORES)
async def test_a_summary_of_upstreams_is_shown_without_its_signature(
    kept: str, *, stream: bool
) -> None:
    upstream = Upstream(play("messages", [messages.thinking("I look.", STATE)], stream=stream))
    app = build_app(
        "sidecar",
        upstream,
        writer=Scripted(),
        upstreams=[{"api": "messages", "base_url": f"{ORIGIN}/v1", "profile": "vllm"}],
        reasoning={"expose": "summary", "kind": "summary"},
        history=STORES[kept],
    )
    body = request_body("messages", stream=stream)
    reply = await call(app, PATHS["messages"], body, KEY)
    assert (b"I look." in reply.data, STATE.encode() in reply.data) == (True, False)
    following = continue_from("messages", body, reply, stream=stream)
    await call(app, PATHS["messages"], following, KEY)
    (thought, _) = upstream.requests[1].json["messages"][1]["content"]
    assert thought == messages.thinking("I look.", STATE)
