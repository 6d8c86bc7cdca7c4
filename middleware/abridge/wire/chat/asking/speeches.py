"""Read the messages of a request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from abridge.turn.question import (
    Audio,
    File,
    Foreign,
    Image,
    Part,
    Refusal,
    Role,
    Speech,
    Text,
    Thought,
    ToolCall,
    ToolOutput,
)
from abridge.turn.speeches import as_one
from abridge.wire.asking.require import a_list, a_string, arguments, entries, invalid
from abridge.wire.chat.asking.parts import read_parts
from abridge.wire.chat.asking.thoughts import read_thoughts, without_inline
from abridge.wire.codec import Json, string

ROLES = get_args(Role)


def read_speeches(body: Json) -> Iterator[Speech]:
    """Read each message; consecutive tool messages become one."""
    outputs: Speech | None = None
    for message, param in entries(a_list(body.get("messages"), "messages"), "messages"):
        speech = _read(message, param)
        if speech.role == "tool" and outputs is not None:
            outputs.parts += speech.parts
            continue
        outputs = speech if speech.role == "tool" else None
        yield speech


def _read(message: Json, param: str) -> Speech:
    role: Any = message.get("role")
    if role == "function":  # a call's output, in the API before tools
        return Speech("tool", [Foreign(message, param)], param=param)
    if role not in ROLES:
        raise invalid(role, f"{param}.role")
    if role == "assistant":
        parts = _answer(message, param)
    else:
        parts = read_parts(message.get("content"), f"{param}.content")
    if role == "tool":
        parts = _output(message, param, parts)
    return Speech(role, parts, name=string(message.get("name")), param=param)


def _answer(message: Json, param: str) -> list[Part]:
    """Read an assistant's message: its reasoning, its text, its calls."""
    parts = read_thoughts(message, param)
    thought = any(isinstance(part, Thought) for part in parts)
    inline, content = without_inline(message.get("content"), thought=thought)
    if inline.strip():
        parts.append(Thought(inline, param=f"{param}.content"))
    parts += as_one(read_parts(content, f"{param}.content"))
    if refusal := string(message.get("refusal")):
        parts.append(Refusal(refusal))
    if isinstance(audio := message.get("audio"), dict):
        parts.append(Audio(id=string(audio.get("id")), param=f"{param}.audio"))
    if message.get("function_call"):
        parts.append(Foreign(message, f"{param}.function_call"))
    calls = entries(message.get("tool_calls"), f"{param}.tool_calls")
    return [*parts, *(_call(call, name) for call, name in calls)]


def _call(call: Json, param: str) -> ToolCall:
    custom = isinstance(call.get("custom"), dict)
    called = call.get("custom" if custom else "function")
    called = called if isinstance(called, dict) else {}
    given = arguments(called.get("input" if custom else "arguments"))
    kind = "custom" if custom else "function"
    id_ = a_string(call.get("id"), f"{param}.id")
    name = a_string(called.get("name"), f"{param}.{kind}.name")
    return ToolCall(id_, name, given, custom=custom)


def _output(message: Json, param: str, parts: list[Part]) -> list[Part]:
    """Read a tool's message: its output, then the parts that no API takes from tools."""
    kept = tuple(part for part in parts if isinstance(part, Text | Image | File))
    others = [part for part in parts if not isinstance(part, Text | Image | File)]
    call = a_string(message.get("tool_call_id"), f"{param}.tool_call_id")
    return [ToolOutput(call, kept), *others]
