"""Read a message as a turn: its answer, and what in it stands for reasoning."""

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
    """Read a message as a turn. Only an assistant's can hold reasoning."""
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
    """Return a message's answer, and the texts in the places of reasoning.

    Inline reasoning before the answer counts as such, unless a field holds the reasoning.
    """
    content, found = message.get("content"), find(message)
    inline, answer = split_inline(content, PROFILES["auto"], alone=True)
    plain = [string(message.get(name)) for name in PLAIN]
    shown = filter(None, [*plain, found.text if found is not None else "", inline])
    text = text_of(answer if found is None else content) or string(message.get("refusal"))
    return text, tuple(shown)


def text_of(content: Any) -> str:
    """Return a content as text, with chunks of other types as JSON; thinking is left out."""
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
    """Return a content without thinking chunks and inline reasoning."""
    return split_inline(without_chunks(content), PROFILES["auto"], alone=True)[1]


def holders(message: Json) -> list[Json]:
    """Return the objects that may hold opaque state in `extra_content`: the message, its calls."""
    return [message, *objects(message.get("tool_calls"))]
