"""The scripted upstream, and summarizer model, as a process: `python -m tests.campaigns.upstream
PORT`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from random import Random

import uvicorn
from starlette.types import Receive, Scope, Send

from tests.campaigns.script import SUMMARY, Script, script_of
from tests.support.asgi import body_of, say, start
from tests.support.streams import chat_stream

STALL = 1.5
"""Seconds for which a stalled answer is silent."""


class Broken(Exception):
    """Breaks the connection."""


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    body = await body_of(receive)
    with suppress(OSError):
        await _answer(scope["path"], body, send)


async def _answer(path: str, body: bytes, send: Send) -> None:
    api = "responses" if path.endswith("/responses") else "chat"
    script = None if path.startswith("/summarizer") else script_of(body)
    stream = b'"stream": true' in body or b'"stream":true' in body
    failing = script is not None and script.wrong in ("error", "refuses")
    status = (429 if script and script.wrong == "refuses" else 500) if failing else 200
    await start(send, "text/event-stream" if stream and not failing else "application/json", status)
    async for piece in _pieces(api, script, stream=stream):
        await say(send, piece, more=True)
    await say(send, b"")


async def _pieces(api: str, script: Script | None, *, stream: bool) -> AsyncIterator[bytes]:
    """Yield what is sent, and wait and break as the script says."""
    frames = [json.dumps(script.whole(api)).encode()] if script else [b"{}"]
    if stream:
        frames = script.frames(api) if script else chat_stream("", SUMMARY)
    if script is None or script.wrong == "none":
        yield b"".join(frames[: len(frames) // 2])
        await asyncio.sleep(0.02)
        yield b"".join(frames[len(frames) // 2 :])
        return
    if script.wrong in ("error", "refuses"):
        yield json.dumps({"error": {"message": "No.", "type": "server_error"}}).encode()
        return
    at = Random(script.number).randrange(len(frames))
    yield b"".join(frames[:at]) + frames[at][: len(frames[at]) // 2]
    if script.wrong == "cut":
        raise Broken
    if script.wrong == "stall":
        await asyncio.sleep(STALL)
    if script.wrong == "garbage":
        yield b"\xff\x00{{{\n\ndata: nonsense\n\n: \xed\xa0\x80\n\n"
    rest = frames[at][len(frames[at]) // 2 :] + b"".join(frames[at + 1 :])
    size = 97 if script.wrong == "drip" else len(rest)
    for begin in range(0, len(rest), size):
        yield rest[begin : begin + size]
        await asyncio.sleep(0)


if __name__ == "__main__":
    uvicorn.run(app, port=int(sys.argv[1]), log_config=None, log_level=60, lifespan="off")
