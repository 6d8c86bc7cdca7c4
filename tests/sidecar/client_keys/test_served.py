"""Keys of Abridge's own, over real sockets: what official clients see, and what upstream does."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
from prometheus_client import CollectorRegistry
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from abridge.config.client_key import ClientKey, digest, new_key
from abridge.config.settings import Settings
from abridge.errors import SettingsError
from abridge.middleware import AbridgeMiddleware
from abridge.pipeline.allowed_models import MAX_ALTERNATIVES
from abridge.sidecar.app import Abridge, create_app
from abridge.sidecar.client_keys.file import add_key, revoke_key
from tests.apis.messages import scripts
from tests.support.servers import serve, until, unused_address
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream
from tests.support.websockets import opened, serving

MESSAGES = [{"role": "user", "content": "Hi"}]
CHAT = {"model": "m-1", "messages": MESSAGES}
RESPONSES = {"model": "m-1", "input": "Hi"}
COMPLETION = completion({"role": "assistant", "content": "Hello."})
ENDPOINTS = [
    ("/v1/chat/completions", CHAT),
    ("/v1/responses", RESPONSES),
    ("/v1/messages", {**CHAT, "max_tokens": 9}),
]
KEYS_LIST = {
    "object": "list",
    "data": [
        {"id": name, "object": "model", "created": 1, "owned_by": "us"} for name in ("m-1", "x-1")
    ],
}
SPENT = 81
"""Tokens that upstream reports for `COMPLETION`."""


@dataclass
class Served:
    url: str
    path: Path
    upstream: Upstream
    app: Abridge
    registry: CollectorRegistry
    client: httpx.AsyncClient

    def add(self, name: str, **limits: Any) -> str:
        """Add a key, which is good at once."""
        key = new_key()
        add_key(self.path, ClientKey(name=name, sha256=digest(key), **limits))
        self.look()
        return key

    def look(self) -> None:
        """Have the next request look at the file."""
        assert self.app._keys is not None
        self.app._keys._looked_at -= 10

    def openai(self, key: str, **options: Any) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, **options)

    def anthropic(self, key: str) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(base_url=self.url, api_key=key, max_retries=0)

    async def post(self, path: str, body: Any, key: str = "", **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return await self.client.post(path, json=body, headers=headers, **more)

    async def get(self, path: str, key: str = "", **headers: str) -> httpx.Response:
        sent = {**({"authorization": f"Bearer {key}"} if key else {}), **headers}
        return await self.client.get(path, headers=sent)

    def sample(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"abridge_{name}", labels)


@asynccontextmanager
async def sidecar(
    tmp_path: Path, *answers: Answer, entry: dict[str, Any] | None = None, **tables: Any
) -> AsyncIterator[Served]:
    """Serve the sidecar by its own server, with an empty file of keys."""
    path = tmp_path / "keys"
    path.touch(0o600)
    upstream = Upstream(*(answers or [Answer.json(COMPLETION)]))
    async with serve(upstream) as address:
        server = {"keys_file": str(path), **tables.pop("server", {})}
        settings = Settings.model_validate(
            {
                "upstreams": [{"base_url": f"{address}/v1", **(entry or {})}],
                "server": server,
                "summarizer": {"kind": "object"},
                **tables,
            }
        )
        registry = CollectorRegistry()
        scripted = Scripted() if settings.summarizer.kind == "object" else None
        app = create_app(settings, summarizer=scripted, registry=registry)
        try:
            async with (
                serving(app, settings, registry) as front,
                httpx.AsyncClient(base_url=front.url) as client,
            ):
                yield Served(front.url, path, upstream, app, registry, client)
        finally:
            await app.aclose()


class TestWithoutAKey:
    @pytest.mark.parametrize(("path", "body"), ENDPOINTS)
    async def test_nothing_reaches_upstream(
        self, tmp_path: Path, path: str, body: dict[str, Any]
    ) -> None:
        async with sidecar(tmp_path) as served:
            answer = await served.post(path, body)
            wrong = await served.post(path, body, new_key())
        assert (answer.status_code, wrong.status_code) == (401, 401)
        assert answer.headers["www-authenticate"] == 'Bearer realm="Abridge"'
        assert served.upstream.requests == []
        error = answer.json()["error"]
        if path == "/v1/messages":
            assert answer.json()["type"] == "error"
            assert error["type"] == "authentication_error"
        else:
            assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_api_key")
            assert error.keys() == {"message", "type", "param", "code"}
        assert "API key" in error["message"]

    async def test_health_and_metrics_are_open_and_no_other_path(self, tmp_path: Path) -> None:
        closed = "/v1/models", "/v1/responses/resp_1", "/v1/files", "/", "/abridge", "/abridge/x"
        opened = "/abridge/healthz", "/abridge/readyz", "/abridge/metrics"
        async with sidecar(tmp_path, server={"page": True}) as served:
            found = {path: (await served.get(path)).status_code for path in (*closed, *opened)}
        assert found == {**dict.fromkeys(closed, 401), **dict.fromkeys(opened, 200)}
        assert served.upstream.requests == []

    async def test_a_websocket_is_refused_before_it_opens(self, tmp_path: Path) -> None:
        async with sidecar(tmp_path) as served:
            with pytest.raises(InvalidStatus) as caught:
                async with opened(served.url):
                    pass
        assert caught.value.response.status_code == 401
        assert b"invalid_api_key" in caught.value.response.body
        assert served.sample("refusals_total", code="invalid_api_key") == 1

    async def test_no_other_path_has_a_websocket(self, tmp_path: Path) -> None:
        """Abridge's own server asks for a key first; others let the app say it."""
        async with sidecar(tmp_path, server={"page": True}) as served, serve(served.app) as other:
            for (address, status), path in product(
                ((served.url, 401), (other, 426)),
                ("/abridge", "/abridge/exchanges", "/v1/realtime"),
            ):
                with pytest.raises(InvalidStatus) as caught:
                    async with connect(f"{address.replace('http', 'ws')}{path}", proxy=None):
                        pass
                assert caught.value.response.status_code == status, path
        assert served.upstream.requests == []


