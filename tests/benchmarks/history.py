"""The cost of restoring reasoning for a client that returned summaries."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import Iterator
from time import process_time
from typing import Any

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.app import create_app
from abridge.config.settings import Settings
from tests.benchmarks.options import Options
from tests.benchmarks.results import Finding, Row, middle
from tests.benchmarks.turns import PATHS
from tests.support.streams import (
    call_item,
    completion,
    message_item,
    reasoning_item,
    response,
    thinking,
)

APIS = {"chat": "Chat Completions", "responses": "Responses"}
SIZES = {"100KB": 100_000, "1MB": 1_000_000}
WAYS = {"restored": "restoring", "carried": "opening what the client carries"}
"""Restored from the store, for a client that returns summaries; opened with keys only, for a client
that returns blobs. Each answer is read and has no reasoning."""

PLAIN = {"engaged": "nothing is remembered", "remembering": "nothing to put back"}
"""The same request without a store, and with one, which would remember the answer by its whole
history."""

KEYS = "BENCHMARK_SEAL_KEYS"

INCLUDE = ["reasoning.encrypted_content"]
KEY = {"authorization": "Bearer sk-benchmark-1234567890"}
THOUGHT = thinking(1000)
OUTPUT = thinking(1500)


class Upstream:
    """A model that reasons and calls a tool, each time under a new id, until all turns are done."""

    def __init__(self, api: str) -> None:
        self._api = api
        self._said = 0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if b'"call_' in request.content:
            return httpx.Response(200, json=self._done())
        self._said += 1
        identity = f"call_{self._said:06d}9f149c74c42f265b"
        body = self._chat(identity) if self._api == "chat" else self._responses(identity)
        return httpx.Response(200, json=body)

    def _done(self) -> Any:
        if self._api == "chat":
            return completion({"role": "assistant", "content": "Done."})
        return response([message_item(0, "Done.")])

    def _chat(self, identity: str) -> Any:
        function = {"name": "look", "arguments": '{"where": "here"}'}
        calls = [{"id": identity, "type": "function", "function": function}]
        message = {"role": "assistant", "content": None, "reasoning": THOUGHT, "tool_calls": calls}
        return completion(message)

    def _responses(self, identity: str) -> Any:
        call = {**call_item(1, "look", '{"where": "here"}'), "call_id": identity}
        return response([reasoning_item(0, THOUGHT), call])


class Conversation:
    """A client's conversation, returned without the reasoning; each turn is a tool call and its
    result."""

    def __init__(self, api: str, way: str) -> None:
        self._api = api
        self._app = _app(api, way)
        self._said: list[Any] = [{"role": "user", "content": "Look everywhere."}]
        self._size = 0

    async def grow(self, size: int) -> None:
        """Add turns until it has this size."""
        async with self._client(self._app) as client:
            while self._size < size:
                answer = await self._ask(client, self._said[:1])
                turn = _chat(answer) if self._api == "chat" else _responses(answer)
                self._said += turn
                self._size += len(json.dumps(turn))

    async def time(self, times: int, way: str | None = None) -> list[float]:
        """Return the CPU seconds of a request with the whole conversation, for one way."""
        taken = []
        async with self._client(_app(self._api, way) if way else self._app) as client:
            for _ in range(times):
                began = process_time()
                await self._ask(client, self._said)
                taken.append(process_time() - began)
        return taken

    def _client(self, app: ASGIApp) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), headers=KEY)

    async def _ask(self, client: httpx.AsyncClient, said: list[Any]) -> Any:
        field = "messages" if self._api == "chat" else "input"
        response = await client.post(
            f"http://abridge{PATHS[self._api]}",
            content=json.dumps({"model": "m", field: said, "include": INCLUDE}),
        )
        return response.raise_for_status().json()


def _app(api: str, way: str) -> ASGIApp:
    os.environ[KEYS] = f"benchmark:{b64encode(bytes(32)).decode()}"
    history: dict[str, str] = {"store": "none"}
    if way == "carried":
        history["seal_keys_env"] = KEYS
    elif way in ("restored", "remembering"):
        history = {"bytes": "512MiB"}
    settings = Settings.model_validate(
        {
            "upstreams": [{"base_url": "http://upstream/v1"}],
            "summary": {"default": "concise"},
            "history": history,
        }
    )
    upstream = httpx.MockTransport(Upstream(api))
    return create_app(settings, transport=upstream, registry=CollectorRegistry())


def _chat(answer: Any) -> list[Any]:
    message = answer["choices"][0]["message"]
    [call] = message["tool_calls"]
    return [message, {"role": "tool", "tool_call_id": call["id"], "content": OUTPUT}]


def _responses(answer: Any) -> list[Any]:
    thought, call = answer["output"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": OUTPUT}
    return [{**thought, "content": []}, call, output]


def run(options: Options) -> Iterator[Row]:
    for api in APIS:
        talks = {way: Conversation(api, way) for way in WAYS}
        for size, characters in SIZES.items():
            for talk in talks.values():
                asyncio.run(talk.grow(characters))
            for number in range(options.rounds(9, 3)):
                plain = {way: asyncio.run(talks["restored"].time(8, way)) for way in PLAIN}
                taken = {way: asyncio.run(talk.time(8)) for way, talk in talks.items()}
                for way, seconds in {**plain, **taken}.items():
                    at: Row = {"api": api, "size": size, "way": way, "round": number}
                    yield {**at, "cpu_ms": 1e3 * min(seconds)}


def findings(rows: list[Row]) -> Iterator[Finding]:
    for api, name in APIS.items():
        for way, words in PLAIN.items():
            plain = middle(rows, "cpu_ms", api=api, size="100KB", way=way)
            yield Finding(f"{name}, 100KB: {words}, CPU a request", plain, "ms")
        for way, words in WAYS.items():
            beside = "remembering" if way == "restored" else "engaged"
            small, large = (_added(rows, api, size, (beside, way)) for size in SIZES)
            yield Finding(f"{name}, 100KB: what {words} adds", small, "ms", most=1.5)
            yield Finding(f"{name}, 1MB: what it adds", large, "ms")
            yield Finding(f"{name}, 1MB: relative to what 100 KB add", large / small, "×", most=12)


def _added(rows: list[Row], api: str, size: str, ways: tuple[str, str]) -> float:
    plain, taken = (middle(rows, "cpu_ms", api=api, size=size, way=way) for way in ways)
    return taken - plain
