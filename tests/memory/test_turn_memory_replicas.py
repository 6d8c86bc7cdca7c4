"""Replicas that share a Redis: each continues what another began, and none depends on it."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from abridge.middleware import AbridgeMiddleware
from tests.support.asgi import call
from tests.support.deployments import build_app
from tests.support.redis_server import Server
from tests.support.streams import completion
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "Hi"}
SUMMARY = "**Adding up**\n\nI add the numbers."
ENOUGH = 10_000
"""Requests, in which the store is reachable again for its clients."""

THOUGHT = "A thought about number {}: it is odd."


class Thinker:
    """Thinks a thought of its own each time, and keeps it by what it answered."""

    def __init__(self) -> None:
        self.thoughts: dict[str, str] = {}
        self.requests: list[Any] = []
        self._waiting: dict[int, asyncio.Event] = {}

    async def until(self, count: int) -> None:
        """So many have asked."""
        await self._waiting.setdefault(count, asyncio.Event()).wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = json.loads((await receive())["body"])
        self.requests.append(body)
        if (waiting := self._waiting.get(len(self.requests))) is not None:
            waiting.set()
        said, thought = f"So, {len(self.requests)}.", THOUGHT.format(len(self.requests))
        self.thoughts[said] = thought
        message = {"role": "assistant", "content": said, "reasoning": thought}
        answer = Upstream(Answer.json(completion(message)))
        await answer(scope, _replay(body), send)


def _replay(body: Any) -> Receive:
    async def receive() -> Any:
        return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

    return receive


@pytest.fixture
def _keys(monkeypatch: pytest.MonkeyPatch, patient: None) -> None:
    monkeypatch.setenv("SEAL_KEYS", f"a:{b64encode(bytes(32)).decode()}")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def replicas(
    thinker: Thinker,
    server: Server,
    registry: CollectorRegistry | None = None,
    writer: Scripted | None = None,
) -> list[ASGIApp]:
    history = {"store": server.url, "seal_keys_env": "SEAL_KEYS"}
    chat = {"envelope": "none"}  # the client carries nothing
    apps = [
        build_app(
            "mounted",
            thinker,
            writer=writer or Scripted(),
            registry=registry,
            history=history,
            chat=chat,
        )
        for _ in range(3)
    ]
    assert all(isinstance(app, AbridgeMiddleware) for app in apps)
    return apps


async def close(apps: list[ASGIApp]) -> None:
    for app in apps:
        await app.aclose()  # type: ignore[attr-defined]


async def say(app: ASGIApp, messages: list[Any], who: str) -> dict[str, Any]:
    body = {"model": "m", "messages": messages, "reasoning": {"summary": "auto"}}
    answer = await call(app, CHAT, body, {"authorization": f"Bearer {who}-1234567890"})
    assert answer.status == 200
    message: dict[str, Any] = answer.json["choices"][0]["message"]
    return message


async def converse(apps: list[ASGIApp], who: str, turns: int, **changed: Any) -> list[Any]:
    """Return a conversation in which each turn goes to another replica."""
    messages: list[Any] = [{**USER, "content": f"{who} says hi"}]
    for turn in range(turns):
        said = await say(apps[turn % len(apps)], messages, who)
        messages += [{**said, **changed}, USER]
    return messages


@pytest.mark.usefixtures("_keys")
class TestReplicas:
    @pytest.mark.parametrize("changed", [{}, {"reasoning": None}])
    async def test_a_replica_continues_a_conversation_of_another(
        self, server: Server, changed: dict[str, Any]
    ) -> None:
        thinker = Thinker()
        apps = replicas(thinker, server)
        await converse(apps, "anna", 5, **changed)
        sent = thinker.requests[-1]["messages"][1::2]
        assert len(sent) == 4
        assert [message["reasoning"] for message in sent] == [
            thinker.thoughts[message["content"]] for message in sent
        ]
        await close(apps)

    async def test_a_replica_recognises_a_summary_of_another(self, server: Server) -> None:
        thinker = Thinker()
        apps = replicas(thinker, server)
        returned = await say(apps[0], [USER], "anna")
        assert "**" in returned["reasoning"]
        edited = {**returned, "content": "Edited."}  # so that there is no original of it
        await say(apps[1], [USER, edited, USER], "anna")
        assert thinker.requests[-1]["messages"][1] == {"role": "assistant", "content": "Edited."}
        await say(apps[1], [USER, edited, USER], "bert")
        assert thinker.requests[-1]["messages"][1] == edited
        await close(apps)

    async def test_an_outage_of_redis_under_load_costs_no_answer(self, server: Server) -> None:
        thinker, registry = Thinker(), CollectorRegistry()
        apps = replicas(thinker, server, registry)
        talks = [asyncio.create_task(converse(apps, f"person-{number}", 12)) for number in range(8)]
        await thinker.until(20)
        await asyncio.to_thread(server.kill)
        await thinker.until(50)
        await asyncio.to_thread(server.start)
        histories = await asyncio.gather(*talks)
        for history in histories:
            for said in history[1::2]:
                assert thinker.thoughts[said["content"]] not in said["reasoning"]
        for body in thinker.requests:
            for message in body["messages"]:
                sent = message.get("reasoning")
                assert sent in (None, SUMMARY, thinker.thoughts.get(message["content"]))
        errors = registry.get_sample_value(
            "abridge_store_operations_total", {"operation": "mark", "result": "error"}
        )
        assert errors
        await close(apps)

    async def test_marks_made_in_an_outage_are_shared_later(self, server: Server) -> None:
        thinker, writer = Thinker(), Scripted("**Said while it was away**\n\nI think.")
        apps = replicas(thinker, server, writer=writer)
        await asyncio.to_thread(server.kill)
        returned = await say(apps[0], [USER], "anna")
        await asyncio.to_thread(server.start)
        writer.text = SUMMARY
        for _ in range(ENOUGH):
            if not await _goes_upstream(apps[1], thinker, returned):
                break
            await say(apps[0], [USER], "bert")  # whatever it says, it shares what is left
        else:
            pytest.fail("the summary shown during the outage was never shared")
        await close(apps)


async def _goes_upstream(app: ASGIApp, thinker: Thinker, returned: dict[str, Any]) -> bool:
    """Return whether upstream gets a summary as reasoning."""
    edited = {**returned, "content": "Edited."}  # so that there is no original of it
    await say(app, [USER, edited, USER], "anna")
    return "reasoning" in thinker.requests[-1]["messages"][1]
