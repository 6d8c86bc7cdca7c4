"""One turn of a scripted model, as an upstream of any API says it, with calls of any tool."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

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
    """A turn that streams. `first` numbers its calls, whose ids differ within a conversation."""
    spelled = [(number, name, json.dumps(said)) for number, (name, said) in enumerate(calls, first)]
    if api == "chat":
        made = [
            {**call(name, said, number), "index": index}
            for index, (number, name, said) in enumerate(spelled)
        ]
        finish = "tool_calls" if calls else "stop"
        return Answer(chat_stream(thought, text, calls=made, finish=finish))
    if api == "responses":
        output = [reasoning_item(first, thought)] if thought else []
        output += [message_item(first, text)] if text else []
        output += [call_item(number, name, said) for number, name, said in spelled]
        return Answer(responses_stream(output))
    blocks = [messages.thinking(thought, f"c2ln{first:04}")] if thought else []
    blocks += [messages.text(text)] if text else []
    blocks += [
        messages.tool_use(number, name, **said) for number, (name, said) in enumerate(calls, first)
    ]
    return Answer(messages.stream(blocks, "tool_use" if calls else "end_turn"))
