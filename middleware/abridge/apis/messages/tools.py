"""Read the tools of a request and its tool choice, and write those of one for upstream; the ids and
arguments of its calls in both forms, and what led to a call."""

from __future__ import annotations

import re
import sys
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from abridge.apis.attribution_fields import attribute_call
from abridge.apis.display import Display
from abridge.apis.json import replace_halves, string
from abridge.apis.params import (
    invalid_value_error,
    iter_objects,
    read_flag,
    require_object,
    require_string,
)
from abridge.apis.tools import ToolNames, integer_schema, object_schema, text_schema
from abridge.core.conversation import Json
from abridge.core.model_request import ModelRequest, Tool, ToolChoice, TranslatedRequest
from abridge.providers.claude import ModelCapabilities
from abridge.stages.attribution import RAW, Attributor, CallAttribution

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
    client_name = require_string(tool, "name", param)
    named = Tool(names.assign(client_name), client_name=client_name, source=tool, param=param)
    if known is not None:
        return replace(named, description=known.description, parameters=known.parameters)
    return replace(
        named,
        description=string(tool.get("description")),
        parameters=require_object(tool, "input_schema", param),
        strict=read_flag(tool, "strict", param),
    )


def read_tool_choice(body: Json, tools: list[Tool], names: ToolNames) -> ToolChoice | None:
    """Read the tool choice. A hosted tool is chosen by its type, as it is named among the tools."""
    if body.get("tool_choice") is None:
        return None
    choice = require_object(body, "tool_choice")
    kind = require_string(choice, "type", "tool_choice")
    if kind not in CHOICE_MODES:
        raise invalid_value_error(kind, "tool_choice.type")
    if kind != "tool":
        return ToolChoice(CHOICE_MODES[kind])
    client_name = require_string(choice, "name", "tool_choice")
    hosted = {tool.client_name: tool.name for tool in tools if tool.kind == "hosted"}
    return ToolChoice("required", (hosted.get(client_name) or names.assigned_name(client_name),))


# Write


def write_tool(tool: Tool, capabilities: ModelCapabilities, translated: TranslatedRequest) -> Json:
    """Write a tool. Set `strict` only if the schema allows it; otherwise do as Responses does,
    which attempts strict mode and goes on without."""
    schema = {**EMPTY_SCHEMA, **(tool.parameters or {})}
    definition: Json = {"name": tool.name, "input_schema": schema}
    if tool.description:
        definition["description"] = tool.description
    if tool.strict and schema.get("additionalProperties") is False:
        if capabilities.structured_outputs:
            definition["strict"] = True
        else:
            translated.leave_out(tool.param, NO_STRICT_TOOLS)
    return definition


def write_tool_choice(
    requested: ToolChoice | None,
    request: ModelRequest,
    capabilities: ModelCapabilities,
    translated: TranslatedRequest,
) -> Json | None:
    """Write the choice among the tools that are offered; None if none has to be sent."""
    mode = requested.mode if requested is not None else "auto"
    single_call = request.params.get("parallel_tool_calls") is False
    if mode == "none":
        return {"type": "none"}
    if mode == "required" and not capabilities.forced_tools:
        translated.leave_out(request.param("tool_choice"), NO_FORCED_TOOL, essential=True)
        mode = "auto"
    choice: Json = {"type": "any" if mode == "required" else "auto"}
    if mode == "required" and requested is not None and requested.names:
        choice = {"type": "tool", "name": requested.names[0]}
    if single_call:
        choice["disable_parallel_tool_use"] = True
    return choice if single_call or requested is not None else None


def forces_tool(choice: Json) -> bool:
    """Return whether a choice has some tool be called."""
    return choice.get("type") in ("any", "tool")


# Anthropic's tools that the client runs, as functions. A request names their type alone: the model
# knows their parameters, and another model is told (platform.claude.com: agents-and-tools/tool-use,
# the pages on the bash, text editor, memory and computer use tools; `BetaMemoryTool20250818Command`
# in anthropic-sdk-python).


@dataclass(slots=True, frozen=True)
class ClientTool:
    description: str
    parameters: Json


def find_client_tool(tool: Json) -> ClientTool | None:
    """Return what a tool of the client's is, by its type: None for any other."""
    kind = string(tool.get("type"))
    if kind.startswith("computer_toolset"):  # a set of tools, each with a name of its own
        return None
    found = next((row for prefix, row in _CLIENT_TOOLS.items() if kind.startswith(prefix)), None)
    if found is None or not kind.startswith("computer_"):
        return found
    return ClientTool(_describe_screen(tool, found.description), found.parameters)


def _describe_screen(tool: Json, description: str) -> str:
    width, height = tool.get("display_width_px"), tool.get("display_height_px")
    return f"{description} The screen is {width} pixels wide and {height} high."


def _integers(count: int, description: str) -> Json:
    size = {"minItems": count, "maxItems": count}
    return {"type": "array", "items": {"type": "integer"}, **size, "description": description}


_EDITS = {
    "path": text_schema("The absolute path of a file or directory."),
    "file_text": text_schema("For create: the content of the file."),
    "old_str": text_schema(
        "For str_replace: the text to replace, exactly as in the file, found once."
    ),
    "insert_line": integer_schema(
        "For insert: the line after which to insert; 0 is the beginning."
    ),
    "view_range": _integers(
        2, "For view: the first and the last line to show, from 1 on; -1 is the end."
    ),
}

_ACTIONS = (
    *("screenshot", "left_click", "right_click", "middle_click", "double_click", "triple_click"),
    *("left_click_drag", "left_mouse_down", "left_mouse_up", "mouse_move", "cursor_position"),
    *("type", "key", "hold_key", "scroll", "wait", "zoom"),
)

