"""Answers that are one JSON body."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.apis.chat.reader import ChatReader
from abridge.core.events import Event
from abridge.middleware import AbridgeMiddleware
from abridge.observability.record import SHUTTING_DOWN
from tests.support.asgi import Call, begin
from tests.support.deployments import settings_for
from tests.support.loop_turns import MANY_CALLS, counting_calls
from tests.support.streams import completion, message_item, reasoning_item, response
from tests.support.upstream import Answer, Upstream

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
ASKING: dict[str, Any] = {"model": "m", "messages": [], "input": "Hi"}
ITEMS, VALUES = 1_250, 6_000
"""So many that to read them at once takes more than `MANY_CALLS`."""


def begin_call(body: Any, path: str, **tables: Any) -> Call:
    tables = {"summary": {"default": "auto", "grace": 0}, **tables}
    upstream = Upstream(Answer.json(body))
    app = AbridgeMiddleware(upstream, settings_for(**tables), registry=CollectorRegistry())
    return begin(app, path, ASKING)


def many_items() -> dict[str, Any]:
    return response(
        [
            item
            for n in range(0, ITEMS, 2)
            for item in (reasoning_item(n, "Hm."), message_item(n + 1, "A"))
        ]
    )


def many_values() -> dict[str, Any]:
    answer = completion({"role": "assistant", "reasoning": "Hm.", "content": "Hello."})
    entry = {"token": "a", "logprob": -1.0, "bytes": [97], "top_logprobs": []}
    answer["choices"][0]["logprobs"] = {"content": [entry] * VALUES}
    return answer


@pytest.mark.parametrize(
    ("path", "body", "tables"),
    [
        (RESPONSES, many_items(), {}),
        (RESPONSES, many_items(), {"reasoning": {"expose": "none"}}),
        (CHAT, many_items(), {"upstreams": [{"api": "responses"}]}),
        (CHAT, many_values(), {}),
        (CHAT, many_values(), {"reasoning": {"expose": "none"}}),
        (RESPONSES, many_values(), {"upstreams": [{"api": "chat"}]}),
    ],
    ids=lambda value: str(value) if len(str(value)) < 80 else f"of {len(str(value))}",
)
async def test_no_turn_of_the_event_loop_is_long_for_a_large_answer(
    path: str, body: Any, tables: dict[str, Any]
) -> None:
    request = begin_call(body, path, **tables)
    with counting_calls() as turns:
        await asyncio.wait_for(request.finish(), 60)
    assert request.status == 200
    assert max(turns) < MANY_CALLS


@pytest.mark.parametrize(("cause", "status"), [(SHUTTING_DOWN, 502), ("another cause", None)])
async def test_a_request_that_is_cancelled_while_its_answer_is_read_does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch, cause: str, status: int | None
) -> None:
    started, finish = threading.Event(), threading.Event()

    def read_whole(_: ChatReader, __: bytes) -> list[Event]:
        started.set()
        assert finish.wait(20)
        return []

    monkeypatch.setattr(ChatReader, "read_whole", read_whole)
    request = begin_call(many_values(), CHAT)
    try:
        assert await asyncio.to_thread(started.wait, 20)
        await request.cancel(cause)
    finally:
        finish.set()
    assert [message["status"] for message in request.sent[:1]] == [status] * (status is not None)
