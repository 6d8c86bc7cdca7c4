"""The recordings and their contents, read without any of Abridge's own readers."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
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

    @cached_property
    def data(self) -> bytes:
        return self.path.read_bytes()

    @property
    def streamed(self) -> bool:
        return self.path.suffix == ".sse"

    @cached_property
    def api(self) -> str | None:
        """`chat`, `responses`, `messages`, `gemini`, or None for one of another API."""
        named = self.name.partition("-")[0]
        if self.path.parent != RECORDINGS and named in READ:
            return named
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

    @cached_property
    def content(self) -> Content:
        return content_of(self, self.data)

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
    return _recorded_in(RECORDINGS, apis or ("chat", "responses"))


def answered_streams() -> list[Recording]:
    """Return the streams of OpenAI's two APIs that do not end in an error."""
    return [one for one in recordings() if one.streamed and "-error." not in one.name]


def all_recordings() -> list[Recording]:
    """Return every recording of every API, those of `more/` among them."""
    return [*_recorded_in(RECORDINGS, READ), *_recorded_in(RECORDINGS / "more", READ)]


def _recorded_in(folder: Path, apis: Collection[str]) -> list[Recording]:
    return [recording for recording in _all_in(folder) if recording.api in apis]


@cache
def _all_in(folder: Path) -> list[Recording]:
    return [Recording(path) for path in sorted(folder.glob("*.response.*"))]


def chunks_of(stream: bytes) -> list[dict[str, Any]]:
    whole = stream if stream.endswith((b"\n\n", b"\r\n\r\n")) else stream + b"\n\n"
    return [json.loads(data) for _, data in frames(whole) if not data.startswith("[DONE]")]


def bodies_of(data: bytes, *, streamed: bool) -> list[dict[str, Any]]:
    """Return the chunks or events of a stream, or a whole body as one."""
    if streamed:
        return chunks_of(data)
    body = json.loads(data)
    return body if isinstance(body, list) else [body]


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
            fresh = (call.get("id"), *_function_of(call))
            known[:] = [old + (new or "") for old, new in zip(known, fresh, strict=True)]
    inline = INLINE.match(found.text)
    if inline:
        found.raw += inline[1]
        found.text = found.text[inline.end() :]
    found.calls = [(call[0], call[1], call[2]) for _, call in sorted(calls.items())]
    return found


def _function_of(call: dict[str, Any]) -> tuple[str, str]:
    """Return a call's name and arguments; what a tool without a schema is given is its input."""
    custom = call.get("custom") or {}
    if custom.get("name"):
        return custom["name"], json.dumps({"input": custom.get("input", "")})
    function = call.get("function") or {}
    return function.get("name") or "", function.get("arguments") or ""


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
        elif item["type"] == "custom_tool_call":
            given = json.dumps({"input": item["input"]})
            found.calls.append((item["call_id"], item["name"], given))
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
            given = block.get("input")
            calls[index] = [block["id"], block["name"], json.dumps(given) if given else ""]
        elif block["type"] == "input_json_delta" and index in calls:
            calls[index][2] += block["partial_json"]
    found.calls = [(call[0], call[1], call[2] or "{}") for call in calls.values()]
    bodies = chunks_of(data) if streamed else [json.loads(data)]
    for body in bodies:
        stopping = body.get("delta") or body.get("message") or body
        found.finish = stopping.get("stop_reason") or found.finish
    return found


def _deltas(data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the blocks and their deltas. With programmatic calls the start has all of them."""
    for event in chunks_of(data):
        yield from enumerate((event.get("message") or {}).get("content") or ())
        if "index" in event and (part := event.get("content_block") or event.get("delta")):
            yield event["index"], part


def read_gemini(data: bytes, *, streamed: bool) -> Content:
    found = Content()
    for body in bodies_of(data, streamed=streamed):
        found.finish = (body.get("promptFeedback") or {}).get("blockReason") or found.finish
        for candidate in (body.get("candidates") or ())[:1]:
            found.finish = candidate.get("finishReason") or found.finish
            for part in (candidate.get("content") or {}).get("parts") or ():
                _read_part(part, found)
    return found


def _read_part(part: dict[str, Any], found: Content) -> None:
    call = part.get("functionCall")
    if call is not None and not call.get("name"):
        _continue_call(call, found)
    elif call is not None:
        arguments = json.dumps(call.get("args") or {})
        found.calls.append((call.get("id", ""), call["name"], arguments))
    elif part.get("thought"):
        found.raw += part.get("text", "")
    else:
        found.text += part.get("text", "")


def _continue_call(call: dict[str, Any], found: Content) -> None:
    """Put pieces of arguments into the last call: `jsonPath` says where each belongs."""
    identity, name, text = found.calls[-1]
    arguments = json.loads(text)
    for piece in call.get("partialArgs") or ():
        value = next(value for key, value in piece.items() if key.endswith("Value"))
        _put(arguments, re.findall(r"\w+", piece["jsonPath"]), value)
    found.calls[-1] = (identity, name, json.dumps(arguments))


def _put(holder: Any, path: list[str], value: Any) -> None:
    """Put a value, or the next piece of a text, at a path of names and places in lists."""
    for key, following in zip(path, [*path[1:], None], strict=True):
        place: Any = int(key) if key.isdigit() else key
        if isinstance(holder, list) and len(holder) == place:
            holder.append(None)
        before = holder[place] if isinstance(holder, list) else holder.get(place)
        if following is None:
            holder[place] = before + value if isinstance(before, str) else value
        elif before is None:
            holder[place] = [] if following.isdigit() else {}
        holder = holder[place]


READ = {
    "chat": read_chat,
    "responses": read_response,
    "messages": read_messages,
    "gemini": read_gemini,
}


def content_of(recording: Recording, data: bytes, api: str | None = None) -> Content:
    return READ[api or str(recording.api)](data, streamed=recording.streamed)
