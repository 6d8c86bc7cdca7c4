"""Build what providers send: items, chunks, bodies and streams with fixed ids and times.

`responses_stream` and `chat_stream` return legal streams in OpenAI's form, as lists of frames that
a test may take apart.
"""

from __future__ import annotations

import json
from typing import Any

from abridge.apis.sse import FrameDecoder

CREATED = 1_700_000_000
RESPONSES_USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 70,
    "output_tokens_details": {"reasoning_tokens": 50},
    "total_tokens": 81,
}
CHAT_USAGE = {
    "prompt_tokens": 11,
    "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "completion_tokens": 70,
    "total_tokens": 81,
    "completion_tokens_details": {"reasoning_tokens": 50},
}


def split_frames(data: bytes) -> list[bytes]:
    """Return the frames of a stream that ends with a whole one."""
    decoder = FrameDecoder(len(data) + 1)
    return [*decoder.feed(data), *decoder.end()]


def frame(payload: Any, event: str | None = None) -> bytes:
    name = f"event: {event}\n" if event else ""
    data = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return f"{name}data: {data}\n\n".encode()


DONE = frame("[DONE]")


def pieces(text: str, size: int = 7) -> list[str]:
    """Split a text as a model streams it, a few characters at a time."""
    return [text[start : start + size] for start in range(0, len(text), size)]


# Responses


def reasoning_item(number: int, text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "reasoning_text", "text": text}] if text else []
    return {"id": f"rs_{number}", "type": "reasoning", "summary": [], "content": content, **more}


def message_item(number: int, text: str) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}],
    }


def call_item(number: int, name: str, arguments: str) -> dict[str, Any]:
    return {
        "id": f"fc_{number}",
        "type": "function_call",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def response(output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": CREATED,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": "thinker-1",
        "output": output,
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
        "usage": RESPONSES_USAGE,
        "metadata": {},
        **more,
    }


def responses_stream(output: list[dict[str, Any]], **more: Any) -> list[bytes]:
    """Return the frames in which these items stream."""
    events: list[dict[str, Any]] = []
    final = response(output, **more)
    started = {**final, "status": "in_progress", "output": [], "usage": None}
    events.append({"type": "response.created", "response": started})
    events.append({"type": "response.in_progress", "response": started})
    for number, item in enumerate(output):
        events += _item_events(number, item)
    ends = {"completed": "completed", "incomplete": "incomplete", "failed": "failed"}
    events.append({"type": f"response.{ends[final['status']]}", "response": final})
    return numbered(*events)


def numbered(*events: dict[str, Any]) -> list[bytes]:
    """Number events and return them as the frames of one stream."""
    return [
        frame({**event, "sequence_number": place}, event["type"])
        for place, event in enumerate(events)
    ]


def _item_events(number: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    at = {"output_index": number}
    inside = {**at, "item_id": item["id"]}
    empty = {**item, "status": "in_progress"}
    events: list[dict[str, Any]] = []
    if item["type"] == "reasoning":
        empty |= {"summary": []} | ({"content": []} if "content" in item else {})
        for index, part in enumerate(item.get("content") or ()):
            events += _text_events({**inside, "content_index": index}, part, "reasoning_text")
        for index, part in enumerate(item["summary"]):
            events += _summary_events({**inside, "summary_index": index}, part)
    elif item["type"] == "message":
        empty["content"] = []
        for index, part in enumerate(item["content"]):
            events += _text_events({**inside, "content_index": index}, part, "output_text")
    elif item["type"] == "function_call":
        empty["arguments"] = ""
        kind = "response.function_call_arguments"
        events += [
            {"type": f"{kind}.delta", **inside, "delta": text} for text in pieces(item["arguments"])
        ]
        events.append({"type": f"{kind}.done", **inside, "arguments": item["arguments"]})
    return [
        {"type": "response.output_item.added", **at, "item": empty},
        *events,
        {"type": "response.output_item.done", **at, "item": item},
    ]


def _text_events(at: dict[str, Any], part: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    logprobs: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
    return [
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *(
            {"type": f"response.{kind}.delta", **at, "delta": text, **logprobs}
            for text in pieces(part["text"])
        ),
        {"type": f"response.{kind}.done", **at, "text": part["text"], **logprobs},
        {"type": "response.content_part.done", **at, "part": part},
    ]


def _summary_events(at: dict[str, Any], part: dict[str, Any]) -> list[dict[str, Any]]:
    kind = "response.reasoning_summary"
    return [
        {"type": f"{kind}_part.added", **at, "part": {**part, "text": ""}},
        *({"type": f"{kind}_text.delta", **at, "delta": text} for text in pieces(part["text"])),
        {"type": f"{kind}_text.done", **at, "text": part["text"]},
        {"type": f"{kind}_part.done", **at, "part": part},
    ]


# Chat Completions


def chunk(
    delta: dict[str, Any] | None = None,
    *,
    index: int = 0,
    finish: str | None = None,
    **more: Any,
) -> bytes:
    choices = []
    if delta is not None:
        choices = [{"index": index, "delta": delta, "finish_reason": finish}]
    return frame(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": "thinker-1",
            "choices": choices,
            **more,
        }
    )


def call(name: str, arguments: str, number: int = 0) -> dict[str, Any]:
    return {
        "index": number,
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def chat_stream(
    reasoning: str,
    text: str = "",
    *,
    calls: list[dict[str, Any]] | None = None,
    field: str = "reasoning_content",
    finish: str = "stop",
    usage: dict[str, Any] | None = CHAT_USAGE,
) -> list[bytes]:
    """Return the chunks of a turn that reasons, then answers or calls, or both."""
    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({field: piece}) for piece in pieces(reasoning)]
    chunks += [chunk({"content": piece}) for piece in pieces(text)]
    chunks += [chunk({"tool_calls": [call]}) for call in calls or ()]
    chunks.append(chunk({}, finish=finish))
    if usage is not None:
        chunks.append(chunk(usage=usage))
    return [*chunks, DONE]


def completion(message: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": CREATED,
        "model": "thinker-1",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "", **message},
                "finish_reason": "stop",
                "logprobs": None,
            }
        ],
        "usage": CHAT_USAGE,
        **more,
    }


# Texts

THOUGHT = (
    "The user asks for the sum of the first ten odd numbers. I recall that the sum of the first n "
    "odd numbers is n squared. Let me check with small cases.\n\nFor n = 1 the sum is 1. For n = 2 "
    "it is 1 + 3 = 4. For n = 3 it is 1 + 3 + 5 = 9. The pattern holds.\n\nSo for n = 10 the sum "
    "is 100. I am confident in this answer.\n\n"
)
"""A stretch of reasoning, some 330 characters long."""


def thinking(characters: int) -> str:
    """Return that many characters of reasoning, in distinct paragraphs."""
    text, number = "", 0
    while len(text) < characters:
        number += 1
        text += f"Step {number}: consider case {number * 7}. It follows that case {number} holds. "
        text += "" if number % 4 else "\n\n"
    return text[:characters]
