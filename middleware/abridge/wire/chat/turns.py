"""A message as a turn: what it says, and what of it stands for reasoning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from abridge.turn.conversation import Call, Turn
from abridge.wire.chat.dialects import (
    PLAIN,
    answer_text,
    find,
    without_chunks,
)
from abridge.wire.chat.inline import split_inline
from abridge.wire.chat.message import STATE
from abridge.wire.codec import Json, objects, string
from abridge.wire.profiles import PROFILES


def turn_of(message: Json) -> Turn:
    """The turn that a message is. Only an assistant's holds reasoning."""
    role, content = string(message.get("role")), message.get("content")
    if role != "assistant":
        answers = string(message.get("tool_call_id"))
        return Turn(role, text_of(content), answers=answers, items=[message])
    text, shown = told(message)
    return Turn(
        role,
        text,
        calls=tuple(_calls(message)),
        shown=shown,
        opaque=any(holder.get(STATE) for holder in holders(message)),
        items=[message],
    )


def told(message: Json) -> tuple[str, tuple[str, ...]]:
    """A message's answer, and the texts that stand where reasoning does. What stands inline before
    the answer is reasoning, unless that stands elsewhere."""
    content, found = message.get("content"), find(message)
    inline, answer = split_inline(content, PROFILES["auto"], alone=True)
    plain = [string(message.get(name)) for name in PLAIN]
    shown = filter(None, [*plain, found.text if found is not None else "", inline])
    text = text_of(answer if found is None else content) or string(message.get("refusal"))
    return text, tuple(shown)


def text_of(content: Any) -> str:
    """All that a content says: its text, and what is no text as JSON."""
    if isinstance(content, str):
        return content
    others = [
        json.dumps(chunk, sort_keys=True)
        for chunk in objects(content)
        if "text" not in chunk and chunk.get("type") != "thinking"
    ]
    return "\n".join([answer_text(content), *others])


def _calls(message: Json) -> Iterator[Call]:
    for call in objects(message.get("tool_calls")):
        function = call.get("function") or call.get("custom")
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments", function.get("input"))
        yield Call(string(call.get("id")), string(function.get("name")), string(arguments))


def answer_of(content: Any) -> Any:
    """A content less the reasoning before it."""
    return split_inline(without_chunks(content), PROFILES["auto"], alone=True)[1]


def holders(message: Json) -> list[Json]:
    """Where opaque state may stand beside an answer."""
    return [message, *objects(message.get("tool_calls"))]
