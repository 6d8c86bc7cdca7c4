"""One turn of a scripted model with any calls, as an upstream of any API sends it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.apis.gemini import scripts as gemini
from tests.apis.interactions import scripts as interactions
from tests.apis.messages import scripts as messages
from tests.support.streams import (
    THOUGHT,
    call,
    call_item,
    chat_stream,
    message_item,
    reasoning_item,
    responses_stream,
)
from tests.support.upstream import Answer

Call = tuple[str, Mapping[str, Any]]


def turn(api: str, text: str = "", *calls: Call, thought: str = THOUGHT, first: int = 0) -> Answer:
    """Return a streamed turn. `first` numbers its calls, whose ids are unique in a conversation."""
    encoded = [
        (number, name, json.dumps(arguments))
        for number, (name, arguments) in enumerate(calls, first)
    ]
    if api == "chat":
        made = [
            {**call(name, arguments, number), "index": index}
            for index, (number, name, arguments) in enumerate(encoded)
        ]
        finish = "tool_calls" if calls else "stop"
        return Answer(chat_stream(thought, text, calls=made, finish=finish))
    if api == "responses":
        output = [reasoning_item(first, thought)] if thought else []
        output += [message_item(first, text)] if text else []
        output += [call_item(number, name, arguments) for number, name, arguments in encoded]
        return Answer(responses_stream(output))
    if api == "gemini":
        parts = [gemini.thought(thought)] if thought else []
        parts += [gemini.text(text)] if text else []
        made = [
            gemini.function_call(f"fc_{number}", name, **arguments)
            for number, (name, arguments) in enumerate(calls, first)
        ]
        signed = [gemini.signed(part, f"c2ln{first:04}") for part in made[:1]]
        return Answer(gemini.stream([*parts, *signed, *made[1:]]))
    if api == "interactions":
        steps = [interactions.thought(thought, f"c2ln{first:04}")] if thought else []
        steps += [interactions.output(text)] if text else []
        steps += [
            interactions.function_call(f"fc_{number}", name, **arguments)
            for number, (name, arguments) in enumerate(calls, first)
        ]
        return Answer(interactions.stream(steps))
    blocks = [messages.thinking(thought, f"c2ln{first:04}")] if thought else []
    blocks += [messages.text(text)] if text else []
    blocks += [
        messages.tool_use(number, name, **arguments)
        for number, (name, arguments) in enumerate(calls, first)
    ]
    frames = messages.stream(blocks, "tool_use" if calls else "end_turn")
    own_id = f'"msg_{first}_{len(text)}"'.encode()  # Claude Code takes two of one id for one
    return Answer([frame.replace(b'"msg_1"', own_id) for frame in frames])