_CLIENT_TOOLS = {
    "bash_": ClientTool(
        "Run a command in a bash session, which keeps its state between calls, and return what it "
        "prints.",
        object_schema(
            command=text_schema("The command to run. Required unless the session is restarted."),
            restart={"type": "boolean", "description": "True restarts the session."},
        ),
    ),
    "text_editor_": ClientTool(
        "View, create and edit text files.",
        object_schema(
            "command",
            "path",
            command=text_schema("What to do.", enum=["view", "create", "str_replace", "insert"]),
            **_EDITS,
            new_str=text_schema("For str_replace: the new text. For insert: the text to insert."),
            insert_text=text_schema("For insert: the text to insert, the same as in new_str."),
        ),
    ),
    "memory_": ClientTool(
        "Keep notes in files below /memories that outlast the conversation. Look there before a "
        "task, and note what matters while you work.",
        object_schema(
            "command",
            command=text_schema(
                "What to do.",
                enum=["view", "create", "str_replace", "insert", "delete", "rename"],
            ),
            **_EDITS,
            new_str=text_schema("For str_replace: the new text."),
            insert_text=text_schema("For insert: the text to insert."),
            old_path=text_schema("For rename: the path it has."),
            new_path=text_schema("For rename: the path it gets."),
        ),
    ),
    "computer_": ClientTool(
        "Use a computer by its screen, mouse and keyboard; take a screenshot to see what an action "
        "did.",
        object_schema(
            "action",
            action=text_schema("What to do.", enum=list(_ACTIONS)),
            coordinate=_integers(2, "For mouse actions: x and y, in pixels from the top left."),
            start_coordinate=_integers(2, "For left_click_drag: x and y where the drag begins."),
            text=text_schema("For type: the text. For key and hold_key: the keys, such as ctrl+s."),
            duration={"type": "number", "description": "For wait and hold_key: seconds."},
            scroll_direction=text_schema("For scroll.", enum=["up", "down", "left", "right"]),
            scroll_amount=integer_schema("For scroll: how many clicks of the wheel."),
            region=_integers(4, "For zoom: left, top, right and bottom, in pixels."),
        ),
    ),
}
"""By the beginning of their types."""


# The ids and arguments of calls, in the form that Messages allows, and back

INVALID_ARGUMENTS = "INVALID_JSON"
"""The only key of an input that was no JSON object, whose text is its value (Anthropic's guide to
fine-grained tool streaming)."""


def wrap_invalid(arguments: str) -> Json:
    """Return an input for arguments that are no JSON object. Half a character becomes U+FFFD:
    Anthropic's own client cannot read the escape of one."""
    return {INVALID_ARGUMENTS: replace_halves(arguments)}


def unwrap_invalid(call_input: Json) -> str | None:
    """Return the arguments within an input that `wrap_invalid` made; None for any other."""
    text = call_input.get(INVALID_ARGUMENTS)
    return text if len(call_input) == 1 and isinstance(text, str) else None


_HALF_CHARACTER = re.compile("[\ud800-\udfff]")


def escape_halves(arguments: str) -> str:
    """Return JSON with halves of characters escaped. Two deltas may part a pair, and Anthropic's
    Python client encodes each by itself."""
    if arguments.isascii():
        return arguments
    return _HALF_CHARACTER.sub(lambda half: f"\\u{ord(half[0]):04x}", arguments)


_CALL_ID = re.compile(r"[a-zA-Z0-9_-]+")
"""An id of a call as Anthropic allows it (Anthropic API reference, `ToolUseBlockParam.id`)."""

_ENCODED_ID_PREFIX = "toolu_b64_"
"""Begins an id of upstream's in another form, which has it in base64url."""


def client_call_id(call_id: str) -> str:
    """Return an id that every client accepts for one of upstream's; "" for none."""
    if not call_id or _CALL_ID.fullmatch(call_id):
        return call_id
    encoded = urlsafe_b64encode(call_id.encode(errors="surrogatepass")).rstrip(b"=")
    return _ENCODED_ID_PREFIX + encoded.decode()


def upstream_call_id(call_id: str) -> str:
    """Return upstream's id for one that `client_call_id` returned."""
    encoded = call_id.removeprefix(_ENCODED_ID_PREFIX)
    if encoded == call_id:
        return call_id
    try:
        decoded = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode(
            errors="surrogatepass"
        )
    except ValueError:
        return call_id
    return decoded if client_call_id(decoded) == call_id else call_id


# What led to a call


TOOL_USE_SUFFIX = "tool_use"


def follow_calls(display: Display, limit: int) -> CallAttribution:
    """Return the stage that attributes the calls of an answer, each stretch of whose reasoning has
    a block of its own."""
    return CallAttribution(
        0 if display.drops_reasoning else limit,
        shows_raw=display.show_raw,
        shows_summary=display.show_summary,
        native=display.native,
        shows_state=display.seal is None,
    )


def attribute_content(content: list[Any]) -> list[Any]:
    """Return the content blocks with their calls attributed. Each thinking block is one part."""
    attributor = Attributor(sys.maxsize)
    return [_attribute(block, number, attributor) for number, block in enumerate(content)]


def _attribute(block: Any, number: int, attributor: Attributor) -> Any:
    """Take the next block; return a call with its attribution, anything else unchanged."""
    kind = string(block.get("type")) if isinstance(block, dict) else ""
    if kind == "thinking":
        attributor.add_reasoning(RAW, string(block.get("thinking")), stretch=number)
    elif kind == "redacted_thinking":
        attributor.add_redacted(stretch=number)
    elif kind.endswith(TOOL_USE_SUFFIX):
        return attribute_call(block, attributor.attribute_call(), string(block.get("id")))
    return block
