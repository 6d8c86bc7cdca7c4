"""Write the request's tools, and the tool choice."""

from __future__ import annotations

from abridge.apis.tools import as_function, narrow_choice, select_tools
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, Tool, ToolChoice, Unsupported
from abridge.providers.claude import ModelCapabilities

EMPTY_SCHEMA: Json = {"type": "object", "properties": {}}

NO_FORCED_TOOL = "This model does not let a tool be forced; it was left to choose."

NO_STRICT_TOOLS = "This model has no strict tools."


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
