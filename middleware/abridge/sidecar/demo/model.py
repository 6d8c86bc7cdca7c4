"""A scripted model with Responses and Chat Completions, in place of a real one: no AI, as it says.

It behaves like a server of an open model: it sends reasoning, then the answer, then usage, counting
four characters as a token. It knows one question; to any other it gives the same answer, with a
note that says so.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from time import time
from typing import TypeAlias
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from abridge.apis.chat.writer import ChatWriter
from abridge.apis.display import Display
from abridge.apis.json import objects, parse_object, string
from abridge.apis.openai import error_body
from abridge.apis.protocols import RequestEcho, Writer
from abridge.apis.responses.writer import ResponsesWriter
from abridge.core.conversation import Json
from abridge.core.events import (
    ContentDelta,
    Event,
    Finished,
    ReasoningDelta,
    ReasoningEnded,
    ReasoningStarted,
    ResponseEnded,
    ResponseStarted,
)
from abridge.core.usage import Tokens
from abridge.providers.catalog import PROFILES
from abridge.sidecar.demo.script import (
    ANSWER,
    LATER_ANSWER,
    LATER_THINKING,
    NOTE,
    QUESTION,
    THINKING,
)

MODEL_NAME = "scripted"

_DISPLAY = Display(show_summary=False, style=None)

_LANE = _ITEM = 0

MakeWriter: TypeAlias = Callable[[RequestEcho], Writer]


@dataclass(slots=True, frozen=True)
class ScriptedTurn:
    """One turn of the scripted model."""

    input_chars: int  # characters of the conversation so far
    thinking: str
    answer: str

    @property
    def tokens(self) -> Tokens:
        """Its tokens, at four characters each."""
        given, thought = (self.input_chars + 3) // 4, len(self.thinking) // 4
        output = thought + len(self.answer) // 4
        return Tokens(given, output, given + output, reasoning=thought)

    def speak(self) -> Iterator[Event]:
        """Yield what the model says, word by word."""
        yield ResponseStarted(None, None, "", MODEL_NAME, int(time()))
        yield ReasoningStarted(_LANE, None, _ITEM)
        for word in _split_words(self.thinking):
            yield ReasoningDelta(_LANE, None, _ITEM, word)
        yield ReasoningEnded(_LANE, None, _ITEM)
        for word in _split_words(self.answer):
            yield ContentDelta(_LANE, None, word)
        yield Finished(_LANE, None, "stop")

    def end(self) -> ResponseEnded:
        return ResponseEnded(None, None, ok=True, usage=self.tokens)


def _split_words(text: str) -> list[str]:
    """Split text like a model's deltas, each space with the word before it."""
    return re.findall(r"\S+\s*", text)


def _mint_id(prefix: str) -> str:
    """Return an id that is not one of Abridge's."""
    return f"{prefix}{uuid4().hex}"


def _responses_writer(echo: RequestEcho) -> Writer:
    return ResponsesWriter(_DISPLAY, echo, mint_id=_mint_id)


def _chat_writer(echo: RequestEcho) -> Writer:
    return ChatWriter(PROFILES["auto"], _DISPLAY, echo, mint_id=_mint_id)


def scripted_model(pause: float, *, chat_alone: bool = False) -> Router:
    """Create the model's app, which waits `pause` seconds after each word."""

    async def models(_: Request) -> Response:
        card = {"id": MODEL_NAME, "object": "model", "created": int(time()), "owned_by": "abridge"}
        return JSONResponse({"object": "list", "data": [card]})

    async def responses(request: Request) -> Response:
        return await _respond(request, _responses_writer, pause)

    async def chat(request: Request) -> Response:
        return await _respond(request, _chat_writer, pause)

    routes = [Route("/v1/models", models), Route("/v1/chat/completions", chat, methods=["POST"])]
    if not chat_alone:
        routes.append(Route("/v1/responses", responses, methods=["POST"]))
    return Router(routes)


async def _respond(request: Request, make_writer: MakeWriter, pause: float) -> Response:
    body = parse_object(await request.body())
    if body is None:
        error = error_body("The body is not a JSON object.", kind="invalid_request_error")
        return JSONResponse(error, status_code=400)
    turn = scripted_turn(body)
    writer = make_writer(RequestEcho({"stream_options": body.get("stream_options")}, now=time))
    if not body.get("stream"):
        for event in turn.speak():
            writer.note(event)
        return Response(writer.write_whole(turn.end()), media_type="application/json")
    frames = filter(None, map(writer.write, chain(turn.speak(), [turn.end()])))
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
