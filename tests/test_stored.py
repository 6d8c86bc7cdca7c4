"""Stored responses, through the whole of it: for upstreams that have no such thing, and for those
that do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.types import ASGIApp

from tests import openapi
from tests.asgi import Call, call
from tests.bridges.loops import answered, play, results
from tests.bridges.play import WORDS, answer
from tests.bridges.test_bridges import BOTH, KEY, SUMMARY, TOOLS, bridge
from tests.scripts import THOUGHT
from tests.upstream import Answer, Upstream

Json = dict[str, Any]
PATH = "/v1/responses"
OTHER = {"authorization": "Bearer sk-bert-5678"}
OVER = pytest.mark.parametrize("api", ["chat", "messages"])
USER: Json = {"role": "user", "content": "Where is it?"}


async def ask(app: ASGIApp, said: Any, key: Any = KEY, **more: Any) -> Call:
    asking = {"model": "claude-opus-4-5", "reasoning": {"summary": "auto"}, "input": said}
    return await call(app, PATH, {**asking, **more}, key)


async def response(app: ASGIApp, said: Any, key: Any = KEY, **more: Any) -> Json:
    came = await ask(app, said, key, **more)
    assert came.status == 200, came.data
    if more.get("stream"):
        whole: Json = openapi_stream(came)
        return whole
    return came.json  # type: ignore[no-any-return]


def openapi_stream(came: Call) -> Json:
    from tests.checker import check_responses

    return check_responses(came.data).response


async def get(app: ASGIApp, tail: str, key: Any = KEY, method: str = "GET") -> Call:
    path, _, query = tail.partition("?")
    at = {"method": method, "query_string": query.encode()}
    return await call(app, f"{PATH}/{path}", b"", key, **at)


def turns(api: str, times: int, *, stream: bool) -> Upstream:
    """An upstream that thinks and calls, and at times only answers."""
    said = [
        play(api, number, "text and calls", stream=stream)
        if number % 3 < 2
        else answer(api, stream=stream, thought=f"Thought {number}.", text=f"So, {number}.")
        for number in range(times)
    ]
    return Upstream(*said)


async def converse(app: ASGIApp, times: int, *, stored: bool, stream: bool) -> None:
    """A client that sends everything itself, or what is new."""
    history: list[Json] = []
    new: list[Json] = [USER]
    previous: Json = {}
    for number in range(times):
        history += new
        more = {"tools": TOOLS["responses"], "stream": stream, **previous}
        told = await response(app, new if stored else history, store=stored, **more)
        history += told["output"]
        new = [*results(told["output"]), {"role": "user", "content": f"And {number}?"}]
        previous = {"previous_response_id": told["id"]} if stored else {}


class TestConversations:
    @BOTH
    @OVER
    @pytest.mark.parametrize("times", [2, 5])
    @pytest.mark.parametrize("expose", ["auto", "both", "summary", "none"])
    async def test_ogx_11_upstream_is_sent_what_it_would_be_by_who_keeps_it_all(
        self, api: str, times: int, expose: Any, *, stream: bool
    ) -> None:
        sent = []
        for stored in (True, False):
            played = turns(api, times, stream=stream)
            app = bridge(played, api, expose=expose)
            await converse(app, times, stored=stored, stream=stream)
            sent.append([asked.body for asked in played.asked])
        assert sent[0] == sent[1]
        assert len(sent[0]) == times
        assert SUMMARY.encode() not in sent[0][-1]
        assert b"At 00 I look in two more places" in sent[0][-1]
