"""Write the request's tools, and the tool choice."""

from __future__ import annotations

from abridge.apis.tools import as_function, select_tools
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, Tool, ToolChoice, Unsupported

MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
"""Gemini's mode of calling for a tool choice (`FunctionCallingConfig`)."""

NO_SINGLE_CALL = "This model's API cannot keep it from calling several tools at once."

NO_STRICT_TOOLS = "This model's API has no strict tools."


class ToolOffer:
    """The tools offered upstream.

    `tools` are the tools by name, `definitions` the same in Gemini's format. `choice` is None if
    none has to be sent.
    """

    def __init__(self, request: ModelRequest) -> None:
        available, self.unsupported = select_tools(request)
        choice = request.tool_choice
        if choice is not None and choice.names and choice.mode == "auto":
            available = [tool for tool in available if tool.name in choice.names]
            choice = ToolChoice("auto")
        self.tools = {tool.name: as_function(tool) for tool in available}
        self.definitions = [self._write_tool(tool) for tool in self.tools.values()]
        self.choice = _write_choice(choice) if choice is not None and self.tools else None
        if request.params.get("parallel_tool_calls") is False and self.tools:
            param = request.param_names.get("parallel_tool_calls", "parallel_tool_calls")
            self.unsupported.append(Unsupported(param, NO_SINGLE_CALL, essential=False))

    def _write_tool(self, tool: Tool) -> Json:
        if tool.strict:
            self.unsupported.append(Unsupported(tool.param, NO_STRICT_TOOLS, essential=False))
        definition: Json = {"name": tool.name}
        if tool.description:
            definition["description"] = tool.description
        if tool.parameters:
            definition["parametersJsonSchema"] = tool.parameters
        return definition


def _write_choice(choice: ToolChoice) -> Json:
    names = {"allowedFunctionNames": list(choice.names)} if choice.names else {}
    return {"functionCallingConfig": {"mode": MODES[choice.mode], **names}}
