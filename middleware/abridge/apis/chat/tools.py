"""Read and write the tools, tool choice and calls of Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from abridge.apis.json import string
from abridge.apis.params import invalid_value_error, iter_objects, require_object, require_string
from abridge.apis.tools import wrap_free_text
from abridge.core.conversation import Json
from abridge.core.model_request import Tool, ToolCallPart, ToolChoice

CHOICE_MODES = ("none", "auto", "required")


def read_tools(body: Json) -> Iterator[Tool]:
    for tool, param in iter_objects(body.get("tools"), "tools"):
        yield _read_tool(tool, param)


def _read_tool(tool: Json, param: str) -> Tool:
    """Read a tool; a function may also be flat, as on Responses."""
    kind = require_string(tool.get("type", "function"), f"{param}.type")
    if kind not in ("function", "custom"):
        return Tool(kind, "hosted", source=tool, param=param)
    inner = tool.get(kind)
    holder = f"{param}.{kind}" if isinstance(inner, dict) else param
    fields = inner if isinstance(inner, dict) else tool
    name = require_string(fields.get("name"), f"{holder}.name")
    description = string(fields.get("description"))
    read = Tool(name, description=description, client_name=name, source=tool, param=param)
    if kind == "custom":
        return replace(read, kind="custom", grammar=_read_grammar(fields.get("format")))
    parameters = fields.get("parameters")
    if parameters is not None:
        require_object(parameters, f"{holder}.parameters")
    return replace(read, parameters=parameters, strict=fields.get("strict") is True)


def _read_grammar(format_: Any) -> Json | None:
    grammar = format_.get("grammar") if isinstance(format_, dict) else None
    return grammar if isinstance(grammar, dict) else None


def write_tool(tool: Tool) -> Json:
    """Write a tool as a function, or as a custom tool if it has no parameters."""
    description = {"description": tool.description} if tool.description else {}
    if tool.kind == "custom" and tool.parameters is None:
        grammar = {"type": "grammar", "grammar": tool.grammar}
        format_ = {"format": grammar} if tool.grammar else {}
        return {"type": "custom", "custom": {"name": tool.name, **description, **format_}}
    function: Json = {"name": tool.name, **description}
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    if tool.strict:  # false is the default
        function["strict"] = True
    return {"type": "function", "function": function}


def read_tool_choice(body: Json) -> ToolChoice | None:
    choice = body.get("tool_choice")
    if choice is None or choice in CHOICE_MODES:
        return ToolChoice(choice) if choice else None
    entry = require_object(choice, "tool_choice")
    if entry.get("type") != "allowed_tools":
        return ToolChoice("required", (_read_tool_name(entry, "tool_choice"),))
    param = "tool_choice.allowed_tools"
    allowed = require_object(entry.get("allowed_tools"), param)
    mode, tools = allowed.get("mode"), iter_objects(allowed.get("tools"), f"{param}.tools")
    if mode not in CHOICE_MODES[1:]:
        raise invalid_value_error(mode, f"{param}.mode")
    return ToolChoice(mode, tuple(_read_tool_name(tool, name) for tool, name in tools))


def _read_tool_name(entry: Json, param: str) -> str:
    """Return the name of the tool that an entry names; a hosted tool's type is its name."""
    kind = string(entry.get("type"))
    if kind not in ("function", "custom"):
        return kind
    inner = entry.get(kind)
    fields = inner if isinstance(inner, dict) else entry
    return require_string(fields.get("name"), f"{param}.{kind}.name")


def write_tool_choice(choice: ToolChoice, tools: Mapping[str, Tool]) -> str | Json:
    """Write a tool choice; `tools` are those offered, by name."""
    if not choice.names:
        return choice.mode
    named = [_write_named_tool(name, tools.get(name)) for name in choice.names]
    if choice.mode == "required" and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": named}}


def _write_named_tool(name: str, tool: Tool | None) -> Json:
    custom = tool is not None and tool.kind == "custom" and tool.parameters is None
    kind = "custom" if custom else "function"
    return {"type": kind, kind: {"name": name}}


def write_call(call: ToolCallPart, *, native: bool) -> Json:
    """Write a call of an earlier turn: without `native` a custom tool's as a function's."""
    if call.custom and native:
        custom = {"name": call.name, "input": call.arguments}
        return {"id": call.id, "type": "custom", "custom": custom}
    arguments = wrap_free_text(call.arguments) if call.custom else call.arguments
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}
