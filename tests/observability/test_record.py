"""Test the records of requests that never began, and their sinks."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client import CollectorRegistry

from abridge.middleware import AbridgeMiddleware
from abridge.observability.record import Record, Sink
from tests.support.asgi import Call, call, scope_for
from tests.support.streams import THOUGHT, chat_stream, chunk
from tests.support.summarizers import Scripted
from tests.support.upstream import Answer, Upstream

PATH = "/v1/chat/completions"
CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "reasoning": {"summary": "auto"},
    "stream": True,
}


def app(*sinks: Sink) -> AbridgeMiddleware:
    return AbridgeMiddleware(
        Upstream(Answer(chat_stream(THOUGHT, "Hello."))),
        summarizer=Scripted(),
        registry=CollectorRegistry(),
        sinks=sinks,
    )


@pytest.fixture
def records() -> list[Record]:
    return []


async def test_a_failing_sink_affects_neither_clients_nor_other_sinks(
    records: list[Record], caplog: pytest.LogCaptureFixture
) -> None:
    def failing(_: Record) -> None:
        raise RuntimeError("no")

    answered = await call(app(failing, records.append), PATH, CHAT)
    assert answered.complete
    assert [record.outcome for record in records] == ["ok"]
    assert "a sink failed" in caplog.text


async def test_deltas_that_come_together_count_as_many(records: list[Record]) -> None:
    words = [chunk({"content": word}) for word in ("one", "two", "three", "four")]
    frames = [chunk({"role": "assistant"}), *words, chunk({}, finish="stop"), b"data: [DONE]\n\n"]
    for pieces in (frames, [b"".join(frames)]):
        given = AbridgeMiddleware(
            Upstream(Answer(pieces)),
            summarizer=Scripted(),
            registry=CollectorRegistry(),
            sinks=[records.append],
        )
        assert (await call(given, PATH, CHAT)).complete
    assert [record.chunks for record in records] == [4, 4]


class BodilessRequest(Call):
    """A request whose body never arrives."""

    async def receive(self) -> dict[str, object]:
        await self.left.wait()
        return {"type": "http.disconnect"}


async def test_a_client_that_leaves_before_its_request_is_complete(records: list[Record]) -> None:
    request = BodilessRequest(app(records.append), scope_for(PATH)).start()
    await request.leave()
    assert [record.outcome for record in records] == ["left"]


async def test_a_request_cancelled_before_it_is_complete(records: list[Record]) -> None:
    request = BodilessRequest(app(records.append), scope_for(PATH)).start()
    assert request.task is not None
    await asyncio.sleep(0)
    request.task.cancel()
    await asyncio.wait([request.task])
    assert [record.outcome for record in records] == ["failed"]
