"""Anthropic's tools that the client runs, as functions.

A request names their type alone: the model knows their parameters, and another model is told
(platform.claude.com: agents-and-tools/tool-use, the pages on the bash, text editor, memory and
computer use tools; `BetaMemoryTool20250818Command` in anthropic-sdk-python).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from abridge.apis.json import string
from abridge.core.conversation import Json


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


def _object(*required: str, **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required)}


def _text(description: str, **fields: Any) -> Json:
    return {"type": "string", "description": description, **fields}


def _number(description: str) -> Json:
    return {"type": "integer", "description": description}


def _pair(description: str) -> Json:
    items = {"type": "integer"}
    return {
        "type": "array",
        "items": items,
        "minItems": 2,
        "maxItems": 2,
        "description": description,
    }


_VIEW_RANGE = _pair("For view: the first and the last line to show, from 1 on; -1 is the end.")

_EDITS = {
    "path": _text("The absolute path of a file or directory."),
    "file_text": _text("For create: the content of the file."),
    "old_str": _text("For str_replace: the text to replace, exactly as in the file, found once."),
    "insert_line": _number("For insert: the line after which to insert; 0 is the beginning."),
    "view_range": _VIEW_RANGE,
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
        _object(
            command=_text("The command to run. Required unless the session is restarted."),
            restart={"type": "boolean", "description": "True restarts the session."},
        ),
    ),
    "text_editor_": ClientTool(
        "View, create and edit text files.",
        _object(
            "command",
            "path",
            command=_text("What to do.", enum=["view", "create", "str_replace", "insert"]),
            **_EDITS,
            new_str=_text("For str_replace: the new text. For insert: the text to insert."),
            insert_text=_text("For insert: the text to insert, the same as in new_str."),
        ),
    ),
    "memory_": ClientTool(
        "Keep notes in files below /memories that outlast the conversation. Look there before a "
        "task, and note what matters while you work.",
        _object(
            "command",
            command=_text(
                "What to do.",
                enum=["view", "create", "str_replace", "insert", "delete", "rename"],
            ),
            **_EDITS,
            new_str=_text("For str_replace: the new text."),
            insert_text=_text("For insert: the text to insert."),
            old_path=_text("For rename: the path it has."),
            new_path=_text("For rename: the path it gets."),
        ),
    ),
    "computer_": ClientTool(
        "Use a computer by its screen, mouse and keyboard; take a screenshot to see what an action "
        "did.",
        _object(
            "action",
            action=_text("What to do.", enum=list(_ACTIONS)),
            coordinate=_pair("For mouse actions: x and y, in pixels from the top left."),
            start_coordinate=_pair("For left_click_drag: x and y where the drag begins."),
            text=_text("For type: the text. For key and hold_key: the keys, such as ctrl+s."),
            duration={"type": "number", "description": "For wait and hold_key: seconds."},
            scroll_direction=_text("For scroll.", enum=["up", "down", "left", "right"]),
            scroll_amount=_number("For scroll: how many clicks of the wheel."),
            region={
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 4,
                "maxItems": 4,
                "description": "For zoom: left, top, right and bottom, in pixels.",
            },
        ),
    ),
}
"""By the beginning of their types."""
