"""Clients and upstreams for tests of stored responses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal, NoReturn

import pytest
from starlette.types import ASGIApp

from abridge.apis.display import Exposure
from abridge.apis.openai import mint_id
from abridge.memory.stores.memory import MemoryBackend
from abridge.memory.stores.store import BackendError
from tests.end_to_end.translation.test_translation import KEY, SUMMARY, TOOLS
from tests.end_to_end.translation.tool_loops import play, results
from tests.end_to_end.translation.turn import WORDS, answer
from tests.support import openapi
from tests.support.asgi import Call, call
from tests.support.checker import check_responses
from tests.support.deployments import Form, build_app
from tests.support.streams import (
    THOUGHT,
    call_item,
    message_item,
    reasoning_item,
)
from tests.support.streams import response as whole_response
from tests.support.summarizers import Scripted
from tests.support.upstream import Upstream

Json = dict[str, Any]
PATH = "/v1/responses"
OTHER = {"authorization": "Bearer sk-bert-5678"}
TRANSLATED_APIS = pytest.mark.parametrize("api", ["chat", "messages"])
EXPOSES = pytest.mark.parametrize("expose", ["auto", "both", "summary", "none"])
USER: Json = {"role": "user", "content": "Where is it?"}
FOLLOW_UP: Json = {"role": "user", "content": "Sure?"}


async def post(app: ASGIApp, content: Any, key: Any = KEY, prefix: str = "", **more: Any) -> Call:
    request_body = {"model": "thinker-1", "reasoning": {"summary": "auto"}, "input": content}
    return await call(app, prefix + PATH, {**request_body, **more}, key)


async def ask_conversations(
    app: ASGIApp, tail: str = "", body: Json | None = None, method: str = "POST", key: Any = KEY
) -> Call:
    path, _, query = tail.partition("?")
    at = {"method": method, "query_string": query.encode()}
    content = b"" if method != "POST" else {} if body is None else body
    return await call(app, f"/v1/conversations{path}", content, key, **at)


async def create_conversation(app: ASGIApp, **body: Any) -> Json:
    created = await ask_conversations(app, body=body)
    assert created.status == 200, created.data
    openapi.check("ConversationResource", created.json)
    conversation: Json = created.json
    return conversation


async def list_conversation(app: ASGIApp, conversation: Json, key: Any = KEY) -> list[Json]:
    """Return the first items of a conversation, in order."""
    tail = f"/{conversation['id']}/items?order=asc&limit=100"
    page = (await ask_conversations(app, tail, method="GET", key=key)).json
    openapi.check("ConversationItemList", page)
    items: list[Json] = page["data"]
    return items


async def get_response(app: ASGIApp, content: Any, key: Any = KEY, **more: Any) -> Json:
    """Send a request; return its whole response."""
    received = await post(app, content, key, **more)
    assert received.status == 200, received.data
    whole: Json = check_responses(received.data).response if more.get("stream") else received.json
    return whole


async def fetch(
    app: ASGIApp, tail: str, key: Any = KEY, method: str = "GET", prefix: str = ""
) -> Call:
    path, _, query = tail.partition("?")
    at = {"method": method, "query_string": query.encode()}
    return await call(app, f"{prefix}{PATH}/{path}", b"", key, **at)


async def list_items(app: ASGIApp, response_id: str, **query: Any) -> list[Json]:
    """Return all pages of a response's items, in order."""
    items: list[Json] = []
    more = True
    while more:
        after = {"after": items[-1]["id"]} if items else {}
        content = "&".join(f"{key}={value}" for key, value in {**query, **after}.items())
        page = (await fetch(app, f"{response_id}/input_items?order=asc&{content}")).json
        openapi.check("ResponseItemList", page)
        items += page["data"]
        more = page["has_more"]
    return items


def read_error(received: Call) -> tuple[int, str | None, str | None]:
    error = received.json["error"]
    assert error["type"] == ("server_error" if received.status == 503 else "invalid_request_error")
    openapi.check("ErrorResponse", received.json)
    return received.status, error["code"], error["param"]


