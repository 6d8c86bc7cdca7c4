"""Read and write the tools, tool choice and calls of Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from abridge.turn.question import Tool, ToolCall, ToolChoice
from abridge.wire.asking.disguise import as_arguments
from abridge.wire.asking.require import a_string, an_object, entries, invalid
from abridge.wire.codec import Json, string

MODES = ("none", "auto", "required")


def read_tools(body: Json) -> Iterator[Tool]:
    for tool, param in entries(body.get("tools"), "tools"):
        yield _read(tool, param)


def _read(tool: Json, param: str) -> Tool:
    """Read a tool; a function may also be flat, as on Responses."""
    kind = a_string(tool.get("type", "function"), f"{param}.type")
    if kind not in ("function", "custom"):
        return Tool(kind, "hosted", spelled=tool, param=param)
    inner = tool.get(kind)
    holder = f"{param}.{kind}" if isinstance(inner, dict) else param
    said = inner if isinstance(inner, dict) else tool
    name = a_string(said.get("name"), f"{holder}.name")
    told = string(said.get("description"))
    read = Tool(name, description=told, own=name, spelled=tool, param=param)
    if kind == "custom":
        return replace(read, kind="custom", grammar=_grammar(said.get("format")))
    parameters = said.get("parameters")
    if parameters is not None:
        an_object(parameters, f"{holder}.parameters")
    return replace(read, parameters=parameters, strict=said.get("strict") is True)


def _grammar(format_: Any) -> Json | None:
    grammar = format_.get("grammar") if isinstance(format_, dict) else None
    return grammar if isinstance(grammar, dict) else None


def spell_tool(tool: Tool) -> Json:
    """Write a tool as a function, or as a custom tool if it has no parameters."""
    told = {"description": tool.description} if tool.description else {}
    if tool.kind == "custom" and tool.parameters is None:
        grammar = {"type": "grammar", "grammar": tool.grammar}
        asked = {"format": grammar} if tool.grammar else {}
        return {"type": "custom", "custom": {"name": tool.name, **told, **asked}}
    function: Json = {"name": tool.name, **told}
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    if tool.strict:  # false is the default
        function["strict"] = True
    return {"type": "function", "function": function}


def read_choice(body: Json) -> ToolChoice | None:
    choice = body.get("tool_choice")
    if choice is None or choice in MODES:
        return ToolChoice(choice) if choice else None
    said = an_object(choice, "tool_choice")
    if said.get("type") != "allowed_tools":
        return ToolChoice("required", (_named(said, "tool_choice"),))
    param = "tool_choice.allowed_tools"
    allowed = an_object(said.get("allowed_tools"), param)
    mode, tools = allowed.get("mode"), entries(allowed.get("tools"), f"{param}.tools")
    if mode not in MODES[1:]:
        raise invalid(mode, f"{param}.mode")
    return ToolChoice(mode, tuple(_named(tool, name) for tool, name in tools))


def _named(said: Json, param: str) -> str:
    """Return the name of the tool that an entry names; a hosted tool's type is its name."""
    kind = string(said.get("type"))
    if kind not in ("function", "custom"):
        return kind
    inner = said.get(kind)
    named = inner if isinstance(inner, dict) else said
    return a_string(named.get("name"), f"{param}.{kind}.name")


def spell_choice(choice: ToolChoice, tools: Mapping[str, Tool]) -> str | Json:
    """Write a tool choice; `tools` are those offered, by name."""
    if not choice.names:
        return choice.mode
    named = [_spell_named(name, tools.get(name)) for name in choice.names]
    if choice.mode == "required" and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": named}}


def _spell_named(name: str, tool: Tool | None) -> Json:
    custom = tool is not None and tool.kind == "custom" and tool.parameters is None
    kind = "custom" if custom else "function"
    return {"type": kind, kind: {"name": name}}


def spell_call(call: ToolCall, *, native: bool) -> Json:
    """Write a call of an earlier turn: without `native` a custom tool's as a function's."""
    if call.custom and native:
        custom = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": custom}
    arguments = as_arguments(call.arguments) if call.custom else call.arguments
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}
