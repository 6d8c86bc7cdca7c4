"""The scripted model's responses in the formats of the two APIs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import time
from typing import NamedTuple
from uuid import uuid4

from abridge.wire import sse
from abridge.wire.codec import Json, dumps

MODEL = "scripted"


@dataclass(slots=True, frozen=True)
class Turn:
    """One turn of the scripted model."""

    asked: int  # characters of the conversation so far
    thinking: str
    answer: str

    @property
    def tokens(self) -> tuple[int, int, int]:
        """Tokens of the conversation, the thinking and the answer, at four characters each."""
        return (self.asked + 3) // 4, len(self.thinking) // 4, len(self.answer) // 4


class Spelling(NamedTuple):
    """The formats of one API."""

    whole: Callable[[Turn], Json]
    """Build the complete body."""
    stream: Callable[[Turn, Json], Iterator[bytes]]
    """Yield the frames of the stream for a request."""


def _words(text: str) -> list[str]:
    """Split text like a model's deltas, each space with the word before it."""
    return re.findall(r"\S+\s*", text)


# Responses


def _response(turn: Turn) -> Json:
    asked, thought, answered = turn.tokens
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
        "model": MODEL,
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
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": thought + answered,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": asked + thought + answered,
        },
        "metadata": {},
    }


def _response_frames(turn: Turn, _: Json) -> Iterator[bytes]:
    for number, event in enumerate(_response_events(_response(turn))):
        yield sse.encode(dumps({**event, "sequence_number": number}), event["type"])


def _response_events(response: Json) -> Iterator[Json]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        yield from _item_events(index, item)
    yield {"type": "response.completed", "response": response}


def _item_events(index: int, item: Json) -> Iterator[Json]:
    part = item["content"][0]
    kind, at = part["type"], {"output_index": index}
    inside = {**at, "item_id": item["id"], "content_index": 0}
    more: Json = {"logprobs": []} if kind == "output_text" else {}
    begun = {**item, "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", **at, "item": begun}
    yield {"type": "response.content_part.added", **inside, "part": {**part, "text": ""}}
    for word in _words(part["text"]):
        yield {"type": f"response.{kind}.delta", **inside, "delta": word, **more}
    yield {"type": f"response.{kind}.done", **inside, "text": part["text"], **more}
    yield {"type": "response.content_part.done", **inside, "part": part}
    yield {"type": "response.output_item.done", **at, "item": item}


RESPONSES = Spelling(_response, _response_frames)


# Chat Completions


def _head(kind: str) -> Json:
    number = f"chatcmpl-{uuid4().hex}"
    return {"id": number, "object": kind, "created": int(time()), "model": MODEL}


def _usage(turn: Turn) -> Json:
    asked, thought, answered = turn.tokens
    return {
        "prompt_tokens": asked,
        "completion_tokens": thought + answered,
        "total_tokens": asked + thought + answered,
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def _completion(turn: Turn) -> Json:
    message = {
        "role": "assistant",
        "content": turn.answer,
        "refusal": None,
        "reasoning_content": turn.thinking,
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return {**_head("chat.completion"), "choices": [choice], "usage": _usage(turn)}


def _chat_frames(turn: Turn, asked: Json) -> Iterator[bytes]:
    head = _head("chat.completion.chunk")
    for delta, finish in _chat_deltas(turn):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        yield sse.encode(dumps({**head, "choices": [choice]}))
    options = asked.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield sse.encode(dumps({**head, "choices": [], "usage": _usage(turn)}))
    yield sse.encode(b"[DONE]")


def _chat_deltas(turn: Turn) -> Iterator[tuple[Json, str | None]]:
    yield {"role": "assistant", "content": ""}, None
    for word in _words(turn.thinking):
        yield {"reasoning_content": word}, None
    for word in _words(turn.answer):
        yield {"content": word}, None
    yield {}, "stop"


CHAT = Spelling(_completion, _chat_frames)
