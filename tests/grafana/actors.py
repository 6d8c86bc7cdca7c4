"""A scripted model and summarizer that behave as the model's name says."""

from __future__ import annotations

import asyncio
from itertools import cycle

from starlette.types import Receive, Scope, Send

from tests.support.streams import (
    THOUGHT,
    call,
    call_item,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
    thinking,
)
from tests.support.upstream import Answer, ReceivedRequest, Upstream

NATIVE = [{"type": "summary_text", "text": "**Adding up**\n\nThe model says so itself."}]
TROUBLES = {"unlucky-fails": "FAIL", "unlucky-empty": "BE SILENT", "unlucky-slow": "STALL"}
"""The words in the reasoning that make the summarizer misbehave, by the model's name."""

CALL = call("look", "{}")
ITEM = call_item(1, "look", "{}")


class Model(Upstream):
    """A model; `gate` holds back the answers of models whose name asks for it."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await super().__call__(scope, receive, send)

    def answer(self, request: ReceivedRequest) -> Answer:
        if not request.body:
            return Answer.json({"object": "list", "data": []})
        body = request.json
        frames = _stream(request.path, body["model"])
        match body["model"].removeprefix("think-"):
            case "error":
                return Answer.json({"error": {"message": "No."}}, 500)
            case "demand-refused":
                return Answer.json({"error": {"message": "Where is the reasoning?"}}, 400)
            case "stateless" if b'"encrypted_content"' in request.body:
                refusal = {"message": "Not verified.", "code": "invalid_encrypted_content"}
                return Answer.json({"error": refusal}, 400)
            case "full":
                return Answer.json({"error": {"message": "Later."}}, 429)
            case "page":
                return Answer([b"<html>"], headers={"content-type": "text/html"})
            case "late":
                return Answer(before=[asyncio.Event()])
            case "cut":
                return Answer([*frames[:20], 0.1, ConnectionError("it broke off")])
            case "gated":
                return Answer([*frames[:20], self.gate, *frames[20:]])
        return Answer(frames) if body.get("stream") else _whole(request.path, body["model"])


class Writer(Upstream):
    """The summarizer: it behaves as the words in the reasoning say."""

    def answer(self, request: ReceivedRequest) -> Answer:
        if b"FAIL" in request.body:
            return Answer.json({"error": {"message": "No."}}, 500)
        if b"STALL" in request.body:
            return Answer([asyncio.Event()])
        text = "" if b"BE SILENT" in request.body else "**Adding up**\n\nI add the numbers."
        return Answer(chat_stream("", text))


class Moderation(Upstream):
    """A moderation endpoint: it passes a part, flags the next one, and fails at the one after."""

    def __init__(self) -> None:
        super().__init__()
        self.verdicts = cycle((False, True, None))

    def answer(self, request: ReceivedRequest) -> Answer:
        flagged = next(self.verdicts)
        if flagged is None:
            return Answer.json({"error": {"message": "No."}}, 500)
        return Answer.json({"results": [{"flagged": flagged, "categories": {}}]})


def _thought(model: str) -> str:
    if model == "think-briefly":
        return "Hm."
    return f"{THOUGHT}{TROUBLES[model]}" if model in TROUBLES else thinking(3000)


def _items(model: str) -> list[dict[str, object]]:
    summary = {"summary": NATIVE} if model == "think-natively" else {}
    last = ITEM if model.endswith("calls") else message_item(1, "Hello there.")
    return [reasoning_item(0, _thought(model), **summary), last]


def _stream(path: str, model: str) -> list[bytes]:
    if path.endswith("/responses"):
        frames = responses_stream(_items(model))
        if model == "think-oddly":  # reasoning after its item is done, and another final text
            late = next(frame for frame in frames if b"reasoning_text.delta" in frame)
            last = frames[-1].replace(b"Hello there.", b"Hello.")
            return [*frames[:-2], late, frames[-2], last]
        return frames
    if model.endswith("calls"):
        return chat_stream(_thought(model), calls=[CALL], finish="tool_calls")
    return chat_stream(_thought(model), "Hello there.")


def _whole(path: str, model: str) -> Answer:
    if path.endswith("/responses"):
        return Answer.json(response(_items(model)))
    message = {"reasoning_content": _thought(model), "content": "Hello there."}
    if model.endswith("calls"):
        calls = {"content": None, "tool_calls": [{k: CALL[k] for k in ("id", "type", "function")}]}
        return Answer.json(completion({**message, **calls}))
    return Answer.json(completion(message))
