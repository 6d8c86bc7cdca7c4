"""The cost of restoring reasoning for a client that returned summaries."""

from __future__ import annotations

import asyncio
import json
import os
from base64 import b64encode
from collections.abc import Iterator
from itertools import chain
from time import process_time
from typing import Any
from unittest.mock import patch

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from abridge.config.settings import Settings
from abridge.memory.opened_blobs import OpenedBlobs
from abridge.sidecar.app import create_app
from tests.apis.messages.scripts import message
from tests.benchmarks.options import Options
from tests.benchmarks.results import Finding, Row, middle
from tests.benchmarks.turns import APIS, PATHS
from tests.support.streams import (
    call_item,
    completion,
    message_item,
    reasoning_item,
    response,
    thinking,
)

SIZES = {"10KB": 10_000, "100KB": 100_000, "1MB": 1_000_000, "10MB": 10_000_000}
WAYS = {
    "restored": "restoring",
    "carried": "opening what the client carries",
    "first": "opening all of it for the first time",
}
"""Restored from the store, for a client that returns summaries; opened with keys only, for a client
that returns blobs. Each answer is read and has no reasoning. A request is the next one of its
conversation: the last turn in it is new, and what the client carries of the others was opened for
the request before. First: nothing was, as in a process that was just started."""

PLAIN = {"engaged": "nothing is remembered", "remembering": "nothing to put back"}
"""The same request without a store, and with one, which would remember the answer by its whole
history."""

TARGETS = {"restored": (1.5, ""), "carried": (1.2, "3.1 to 3.8")}
"""The most milliseconds that a way may add at 100 KB, and what it added before."""

KEYS = "BENCHMARK_SEAL_KEYS"

INCLUDE = ["reasoning.encrypted_content"]
KEY = {"authorization": "Bearer sk-benchmark-1234567890"}
THOUGHT = thinking(1000)
OUTPUT = thinking(1500)


class Upstream:
    """A model that reasons and calls a tool, each time under a new id, until it is done."""

    def __init__(self, api: str) -> None:
        self._api = api
        self._said = 0
        self.is_done = False

    def __call__(self, _: httpx.Request) -> httpx.Response:
        if self.is_done:
            return httpx.Response(200, json=self._done())
        self._said += 1
        identity = f"call_{self._said:06d}9f149c74c42f265b"
        answers = {"chat": self._chat, "responses": self._responses, "messages": self._messages}
        return httpx.Response(200, json=answers[self._api](identity))

    def _done(self) -> Any:
        match self._api:
            case "chat":
                return completion({"role": "assistant", "content": "Done."})
            case "responses":
                return response([message_item(0, "Done.")])
        return message([{"type": "text", "text": "Done."}])

    def _messages(self, identity: str) -> Any:
        thought = {"type": "thinking", "thinking": THOUGHT, "signature": "c2lnbmF0dXJl"}
        call = {"type": "tool_use", "id": identity, "name": "look", "input": {"where": "here"}}
        return message([thought, call], "tool_use")

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
        self._upstream = Upstream(api)
        self._app = _app(api, way, self._upstream)
        self._question = {"role": "user", "content": "Look everywhere."}
        self._turns: list[list[Any]] = []
        self._size = 0

    async def grow(self, size: int) -> None:
        """Add turns until it has this size."""
        async with self._client(self._app) as client:
            while self._size < size:
                await self._add_turn(client)
                self._size += len(json.dumps(self._turns[-1]))

    async def time(self, times: int, way: str | None = None) -> list[float]:
        """Return the CPU seconds of a request with the whole conversation and a new last turn; with
        `way`, of the same conversation to another application."""
        taken = []
        app = _app(self._api, way, self._upstream) if way else self._app
        async with self._client(app) as client:
            for _ in range(times):
                if way is None:
                    self._turns.pop()
                    await self._add_turn(client)
                self._upstream.is_done = True
                began = process_time()
                await self._ask(client, self._turns)
                taken.append(process_time() - began)
                self._upstream.is_done = False
        return taken

    async def _add_turn(self, client: httpx.AsyncClient) -> None:
        """Have the model answer the last turn, after which it stands in the conversation."""
        answer = await self._ask(client, self._turns[-1:])
        self._turns.append(TURNS[self._api](answer))

    def _client(self, app: ASGIApp) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(app), headers=KEY)

    async def _ask(self, client: httpx.AsyncClient, turns: list[list[Any]]) -> Any:
        said = [self._question, *chain.from_iterable(turns)]
        response = await client.post(
            f"http://abridge{PATHS[self._api]}",
            content=json.dumps({"model": "m", **_fields(self._api, said)}),
        )
        return response.raise_for_status().json()


