"""What clients of three APIs hear, read and checked without Abridge's readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.support.checker import check_chat, check_responses
from tests.support.messages_checker import check_messages
from tests.support.nothing_lost import decode, spelled


@dataclass
class Heard:
    """`calls` are names and arguments: JSON with its numbers as they were spelled, or a text.
    `order` are the kinds of the parts, where the API has them one after the other."""

    text: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)
    finish: str | None = None
    failed: bool = False
    order: list[str] = field(default_factory=list)

    def add_call(self, name: str, arguments: str) -> None:
        try:
            self.calls.append((name, spelled(decode(arguments))))
        except ValueError:
            self.calls.append((name, arguments))


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
        heard.order.append("call" if item["type"] == "function_call" else item["type"])
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
    deltas = [event for event in seen.events if event["type"] == "content_block_delta"]
    for number, block in enumerate(seen.blocks):
        heard.order.append("call" if block["type"] == "tool_use" else block["type"])
        if block["type"] == "tool_use":
            own = [event["delta"] for event in deltas if event["index"] == number]
            arguments = "".join(delta.get("partial_json", "") for delta in own)
            heard.add_call(block["name"], arguments or "{}")
    heard.finish = STOPS.get(seen.stop_reason or "")
    return heard


CLIENTS: dict[str, Callable[..., Heard]] = {
    "chat": hear_chat,
    "responses": hear_responses,
    "messages": hear_messages,
}
