"""Turns with reasoning and calls, as an upstream of any API sends them, and the attribution that a
client finds in an answer.
"""

from __future__ import annotations

import json
from typing import Any

from tests.apis.messages import scripts as messages
from tests.support.checker import Led, check_chat, check_led, check_responses, led_to
from tests.support.streams import (
    DONE,
    call,
    call_item,
    chunk,
    completion,
    message_item,
    pieces,
    reasoning_item,
    response,
    responses_stream,
)

Json = dict[str, Any]
Step = tuple[str, str]
"""`think`, `redact`, `say` or `call`, and what is thought or said."""

ARGUMENTS = '{"where": "here"}'
MARKS = ("reasoning", "reasoning_ref")


def spelled(api: str, steps: list[Step], *, stream: bool) -> bytes:
    """The turn, as an upstream says it."""
    match api:
        case "chat":
            return b"".join(chat_frames(steps)) if stream else _body(chat_body(steps))
        case "responses":
            output = items(steps)
            return b"".join(responses_stream(output)) if stream else _body(response(output))
        case _:
            said, stop = blocks(steps), "tool_use"
            whole = messages.message(said, stop)
            return b"".join(messages.stream(said, stop)) if stream else _body(whole)


def items(steps: list[Step]) -> list[Json]:
    return [_item(number, *step) for number, step in enumerate(steps)]


def _item(number: int, kind: str, text: str) -> Json:
    match kind:
        case "think":
            return reasoning_item(number, text)
        case "redact":
            return reasoning_item(number, "", encrypted_content=f"gAAAA{number}")
        case "say":
            return message_item(number, text)
    return call_item(number, "look", ARGUMENTS)


def blocks(steps: list[Step]) -> list[Json]:
    return [_block(number, *step) for number, step in enumerate(steps)]


def _block(number: int, kind: str, text: str) -> Json:
    match kind:
        case "think":
            return messages.thinking(text, f"sig{number}")
        case "redact":
            return messages.redacted(f"red{number}")
        case "say":
            return messages.text(text)
    return messages.tool_use(number, "look", **json.loads(ARGUMENTS))


def deltas(steps: list[Step]) -> list[Json]:
    """Reasoning in a field of its own; as OpenRouter has it, in a list as well, where there is some
    that nobody shows."""
    said: list[Json] = []
    calls = 0
    for number, (kind, text) in enumerate(steps):
        if kind == "call":
            made = {**call("look", "", calls), "id": f"call_{number}"}
            said.append({"tool_calls": [made]})
            said += [
                {"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}
                for piece in pieces(ARGUMENTS)
            ]
            calls += 1
        elif kind == "redact":
            entry = {"type": "reasoning.encrypted", "data": f"red{number}", "index": number}
            said.append({"reasoning_details": [entry]})
        elif kind == "think":
            said += [_thought(piece, number, steps) for piece in pieces(text)]
        else:
            said += [{"content": piece} for piece in pieces(text)]
    return said


def _thought(text: str, number: int, steps: list[Step]) -> Json:
    if ("redact", "") not in steps:
        return {"reasoning_content": text}
    entry = {"type": "reasoning.text", "text": text, "index": number}
    return {"reasoning": text, "reasoning_details": [entry]}


def chat_frames(steps: list[Step], index: int = 0) -> list[bytes]:
    first = chunk({"role": "assistant", "content": ""}, index=index)
    rest = [chunk(delta, index=index) for delta in deltas(steps)]
    return [first, *rest, chunk({}, index=index, finish="tool_calls"), DONE]


def chat_body(steps: list[Step]) -> Json:
    """The deltas' sum, in which it is lost what was thought before which call."""
    message: Json = {"content": "".join(text for kind, text in steps if kind == "say")}
    thought = "".join(text for kind, text in steps if kind == "think")
    if ("redact", "") in steps:
        message["reasoning"] = thought
        message["reasoning_details"] = [
            {"type": "reasoning.encrypted", "data": "red", "index": number}
            if kind == "redact"
            else {"type": "reasoning.text", "text": text, "index": number}
            for number, (kind, text) in enumerate(steps)
            if kind in ("think", "redact")
        ]
    elif thought:
        message["reasoning_content"] = thought
    made = call("look", ARGUMENTS)
    calls = [
        {**made, "id": f"call_{number}"} for number, (kind, _) in enumerate(steps) if kind == "call"
    ]
    return completion({**message, "tool_calls": calls} if calls else message)


def told(api: str, data: bytes, *, stream: bool) -> list[Led]:
    """What led to each call, as a client of an API is told, strictly."""
    if api == "chat":
        if stream:
            return check_chat(data).choices[0].led
        message = json.loads(data)["choices"][0]["message"]
        calls = message.get("tool_calls") or []
    else:
        final = check_responses(data).response if stream else json.loads(data)
        calls = [item for item in final["output"] if item["type"].endswith("_call")]
    led = [led_to(call) for call in calls]
    check_led([call.get("call_id") or call.get("id", "") for call in calls], led)
    return led


def gist(led: list[Led]) -> list[Any]:
    """The texts, whatever they are called; and whether there is a reference."""
    return [
        [part.get("text", "[redacted]") for part in one] if isinstance(one, list) else bool(one)
        for one in led
    ]


def expected(steps: list[Step], *, joins: bool = False) -> list[Any]:
    """What is to be told, in the manner of `gist`, by the rules one by one. With `joins` true
    reasoning is one text, unless there is a list of it."""
    joins = joins and ("redact", "") not in steps
    led: list[Any] = []
    pending: list[str] = []
    for kind, text in steps:
        if kind == "redact":
            pending.append("[redacted]")
        elif kind == "think" and joins and pending:
            pending[-1] += text
        elif kind == "think":
            pending.append(text)
        elif kind == "call":
            led.append(pending or any(isinstance(one, list) for one in led))
            pending = []
    return led


def unmarked(said: Any) -> Any:
    """A body without what was said of its calls."""
    if isinstance(said, list):
        return [unmarked(entry) for entry in said]
    if not isinstance(said, dict):
        return said
    called = bool(said.keys() & {"arguments", "function", "action", "input"})
    return {key: unmarked(value) for key, value in said.items() if not (called and key in MARKS)}


def _body(said: Json) -> bytes:
    return json.dumps(said).encode()