async def fail(*_: object) -> NoReturn:
    """Stand for an operation of a backend that cannot be reached."""
    raise BackendError


def fail_once(
    monkeypatch: pytest.MonkeyPatch, operation: Literal["get", "put", "delete"], number: int = 0
) -> None:
    """Have an operation of the backend in memory fail once, after so many others of its kind."""
    work, count = getattr(MemoryBackend, operation), itertools.count()

    async def fail_or_work(*arguments: Any) -> Any:
        return await (fail() if next(count) == number else work(*arguments))

    monkeypatch.setattr(MemoryBackend, operation, fail_or_work)


MINTED_ID = pytest.param(mint_id("resp_"), id="ours")
NOT_FOUND = (404, None, None)
STORE_DOWN = (503, "store_unavailable", None)
NO_PREVIOUS = (400, "previous_response_not_found", "previous_response_id")


def thinking_and_calling(api: str, times: int, *, stream: bool) -> Upstream:
    """Return an upstream that reasons and calls, and in every third turn only answers."""
    content = [
        play(api, number, "text and calls", stream=stream)
        if number % 3 < 2
        else answer(api, stream=stream, thought=f"Thought {number}.", text=f"So, {number}.")
        for number in range(times)
    ]
    return Upstream(*content)


def answering(api: str, *texts: str, stream: bool = False) -> Upstream:
    return Upstream(*(answer(api, stream=stream, text=text) for text in texts or (WORDS,)))


CONTINUATIONS = (
    *("everything", "previous", "references", "bare references", "by turns", "conversation"),
)
REPEATS = ("previous and everything", "previous and questions")
"""What clients send again beside `previous_response_id`: all of it, or all that is their own."""


async def converse(
    app: ASGIApp, times: int, continuation: str, *, stream: bool, **fields: Any
) -> list[Json]:
    """Run a client that sends all of a conversation or only what is new; return its responses."""
    history: list[Json] = []
    new: list[Json] = [USER]
    responses: list[Json] = []
    conversation = await create_conversation(app) if continuation == "conversation" else {}
    for number in range(times):
        continues = continuation in ("previous", *REPEATS) or (
            continuation == "by turns" and number % 2
        )
        previous = {"previous_response_id": responses[-1]["id"]} if continues and responses else {}
        if conversation:
            previous = {"conversation": conversation["id"]}
        history += new
        more = {"tools": TOOLS["responses"], "stream": stream, **previous, **fields}
        store = {"store": False} if continuation == "everything" else {}
        sent = new if previous and continuation not in REPEATS else history
        if continuation == "previous and questions":
            sent = [item for item in history if item.get("role") == "user" or "output" in item]
        response = await get_response(app, sent, **store, **more)
        responses.append(response)
        history += [_as_returned(item, continuation) for item in response["output"]]
        new = [*results(response["output"]), {"role": "user", "content": f"And {number}?"}]
    return responses


def _as_returned(item: Json, continuation: str) -> Json:
    kind = {"type": "item_reference"} if continuation == "references" else {}
    return {**kind, "id": item["id"]} if "references" in continuation else item


RAW = "odd numbers"
STORED_OUTPUT = (reasoning_item(0, THOUGHT), call_item(1, "f", "{}"), message_item(2, "So."))


def stored_upstream(output: Sequence[Json] = STORED_OUTPUT, **more: Any) -> Json:
    return whole_response(list(output), store=True, **more)


def native_app(upstream: Upstream, *, expose: Exposure = "auto", **tables: Any) -> ASGIApp:
    """Abridge before an upstream that speaks Responses itself."""
    writer = None if tables.get("summarizer") else Scripted(SUMMARY)
    form: Form = tables.pop("form", "sidecar")
    return build_app(form, upstream, writer=writer, reasoning={"expose": expose}, **tables)
