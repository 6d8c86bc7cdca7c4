"""The scripted model's responses in the formats of its APIs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import time
from typing import NamedTuple
from uuid import uuid4

from abridge.apis import sse
from abridge.apis.json import dumps
from abridge.core.conversation import Json

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
