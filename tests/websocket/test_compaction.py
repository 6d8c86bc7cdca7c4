"""Compactions over a WebSocket: what a connection remembers becomes shorter."""

from __future__ import annotations

import json

from tests.pipeline.test_compaction import LONG, SUMMARY, WORK, Model, completion
from tests.support.streams import chat_stream
from tests.support.upstream import Answer
from tests.support.websockets import front, opened

CHAT = {"api": "chat"}
TRIGGER = {"type": "compaction_trigger"}


async def test_a_trigger_compacts_what_the_connection_remembers() -> None:
    upstream = Model(completion(SUMMARY), Answer(chat_stream("", "Done.")))
    async with front(upstream, entry=CHAT) as running, opened(running.url) as client:
        first = await client.ask(input=WORK)
        made = await client.ask(input=[TRIGGER], previous_response_id=first.response["id"])
        assert [item["type"] for item in made.response["output"]] == ["compaction"]
        await client.ask(input="Go on.", previous_response_id=made.response["id"])
    said = json.dumps(upstream.requests[-1].json["messages"])
    assert SUMMARY in said
    assert LONG not in said
    assert "Go on." in said


async def test_a_threshold_holds_for_what_it_remembers() -> None:
    upstream = Model(completion(SUMMARY), Answer(chat_stream("", "Done.")))
    threshold = [{"type": "compaction", "compact_threshold": 1000}]
    async with front(upstream, entry=CHAT) as running, opened(running.url) as client:
        first = await client.ask(input=WORK)
        previous = first.response["id"]
        answer = await client.ask(
            input="And now?", previous_response_id=previous, context_management=threshold
        )
        kinds = [item["type"] for item in answer.response["output"]]
        assert kinds == ["compaction", "message"]
        await client.ask(input="Go on.", previous_response_id=answer.response["id"])
    said = json.dumps(upstream.requests[-1].json["messages"])
    assert SUMMARY in said
    assert LONG not in said


async def test_what_is_refused_is_told_as_an_error() -> None:
    async with front(Model(), entry=CHAT) as running, opened(running.url) as client:
        await client.create(input=[{"type": "compaction", "encrypted_content": "abr1.k.x"}])
        error = await client.error()
    assert (error["status"], error["param"]) == (400, "input[0].encrypted_content")
