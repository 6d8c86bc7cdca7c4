"""`response.steer`: more input for a response whose answer has not begun."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from abridge.client_shares import ClientShares
from abridge.pipeline import body
from abridge.websocket.call import Call
from tests.support.servers import until
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.support.upstream import Answer, Upstream
from tests.support.websockets import Client, checked, front, opened

CHAT = chat_stream(THOUGHT, "Hello.")
NATIVE = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")])
STREAMS = {"chat": CHAT, "same": NATIVE}
BRIDGED = {"api": "chat"}
APIS = pytest.mark.parametrize("api", ["chat", "same"])
SUMMARIES = pytest.mark.parametrize("summary", ["auto", None])


def after(stream: list[bytes], needle: bytes) -> int:
    return next(index for index, frame in enumerate(stream) if needle in frame) + 1


async def begin(client: Client, **fields: Any) -> str:
    """Ask for a response; return its id once it has begun."""
    await client.create(**fields)
    while (event := await client.event())["type"] != "response.created":
        pass
    identity: str = event["response"]["id"]
    return identity


async def steer(client: Client, response_id: str, content: Any = "In French.", **more: Any) -> None:
    named = {"previous_response_id": response_id, "input": content}
    await client.send({"type": "response.steer", **named, **more})


async def outcome(client: Client) -> dict[str, Any]:
    """Return the next event that says what became of the input."""
    while not (event := await client.event())["type"].startswith("response.steer"):
        pass
    return event


async def refused(client: Client, response_id: str, content: Any = "In French.") -> str:
    await steer(client, response_id, content)
    failed = await outcome(client)
    if content == "In French.":
        from openai.types.beta import BetaResponseSteerFailedEvent  # takes half a second

        BetaResponseSteerFailedEvent.model_validate(failed, strict=True)
    assert failed["steer"] == {"previous_response_id": response_id, "input": content}
    code: str = failed["error"]["code"]
    return code


@APIS
@SUMMARIES
async def test_a_response_that_thinks_gives_way_to_one_with_more_input(
    api: str, summary: str | None
) -> None:
    from openai.types.beta import BetaResponseSteerAcceptedEvent  # takes half a second

    stream, gate = STREAMS[api], asyncio.Event()
    thinking = stream[: 4 if api == "chat" else 8]
    upstream = Upstream(Answer([*thinking, gate]), Answer(stream))
    async with front(upstream, entry={"api": api}) as running, opened(running.url) as client:
        more = {"reasoning": {"summary": summary}, "stream_id": "a", "instructions": "Be brief."}
        first = await begin(client, **more)
        await steer(client, first)
        accepted = await outcome(client)
        BetaResponseSteerAcceptedEvent.model_validate(accepted, strict=True)
        assert accepted["type"] == "response.steer.accepted"
        assert (accepted["steer"]["previous_response_id"], accepted["stream_id"]) == (first, "a")
        ended = (await client.answer())[-1]
        assert ended["type"] == "response.incomplete"
        assert ended["response"]["id"] == first
        assert ended["response"]["incomplete_details"] == {"reason": "steered"}
        assert ended["response"]["error"] is None
        second = checked(await client.answer())
        assert second.response["status"] == "completed"
        following = await begin(client, stream_id="a", previous_response_id=second.response["id"])
        assert following
        await client.answer()  # closing waits for what is not read
        await until(lambda: upstream.running == 0)
    assert upstream.left == 1
    said = [text for text in ("Hi", "In French.") if text in upstream.requests[1].body.decode()]
    assert said == ["Hi", "In French."]
    assert b"Be brief." in upstream.requests[1].body
    assert b"In French." in upstream.requests[2].body


async def test_messages_with_parts_are_input_too() -> None:
    upstream = Upstream(Answer([*CHAT[:3], asyncio.Event()]), Answer(CHAT))
    parts = [{"type": "input_text", "text": "In French."}]
    async with front(upstream, entry=BRIDGED) as running, opened(running.url) as client:
        first = await begin(client)
        await steer(client, first, [{"role": "user", "content": parts}])
        assert (await outcome(client))["type"] == "response.steer.accepted"
        await client.answer()
        await client.answer()
    sent = [message["content"] for message in upstream.requests[1].json["messages"]]
    assert sent == ["Hi", "In French."]


@APIS
async def test_an_answer_that_has_begun_is_not_steered(api: str) -> None:
    stream, gate = STREAMS[api], asyncio.Event()
    begun = after(stream, b"Hello") if api == "chat" else after(stream, b'"message"')
    upstream = Upstream(Answer([*stream[:begun], gate, *stream[begun:]]))
    async with front(upstream, entry={"api": api}) as running, opened(running.url) as client:
        first = await begin(client, reasoning={})
        while (event := await client.event())["type"] != "response.output_item.added" or (
            event["item"]["type"] != "message"
        ):
            pass
        assert await refused(client, first) == "response_not_active"
        gate.set()
        assert (await client.answer())[-1]["type"] == "response.completed"
    assert len(upstream.requests) == 1


async def test_what_is_not_under_way_is_not_steered() -> None:
    upstream = Upstream(Answer(CHAT))
    async with front(upstream, entry=BRIDGED) as running, opened(running.url) as client:
        assert await refused(client, "resp_1") == "response_not_found"
        assert await refused(client, "") == "response_not_found"
        first = await client.ask()
        assert await refused(client, first.response["id"]) == "response_already_completed"


@pytest.mark.parametrize(
    "content",
    [
        *("", [], None, 7),
        [{"role": "assistant", "content": "Hi"}],
        [{"role": "user", "content": [{"type": "output_text", "text": "Hi"}]}],
        [{"role": "user", "content": None}],
        [{"type": "function_call_output", "call_id": "c", "output": "1"}],
    ],
)
async def test_only_messages_of_the_user_steer(content: Any) -> None:
    gate = asyncio.Event()
    upstream = Upstream(Answer([*CHAT[:3], gate, *CHAT[3:]]))
    async with front(upstream, entry=BRIDGED) as running, opened(running.url) as client:
        first = await begin(client)
        assert await refused(client, first, content) == "invalid_input"
        gate.set()
        assert (await client.answer())[-1]["type"] == "response.completed"


async def test_nothing_else_may_stand_beside_the_input() -> None:
    upstream = Upstream(Answer(CHAT))
    async with front(upstream, entry=BRIDGED) as running, opened(running.url) as client:
        await steer(client, "resp_1", stream_id="a")
        assert (await outcome(client))["error"]["code"] == "invalid_input"


async def test_a_response_is_steered_once() -> None:
    upstream = Upstream(Answer([*CHAT[:3], asyncio.Event()]), Answer(CHAT))
    async with front(upstream, entry=BRIDGED) as running, opened(running.url) as client:
        first = await begin(client)
        await steer(client, first)
        await steer(client, first)
        kinds = [(await outcome(client))["type"] for _ in range(2)]
        assert kinds == ["response.steer.accepted", "response.steer.failed"]
        assert (await client.answer())[-1]["type"] == "response.incomplete"
        assert (await client.answer())[-1]["type"] == "response.completed"
    assert len(upstream.requests) == 2


async def test_a_response_in_a_conversation_is_not_steered() -> None:
    """As at OpenAI: what it would add to the conversation is not settled."""
    upstream = Upstream(Answer([*NATIVE[:8], asyncio.Event()]))
    async with front(upstream) as running, opened(running.url) as client:
        first = await begin(client, conversation="conv_1")
        assert await refused(client, first) == "steering_not_supported"


async def test_input_that_makes_a_conversation_too_large_is_returned() -> None:
    upstream = Upstream(Answer([*CHAT[:3], asyncio.Event()]))
    async with (
        front(upstream, entry=BRIDGED, limits={"body": 4000}) as running,
        opened(running.url) as client,
    ):
        first = await begin(client, input="x" * 2500)
        await steer(client, first, "y" * 2500)
        accepted = await outcome(client)
        assert (await client.answer())[-1]["type"] == "response.incomplete"
        failed = await outcome(client)
        assert failed["error"]["code"] == "successor_creation_failed"
        assert failed["steer"]["id"] == accepted["steer"]["id"]
        assert failed["steer"]["input"] == "y" * 2500


async def test_input_whose_client_leaves_gives_its_memory_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budgets: list[Shares] = []

    class Shares(ClientShares):
        def __init__(self) -> None:
            super().__init__()
            budgets.append(self)

    async def leave(*_: object) -> None:
        raise OSError("the client has left")

    monkeypatch.setattr(body, "ClientShares", Shares)
    monkeypatch.setattr(Call, "finish", leave)
    upstream = Upstream(Answer([*CHAT[:3], asyncio.Event()]))
    async with front(upstream, entry=BRIDGED) as running, opened(running.url) as client:
        await steer(client, await begin(client))
        assert (await outcome(client))["type"] == "response.steer.accepted"
    assert budgets
    assert all(budget._free == budget.total for budget in budgets)
