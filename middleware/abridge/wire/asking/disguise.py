"""Offer custom tools and `local_shell` as functions, and read their calls.

Used for upstreams that know nothing but functions.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from abridge.turn.question import Tool
from abridge.wire.codec import Json, read_object

INPUT: Json = {
    "type": "object",
    "properties": {
        "input": {"type": "string", "description": "The whole input, as free text."},
    },
    "required": ["input"],
    "additionalProperties": False,
}
"""The parameters of a custom tool that is offered as a function."""

AS_FUNCTION = "It is called as a function here: `input` holds the free text, as it is."
"""Appended to a custom tool's description, which may say that it takes no JSON, as Codex's do."""

SHELL: Json = {
    "type": "object",
    "properties": {
        "command": {
            "type": "array",
            "items": {"type": "string"},
            "description": 'The program and its arguments, such as ["bash", "-lc", "ls"].',
        },
        "workdir": {"type": "string", "description": "The directory to run it in."},
        "timeout_ms": {"type": "integer", "description": "How long it may run."},
        "env": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Environment variables to set.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}
"""The parameters of `local_shell`, which has none on Responses: the fields of its action
(openai-openapi, `LocalShellExecAction`), named as in Codex's own shell function.
"""

_SHELL_TOLD = "Run a command on the user's machine and return what it prints."


def as_function(tool: Tool) -> Tool:
    """Return the tool as a function; one with `parameters` already is one."""
    if tool.kind == "custom":
        return replace(tool, description=_told(tool), parameters=INPUT)
    if tool.kind == "local_shell":
        return replace(tool, description=_SHELL_TOLD, parameters=SHELL)
    return tool


def _told(tool: Tool) -> str:
    told = [tool.description, AS_FUNCTION] if tool.description else []
    if tool.grammar:
        syntax, definition = tool.grammar.get("syntax"), tool.grammar.get("definition")
        told.append(f"`input` must match this {syntax} grammar:\n{definition}")
    return "\n\n".join(told)


def as_arguments(text: str) -> str:
    """Return a custom tool's input as the arguments of its function."""
    return json.dumps({"input": text}, ensure_ascii=False)


def free_text(tool: Tool, arguments: str) -> str:
    """Return a custom tool's input from the arguments of its function.

    Arguments that do not follow the schema are passed on as they are: the client's tool reports
    what is wrong with them.
    """
    if tool.parameters is None:
        return arguments
    given = (_object(arguments) or {}).get("input")
    return given if isinstance(given, str) else arguments


def shell_action(arguments: str) -> Json:
    """Return the action of a `local_shell` call, as on Responses, from its function's arguments."""
    given = _object(arguments)
    given = {"command": arguments} if given is None else given
    command, env = given.get("command"), given.get("env")
    action = {
        "type": "exec",
        "command": _words(command),
        "timeout_ms": given.get("timeout_ms"),
        "working_directory": given.get("workdir"),
        "env": env if isinstance(env, dict) else {},
    }
    return {key: value for key, value in action.items() if value is not None}


def shell_arguments(action: Json) -> str:
    """Return an action as the arguments of the function that `local_shell` is offered as."""
    names = {"working_directory": "workdir"}
    given = {
        names.get(key, key): value
        for key, value in action.items()
        if value and names.get(key, key) in SHELL["properties"]
    }
    return json.dumps({"command": [], **given}, ensure_ascii=False)


def _words(command: Any) -> list[str]:
    """Split a command into words; a model may write a command line in place of its words."""
    if isinstance(command, list):
        return [word if isinstance(word, str) else json.dumps(word) for word in command]
    return ["bash", "-lc", command] if isinstance(command, str) else []


def _object(arguments: str) -> Json | None:
    return read_object(arguments.encode(errors="surrogatepass"))
