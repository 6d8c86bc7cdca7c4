"""Read and write the tools, tool choice and calls of Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from abridge.apis import openai
from abridge.apis.json import string
from abridge.apis.openai import nested, write_custom_tool
from abridge.apis.params import iter_objects, require_object, require_string
from abridge.apis.tools import wrap_free_text
from abridge.core.conversation import Json
from abridge.core.model_request import Tool, ToolCallPart, ToolChoice


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
    if tool.kind == "custom" and tool.parameters is None:
        return write_custom_tool(tool, nested)
    description = {"description": tool.description} if tool.description else {}
    function: Json = {"name": tool.name, **description}
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    if tool.strict:  # false is the default
        function["strict"] = True
    return nested("function", function)


def read_tool_choice(body: Json) -> ToolChoice | None:
    return openai.read_tool_choice(body, _read_tool_names, nested)


def _read_tool_names(entry: Json, param: str) -> Iterator[str]:
    """Yield the name of the tool that an entry names; a hosted tool's type is its name."""
    kind = string(entry.get("type"))
    if kind not in ("function", "custom"):
        yield kind
        return
    inner = entry.get(kind)
    fields = inner if isinstance(inner, dict) else entry
    yield require_string(fields.get("name"), f"{param}.{kind}.name")


def write_tool_choice(choice: ToolChoice, tools: Mapping[str, Tool]) -> str | Json:
    return openai.write_tool_choice(choice, tools, nested)


def write_call(call: ToolCallPart, *, native: bool) -> Json:
    """Write a call of an earlier turn: without `native` a custom tool's as a function's."""
    if call.custom and native:
        return {"id": call.id, **nested("custom", {"name": call.name, "input": call.arguments})}
    arguments = wrap_free_text(call.arguments) if call.custom else call.arguments
    return {"id": call.id, **nested("function", {"name": call.name, "arguments": arguments})}
