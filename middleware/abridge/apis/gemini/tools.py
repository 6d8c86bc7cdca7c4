"""Write the request's tools, and the tool choice."""

from __future__ import annotations

from abridge.apis.tools import choose_tools
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, Tool, ToolChoice, TranslatedRequest

MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
"""Gemini's mode of calling for a tool choice (`FunctionCallingConfig`)."""

NO_SINGLE_CALL = "This model's API cannot keep it from calling several tools at once."

NO_STRICT_TOOLS = "This model's API has no strict tools."


def write_tools(request: ModelRequest, translated: TranslatedRequest) -> tuple[list[Json], Json]:
    """Write the declarations of the tools that are offered, and the choice among them, which is
    empty if none has to be sent."""
    _, choice = choose_tools(request, translated, "required", as_functions=True)
    tools = [_write_tool(tool, translated) for tool in translated.tools.values()]
    if request.params.get("parallel_tool_calls") is False and tools:
        translated.leave_out(request.param("parallel_tool_calls"), NO_SINGLE_CALL)
    return tools, _write_choice(choice) if choice is not None and tools else {}


def _write_tool(tool: Tool, translated: TranslatedRequest) -> Json:
    if tool.strict:
        translated.leave_out(tool.param, NO_STRICT_TOOLS)
    definition: Json = {"name": tool.name}
    if tool.description:
        definition["description"] = tool.description
    if tool.parameters:
        definition["parametersJsonSchema"] = tool.parameters
    return definition


def _write_choice(choice: ToolChoice) -> Json:
    names = {"allowedFunctionNames": list(choice.names)} if choice.names else {}
    return {"functionCallingConfig": {"mode": MODES[choice.mode], **names}}