def _app(api: str, way: str, upstream: Upstream) -> ASGIApp:
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
    transport = httpx.MockTransport(upstream)
    return create_app(settings, transport=transport, registry=CollectorRegistry())


def _fields(api: str, said: list[Any]) -> dict[str, Any]:
    if api == "messages":
        thinking = {"type": "enabled", "budget_tokens": 2048}
        return {"messages": said, "max_tokens": 4096, "thinking": thinking}
    return {"messages" if api == "chat" else "input": said, "include": INCLUDE}


def _chat(answer: Any) -> list[Any]:
    message = answer["choices"][0]["message"]
    [call] = message["tool_calls"]
    return [message, {"role": "tool", "tool_call_id": call["id"], "content": OUTPUT}]


def _responses(answer: Any) -> list[Any]:
    thought, call = answer["output"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": OUTPUT}
    return [{**thought, "content": []}, call, output]


def _messages(answer: Any) -> list[Any]:
    call = answer["content"][-1]
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": OUTPUT}
    return [
        {"role": "assistant", "content": answer["content"]},
        {"role": "user", "content": [result]},
    ]


TURNS = {"chat": _chat, "responses": _responses, "messages": _messages}
"""What a client adds to its conversation after an answer."""


def run(options: Options) -> Iterator[Row]:
    for api in APIS:
        talks = {way: Conversation(api, way) for way in ("restored", "carried")}
        for size, characters in SIZES.items():
            if options.quick and size == "10MB":
                continue
            times = 8 if characters < 10_000_000 else 2
            for talk in talks.values():
                asyncio.run(talk.grow(characters))
            for number in range(options.rounds(9, 3)):
                plain = {way: asyncio.run(talks["restored"].time(times, way)) for way in PLAIN}
                taken = {way: asyncio.run(talk.time(times)) for way, talk in talks.items()}
                with patch.object(OpenedBlobs, "get", lambda *_: None):
                    taken["first"] = asyncio.run(talks["carried"].time(times))
                for way, seconds in {**plain, **taken}.items():
                    at: Row = {"api": api, "size": size, "way": way, "round": number}
                    yield {**at, "cpu_ms": 1e3 * min(seconds)}


def findings(rows: list[Row]) -> Iterator[Finding]:
    measured, ways = ({row[key] for row in rows} for key in ("size", "way"))
    for api, name in APIS.items():
        for way, words in PLAIN.items():
            plain = middle(rows, "cpu_ms", api=api, size="100KB", way=way)
            yield Finding(f"{name}, 100KB: {words}, CPU a request", plain, "ms")
        for way, words in ((way, WAYS[way]) for way in WAYS if way in ways):
            beside = "remembering" if way == "restored" else "engaged"
            added = {
                size: _added(rows, api, size, (beside, way)) for size in SIZES if size in measured
            }
            most, before = TARGETS.get(way, (None, ""))
            small = added.pop("100KB")
            yield Finding(
                f"{name}, 100KB: what {words} adds", small, "ms", most=most, before=before
            )
            for size, value in added.items():
                yield Finding(f"{name}, {size}: what it adds", value, "ms")
            times = added["1MB"] / small
            yield Finding(f"{name}, 1MB: relative to what 100 KB add", times, "×", most=12)


def _added(rows: list[Row], api: str, size: str, ways: tuple[str, str]) -> float:
    plain, taken = (middle(rows, "cpu_ms", api=api, size=size, way=way) for way in ways)
    return taken - plain