class TestClients:
    async def test_a_key_is_answered_and_stays_here(self, tmp_path: Path) -> None:
        message = scripts.message([scripts.text("Hello.")])
        answers = Answer.json(COMPLETION), Answer.json(message)
        async with sidecar(tmp_path, *answers) as served:
            key = served.add("alice")
            async with served.openai(key) as client:
                said = await client.chat.completions.create(**CHAT)
            async with served.anthropic(key) as client:
                heard = await client.messages.create(**CHAT, max_tokens=9)
        assert said.choices[0].message.content == "Hello."
        assert heard.content[0].text == "Hello."  # type: ignore[union-attr]
        assert len(served.upstream.requests) == 2
        for request in served.upstream.requests:
            assert key.encode() not in b"".join(value for _, value in request.headers)
            assert request.header("authorization") is request.header("x-api-key") is None

    async def test_upstream_gets_its_own_key(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("UPSTREAM_KEY", "sk-upstream")
        entry = {"api_key_env": "UPSTREAM_KEY", "forward_headers": ["x-*"]}
        async with sidecar(tmp_path, entry=entry) as served:
            key = served.add("alice")
            answer = await served.get("/v1/models", **{"x-api-key": key})
        assert answer.status_code == 200
        (request,) = served.upstream.requests
        assert request.header("authorization") == "Bearer sk-upstream"
        assert request.header("x-api-key") is None

    async def test_a_revoked_key_is_an_authentication_error(self, tmp_path: Path) -> None:
        async with sidecar(tmp_path) as served:
            key = served.add("alice")
            revoke_key(served.path, "alice")
            served.look()
            async with served.openai(key) as client:
                with pytest.raises(openai.AuthenticationError, match="revoked"):
                    await client.responses.create(**RESPONSES)
            async with served.anthropic(key) as client:
                with pytest.raises(anthropic.AuthenticationError, match="revoked"):
                    await client.messages.create(**CHAT, max_tokens=9)

    async def test_a_model_that_is_not_allowed_is_a_permission_error(self, tmp_path: Path) -> None:
        async with sidecar(tmp_path) as served:
            key = served.add("alice", models=("x-*",))
            async with served.openai(key) as client:
                with pytest.raises(openai.PermissionDeniedError) as denied:
                    await client.chat.completions.create(**CHAT)
                with pytest.raises(openai.PermissionDeniedError):
                    await client.responses.create(**RESPONSES)
                with pytest.raises(openai.PermissionDeniedError):
                    await client.embeddings.create(model="m-1", input="Hi")
            async with served.anthropic(key) as client:
                with pytest.raises(anthropic.PermissionDeniedError) as refused:
                    await client.messages.create(**CHAT, max_tokens=9)
        assert (denied.value.code, denied.value.param) == ("model_not_allowed", "model")
        assert "The API key 'alice' does not allow the model 'm-1'" in denied.value.message
        assert refused.value.body["error"]["type"] == "permission_error"  # type: ignore[index]
        assert served.upstream.requests == []

    @pytest.mark.parametrize("kind", ["openai", "anthropic"])
    async def test_beyond_the_rate_they_come_again_when_they_were_told(
        self, tmp_path: Path, kind: str
    ) -> None:
        message = scripts.message([scripts.text("Hello.")])
        async with sidecar(
            tmp_path, Answer.json(COMPLETION if kind == "openai" else message)
        ) as served:
            key, clock = served.add("alice", rate=60), [0.0]
            await served.get("/v1/models", key)
            assert served.app._keys is not None
            accounts: Any = served.app._keys._accounts
            accounts._monotonic = lambda: clock[0]
            accounts._book._now = lambda: 1e9 + clock[0]
            for _ in range(59):
                await served.get("/v1/models", key)

            def refused() -> bool:
                return served.sample("refusals_total", code="rate_limit_exceeded") == 1

            async def ask(client: Any) -> None:
                if kind == "openai":
                    await client.chat.completions.create(**CHAT)
                else:
                    await client.messages.create(**CHAT, max_tokens=9)

            began = time.monotonic()
            client_of: Any = served.openai if kind == "openai" else served.anthropic
            async with client_of(key) as client:
                asking = asyncio.create_task(ask(client.with_options(max_retries=1)))
                await until(refused)
                clock[0] = 1.0
                await asking
                assert time.monotonic() - began >= 1.0
                with pytest.raises((openai.RateLimitError, anthropic.RateLimitError)) as caught:
                    await ask(client.with_options(max_retries=0))
        assert caught.value.response.headers["retry-after"] == "1"
        assert "allows 60 requests a minute" in caught.value.message

    async def test_beyond_the_budget_they_do_not_come_again(self, tmp_path: Path) -> None:
        async with sidecar(tmp_path) as served:
            key = served.add("alice", tokens_per_day=SPENT)
            async with served.openai(key) as client:
                first = await client.chat.completions.create(**CHAT)
                with pytest.raises(openai.RateLimitError) as caught:
                    await client.with_options(max_retries=5).chat.completions.create(**CHAT)
            async with served.anthropic(key) as claude:
                with pytest.raises(anthropic.RateLimitError, match="billing_error"):
                    await claude.with_options(max_retries=5).messages.create(**CHAT, max_tokens=9)
        assert first.usage is not None
        assert first.usage.total_tokens == SPENT
        assert caught.value.code == "insufficient_quota"
        assert 0 < int(caught.value.response.headers["retry-after"]) <= 86400
        assert len(served.upstream.requests) == 1
        assert served.sample("key_requests_total", key="alice", outcome="refused") == 2
        assert served.sample("key_tokens_total", key="alice") == SPENT


class TestModels:
    async def test_lists_have_those_of_the_key_alone(self, tmp_path: Path) -> None:
        async with sidecar(tmp_path, Answer.json(KEYS_LIST)) as served:
            all_models, some = served.add("alice"), served.add("bob", models=("x-*",))
            async with served.openai(all_models) as client:
                everything = await client.models.list()
            async with served.openai(some) as client:
                allowed = await client.models.list()
            async with served.anthropic(some) as claude:
                in_anthropics = await claude.models.list()
        assert [model.id for model in everything.data] == ["m-1", "x-1"]
        assert [model.id for model in allowed.data] == ["x-1"]
        assert [model.id for model in in_anthropics.data] == ["x-1"]
        assert (in_anthropics.first_id, in_anthropics.last_id) == ("x-1", "x-1")

    @pytest.mark.parametrize(
        ("listed", "status", "shown"),
        [
            ({**KEYS_LIST, "models": [{"name": "m-1"}]}, 200, ["x-1"]),  # llama.cpp's
            ({"models": [{"slug": "m-1"}]}, 502, []),
        ],
    )
    async def test_no_other_list_beside_it_passes(
        self, tmp_path: Path, listed: dict[str, Any], status: int, shown: list[str]
    ) -> None:
        async with sidecar(tmp_path, Answer.json(listed)) as served:
            answer = await served.get("/v1/models", served.add("alice", models=("x-*",)))
        assert answer.status_code == status
        assert "m-1" not in answer.text
        assert [model["id"] for model in answer.json().get("data", [])] == shown

    async def test_one_that_is_not_allowed_is_not_described(self, tmp_path: Path) -> None:
        async with sidecar(tmp_path, Answer.json(KEYS_LIST["data"][1])) as served:
            key = served.add("alice", models=("x-*",))
            async with served.openai(key) as client:
                assert (await client.models.retrieve("x-1")).id == "x-1"
                with pytest.raises(openai.PermissionDeniedError):
                    await client.models.retrieve("m-1")

    async def test_what_asks_no_model_need_not_name_one(self, tmp_path: Path) -> None:
        """Official clients say that they send JSON, also where they send nothing."""
        asked = [
            ("GET", "/v1/models"),
            ("GET", "/v1/files/file_1"),
            ("DELETE", "/v1/files/file_1"),
            ("DELETE", "/v1/responses/resp_1"),
            ("POST", "/v1/responses/resp_1/cancel"),
        ]
        async with sidecar(tmp_path, Answer.json(KEYS_LIST)) as served:
            key = served.add("alice", models=("x-*",))
            headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
            for method, path in asked:
                answer = await served.client.request(method, path, headers=headers)
                assert answer.status_code == 200, path
        assert [(one.method, one.path) for one in served.upstream.requests] == asked

    async def test_no_field_leads_to_another_model(self, tmp_path: Path) -> None:
        fields: list[dict[str, Any]] = [
            {"model": "m-1"},
            {"model": None},
            {"model": ["x-1"]},
            {"model": "x-1", "Model": "m-1"},
            {"model": "x-1", "models": ["x-1", "m-1"]},
            {"model": "x-1", "fallbacks": [{"model": "m-1"}]},
            {"model": "x-1", "fallbacks": "m-1"},
            {"model": "x-1", "models": ["x-1"] * (MAX_ALTERNATIVES + 1)},
        ]
        paths = "/v1/chat/completions", "/v1/embeddings"
        async with sidecar(tmp_path) as served:
            key = served.add("alice", models=("x-*",))
            for path, more in product(paths, fields):
                answer = await served.post(path, {"messages": MESSAGES, **more}, key)
                assert answer.status_code == 403, (path, more)
                assert answer.json()["error"]["code"] == "model_not_allowed"
            assert served.upstream.requests == []
            for path in paths:
                fine = await served.post(path, {"messages": MESSAGES, "model": "x-1"}, key)
                assert fine.status_code == 200

    async def test_nor_does_any_path(self, tmp_path: Path) -> None:
        allowed = "/v1/chat/completions", "/chat/completions", "/v1/models/x-1/embeddings"
        refused = (
            "/openai/deployments/m-1/chat/completions",
            "/engines/m-1/chat/completions",
            "/v1/x/..%2Fchat/completions",
            "/openai/deployments/m-1/embeddings",
            "/v1/models/m-1/embeddings",
            "/v1/models/x-1/%2E%2E/m-1",
            "/v1/models/x-1/..%2F..%2Fcompletions",
            "/v1/models/x-1%5C..%5C..%5Ccompletions",
            "/v1/completions%3F/responses/resp_1/cancel",
        )
        async with sidecar(tmp_path) as served:
            key = served.add("alice", models=("x-*",))
            body = {"model": "x-1", "messages": MESSAGES}
            found = {
                path: (await served.post(path, body, key)).status_code
                for path in (*allowed, *refused)
            }
        assert found == {**dict.fromkeys(allowed, 200), **dict.fromkeys(refused, 403)}
        assert len(served.upstream.requests) == len(allowed)

    async def test_what_cannot_be_read_is_refused(self, tmp_path: Path) -> None:
        async with sidecar(tmp_path, limits={"body": 1000, "bodies": 4000}) as served:
            key = served.add("alice", models=("x-*",))
            long = {"model": "x-1", "input": "x" * 2000}
            answers = [
                await served.post("/v1/audio/transcriptions", None, key, files={"file": b"x"}),
                await served.post("/v1/embeddings", long, key),
                await served.post("/v1/embeddings", ["x-1"], key),
            ]
        assert [answer.status_code for answer in answers] == [403, 413, 403]
        assert served.upstream.requests == []


class TestBudgets:
    @pytest.mark.parametrize(
        ("path", "body", "answer"),
        [
            (
                "/v1/chat/completions",
                {**CHAT, "stream_options": {"include_usage": True}},
                Answer(chat_stream("", "Hello.")),
            ),
            (
                "/v1/responses",
                RESPONSES,
                Answer(responses_stream([message_item(0, "Hello.")])),
            ),
            (
                "/v1/messages",
                {**CHAT, "max_tokens": 9},
                Answer(scripts.stream([scripts.text("Hello.")])),
            ),
            ("/v1/responses", RESPONSES, Answer.json(response([message_item(0, "Hello.")]))),
        ],
        ids=["chat", "responses", "messages", "whole"],
    )
    async def test_tokens_are_counted_without_a_summary_and_no_word_changes(
        self, tmp_path: Path, path: str, body: dict[str, Any], answer: Answer
    ) -> None:
        streams = answer.headers["content-type"] == "text/event-stream"
        async with sidecar(tmp_path, answer) as served:
            key = served.add("alice", tokens_per_day=10**6)
            sent = await served.post(path, {**body, "stream": streams}, key)
        assert (served.sample("key_tokens_total", key="alice") or 0) > 0
        came = b"".join(answer.steps)  # type: ignore[arg-type]
        assert sent.content == came if streams else sent.json() == json.loads(came)

    async def test_tokens_of_summaries_count(self, tmp_path: Path) -> None:
        answer = Answer.json(response([reasoning_item(0, THOUGHT), message_item(1, "Hello.")]))
        async with sidecar(tmp_path, answer) as served:
            one = served.add("alice", tokens_per_day=10**6)
            other = served.add("bob", tokens_per_day=10**6)
            await served.post("/v1/responses", {**RESPONSES, "reasoning": {"summary": "auto"}}, one)
            await served.post("/v1/responses", RESPONSES, other)
        with_summary, without = (
            served.sample("key_tokens_total", key=name) or 0 for name in ("alice", "bob")
        )
        assert with_summary > without > 0

    @pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
    async def test_what_upstream_reports_counts_though_the_summary_fails_the_answer(
        self, tmp_path: Path, *, stream: bool
    ) -> None:
        thinking = completion({"role": "assistant", "content": "Hi", "reasoning_content": THOUGHT})
        answer = Answer(chat_stream(THOUGHT, "Hello.")) if stream else Answer.json(thinking)
        lost = {"kind": "model", "model": "small", "base_url": f"{unused_address()}/v1"}
        tables = {"summarizer": lost, "summary": {"default": "auto", "on_failure": "fail"}}
        body = {**CHAT, "stream": stream, "user": "x" * 4000}  # by which it would be estimated
        async with sidecar(tmp_path, answer, **tables) as served:
            key = served.add("alice", tokens_per_day=10**6)
            await served.post("/v1/chat/completions", body, key)
        assert served.sample("key_requests_total", key="alice", outcome="failed") == 1
        assert served.sample("key_tokens_total", key="alice") == SPENT

    @pytest.mark.parametrize("api", ["same", "chat"])
    async def test_a_compaction_is_charged_once(self, tmp_path: Path, api: str) -> None:
        """Upstream's own endpoint, of which nothing is read, is not asked."""
        message = {"role": "assistant", "content": "They want the tests green."}
        used = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
        written = {**completion(message), "usage": used}
        if api == "same":
            output = [message_item(0, message["content"])]
            used = {"input_tokens": 900, "output_tokens": 60, "total_tokens": 960}
            written = {**response(output), "usage": used}
        async with sidecar(tmp_path, Answer.json(written), entry={"api": api}) as served:
            key = served.add("alice", tokens_per_day=10**6)
            sent = await served.post("/v1/responses/compact", RESPONSES, key)
        assert sent.json()["usage"]["total_tokens"] == 960
        assert served.sample("key_tokens_total", key="alice") == 960
        assert not any("compact" in request.path for request in served.upstream.requests)

    @pytest.mark.parametrize(
        ("summary", "reports"),
        [
            (Answer(chat_stream("", "word " * 400, usage=None)), False),
            (Answer([*chat_stream("", "word " * 400)[:4], ConnectionError()]), False),
            (Answer.json(completion({"role": "assistant", "content": "x" * 200_001})), True),
        ],
        ids=["without usage", "broken off", "too long"],
    )
    async def test_a_compaction_is_charged_like_any_answer(
        self, tmp_path: Path, summary: Answer, *, reports: bool
    ) -> None:
        """Also where none comes of it, and beside the answer that comes all the same."""
        question, at = "x" * 4000, {"type": "compaction", "compact_threshold": 1}
        said = [message_item(number, "y" * 20_000) for number in range(2)]
        items = [{"role": "user", "content": question}, *said]
        longer = {**RESPONSES, "input": items, "context_management": [at]}
        upstream = summary, summary, Answer.json(COMPLETION)
        async with sidecar(tmp_path, *upstream, entry={"api": "chat"}) as served:
            one, other = (served.add(name, tokens_per_day=10**6) for name in ("alice", "bob"))
            await served.post("/v1/responses/compact", {**RESPONSES, "input": question}, one)
            await served.post("/v1/responses", longer, other)
        alone, beside = (
            served.sample("key_tokens_total", key=name) or 0 for name in ("alice", "bob")
        )
        assert len(served.upstream.requests) == 3
        if reports:
            assert (alone, beside) == (SPENT, 2 * SPENT)
        else:
            assert 1000 < alone < 4000
            assert 11_000 + SPENT < beside < 14_000

    async def test_a_chat_stream_is_asked_for_usage_that_the_client_does_not_see(
        self, tmp_path: Path
    ) -> None:
        steps = chat_stream(THOUGHT, "Hello.")
        without_usage = [step for step in steps if b'"usage": {' not in step]
        assert len(without_usage) == len(steps) - 1
        asked = {**CHAT, "stream": True, "stream_options": {"include_usage": True}}
        async with sidecar(tmp_path, Answer(steps)) as served:
            key = served.add("alice", tokens_per_day=10**6)
            unasked = await served.post("/v1/chat/completions", {**CHAT, "stream": True}, key)
            shown = await served.post("/v1/chat/completions", asked, key)
        assert unasked.content == b"".join(without_usage)
        assert shown.content == b"".join(steps)
        for request in served.upstream.requests:
            assert request.json["stream_options"] == {"include_usage": True}
        assert served.sample("key_tokens_total", key="alice") == 2 * SPENT

    async def test_a_summary_by_the_requests_own_model_counts_once(self, tmp_path: Path) -> None:
        """Its call is Abridge's own: it is not admitted, and not held to the key's models."""
        thinking = completion({"role": "assistant", "content": "Hi", "reasoning_content": THOUGHT})
        answers = Answer.json(thinking), Answer(chat_stream("", "**Adding up**\n\nI add."))
        entry = {"rename": {"alias": "m-1"}}
        own = {"summarizer": {"kind": "upstream"}}
        async with sidecar(tmp_path, *answers, entry=entry, **own) as served:
            key = served.add("alice", models=("alias",), rate=1, tokens_per_day=10**6)
            body = {**CHAT, "model": "alias", "reasoning": {"summary": "auto"}}
            answer = await served.post("/v1/chat/completions", body, key)
        assert "I add." in answer.text
        assert [request.json["model"] for request in served.upstream.requests] == ["m-1", "m-1"]
        assert served.sample("key_tokens_total", key="alice") == 2 * SPENT
        assert served.sample("key_requests_total", key="alice", outcome="ok") == 1

    async def test_what_nobody_reports_is_estimated(self, tmp_path: Path) -> None:
        answer = Answer(chat_stream(THOUGHT, "Hello.", usage=None))
        async with sidecar(tmp_path, answer) as served:
            key = served.add("alice", tokens_per_day=10**6)
            await served.post("/v1/chat/completions", {**CHAT, "stream": True}, key)
        used = served.sample("key_tokens_total", key="alice") or 0
        assert used >= len(THOUGHT) // 4

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize("begun", [False, True])
    async def test_who_leaves_before_anything_came_has_used_the_request(
        self, tmp_path: Path, *, stream: bool, begun: bool
    ) -> None:
        silent = Answer([60.0], headers={"content-type": "text/event-stream"})
        answer = silent if begun else Answer(before=[60.0])
        question = "x" * 4000
        async with sidecar(tmp_path, answer) as served:
            key = served.add("alice", tokens_per_day=1000)
            body = {**RESPONSES, "input": question, "stream": stream}
            leaving = asyncio.create_task(served.post("/v1/responses", body, key))
            await until(lambda: bool(served.upstream.requests))
            leaving.cancel()
            await until(lambda: bool(served.sample("key_tokens_total", key="alice")))
            refused = await served.post("/v1/responses", RESPONSES, key)
        assert (served.sample("key_tokens_total", key="alice") or 0) >= len(question) // 4
        assert refused.status_code == 429

    @pytest.mark.parametrize(
        ("path", "fields"),
        [
            ("/v1/responses/compact", {}),
            (
                "/v1/responses",
                {"context_management": [{"type": "compaction", "compact_threshold": 1}]},
            ),
        ],
        ids=["endpoint", "threshold"],
    )
    async def test_who_leaves_during_a_compaction_has_used_the_request_once(
        self, tmp_path: Path, path: str, fields: dict[str, Any]
    ) -> None:
        question = "x" * 20_000
        said = [message_item(number, question) for number in range(2)]
        items = [{"role": "user", "content": "Hi"}, *said]
        async with sidecar(tmp_path, Answer(before=[60.0]), entry={"api": "chat"}) as served:
            key = served.add("alice", tokens_per_day=1000)
            body = {**RESPONSES, "input": items, **fields}
            leaving = asyncio.create_task(served.post(path, body, key))
            await until(lambda: bool(served.upstream.requests))
            leaving.cancel()
            await until(lambda: bool(served.sample("key_tokens_total", key="alice")))
        used = served.sample("key_tokens_total", key="alice") or 0
        assert 2 * len(question) // 4 <= used < 3 * len(question) // 4
        assert served.sample("key_requests_total", key="alice", outcome="left") == 1

    async def test_a_large_piece_is_worth_its_text(self, tmp_path: Path) -> None:
        answer = Answer(chat_stream("", "word " * 1000, usage=None))
        async with sidecar(tmp_path, answer) as served:
            key = served.add("alice", tokens_per_day=10**6)
            await served.post("/v1/chat/completions", {**CHAT, "stream": True}, key)
        assert (served.sample("key_tokens_total", key="alice") or 0) >= 1250

    async def test_a_background_response_is_charged_when_it_ends(self, tmp_path: Path) -> None:
        gate = asyncio.Event()
        stream = responses_stream([message_item(0, "Hello.")])
        async with sidecar(tmp_path, Answer([*stream[:3], gate, *stream[3:]])) as served:
            key = served.add("alice", tokens_per_day=10, rate=2)
            begun = await served.post("/v1/responses", {**RESPONSES, "background": True}, key)
            assert begun.json()["status"] == "queued"
            assert not served.sample("key_tokens_total", key="alice")
            gate.set()
            await until(lambda: bool(served.sample("key_tokens_total", key="alice")))
            refused = await served.post("/v1/responses", RESPONSES, key)
        assert served.sample("key_requests_total", key="alice", outcome="ok") == 1
        assert refused.status_code == 429
        assert refused.json()["error"]["code"] == "insufficient_quota"


class TestWebSockets:
    async def test_each_request_is_admitted_by_itself(self, tmp_path: Path) -> None:
        answer = Answer(responses_stream([message_item(0, "Hello.")]))
        async with sidecar(tmp_path, answer) as served:
            key = served.add("alice", rate=2)
            headers = {"authorization": f"Bearer {key}"}
            async with opened(served.url, additional_headers=headers) as client:
                await client.ask()
                await client.ask()
                await client.create()
                limited = await client.error()
                revoke_key(served.path, "alice")
                served.look()
                await client.create()
                revoked = await client.error()
        assert (limited["status"], limited["code"]) == (429, "rate_limit_exceeded")
        assert (revoked["status"], revoked["code"]) == (401, "invalid_api_key")
        assert len(served.upstream.requests) == 2


class TestNames:
    async def test_what_is_stored_belongs_to_the_name(self, tmp_path: Path) -> None:
        async with sidecar(tmp_path, entry={"api": "chat"}) as served:
            alice, bob = served.add("alice"), served.add("bob")
            stored = await served.post("/v1/responses", {**RESPONSES, "store": True}, alice)
            path = f"/v1/responses/{stored.json()['id']}"
            revoke_key(served.path, "alice")
            again = served.add("alice")
            answers = [await served.get(path, key) for key in (bob, alice, again)]
        assert [answer.status_code for answer in answers] == [404, 401, 200]

    async def test_the_log_line_and_the_journal_have_the_name(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "abridge.requests")
        async with sidecar(tmp_path, server={"page": True}) as served:
            alice, bob = served.add("alice"), served.add("bob", rate=1)
            for key in (alice, bob, bob):
                await served.post("/v1/chat/completions", CHAT, key)
            listed = [
                (await served.get("/abridge/exchanges", key)).json()["exchanges"]
                for key in (alice, bob)
            ]
        lines = [entry.getMessage() for entry in caplog.records if " key=" in entry.getMessage()]
        assert [line.split(" key=")[1].split()[0] for line in lines] == ["alice", "bob", "bob"]
        assert "cause=rate_limit_exceeded" in lines[2]
        assert [len(exchanges) for exchanges in listed] == [1, 1]

    async def test_a_browser_asks_for_the_key_of_the_page(self, tmp_path: Path) -> None:
        async with sidecar(tmp_path, server={"page": True}) as served:
            key = served.add("alice")
            refused = await served.get("/abridge")
            page, model = [
                await served.client.get(path, auth=("me", key))
                for path in ("/abridge", "/v1/models")
            ]
        assert refused.headers["www-authenticate"] == 'Basic realm="Abridge"'
        assert page.status_code == 200
        assert model.status_code == 401


def test_the_mounted_middleware_does_not_pretend_to_check_keys(tmp_path: Path) -> None:
    settings = Settings.model_validate({"server": {"keys_file": str(tmp_path / "keys")}})
    with pytest.raises(SettingsError, match=r"server\.keys_file: works only in"):
        AbridgeMiddleware(Upstream(), settings, registry=CollectorRegistry())
