"""Engaged traffic over real sockets: a raw client, a real server, and an upstream of raw bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry

from abridge.sidecar.app import create_app
from tests.support.checker import check_chat, check_responses
from tests.support.deployments import settings_for
from tests.support.servers import Peer, Script, chunk, connect, listen, serve, soon, stalled
from tests.support.streams import (
    THOUGHT,
    chat_stream,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.support.summarizers import Scripted

OUTPUT = [reasoning_item(0, THOUGHT), message_item(1, "Hello.")]
STREAMS = {
    "/v1/chat/completions": chat_stream(THOUGHT, "Hello."),
    "/v1/responses": responses_stream(OUTPUT),
}
PATHS = list(STREAMS)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass
class Middle:
    """The sidecar, and a client's connection to it."""

    client: Peer
    writer: Scripted

    async def ask(
        self,
        path: str,
        *,
        stream: bool = True,
        summary: str | None = "auto",
        in_pieces: bool = False,
    ) -> None:
        request = {"model": "m", "stream": stream, "reasoning": {"summary": summary}}
        body = json.dumps({**request, "input": "Hi", "messages": []}).encode()
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
        await self.client.send(head.encode())
        for piece in (body[:20], body[20:]) if in_pieces else (body,):
            await self.client.send(piece)
            await asyncio.sleep(0.01 if in_pieces else 0)

    async def answer(self) -> bytes:
        """Read a whole chunked answer."""
        await soon(self.client.head())
        return await soon(self.client.chunks())


@asynccontextmanager
async def middle(script: Script, writer: Scripted | None = None) -> AsyncIterator[Middle]:
    writer = writer or Scripted()
    async with listen(script) as upstream:
        settings = settings_for(
            upstreams=[{"base_url": f"{upstream.url}/v1"}],
            summarizer={"kind": "object"},
            summary={"grace": 60, "first_token": 60, "part_chars": 100},
            limits={"idle": 0.5},
        )
        app = create_app(settings, summarizer=writer, registry=CollectorRegistry())
        async with serve(app) as url, connect(url) as client:
            yield Middle(client, writer)
        await app.aclose()


def check(path: str, data: bytes) -> bool:
    """Check a stream; return whether it reports a failure."""
    if "chat" in path:
        return check_chat(data).error is not None
    terminal = check_responses(data).terminal
    return terminal is None or terminal["type"] == "response.failed"


@pytest.mark.parametrize("path", PATHS)
async def test_each_event_comes_when_it_is_sent(path: str) -> None:
    seen = asyncio.Semaphore(0)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        for frame in STREAMS[path]:
            await peer.send(chunk(frame))
            if b"Hello"[:5] in frame and b"delta" in frame and b"Hello." in frame:
                await seen.acquire()
        await peer.send(chunk(b""))

    async with middle(script) as between:
        await between.ask(path)
        await soon(between.client.reader.readuntil(b"Hello."))
        seen.release()
        rest = await soon(between.client.reader.readuntil(b"0\r\n\r\n"))
    assert b"[DONE]" in rest or b"response.completed" in rest


async def test_a_slow_client_slows_its_own_upstream() -> None:
    sent = 0

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(HEAD + b"".join(map(chunk, STREAMS["/v1/chat/completions"][:3])))
        frame = chunk(
            b'data: {"choices":[{"index":0,"delta":{"content":"%b"}}]}\n\n' % (b"x" * 9000)
        )
        for _ in range(10_000):
            await peer.send(frame)
            sent += len(frame)

    async with middle(script) as between:
        await between.ask("/v1/chat/completions")
        assert await stalled(lambda: sent) < 50 << 20


async def test_a_connection_serves_one_engaged_request_after_another() -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            frames = [*STREAMS["/v1/responses"], b""]
            await peer.send(HEAD + b"".join(map(chunk, frames)))

    async with middle(script) as between:
        for _ in range(3):
            await between.ask("/v1/responses")
            assert not check("/v1/responses", await between.answer())


@pytest.mark.parametrize("summary", ["auto", None], ids=["engaged", "untouched"])
async def test_a_body_in_pieces_is_sent_again_where_a_connection_was_stale(
    summary: str | None,
) -> None:
    bodies: list[bytes] = []

    async def script(peer: Peer) -> None:
        bodies.append((await peer.request()).body)
        await peer.answer(b"{}", b"content-type: text/plain")
        bodies.append((await peer.request()).body)  # and then it closes

    async with middle(script) as between:
        for _ in range(2):
            await between.ask("/v1/responses", summary=summary, in_pieces=True)
            assert (await soon(between.client.response())).body == b"{}"
    assert bodies == [bodies[0]] * 3
