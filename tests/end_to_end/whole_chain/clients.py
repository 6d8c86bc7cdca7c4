"""What clients of three APIs hear, read and checked without Abridge's readers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.checker import check_chat, check_responses
from tests.support.messages_checker import check_messages


@dataclass
class Heard:
    """`calls` are names and arguments, which are a text where they are no JSON."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, object]] = field(default_factory=list)
    finish: str | None = None
    failed: bool = False

    def add_call(self, name: str, arguments: Any) -> None:
        try:
            given = json.loads(arguments) if isinstance(arguments, str) else arguments
        except ValueError:
            given = arguments
        self.calls.append((name, given))


def hear_chat(data: bytes, *, texts_agree: bool = True) -> Heard:
    seen = check_chat(data)
    choice = seen.choices.get(0)
    heard = Heard(failed=seen.error is not None)
    if choice is not None:
        heard.text = choice.text
        heard.reasoning = choice.fields.get("reasoning_content", "")
        heard.finish = choice.finish
        for call in choice.calls.values():
            heard.add_call(call["name"], call["arguments"])
    return heard


def hear_responses(data: bytes, *, texts_agree: bool = True) -> Heard:
    seen = check_responses(data, texts_agree=texts_agree)
    final = seen.response
    heard = Heard(failed=final["status"] == "failed")
    for item in final["output"]:
        if item["type"] == "function_call":
            heard.add_call(item["name"], item["arguments"])
        elif item["type"] == "reasoning":
            heard.reasoning += "".join(part["text"] for part in item.get("content") or ())
        else:
            heard.text += "".join(part["text"] for part in item["content"])
    if not heard.failed:
        heard.finish = "tool_calls" if heard.calls else "stop"
    return heard


STOPS = {"end_turn": "stop", "tool_use": "tool_calls"}


def hear_messages(data: bytes, *, texts_agree: bool = True) -> Heard:
    seen = check_messages(data)
    heard = Heard(text=seen.text, reasoning="".join(seen.thinking), failed=seen.error is not None)
    for call in seen.calls:
        heard.add_call(call["name"], call["input"])
    heard.finish = STOPS.get(seen.stop_reason or "")
    return heard


CLIENTS: dict[str, Callable[..., Heard]] = {
    "chat": hear_chat,
    "responses": hear_responses,
    "messages": hear_messages,
}
