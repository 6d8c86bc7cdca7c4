"""Turns with reasoning and calls in every upstream API, and the attributions a client reads."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

from tests.apis.gemini import scripts as gemini
from tests.apis.interactions import scripts as interactions
from tests.apis.messages import scripts as messages
from tests.support.checker import (
    CallAttribution,
    attribution_of,
    check_attributions,
    check_chat,
    check_responses,
)
from tests.support.messages_checker import check_message, check_messages
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
"""`think`, `redact`, `say` or `call`, and its text."""

ARGUMENTS = '{"where": "here"}'
MARKS = ("reasoning", "reasoning_ref")


def encode_turn(api: str, steps: list[Step], *, stream: bool) -> bytes:
    """Encode the turn as an upstream of the API sends it."""
    match api:
        case "chat":
            return b"".join(chat_frames(steps)) if stream else _body(chat_body(steps))
        case "responses":
            output = items(steps)
            return b"".join(responses_stream(output)) if stream else _body(response(output))
        case "gemini":
            parts = list(map(_part, count(), steps))
            return b"".join(gemini.stream(parts)) if stream else _body(gemini.whole(parts))
        case "interactions":
            said = list(map(_step, count(), steps))
            if stream:
                return b"".join(interactions.stream(said))
            return _body(interactions.whole(said))
        case _:
            content, stop = blocks(steps), "tool_use"
            whole = messages.message(content, stop)
            return b"".join(messages.stream(content, stop)) if stream else _body(whole)


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


def _part(number: int, step: Step) -> Json:
    """Return a part; a redacted thought is the signature of a text."""
    kind, text = step
    match kind:
        case "think":
            return gemini.thought(text)
        case "redact":
            return gemini.signed(gemini.text(""), f"red{number}")
        case "say":
            return gemini.text(text)
    return gemini.signed(gemini.function_call(f"fc_{number}", **json.loads(ARGUMENTS)), "c2ln")


def _step(number: int, step: Step) -> Json:
    """Return a step; a redacted thought has no summary."""
    kind, text = step
    match kind:
        case "think" | "redact":
            return interactions.thought(text if kind == "think" else "", f"sig{number}")
        case "say":
            return interactions.output(text)
    return interactions.function_call(f"fc_{number}", **json.loads(ARGUMENTS))


def deltas(steps: list[Step]) -> list[Json]:
    """Put reasoning into its own field; where some is redacted, also into OpenRouter's list."""
    made_deltas: list[Json] = []
    calls = 0
    for number, (kind, text) in enumerate(steps):
        if kind == "call":
            made = {**call("look", "", calls), "id": f"call_{number}"}
            made_deltas.append({"tool_calls": [made]})
            made_deltas += [
                {"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}
                for piece in pieces(ARGUMENTS)
            ]
            calls += 1
        elif kind == "redact":
            entry = {"type": "reasoning.encrypted", "data": f"red{number}", "index": number}
            made_deltas.append({"reasoning_details": [entry]})
        elif kind == "think":
            made_deltas += [_thought(piece, number, steps) for piece in pieces(text)]
        else:
            made_deltas += [{"content": piece} for piece in pieces(text)]
    return made_deltas


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
    """Build the whole message, which no longer says which reasoning preceded which call."""
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


def read_attributions(api: str, data: bytes, *, stream: bool) -> list[CallAttribution]:
    """Read and check the attribution of each call in a client's answer."""
    if api == "chat":
        if stream:
            return check_chat(data).choices[0].attributions
        message = json.loads(data)["choices"][0]["message"]
        calls = message.get("tool_calls") or []
    elif api == "messages":
        message = check_messages(data).message if stream else check_message(json.loads(data))
        calls = [block for block in message["content"] if block["type"] == "tool_use"]
    else:
        final = check_responses(data).response if stream else json.loads(data)
        calls = [item for item in final["output"] if item["type"].endswith("_call")]
    found = [attribution_of(call) for call in calls]
    check_attributions([call.get("call_id") or call.get("id", "") for call in calls], found)
    return found


def attribution_texts(found: list[CallAttribution]) -> list[Any]:
    """Return each attribution's texts, or whether it is a reference."""
    return [
        [part.get("text", "[redacted]") for part in one] if isinstance(one, list) else bool(one)
        for one in found
    ]


def expected_texts(steps: list[Step], *, joins: bool = False) -> list[Any]:
    """Return the `attribution_texts` that the rules require.

    With `joins`, reasoning is one text, unless it comes as a list.
    """
    joins = joins and ("redact", "") not in steps
    found: list[Any] = []
    pending: list[str] = []
    for kind, text in steps:
        if kind == "redact":
            pending.append("[redacted]")
        elif kind == "think" and joins and pending:
            pending[-1] += text
        elif kind == "think":
            pending.append(text)
        elif kind == "call":
            found.append(pending or any(isinstance(one, list) for one in found))
            pending = []
    return found


def without_attributions(body: Any) -> Any:
    """Return a body without its attributions."""
    if isinstance(body, list):
        return [without_attributions(entry) for entry in body]
    if not isinstance(body, dict):
        return body
    called = bool(body.keys() & {"arguments", "function", "action", "input"})
    return {
        key: without_attributions(value)
        for key, value in body.items()
        if not (called and key in MARKS)
    }


def _body(body: Json) -> bytes:
    return json.dumps(body).encode()
