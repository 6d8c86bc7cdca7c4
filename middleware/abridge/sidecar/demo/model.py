"""A scripted model with Responses and Chat Completions, in place of a real one: no AI, as it says.

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

from abridge.apis.json import objects, parse_object, string
from abridge.apis.openai import error_body
from abridge.core.conversation import Json
from abridge.sidecar.demo.formats import (
    CHAT_API,
    MODEL_NAME,
    RESPONSES_API,
    ScriptedApi,
    ScriptedTurn,
)
from abridge.sidecar.demo.script import (
    ANSWER,
    LATER_ANSWER,
    LATER_THINKING,
    NOTE,
    QUESTION,
    THINKING,
)


def scripted_model(pause: float) -> Router:
    """Create the model's app, which waits `pause` seconds after each word."""

    async def models(_: Request) -> Response:
        card = {"id": MODEL_NAME, "object": "model", "created": int(time()), "owned_by": "abridge"}
        return JSONResponse({"object": "list", "data": [card]})

    async def responses(request: Request) -> Response:
        return await _respond(request, RESPONSES_API, pause)

    async def chat(request: Request) -> Response:
        return await _respond(request, CHAT_API, pause)

    return Router(
        [
            Route("/v1/models", models),
            Route("/v1/responses", responses, methods=["POST"]),
            Route("/v1/chat/completions", chat, methods=["POST"]),
        ]
    )


async def _respond(request: Request, api: ScriptedApi, pause: float) -> Response:
    body = parse_object(await request.body())
    if body is None:
        error = error_body("The body is no JSON object.", kind="invalid_request_error")
        return JSONResponse(error, status_code=400)
    turn = scripted_turn(body)
    if not body.get("stream"):
        return JSONResponse(api.build_body(turn))
    frames = api.stream_frames(turn, body)
    return StreamingResponse(_paced(frames, pause), media_type="text/event-stream")


async def _paced(frames: Iterator[bytes], pause: float) -> AsyncIterator[bytes]:
    for frame in frames:
        yield frame
        await asyncio.sleep(pause)


def scripted_turn(body: Json) -> ScriptedTurn:
    """Return the scripted turn for a request on one of its APIs."""
    messages = list(_messages(body))
    input_chars = sum(len(text) for _, text in messages)
    continues = body.get("previous_response_id") is not None
    if continues or any(role == "assistant" for role, _ in messages):
        return ScriptedTurn(input_chars, LATER_THINKING, LATER_ANSWER)
    if any(text.strip() == QUESTION for _, text in messages):
        return ScriptedTurn(input_chars, THINKING, ANSWER)
    return ScriptedTurn(input_chars, THINKING, f"{NOTE}\n\n{ANSWER}")


def _messages(body: Json) -> Iterator[tuple[str, str]]:
    """Yield role and text of each message."""
    given = body.get("input", body.get("messages"))
    if isinstance(given, str):
        yield "user", given
    for message in objects(given):
        content = message.get("content")
        texts = [string(part.get("text")) for part in objects(content)]
        yield string(message.get("role")), string(content) or "".join(texts)
