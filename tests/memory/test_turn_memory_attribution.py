"""The attribution of a call never goes upstream: it is for the client alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from tests.end_to_end.translation.tool_loops import client_items, results
from tests.end_to_end.translation.turn import CLIENTS, PATHS, UPSTREAMS, request_body
from tests.support.asgi import call
from tests.support.attribution import MARKS, Step, encode_turn, read_attributions
from tests.support.deployments import build_app
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

Json = dict[str, Any]

ON: Json = {"attribution": {"enabled": True}}
TURN: list[Step] = [("think", "I look."), ("call", ""), ("call", "")]
PARTS = [{"type": "reasoning_text", "text": "I look."}]
USER = {"role": "user", "content": "Hi"}
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
KINDS = {True: "text/event-stream", False: "application/json"}
STORES = [{}, {"store": "none"}, {"restore": "never"}, {"restore": "always"}]


def made(upstream: Upstream, api: str, registry: CollectorRegistry, **tables: Any) -> ASGIApp:
    entry = [{"api": api}]
    return build_app(
        "mounted", upstream, writer=Scripted(), registry=registry, upstreams=entry, **tables
    )


def answer(api: str, *, stream: bool) -> Answer:
    return Answer([encode_turn(api, TURN, stream=stream)], headers={"content-type": KINDS[stream]})


def history(client: str, said: list[Json]) -> Json:
    return {"messages" if client == "chat" else "input": [USER, *said, *results(said)]}


def missed(registry: CollectorRegistry, client: str) -> float | None:
    labels = {"api": client, "upstream": "default"}
    return registry.get_sample_value("abridge_reasoning_missed_total", labels)


@BOTH
@pytest.mark.parametrize("stored", STORES, ids=str)
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
async def test_attribution_is_removed_from_the_next_request(
    client: str, upstream: str, stored: Json, *, stream: bool
) -> None:
    registry = CollectorRegistry()
    played = Upstream(answer(upstream, stream=stream))
    how = {"history": stored, "reasoning": {"expose": "both"}}
    app = made(played, upstream, registry, **ON, **how)
    asked = request_body(client, stream=stream, summary=None)
    came = await call(app, PATHS[client], asked)
    assert read_attributions(client, came.data, stream=stream) == [PARTS, _ref(client, upstream)]
    said = client_items(client, came, stream=stream)
    assert sum(json.dumps(said).count(f'"{mark}": ') for mark in MARKS) >= 2
    await call(app, PATHS[client], {**asked, **history(client, said)})
    sent = played.requests[1].json
    calls = json.dumps(sent).count('"name": "look"')
    assert calls == 2
    assert not any(mark in one for one in _calls(sent) for mark in MARKS)
    assert registry.get_sample_value("abridge_marks_removed_total", {"api": client}) == 2
    assert missed(registry, client) == 0


def _ref(client: str, upstream: str) -> str:
    ids = {"messages": "toolu_1", "responses": "call_1", "chat": "call_1"}
    return ids[upstream]


def _calls(sent: Any) -> list[Json]:
    """Whatever calls, of any API."""
    if isinstance(sent, list):
        return [found for one in sent for found in _calls(one)]
    if not isinstance(sent, dict):
        return []
    own = [sent] if sent.keys() & {"function", "arguments", "input", "action"} else []
    return own + [found for value in sent.values() for found in _calls(value)]


# Where nothing is attributed any more


def tool_call(**more: Any) -> Json:
    function = {"name": "look", "arguments": '{"reasoning": ["a"], "reasoning_ref": 1}'}
    return {"id": "call_0", "type": "function", "function": function, **more}


def message(*calls: Json, **more: Any) -> Json:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **more}


async def sent(path: str, body: bytes, **tables: Any) -> bytes:
    """What upstream gets of a request."""
    played = Upstream(Answer.json({}))
    app = build_app("mounted", played, registry=CollectorRegistry(), **tables)
    await call(app, path, body)
    return played.requests[0].body


@pytest.mark.parametrize("separators", [(",", ":"), (", ", " : "), (",", ":\n\t")])
@pytest.mark.parametrize("store", ["memory", "none"])
@pytest.mark.parametrize("mark", [{"reasoning": PARTS}, {"reasoning_ref": "call_9"}])
async def test_attribution_is_noticed_however_the_body_is_written(
    mark: Json, store: str, separators: tuple[str, str]
) -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    chat = {"model": "m", "messages": [USER, message(tool_call(**mark)), USER]}
    items = {"model": "m", "input": [USER, {**search, **mark}, USER]}
    for path, body, clean in (
        ("/v1/chat/completions", chat, {**chat, "messages": [USER, message(tool_call()), USER]}),
        ("/v1/responses", items, {**items, "input": [USER, search, USER]}),
    ):
        data = json.dumps(body, separators=separators).encode()
        assert json.loads(await sent(path, data, history={"store": store})) == clean


@pytest.mark.parametrize("separators", [(",", ":"), (", ", " : ")])
async def test_citations_of_abridges_do_not_reach_anthropic(separators: tuple[str, str]) -> None:
    cited = {"type": "web_search_result_location", "url": "u", "encrypted_index": ""}
    text = {"type": "text", "text": "So."}
    said = [{"role": "assistant", "content": [{**text, "citations": [cited]}]}, USER]
    body = {"model": "m", "max_tokens": 9, "messages": [USER, *said]}
    data = json.dumps(body, separators=separators).encode()
    (block,) = json.loads(await sent("/v1/messages", data))["messages"][1]["content"]
    assert block == {**text, "citations": None}


SCHEMA = {"type": "object", "properties": {"reasoning": {"type": "array"}}, "required": ["a"]}
UNMARKED: list[Json] = [
    {"messages": [USER, message(tool_call()), USER], "reasoning": {"effort": "low"}},
    {"messages": [USER, message(tool_call(reasoning="because"), reasoning="I look."), USER]},
    {"messages": [{"role": "user", "content": '{"reasoning": ["a"]}'}]},
    {"messages": [USER], "tools": [{"type": "function", "function": {"parameters": SCHEMA}}]},
    {"input": [{"type": "reasoning", "id": "rs_0", "summary": []}, USER], "reasoning": None},
    {"messages": [USER], "x": {"reasoning": []}},
    {"messages": [USER, {"role": "user", "content": [{"reasoning": ["a"]}]}]},
]


@pytest.mark.parametrize("body", UNMARKED)
async def test_a_body_without_attribution_passes_unchanged(body: Json) -> None:
    path = "/v1/chat/completions" if "messages" in body else "/v1/responses"
    data = json.dumps({"model": "m", **body}, indent=1).encode()
    assert await sent(path, data) == data


async def test_attribution_does_not_make_reasoning_missed() -> None:
    """A client that saw the raw reasoning may drop it, and keep its calls as they came."""
    registry = CollectorRegistry()
    played = Upstream(answer("chat", stream=False))
    app = made(played, "same", registry, **ON, reasoning={"expose": "both"})
    asked = request_body("chat", stream=False)
    came = await call(app, PATHS["chat"], asked)
    (said,) = client_items("chat", came, stream=False)
    assert said["reasoning_content"]
    kept = {key: said[key] for key in ("role", "content", "tool_calls")}
    await call(app, PATHS["chat"], {**asked, **history("chat", [kept])})
    returned = played.requests[1].json["messages"][1]
    assert returned == {**kept, "tool_calls": [_clean(one) for one in kept["tool_calls"]]}
    assert missed(registry, "chat") == 0


def _clean(made: Json) -> Json:
    return {key: made[key] for key in made if key not in MARKS}
