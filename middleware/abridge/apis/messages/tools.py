"""Read the tools of a request and its tool choice, and write those of one for upstream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal

from abridge.apis.fields import (
    invalid_value_error,
    iter_objects,
    read_flag,
    require_object,
    require_string,
)
from abridge.apis.json import string
from abridge.apis.messages.client_tools import find_client_tool
from abridge.apis.tools import ToolNames, as_function, narrow_choice, select_tools
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, Tool, ToolChoice, Unsupported
from abridge.providers.claude import ModelCapabilities

EMPTY_SCHEMA: Json = {"type": "object", "properties": {}}

NO_FORCED_TOOL = "This model does not let a tool be forced; it was left to choose."

NO_STRICT_TOOLS = "This model has no strict tools."

CHOICE_MODES: Mapping[str, Literal["none", "auto", "required"]] = {
    "auto": "auto",
    "any": "required",
    "tool": "required",
    "none": "none",
}
"""The mode of a tool choice, by its type (anthropic-sdk-python, `ToolChoiceParam`)."""


# Read


def read_tools(body: Json, names: ToolNames) -> Iterator[Tool]:
    for tool, param in iter_objects(body.get("tools"), "tools", dotted=True):
        yield _read_tool(tool, param, names)


def _read_tool(tool: Json, param: str, names: ToolNames) -> Tool:
    """Read a tool. One of Anthropic's that the client runs is a function of known parameters; one
    that Anthropic runs is hosted."""
    kind = string(tool.get("type")) or "custom"
    known = find_client_tool(tool)
    if kind != "custom" and known is None:
        return Tool(kind, "hosted", client_name=string(tool.get("name")), source=tool, param=param)
    client_name = require_string(tool.get("name"), f"{param}.name")
    named = Tool(names.assign(client_name), client_name=client_name, source=tool, param=param)
    if known is not None:
        return replace(named, description=known.description, parameters=known.parameters)
    return replace(
        named,
        description=string(tool.get("description")),
        parameters=require_object(tool.get("input_schema"), f"{param}.input_schema"),
        strict=read_flag(tool, "strict", f"{param}."),
    )


def read_tool_choice(body: Json, tools: list[Tool], names: ToolNames) -> ToolChoice | None:
    """Read the tool choice. A hosted tool is chosen by its type, as it is named among the tools."""
    if body.get("tool_choice") is None:
        return None
    choice = require_object(body["tool_choice"], "tool_choice")
    kind = require_string(choice.get("type"), "tool_choice.type")
    if kind not in CHOICE_MODES:
        raise invalid_value_error(kind, "tool_choice.type")
    if kind != "tool":
        return ToolChoice(CHOICE_MODES[kind])
    client_name = require_string(choice.get("name"), "tool_choice.name")
    hosted = {tool.client_name: tool.name for tool in tools if tool.kind == "hosted"}
    return ToolChoice("required", (hosted.get(client_name) or names.assigned_name(client_name),))


# Write


class ToolOffer:
    """The tools offered upstream.

    `tools` are the tools by name, `definitions` the same in Anthropic's format. `choice` is None if
    none has to be sent. `forced`: some tool must be called.
    """

    def __init__(self, request: ModelRequest, capabilities: ModelCapabilities) -> None:
        available, self.unsupported = select_tools(request)
        choice, chosen = narrow_choice(request.tool_choice, available)
        self.forced = False
        self.tools = {tool.name: as_function(tool) for tool in chosen}
        self.definitions = [self._write_tool(tool, capabilities) for tool in self.tools.values()]
        self.choice = self._write_choice(choice, request, capabilities) if self.tools else None

    def _write_tool(self, tool: Tool, capabilities: ModelCapabilities) -> Json:
        """Write one tool. Set `strict` only if the schema allows it; otherwise do as Responses
        does, which attempts strict mode and goes on without."""
        schema = {**EMPTY_SCHEMA, **(tool.parameters or {})}
        definition: Json = {"name": tool.name, "input_schema": schema}
        if tool.description:
            definition["description"] = tool.description
        if tool.strict and schema.get("additionalProperties") is False:
            if capabilities.structured_outputs:
                definition["strict"] = True
            else:
                self.unsupported.append(Unsupported(tool.param, NO_STRICT_TOOLS, essential=False))
        return definition

    def _write_choice(
        self, requested: ToolChoice | None, request: ModelRequest, capabilities: ModelCapabilities
    ) -> Json | None:
        mode = requested.mode if requested is not None else "auto"
        single_call = request.params.get("parallel_tool_calls") is False
        if mode == "none":
            return {"type": "none"}
        if mode == "required" and not capabilities.forced_tools:
            param = request.param_names.get("tool_choice", "tool_choice")
            self.unsupported.append(Unsupported(param, NO_FORCED_TOOL, essential=True))
            mode = "auto"
        self.forced = mode == "required"
        choice: Json = {"type": "any" if self.forced else "auto"}
        if self.forced and requested is not None and requested.names:
            choice = {"type": "tool", "name": requested.names[0]}
        if single_call:
            choice["disable_parallel_tool_use"] = True
        return choice if single_call or requested is not None else None
