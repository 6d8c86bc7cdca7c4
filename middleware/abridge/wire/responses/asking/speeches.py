"""Read the input of a request as messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from abridge.turn.question import (
    SIGNED,
    File,
    Foreign,
    Image,
    Part,
    Role,
    Speech,
    Text,
    Thought,
    ToolCall,
    ToolOutput,
)
from abridge.turn.speeches import as_one
from abridge.wire.asking.disguise import shell_arguments
from abridge.wire.asking.offer import Names
from abridge.wire.asking.require import a_list, a_string, an_object, arguments, entries, invalid
from abridge.wire.codec import Json, dumps, string
from abridge.wire.responses.asking.parts import read_parts
from abridge.wire.responses.asking.tools import ADDITIONAL, FOUND, read_found
from abridge.wire.responses.items import raw_text, texts

ROLES: Mapping[str, Role] = MappingProxyType(
    {"user": "user", "assistant": "assistant", "system": "system", "developer": "developer"}
)
ELSEWHERE = ("prompt", "conversation", "previous_response_id")
"""Fields that refer to input which the request does not hold."""

REFERRED = (
    "This model's API stores nothing that an item could refer to: send the item itself, as clients "
    "do with store: false."
)
"""Error for a client that assumes `store`, the default: the AI SDK then sends only ids."""

RESTING = frozenset({"web_search_call", "mcp_list_tools"})
"""Items of hosted tools that the model can do without in its next answer."""


def read_speeches(body: Json, names: Names) -> Iterator[Speech]:
    """Yield the messages.

    Consecutive items of the assistant, or of tools, are one message. Each message of another role
    is one of its own.
    """
    instructions = body.get("instructions")
    if instructions:
        yield Speech("system", read_parts(instructions, "instructions"), param="instructions")
    given = body.get("input")
    if isinstance(given, str):
        yield Speech("user", read_parts(given, "input"), param="input")
        return
    if given is None and any(map(body.get, ELSEWHERE)):
        return
    running: Speech | None = None
    for item, param in entries(a_list(given, "input"), "input"):
        if item.get("type") == ADDITIONAL:
            continue
        speech = _read(item, param, names)
        if running is not None and running.role == speech.role:
            running.parts += speech.parts
            continue
        if running is not None:
            yield running
            running = None
        if speech.role in ("assistant", "tool"):
            running = speech
        else:
            yield speech
    if running is not None:
        yield running


def _read(item: Json, param: str, names: Names) -> Speech:
    kind = string(item.get("type"))
    if kind in _READERS:
        role, read = _READERS[kind]
        return Speech(role, [read(item, param, names)], param=param)
    if kind in ("", "message") and "role" in item:
        return _message(item, param)
    speaker: Role = "tool" if "output" in item else "assistant"
    message = REFERRED if kind in ("item_reference", "") else ""
    part = Foreign(item, param, matters=kind not in RESTING, message=message)
    return Speech(speaker, [part], param=param)


def _message(item: Json, param: str) -> Speech:
    role = string(item.get("role"))
    if role not in ROLES:
        raise invalid(item.get("role"), f"{param}.role")
    parts = read_parts(item.get("content"), f"{param}.content")
    if role == "assistant":
        parts = as_one(parts)
    return Speech(ROLES[role], parts, param=param)


def _thought(item: Json, param: str, _: Names) -> Part:
    sealed = string(item.get("encrypted_content"))
    signed = sealed.startswith(SIGNED)
    return Thought(
        text=raw_text(item),
        summary=tuple(text for text in texts(item.get("summary")) if text.strip()),
        sealed=sealed.removeprefix(SIGNED),
        signed=signed,
        id=string(item.get("id")),
        param=param,
    )


def _function_call(item: Json, param: str, names: Names) -> Part:
    identity, name = _called(item, param, names)
    return ToolCall(identity, name, arguments(item.get("arguments")))


def _custom_call(item: Json, param: str, names: Names) -> Part:
    identity, name = _called(item, param, names)
    return ToolCall(identity, name, string(item.get("input")), custom=True)


def _called(item: Json, param: str, names: Names) -> tuple[str, str]:
    """Return a call's id, which is not its item's, and the tool's name for upstream."""
    own = a_string(item.get("name"), f"{param}.name")
    name = names.give(own, string(item.get("namespace")))
    return a_string(item.get("call_id"), f"{param}.call_id"), name


def _shell_call(item: Json, param: str, names: Names) -> Part:
    given = shell_arguments(an_object(item.get("action"), f"{param}.action"))
    return ToolCall(_call_id(item), names.give("local_shell"), given)


def _search_call(item: Json, param: str, names: Names) -> Part:
    """Read a tool search. One that OpenAI ran itself means nothing to another model."""
    if item.get("execution") == "server":
        return Foreign(item, param, matters=False)
    arguments = an_object(item.get("arguments"), f"{param}.arguments")
    return ToolCall(_call_id(item), names.give("tool_search"), dumps(arguments).decode())


def _found(item: Json, param: str, names: Names) -> Part:
    """Read the result of a tool search. The tools themselves are offered with the others."""
    if item.get("execution") == "server":
        return Foreign(item, param, matters=False)
    found = read_found(item, param, names)
    told = f"Found, and offered from now on: {', '.join(found)}" if found else "Found nothing."
    return ToolOutput(_call_id(item), (Text(told),))


def _output(item: Json, param: str, _: Names) -> Part:
    parts = read_parts(item.get("output"), f"{param}.output")
    kept = tuple(part for part in parts if isinstance(part, Text | Image | File))
    if len(kept) < len(parts):
        return Foreign(item, f"{param}.output")
    call = _call_id(item) if item.get("type") == "local_shell_call_output" else item.get("call_id")
    return ToolOutput(a_string(call, f"{param}.call_id"), kept)


def _call_id(item: Json) -> str:
    """Return the call's id. Shell items sometimes lack `call_id` and have it in `id`."""
    return string(item.get("call_id")) or string(item.get("id"))


_READERS: Mapping[str, tuple[Role, Callable[[Json, str, Names], Any]]] = MappingProxyType(
    {
        "reasoning": ("assistant", _thought),
        "function_call": ("assistant", _function_call),
        "custom_tool_call": ("assistant", _custom_call),
        "local_shell_call": ("assistant", _shell_call),
        "tool_search_call": ("assistant", _search_call),
        "function_call_output": ("tool", _output),
        "custom_tool_call_output": ("tool", _output),
        "local_shell_call_output": ("tool", _output),
        FOUND: ("tool", _found),
    }
)
