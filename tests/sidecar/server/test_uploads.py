"""Test `abridge serve` with clients whose request bodies do not come to an end."""

from __future__ import annotations

import asyncio
import json

import httpx

from tests.support.servers import Peer, connect, serve, soon
from tests.support.sidecar import sidecar
from tests.support.streams import THOUGHT, message_item, reasoning_item, responses_stream
from tests.support.upstream import Answer, Upstream

FRAMES = responses_stream([reasoning_item(0, THOUGHT), message_item(1, "Hello.")])

BODY = 1 << 20


def request(size: int) -> bytes:
    """Return a request with a body of so many bytes."""
    text = json.dumps({"model": "m", "stream": True, "input": ""})[:-2]
    body = f'{text}{"x" * (size - len(text) - 2)}"}}'.encode()
    head = f"POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n"
    return f"{head}content-type: application/json\r\n\r\n".encode() + body


async def connect_from(address: str, url: str) -> Peer:
    parsed = httpx.URL(url)
    opened = asyncio.open_connection(parsed.host, parsed.port, local_addr=(address, 0))
    return Peer(*await opened)


async def test_uploads_that_stop_shut_nobody_else_out() -> None:
    limits = {"ABRIDGE_LIMITS__BODY": str(BODY), "ABRIDGE_LIMITS__BODIES": str(2 * BODY)}
    async with (
        serve(Upstream(Answer(FRAMES))) as upstream,
        sidecar("--upstream", f"{upstream}/v1", **limits) as running,
        connect(running.url) as one,
        connect(running.url) as two,
    ):
        await one.send(request(BODY)[:-1])
        await asyncio.sleep(0.2)
        await two.send(request(BODY)[:-1])
        refused = await soon(two.response())
        assert refused.lines[0].split()[1] == b"503"
        assert json.loads(refused.body)["error"]["code"] == "overloaded"
        other = await connect_from("127.0.0.2", running.url)
        await other.send(request(BODY))
        assert (await soon(other.response())).lines[0] == b"HTTP/1.1 200 OK"
        await other.close()


async def test_an_upload_past_its_deadline_gets_an_error_and_its_connection_ends() -> None:
    limits = {"ABRIDGE_LIMITS__UPLOAD": "0.5"}
    async with (
        serve(Upstream(Answer(FRAMES))) as upstream,
        sidecar("--upstream", f"{upstream}/v1", "--summary", "concise", **limits) as running,
        connect(running.url) as client,
    ):
        await client.send(request(BODY)[:-1])
        refused = await soon(client.response())
        assert refused.lines[0] == b"HTTP/1.1 408 Request Timeout"
        error = json.loads(refused.body)["error"]
        assert (error["type"], error["code"]) == ("invalid_request_error", "request_timeout")
        await soon(client.left())
    assert "Traceback" not in running.output
