"""Test which requests leave which entries, with a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.routing import Mount

from abridge.config.client_key import ClientKey, digest, new_key
from abridge.config.settings import Settings
from abridge.middleware import AbridgeMiddleware
from abridge.observability.ledger.redis_stream import STREAM
from abridge.sidecar.app import create_app
from abridge.sidecar.client_keys.file import add_key
from tests.apis.messages import scripts
from tests.support.asgi import begin, call
from tests.support.redis_server import Server
from tests.support.servers import HANG, serve, until, unused_address
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    completion,
    message_item,
    response,
    responses_stream,
)
from tests.support.summarizers import SPENT, Scripted
from tests.support.upstream import Answer, Upstream
from tests.support.websockets import opened, serving

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
USER = {"role": "user", "content": "Hi, CANARY-1"}
ASKED = {"model": "m", "messages": [USER]}
ANNA = {"authorization": "Bearer sk-anna-1234567890"}
COMPLETION = completion({"role": "assistant", "content": "Hello, CANARY-2.", "reasoning": THOUGHT})

HELLO = message_item(0, "Hello.")

Entries = list[dict[str, str]]


@dataclass
class Kept:
    app: AbridgeMiddleware
    upstream: Upstream
    server: Server

    async def entries(self) -> Entries:
        """Return all entries, once those that wait are written."""
        await self.app.aclose()
        with self.server.client(decode_responses=True) as client:
            return [dict(entry) for _, entry in client.xrange(STREAM)]


@asynccontextmanager
async def keeping(server: Server, *answers: Answer, **tables: Any) -> AsyncIterator[Kept]:
    with server.client() as client:
        client.delete(STREAM)
    upstream = Upstream(*(answers or [Answer.json(COMPLETION)]))
    settings = Settings(ledger={"url": server.url}, **tables)
    app = AbridgeMiddleware(upstream, settings, summarizer=Scripted(), registry=CollectorRegistry())
    yield Kept(app, upstream, server)
    await app.aclose()


@pytest.mark.parametrize(
    ("path", "body", "answer"),
    [
        (CHAT, ASKED, COMPLETION),
        (RESPONSES, {"model": "m", "input": "Hi"}, response([HELLO])),
        (MESSAGES, {**ASKED, "max_tokens": 9}, scripts.message([scripts.text("Hello.")])),
    ],
)
async def test_a_request_to_any_api_leaves_its_tokens_and_its_answer_as_it_was(
    redis_server: Server, path: str, body: Any, answer: Any
) -> None:
    async with keeping(redis_server, Answer.json(answer)) as kept:
        got = await call(kept.app, path, body, {"x-request-id": "mine"})
        (entry,) = await kept.entries()
    assert got.json == answer
    assert entry["outcome"] == "ok"
    assert entry["request"] == "mine"
    assert (entry["model"], entry["response_model"]) == ("m", answer["model"])
    assert entry["input_tokens"] == ("23" if path == MESSAGES else "11")  # caches included
    assert (entry["output_tokens"], entry["reasoning_tokens"]) == ("70", "50")
    assert entry["summarizer_input_tokens"] == entry["price"] == entry["key"] == ""


async def test_a_summary_is_apart_and_priced_by_its_own_model(redis_server: Server) -> None:
    prices = {
        "currency": "EUR",
        "models": [
            {"glob": "thinker-1", "input": 1, "output": 10},
            {"glob": "scripted", "input": 1000, "output": 1000},
        ],
    }
    asked = {**ASKED, "reasoning": {"summary": "detailed"}}
    async with keeping(redis_server, prices=prices) as kept:
        await call(kept.app, CHAT, asked)
        (entry,) = await kept.entries()
    assert SPENT.tokens is not None
    parts = int(entry["summarizer_input_tokens"]) // (SPENT.tokens.input or 0)
    spent = parts * ((SPENT.tokens.input or 0) + (SPENT.tokens.output or 0))
    assert parts > 0
    assert float(entry["price"]) == pytest.approx((11 * 1 + 70 * 10 + spent * 1000) / 1e6)
    assert entry["currency"] == "EUR"
    assert entry["input_tokens"] == "11"


async def test_a_chat_stream_is_asked_for_usage_that_the_client_does_not_see(
    redis_server: Server,
) -> None:
    steps = chat_stream(THOUGHT, "Hello.")
    without_usage = [step for step in steps if b'"usage": {' not in step]
    async with keeping(redis_server, Answer(steps)) as kept:
        got = await call(kept.app, CHAT, {**ASKED, "stream": True})
        (entry,) = await kept.entries()
    assert got.data == b"".join(without_usage)
    assert kept.upstream.requests[0].json["stream_options"] == {"include_usage": True}
    assert (entry["input_tokens"], entry["output_tokens"]) == ("11", "70")


async def test_no_word_of_content_and_no_credential_is_in_it(redis_server: Server) -> None:
    async with keeping(redis_server) as kept:
        await call(kept.app, CHAT, ASKED, ANNA)
        (entry,) = await kept.entries()
    text = " ".join(entry.values())
    assert "CANARY" not in text
    assert "sk-anna" not in text
    assert THOUGHT[:20] not in text


async def test_a_background_response_is_one_entry(redis_server: Server) -> None:
    stream = Answer(responses_stream([HELLO]))
    asked = {"model": "m", "input": "Hi", "background": True}
    async with keeping(redis_server, stream) as kept:
        begun = await call(kept.app, RESPONSES, asked, {**ANNA, "x-request-id": "mine"})
        assert begun.json["status"] == "queued"
        await kept.app.finish_background()
        (entry,) = await kept.entries()
    assert (entry["request"], entry["outcome"]) == ("mine", "ok")
    assert (entry["input_tokens"], entry["output_tokens"]) == ("11", "70")


async def test_requests_with_one_id_are_entries_of_their_own(redis_server: Server) -> None:
    async with keeping(redis_server) as kept:
        for _ in range(3):
            await call(kept.app, CHAT, ASKED, {"x-request-id": "mine"})
        found = await kept.entries()
    assert [entry["request"] for entry in found] == ["mine"] * 3


async def test_what_fails_says_so(redis_server: Server) -> None:
    cut = Answer([*chat_stream(THOUGHT, "Hello.")[:4]])
    error = Answer.json({"error": {"message": "no"}}, 500)
    async with keeping(redis_server, error, cut) as kept:
        await call(kept.app, CHAT, ASKED)
        await call(kept.app, CHAT, {**ASKED, "stream": True})
        found = await kept.entries()
    assert [entry["outcome"] for entry in found] == ["error", "failed"]


async def test_a_client_that_leaves_has_an_entry(redis_server: Server) -> None:
    waiting = Answer([*chat_stream(THOUGHT, "Hello.")[:4], asyncio.Event()])
    async with keeping(redis_server, waiting) as kept:
        asking = begin(kept.app, CHAT, {**ASKED, "stream": True})
        await asking.until(b"reasoning_content")
        await asking.leave()
        (entry,) = await kept.entries()
    assert (entry["outcome"], entry["input_tokens"]) == ("left", "")


async def test_what_asks_no_model_or_is_refused_leaves_none(redis_server: Server) -> None:
    async with keeping(redis_server) as kept:
        await call(kept.app, "/v1/models", b"", method="GET")
        await call(kept.app, "/v1/embeddings", {"model": "m", "input": "Hi"})
        await call(kept.app, CHAT, {**ASKED, "reasoning": {"summary": "shortest"}})
        assert await kept.entries() == []


async def test_a_body_that_is_no_json_passes_and_has_an_entry(redis_server: Server) -> None:
    async with keeping(redis_server) as kept:
        await call(kept.app, CHAT, b"<xml/>")
        (entry,) = await kept.entries()
    assert kept.upstream.requests[0].body == b"<xml/>"
    assert entry["outcome"] == "untouched"


async def test_an_entry_names_key_and_team(redis_server: Server, tmp_path: Path) -> None:
    key, path = new_key(), tmp_path / "keys"
    add_key(path, ClientKey(name="alice", sha256=digest(key), team="research"))
    with redis_server.client() as client:
        client.delete(STREAM)
    async with serve(Upstream(Answer.json(COMPLETION))) as url:
        settings = Settings(
            upstreams=[{"base_url": f"{url}/v1", "name": "local"}],
            server={"keys_file": str(path)},
            ledger={"url": redis_server.url},
        )
        app = create_app(settings, registry=CollectorRegistry())
        await call(app, CHAT, ASKED, {"authorization": f"Bearer {key}"})
        await call(app, CHAT, ASKED)  # without a key
        await app.aclose()
    with redis_server.client(decode_responses=True) as client:
        ((_, entry),) = client.xrange(STREAM)
    assert (entry["key"], entry["team"], entry["upstream"]) == ("alice", "research", "local")


async def test_each_request_over_a_websocket_has_an_entry(redis_server: Server) -> None:
    with redis_server.client() as client:
        client.delete(STREAM)
    registry, upstream = CollectorRegistry(), Upstream(Answer(responses_stream([HELLO])))
    async with serve(upstream) as url:
        settings = Settings(upstreams=[{"base_url": f"{url}/v1"}], ledger={"url": redis_server.url})
        app = create_app(settings, registry=registry)
        async with serving(app, settings, registry) as front, opened(front.url) as socket:
            await socket.ask()
            await socket.ask()
        await app.aclose()
    with redis_server.client(decode_responses=True) as client:
        found = [entry for _, entry in client.xrange(STREAM)]
    assert [(entry["outcome"], entry["output_tokens"]) for entry in found] == [("ok", "70")] * 2


async def test_a_mounted_ledger_is_written_as_the_lifespan_ends(
    redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("abridge.observability.ledger.ledger.WRITE_SECONDS", HANG)
    async with keeping(redis_server) as kept:
        kept.app.app = Starlette(routes=[Mount("/", kept.upstream)])
        async with serve(kept.app, lifespan="on") as url, httpx.AsyncClient() as client:
            assert (await client.post(f"{url}{CHAT}", json=ASKED)).status_code == 200
        with redis_server.client() as inspector:
            assert inspector.xlen(STREAM) == 1


async def test_requests_go_on_without_the_server() -> None:
    settings = Settings(ledger={"url": unused_address().replace("http", "redis"), "waiting": 2})
    registry = CollectorRegistry()
    app = AbridgeMiddleware(Upstream(Answer.json(COMPLETION)), settings, registry=registry)
    for _ in range(5):
        assert (await call(app, CHAT, ASKED)).json == COMPLETION
    assert registry.get_sample_value("abridge_ledger_waiting") == 2
    await until(lambda: bool(registry.get_sample_value("abridge_ledger_failures_total")))
    assert (await call(app, CHAT, ASKED)).json == COMPLETION
    assert registry.get_sample_value("abridge_ledger_lost_total") == 4
    await app.aclose()
    assert registry.get_sample_value("abridge_ledger_lost_total") == 6
