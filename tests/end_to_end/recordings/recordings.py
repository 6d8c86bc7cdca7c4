"""The recordings and their contents, read without any of Abridge's own readers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.checker import frames
from tests.support.shared import RECORDINGS

ENDPOINTS = {
    "chat": "/v1/chat/completions",
    "responses": "/v1/responses",
    "messages": "/v1/messages",
}
INLINE = re.compile(r"\A\s*<think>(.*?)</think>\s*\n?", re.DOTALL)


@dataclass
class Content:
    """The content of one choice or one response."""

    text: str = ""
    calls: list[tuple[str, str, str]] = field(default_factory=list)
    finish: str | None = None
    raw: str = ""
    native: bool = False


@dataclass
class Recording:
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def data(self) -> bytes:
        return self.path.read_bytes()

    @property
    def streamed(self) -> bool:
        return self.path.suffix == ".sse"

    @property
    def api(self) -> str | None:
        """`chat`, `responses`, `messages`, or None for one of another API."""
        head = self.data[:400]
        if self.streamed:
            if b"message_start" in head:
                return "messages"
            return "responses" if b"event: response" in head else "chat"
        body = json.loads(self.data)
        if "choices" in body:
            return "chat"
        if body.get("type") == "message":
            return "messages"
        return "responses" if body.get("object") == "response" else None

    @property
    def content_type(self) -> str:
        return "text/event-stream" if self.streamed else "application/json"

    @property
    def endpoint(self) -> str:
        return ENDPOINTS[self.api or "responses"]


def recordings(*apis: str) -> list[Recording]:
    """Return the recordings of these APIs, by default of OpenAI's two."""
    if not RECORDINGS.is_dir():
        return []
    found = [Recording(path) for path in sorted(RECORDINGS.glob("*.response.*"))]
    return [recording for recording in found if recording.api in (apis or ("chat", "responses"))]


def chunks_of(stream: bytes) -> list[dict[str, Any]]:
    whole = stream if stream.endswith(b"\n\n") else stream + b"\n\n"
    return [json.loads(data) for _, data in frames(whole) if not data.startswith("[DONE]")]


def read_chat(data: bytes, *, streamed: bool) -> Content:
    found, calls = Content(), dict[int, list[str]]()
    bodies = chunks_of(data) if streamed else [json.loads(data)]
    for choice in (choice for body in bodies for choice in body.get("choices") or ()):
        message = choice.get("delta") or choice.get("message") or {}
        found.text += _text(message.get("content"))
        found.raw += _raw(message)
        details = message.get("reasoning_details") or ()
        found.native |= any(entry.get("type") == "reasoning.summary" for entry in details)
        found.finish = choice.get("finish_reason") or found.finish
        for place, call in enumerate(message.get("tool_calls") or ()):
            known = calls.setdefault(call.get("index", place), ["", "", ""])
            function = call.get("function") or {}
            fresh = (call.get("id"), function.get("name"), function.get("arguments"))
            known[:] = [old + (new or "") for old, new in zip(known, fresh, strict=True)]
    inline = INLINE.match(found.text)
    if inline:
        found.raw += inline[1]
        found.text = found.text[inline.end() :]
    found.calls = [(call[0], call[1], call[2]) for _, call in sorted(calls.items())]
    return found


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or () if part["type"] == "text")


def _raw(message: dict[str, Any]) -> str:
    found = message.get("reasoning_content") or message.get("reasoning")
    if found:
        return str(found)
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return "".join(
        inner["text"] for part in parts if part["type"] == "thinking" for inner in part["thinking"]
    )


def read_response(data: bytes, *, streamed: bool) -> Content:
    body = json.loads(data) if not streamed else chunks_of(data)[-1].get("response", {})
    found = Content(finish=body.get("status"))
    for item in body.get("output") or ():
        if item["type"] == "message":
            found.text += "".join(part.get("text", "") for part in item["content"])
        elif item["type"] == "function_call":
            found.calls.append((item["call_id"], item["name"], item["arguments"]))
        elif item["type"] == "reasoning":
            found.raw += "".join(part["text"] for part in item.get("content") or ())
            found.native |= bool(item["summary"])
    return found


def read_messages(data: bytes, *, streamed: bool) -> Content:
    found, calls = Content(), dict[int, list[str]]()
    content = enumerate(json.loads(data)["content"]) if not streamed else _deltas(data)
    for index, block in content:
        found.text += block.get("text", "")
        found.raw += block.get("thinking", "")
        if block["type"] == "tool_use":
            given = "" if streamed else json.dumps(block["input"])
            calls[index] = [block["id"], block["name"], given]
        elif block["type"] == "input_json_delta" and index in calls:
            calls[index][2] += block["partial_json"]
    found.calls = [(call[0], call[1], call[2] or "{}") for call in calls.values()]
    bodies = chunks_of(data) if streamed else [json.loads(data)]
    for body in bodies:
        found.finish = (body.get("delta") or body).get("stop_reason") or found.finish
    return found


def _deltas(data: bytes) -> list[tuple[int, dict[str, Any]]]:
    events = [event for event in chunks_of(data) if "index" in event]
    found = (event.get("content_block") or event.get("delta") for event in events)
    return [(event["index"], part) for event, part in zip(events, found, strict=True) if part]


READ = {"chat": read_chat, "responses": read_response, "messages": read_messages}


def content_of(recording: Recording, data: bytes, api: str | None = None) -> Content:
    return READ[api or str(recording.api)](data, streamed=recording.streamed)
