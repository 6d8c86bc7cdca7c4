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
from time import time
from typing import NamedTuple
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, Router

from abridge.apis import sse
from abridge.apis.json import dumps, objects, parse_object, string
from abridge.apis.openai import error_body
from abridge.core.conversation import Json
from abridge.sidecar.demo.script import (
    ANSWER,
    LATER_ANSWER,
    LATER_THINKING,
    NOTE,
    QUESTION,
    THINKING,
)

MODEL_NAME = "scripted"


@dataclass(slots=True, frozen=True)
class ScriptedTurn:
    """One turn of the scripted model."""

    input_chars: int  # characters of the conversation so far
    thinking: str
    answer: str

    @property
    def tokens(self) -> tuple[int, int, int]:
        """Tokens of the conversation, the thinking and the answer, at four characters each."""
        return (self.input_chars + 3) // 4, len(self.thinking) // 4, len(self.answer) // 4


class ScriptedApi(NamedTuple):
    """The formats of one API."""

    build_body: Callable[[ScriptedTurn], Json]
    """Build the complete body."""
    stream_frames: Callable[[ScriptedTurn, Json], Iterator[bytes]]
    """Yield the frames of the stream for a request."""


def _split_words(text: str) -> list[str]:
    """Split text like a model's deltas, each space with the word before it."""
    return re.findall(r"\S+\s*", text)


# Responses


def _response(turn: ScriptedTurn) -> Json:
    input_tokens, reasoning_tokens, answer_tokens = turn.tokens
    reasoning = {"type": "reasoning_text", "text": turn.thinking}
    text = {"type": "output_text", "text": turn.answer, "annotations": [], "logprobs": []}
    return {
        "id": f"resp_{uuid4().hex}",
        "object": "response",
        "created_at": int(time()),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": MODEL_NAME,
        "output": [
            {"id": f"rs_{uuid4().hex}", "type": "reasoning", "summary": [], "content": [reasoning]},
            {
                "id": f"msg_{uuid4().hex}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            },
        ],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": input_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": reasoning_tokens + answer_tokens,
            "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
            "total_tokens": input_tokens + reasoning_tokens + answer_tokens,
        },
        "metadata": {},
    }


def _response_frames(turn: ScriptedTurn, _: Json) -> Iterator[bytes]:
    for number, event in enumerate(_response_events(_response(turn))):
        yield sse.encode_frame(dumps({**event, "sequence_number": number}), event["type"])


def _response_events(response: Json) -> Iterator[Json]:
    in_progress = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": in_progress}
    yield {"type": "response.in_progress", "response": in_progress}
    for index, item in enumerate(response["output"]):
        yield from _item_events(index, item)
    yield {"type": "response.completed", "response": response}


def _item_events(index: int, item: Json) -> Iterator[Json]:
    part = item["content"][0]
    kind, position = part["type"], {"output_index": index}
    part_position = {**position, "item_id": item["id"], "content_index": 0}
    extra: Json = {"logprobs": []} if kind == "output_text" else {}
    in_progress = {**item, "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", **position, "item": in_progress}
    yield {"type": "response.content_part.added", **part_position, "part": {**part, "text": ""}}
    for word in _split_words(part["text"]):
        yield {"type": f"response.{kind}.delta", **part_position, "delta": word, **extra}
    yield {"type": f"response.{kind}.done", **part_position, "text": part["text"], **extra}
    yield {"type": "response.content_part.done", **part_position, "part": part}
    yield {"type": "response.output_item.done", **position, "item": item}


RESPONSES_API = ScriptedApi(_response, _response_frames)


# Chat Completions


def _common_fields(kind: str) -> Json:
    completion_id = f"chatcmpl-{uuid4().hex}"
    return {"id": completion_id, "object": kind, "created": int(time()), "model": MODEL_NAME}


def _usage(turn: ScriptedTurn) -> Json:
    input_tokens, reasoning_tokens, answer_tokens = turn.tokens
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": reasoning_tokens + answer_tokens,
        "total_tokens": input_tokens + reasoning_tokens + answer_tokens,
        "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
    }


def _completion(turn: ScriptedTurn) -> Json:
    message = {
        "role": "assistant",
        "content": turn.answer,
        "refusal": None,
        "reasoning_content": turn.thinking,
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {**_common_fields("chat.completion"), "choices": [choice], "usage": _usage(turn)}


def _chat_frames(turn: ScriptedTurn, request: Json) -> Iterator[bytes]:
    head = _common_fields("chat.completion.chunk")
    for delta, finish in _chat_deltas(turn):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        yield sse.encode_frame(dumps({**head, "choices": [choice]}))
    options = request.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield sse.encode_frame(dumps({**head, "choices": [], "usage": _usage(turn)}))
    yield sse.encode_frame(b"[DONE]")


def _chat_deltas(turn: ScriptedTurn) -> Iterator[tuple[Json, str | None]]:
    yield {"role": "assistant", "content": ""}, None
    for word in _split_words(turn.thinking):
        yield {"reasoning_content": word}, None
    for word in _split_words(turn.answer):
        yield {"content": word}, None
    yield {}, "stop"


CHAT_API = ScriptedApi(_completion, _chat_frames)


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
        error = error_body("The body is not a JSON object.", kind="invalid_request_error")
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
