"""Clients and upstreams of stored responses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from starlette.types import ASGIApp

from abridge.apis.display import Exposure
from abridge.apis.openai import mint_id
from tests import openapi
from tests.asgi import Call, call
from tests.bridges.loops import play, results
from tests.bridges.play import WORDS, answer
from tests.bridges.test_bridges import KEY, SUMMARY, TOOLS
from tests.checker import check_responses
from tests.forms import Form, abridged
from tests.scripts import (
    THOUGHT,
    call_item,
    message_item,
    reasoning_item,
)
from tests.scripts import response as whole_response
from tests.upstream import Upstream
from tests.writers import Scripted

Json = dict[str, Any]
PATH = "/v1/responses"
OTHER = {"authorization": "Bearer sk-bert-5678"}
OVER = pytest.mark.parametrize("api", ["chat", "messages"])
EXPOSES = pytest.mark.parametrize("expose", ["auto", "both", "summary", "none"])
USER: Json = {"role": "user", "content": "Where is it?"}
AGAIN: Json = {"role": "user", "content": "Sure?"}


async def ask(app: ASGIApp, said: Any, key: Any = KEY, prefix: str = "", **more: Any) -> Call:
    asking = {"model": "claude-opus-4-5", "reasoning": {"summary": "auto"}, "input": said}
    return await call(app, prefix + PATH, {**asking, **more}, key)


async def told(app: ASGIApp, said: Any, key: Any = KEY, **more: Any) -> Json:
    """The response, as the client has it at its end."""
    came = await ask(app, said, key, **more)
    assert came.status == 200, came.data
    whole: Json = check_responses(came.data).response if more.get("stream") else came.json
    return whole


async def fetch(
    app: ASGIApp, tail: str, key: Any = KEY, method: str = "GET", prefix: str = ""
) -> Call:
    path, _, query = tail.partition("?")
    at = {"method": method, "query_string": query.encode()}
    return await call(app, f"{prefix}{PATH}/{path}", b"", key, **at)


async def listed(app: ASGIApp, identity: str, **query: Any) -> list[Json]:
    """The items of a response in order, all pages of them."""
    items: list[Json] = []
    more = True
    while more:
        after = {"after": items[-1]["id"]} if items else {}
        said = "&".join(f"{key}={value}" for key, value in {**query, **after}.items())
        page = (await fetch(app, f"{identity}/input_items?order=asc&{said}")).json
        openapi.check("ResponseItemList", page)
        items += page["data"]
        more = page["has_more"]
    return items


def refused(came: Call) -> tuple[int, str | None, str | None]:
    error = came.json["error"]
    assert error["type"] == "invalid_request_error"
    openapi.check("ErrorResponse", came.json)
    return came.status, error["code"], error["param"]


OURS = pytest.param(mint_id("resp_"), id="ours")
NOT_FOUND = (404, None, None)
NO_PREVIOUS = (400, "previous_response_not_found", "previous_response_id")


def turns(api: str, times: int, *, stream: bool) -> Upstream:
    """An upstream that thinks and calls, and at times only answers."""
    said = [
        play(api, number, "text and calls", stream=stream)
        if number % 3 < 2
        else answer(api, stream=stream, thought=f"Thought {number}.", text=f"So, {number}.")
        for number in range(times)
    ]
    return Upstream(*said)


def says(api: str, *texts: str, stream: bool = False) -> Upstream:
    return Upstream(*(answer(api, stream=stream, text=text) for text in texts or (WORDS,)))


WAYS = ("everything", "previous", "references", "bare references", "by turns")


async def converse(
    app: ASGIApp, times: int, way: str, *, stream: bool, **fields: Any
) -> list[Json]:
    """A client that sends all of a conversation, or what is new of it; what it was told."""
    history: list[Json] = []
    new: list[Json] = [USER]
    responses: list[Json] = []
    for number in range(times):
        goes_on = way == "previous" or (way == "by turns" and number % 2)
        previous = {"previous_response_id": responses[-1]["id"]} if goes_on and responses else {}
        history += new
        more = {"tools": TOOLS["responses"], "stream": stream, **previous, **fields}
        store = {"store": False} if way == "everything" else {}
        response = await told(app, new if previous else history, **store, **more)
        responses.append(response)
        history += [_as_returned(item, way) for item in response["output"]]
        new = [*results(response["output"]), {"role": "user", "content": f"And {number}?"}]
    return responses


def _as_returned(item: Json, way: str) -> Json:
    kind = {"type": "item_reference"} if way == "references" else {}
    return {**kind, "id": item["id"]} if "references" in way else item


RAW = "odd numbers"
KEPT = (reasoning_item(0, THOUGHT), call_item(1, "f", "{}"), message_item(2, "So."))


def keeps(output: Sequence[Json] = KEPT, **more: Any) -> Json:
    return whole_response(list(output), store=True, **more)


def same(upstream: Upstream, *, expose: Exposure = "auto", **tables: Any) -> ASGIApp:
    """Abridge before an upstream that speaks Responses itself."""
    writer = None if tables.get("summarizer") else Scripted(SUMMARY)
    form: Form = tables.pop("form", "sidecar")
    return abridged(form, upstream, writer=writer, reasoning={"expose": expose}, **tables)
