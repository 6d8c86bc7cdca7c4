"""A scripted model behind the two APIs, in place of a real one: no AI, and it says so.

It behaves like a server of an open model: it sends reasoning, then the answer, then usage, counting
four characters as a token. It knows one question; to any other it gives the same answer, with a
note that says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from time import time

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from abridge.demo.script import ANSWER, LATER_ANSWER, LATER_THINKING, NOTE, QUESTION, THINKING
from abridge.demo.spelling import CHAT, MODEL, RESPONSES, Spelling, Turn
from abridge.wire.codec import Json, objects, read_object, string
from abridge.wire.problem import problem


def scripted_model(pause: float) -> Router:
    """Create the model's app, which waits `pause` seconds after each word."""

    async def models(_: Request) -> Response:
        card = {"id": MODEL, "object": "model", "created": int(time()), "owned_by": "abridge"}
        return JSONResponse({"object": "list", "data": [card]})

    async def responses(request: Request) -> Response:
        return await _answer(request, RESPONSES, pause)

    async def chat(request: Request) -> Response:
        return await _answer(request, CHAT, pause)

    return Router(
        [
            Route("/v1/models", models),
            Route("/v1/responses", responses, methods=["POST"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
        ]
    )


async def _answer(request: Request, spelling: Spelling, pause: float) -> Response:
    body = read_object(await request.body())
    if body is None:
        refusal = problem("The body is no JSON object.", kind="invalid_request_error")
        return JSONResponse(refusal, status_code=400)
    turn = turn_for(body)
    if not body.get("stream"):
        return JSONResponse(spelling.whole(turn))
    frames = spelling.stream(turn, body)
    return StreamingResponse(_paced(frames, pause), media_type="text/event-stream")


async def _paced(frames: Iterator[bytes], pause: float) -> AsyncIterator[bytes]:
    for frame in frames:
        yield frame
        await asyncio.sleep(pause)


def turn_for(body: Json) -> Turn:
    """Return the scripted turn for a request on either API."""
    said = list(_conversation(body))
    asked = sum(len(text) for _, text in said)
    if "previous_response_id" in body or any(role == "assistant" for role, _ in said):
        return Turn(asked, LATER_THINKING, LATER_ANSWER)
    if any(text.strip() == QUESTION for _, text in said):
        return Turn(asked, THINKING, ANSWER)
    return Turn(asked, THINKING, f"{NOTE}\n\n{ANSWER}")


def _conversation(body: Json) -> Iterator[tuple[str, str]]:
    """Yield role and text of each message."""
    given = body.get("input", body.get("messages"))
    if isinstance(given, str):
        yield "user", given
    for message in objects(given):
        content = message.get("content")
        texts = [string(part.get("text")) for part in objects(content)]
        yield string(message.get("role")), string(content) or "".join(texts)
