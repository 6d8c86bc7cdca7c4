"""Answers that stream."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from abridge.apis.chat.reader import ChatReader
from abridge.core.events import Event
from abridge.errors import UpstreamBroken
from abridge.http.asgi import find_write_at_once
from abridge.middleware import AbridgeMiddleware
from abridge.observability.record import SHUTTING_DOWN
from abridge.work import FEW_THINGS, LIGHT_BYTES
from tests.support.asgi import Call, begin, start
from tests.support.deployments import settings_for
from tests.support.loop_turns import MANY_CALLS, counting_calls
from tests.support.streams import completion, frame
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Step, Upstream

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
BODY: dict[str, Any] = {"model": "m", "stream": True, "messages": [], "input": "Hi"}
HIDDEN: dict[str, Any] = {"reasoning": {"expose": "none"}, "summary": {"default": "off"}}
SHOWN: dict[str, Any] = {"reasoning": {"expose": "both"}, "summary": {"default": "auto"}}
MANY_BLOCKS = 2_500
REST = "a" * LIGHT_BYTES
"""With it a frame is so long that a thread reads it."""
MANY_CHOICES = 1_000
DONE = b"data: [DONE]\n\n"


def chunk(*choices: dict[str, Any]) -> bytes:
    header = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return frame({**header, "choices": list(choices)})


def choice(delta: dict[str, Any], index: int = 0, finish: str | None = None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "finish_reason": finish}


def begin_call(path: str, *reads: Step, **tables: Any) -> Call:
    app = AbridgeMiddleware(
        Upstream(Answer(reads)),
        settings_for(upstreams=[{"api": "chat"}], **tables),
        summarizer=Scripted("Said."),
        registry=CollectorRegistry(),
    )
    return begin(app, path, BODY)


def said(data: bytes) -> str:
    """Return what the chunks of a stream say."""
    chunks = [json.loads(line[6:]) for line in data.splitlines() if line.startswith(b"data: {")]
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or ()]
    return "".join(choice["delta"].get("content") or "" for choice in choices)


async def longest_turn(path: str, *reads: bytes, **tables: Any) -> int:
    """Return the calls in the longest turn of the event loop while a stream is read."""
    with counting_calls() as turns:
        received = await begin_call(path, *reads, **tables).finish()
    assert received.status == 200
    return max(turns)


@pytest.mark.matrix(1)
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("tables", [{}, HIDDEN], ids=["shown", "hidden"])
@pytest.mark.parametrize("text", ["<think>x</think>", "<think>x</think>y"])
async def test_no_turn_of_the_event_loop_is_long_for_a_frame_of_many_blocks(
    path: str, tables: dict[str, Any], text: str
) -> None:
    content = chunk(choice({"role": "assistant", "content": text * MANY_BLOCKS + REST}))
    stream = content + chunk(choice({}, finish="stop")) + DONE
    assert await longest_turn(path, stream, **tables) < MANY_CALLS


@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
async def test_nor_for_such_a_frame_of_which_the_end_comes_alone(path: str) -> None:
    text = "<think>x</think>y" * (MANY_BLOCKS // 2) + REST
    content = chunk(choice({"role": "assistant", "content": text}))
    reads = chunk(choice({})), content[:-9], content[-9:], chunk(choice({}, finish="stop")) + DONE
    assert await longest_turn(path, *reads, **HIDDEN) < MANY_CALLS


async def test_a_comment_of_which_the_end_comes_alone_passes() -> None:
    end = chunk(choice({"content": "Hi"}, finish="stop")) + DONE
    received = await begin_call(CHAT, chunk(choice({})), b": not y", b"et\n\n", end).finish()
    assert b": not yet\n\n" in received.data


async def test_a_comment_stays_where_it_was_among_frames_that_come_together() -> None:
    first, second = chunk(choice({"content": "One"})), chunk(choice({"content": "Two"}))
    end = chunk(choice({}, finish="stop")) + DONE
    together, engaged = first + b": between\n\n" + second + end, {"default": "auto"}
    received = await begin_call(CHAT, together, summary=engaged).finish()
    places = [received.data.index(said) for said in (b"One", b": between", b"Two")]
    assert places == sorted(places)


async def test_no_turn_of_the_event_loop_is_long_for_many_choices() -> None:
    numbers = range(MANY_CHOICES)
    stream = (
        chunk(*(choice({"role": "assistant", "reasoning_content": "Hm."}, n) for n in numbers))
        + chunk(*(choice({"content": "A"}, n) for n in numbers))
        + chunk(*(choice({}, n, "stop") for n in numbers))
        + DONE
    )
    assert await longest_turn(CHAT, stream) < 2 * MANY_CALLS


@pytest.mark.matrix(1)
@pytest.mark.parametrize("path", [CHAT, RESPONSES, MESSAGES])
@pytest.mark.parametrize("tables", [{}, HIDDEN], ids=["shown", "hidden"])
async def test_nor_for_many_frames_that_come_together(path: str, tables: dict[str, Any]) -> None:
    calls = [
        {"index": n, "id": f"call_{n}", "function": {"name": "look", "arguments": "{}"}}
        for n in range(MANY_CALLS // 100)
    ]
    stream = b"".join(chunk(choice({"tool_calls": [call]})) for call in calls)
    stream += chunk(choice({}, finish="tool_calls")) + DONE
    assert await longest_turn(path, stream, **tables) < MANY_CALLS


async def test_all_that_came_before_upstream_broke_off_arrives() -> None:
    words = [f"{number} " for number in range(2 * FEW_THINGS)]
    stream = b"".join(chunk(choice({"content": word})) for word in words)

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await start(send)
        write_at_once = find_write_at_once(send)
        assert write_at_once is not None
        assert write_at_once(stream)
        raise UpstreamBroken("It broke off.")

    settings = settings_for(summary={"default": "auto"})
    outer = AbridgeMiddleware(app, settings, registry=CollectorRegistry())
    received = await begin(outer, CHAT, BODY).finish()
    assert said(received.data) == "".join(words)
    assert b"It broke off." in received.data


@pytest.mark.parametrize("tables", [SHOWN, HIDDEN], ids=["shown", "hidden"])
async def test_a_large_frame_after_reasoning_that_is_gathered_is_read(
    tables: dict[str, Any],
) -> None:
    thoughts = [chunk(choice({"reasoning_content": f"{number}, "})) for number in range(9)]
    rest = chunk(choice({"content": REST})) + chunk(choice({}, finish="stop")) + DONE
    received = await begin_call(CHAT, *thoughts, rest, **tables).finish()
    assert said(received.data) == REST


@pytest.mark.parametrize("leaves", [False, True], ids=["a cut", "a client that leaves"])
@pytest.mark.parametrize("tables", [SHOWN, HIDDEN], ids=["shown", "hidden"])
async def test_reasoning_that_is_gathered_is_counted_before(
    *, leaves: bool, tables: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="abridge.requests")
    reached, never = asyncio.Event(), asyncio.Event()
    thoughts = [chunk(choice({"reasoning_content": f"{number}, "})) for number in range(9)]
    call = begin_call(CHAT, *thoughts, reached.set, *([never] if leaves else []), **tables)
    await reached.wait()
    await (call.leave() if leaves else call.finish())
    assert "reasoning_characters=27" in caplog.text


async def test_what_comes_after_a_large_frame_stays_after_it() -> None:
    words = [f"{number} " for number in range(100)]
    large = "a" * (64 << 10)
    texts = [*words[:50], large, *words[50:]]
    stream = b"".join(chunk(choice({"content": text})) for text in texts)
    received = await begin_call(CHAT, stream + chunk(choice({}, finish="stop")) + DONE).finish()
    assert said(received.data) == "".join(texts)


async def test_a_request_that_is_cancelled_while_a_large_frame_is_read_does_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, finish = threading.Event(), threading.Event()

    def read(_: ChatReader, __: bytes) -> list[Event]:
        started.set()
        assert finish.wait(20)
        return []

    monkeypatch.setattr(ChatReader, "read", read)
    request = begin_call(RESPONSES, chunk(choice({"content": "a" * (64 << 10)})))
    try:
        assert await asyncio.to_thread(started.wait, 20)
        await request.cancel(SHUTTING_DOWN)
    finally:
        finish.set()
    assert b"shutting down" in request.data


async def test_once_the_client_has_left_nothing_uses_the_reader_that_the_thread_may_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started, finish, used = threading.Event(), threading.Event(), asyncio.Event()

    def read(_: ChatReader, __: bytes) -> list[Event]:
        started.set()
        assert finish.wait(20)
        return []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await start(send)
        body = chunk(choice({"content": "a" * (64 << 10)}))
        await send({"type": "http.response.body", "body": body})

    monkeypatch.setattr(ChatReader, "read", read)
    monkeypatch.setattr(ChatReader, "end", lambda *_: used.set() or [])
    settings = settings_for(upstreams=[{"api": "chat"}])
    request = begin(AbridgeMiddleware(app, settings, registry=CollectorRegistry()), RESPONSES, BODY)
    try:
        assert await asyncio.to_thread(started.wait, 20)
        await request.leave()
    finally:
        finish.set()
    assert not used.is_set()


@pytest.mark.parametrize("path", [CHAT, MESSAGES])
async def test_an_event_without_an_end_shares_the_memory_for_bodies(path: str) -> None:
    limits = {"body": 1 << 16, "bodies": 1 << 18, "client_share": 1}
    stream = chunk(choice({"content": "Hi"})) + b"data: " + b"a" * (1 << 19)
    tables = {"limits": limits, "summary": {"default": "auto"}}
    received = await begin_call(path, stream, **tables).finish()
    assert b"are waiting" in received.data


async def test_a_body_for_which_there_is_no_room_passes_as_it_came() -> None:
    limits = {"body": 1 << 16, "bodies": 1 << 18, "client_share": 1}
    body = completion({"role": "assistant", "reasoning_content": "Hm.", "content": "a" * (1 << 19)})
    app = AbridgeMiddleware(
        Upstream(Answer.json(body)),
        settings_for(summary={"default": "auto"}, limits=limits),
        registry=CollectorRegistry(),
    )
    received = await begin(app, CHAT, {**BODY, "stream": False}).finish()
    assert received.json == body
