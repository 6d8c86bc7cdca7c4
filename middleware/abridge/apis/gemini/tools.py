"""Write the request's tools, and the tool choice."""

from __future__ import annotations

from abridge.apis.tools import choose_tools
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, Tool, ToolChoice, TranslatedRequest

MODES = {"none": "NONE", "auto": "AUTO", "required": "ANY"}
"""Gemini's mode of calling for a tool choice (`FunctionCallingConfig`)."""

NO_SINGLE_CALL = "This model's API cannot prevent several tool calls at once."

NO_STRICT_TOOLS = "This model's API has no strict tools."


def write_tools(request: ModelRequest, translated: TranslatedRequest) -> tuple[list[Json], Json]:
    """Write the declarations of the tools that are offered, and the choice among them, which is
    empty if none has to be sent."""
    tools, choice = choose_functions(request, translated)
    declarations = [write_function(tool, "parametersJsonSchema") for tool in tools]
    return declarations, {} if choice is None else _write_choice(choice)


def choose_functions(
    request: ModelRequest, translated: TranslatedRequest
) -> tuple[list[Tool], ToolChoice | None]:
    """Return the tools to offer, and the choice among them; None if none has to be sent."""
    tools, choice = choose_tools(request, translated, "required", as_functions=True)
    for tool in tools:
        if tool.strict:
            translated.leave_out(tool.param, NO_STRICT_TOOLS)
    if request.params.get("parallel_tool_calls") is False and tools:
        translated.leave_out(request.param("parallel_tool_calls"), NO_SINGLE_CALL)
    return tools, choice if tools else None


def write_function(tool: Tool, schema_key: str) -> Json:
    described = {"description": tool.description, schema_key: tool.parameters}
    return {"name": tool.name, **{key: value for key, value in described.items() if value}}


def _write_choice(choice: ToolChoice) -> Json:
    names = {"allowedFunctionNames": list(choice.names)} if choice.names else {}
    return {"functionCallingConfig": {"mode": MODES[choice.mode], **names}}
