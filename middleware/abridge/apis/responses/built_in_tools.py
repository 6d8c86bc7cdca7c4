"""The tools of Responses that the client runs and a request names by their type alone.

OpenAI's models know what they do and how they are called. Any other model is offered each as a
function, and the call of that becomes an item of the tool's own type, and back in later requests
(openai-openapi, `LocalShellToolCall`, `FunctionShellCall`, `ApplyPatchToolCall`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from abridge.apis.json import as_object, dumps, objects, parse_object, string
from abridge.core.conversation import Json
from abridge.core.model_request import ToolKind


@dataclass(slots=True, frozen=True)
class BuiltInTool:
    """A tool, and the items that call it."""

    kind: ToolKind  # its type in a request
    id_prefix: str
    place: str  # the field of an item that says what to do
    description: str
    parameters: Json
    read: Callable[[str], Json]
    """Returns what to do from the function's arguments, also from those that do not follow the
    parameters: the client's tool reports what is wrong with them."""
    write: Callable[[Json], Json]  # returns the arguments for what to do
    other_fields: Json = field(default_factory=dict)  # of an item
    cut_status: str = "incomplete"  # of an item that was cut

    @property
    def call_type(self) -> str:
        return f"{self.kind}_call"

    def write_item(self, head: Json, arguments: str) -> Json:
        """Return an item that calls the tool. Arguments are empty while they are to come."""
        status = self.cut_status if head["status"] == "incomplete" else head["status"]
        item = {"type": self.call_type, **head, "status": status, **self.other_fields}
        return {**item, self.place: self.read(arguments or "{}")}

    def read_item(self, asked: Json) -> str:
        """Return the function's arguments for what an item says to do."""
        return json.dumps(self.write(asked), ensure_ascii=False)


def _parameters(*required: str, **properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _parse(arguments: str) -> Json | None:
    return parse_object(arguments.encode(errors="surrogatepass"))


def _strings(given: Any) -> list[str]:
    return [each if isinstance(each, str) else dumps(each).decode() for each in given]


def _given(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


_STRINGS: Json = {"type": "array", "items": {"type": "string"}}

_TIMEOUT: Json = {"type": "integer", "description": "How long it may run."}


def _read_exec(arguments: str) -> Json:
    """Read an action of `local_shell`: a model may write a command line in place of its words."""
    given = _parse(arguments)
    given = {"command": arguments} if given is None else given
    command, env = given.get("command"), given.get("env")
    words = ["bash", "-lc", command] if isinstance(command, str) else []
    action = {
        "type": "exec",
        "command": _strings(command) if isinstance(command, list) else words,
        "timeout_ms": given.get("timeout_ms"),
        "working_directory": given.get("workdir"),
        "env": env if isinstance(env, dict) else {},
    }
    return _given(action)


def _write_exec(action: Json) -> Json:
    names = {key: key for key in ("command", "timeout_ms", "env")} | {
        "working_directory": "workdir"
    }
    given = {names[key]: value for key, value in action.items() if value and key in names}
    return {"command": [], **given}


def _read_commands(arguments: str) -> Json:
    """Read an action of `shell`."""
    given = _parse(arguments)
    commands = arguments if given is None else given.get("commands")
    commands = [commands] if isinstance(commands, str) else commands
    limits = {key: (given or {}).get(key) for key in ("timeout_ms", "max_output_length")}
    return {"commands": _strings(commands) if isinstance(commands, list) else [], **limits}


_OPERATIONS = ("update_file", "create_file", "delete_file")


def _read_operation(arguments: str) -> Json:
    """Read an operation of `apply_patch`."""
    given = _parse(arguments)
    given = {"diff": arguments} if given is None else given
    kind = given.get("type") if given.get("type") in _OPERATIONS else _OPERATIONS[0]
    operation = {"type": kind, "path": string(given.get("path"))}
    has_diff = kind != "delete_file"
    return {**operation, "diff": string(given.get("diff"))} if has_diff else operation


BUILT_IN_TOOLS: Mapping[str, BuiltInTool] = MappingProxyType(
    {
        tool.kind: tool
        for tool in (
            BuiltInTool(
                "local_shell",
                "lsh_",
                "action",
                "Run a command on the user's machine and return what it prints.",
                _parameters(
                    "command",  # the names are those of Codex's own shell function
                    command=_STRINGS
                    | {"description": 'The program and its arguments: ["bash", "-lc", "ls"].'},
                    workdir={"type": "string", "description": "The directory to run it in."},
                    timeout_ms=_TIMEOUT,
                    env={
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                        "description": "Environment variables to set.",
                    },
                ),
                _read_exec,
                _write_exec,
            ),
            BuiltInTool(
                "shell",
                "sh_",
                "action",
                "Run commands in a shell on the user's machine; return what each prints and how it "
                "ends.",
                _parameters(
                    "commands",
                    commands=_STRINGS | {"description": "Command lines, such as ls -l | wc."},
                    timeout_ms=_TIMEOUT,
                    max_output_length={
                        "type": "integer",
                        "description": "The most characters of output to return.",
                    },
                ),
                _read_commands,
                _given,
                {"environment": {"type": "local"}},
            ),
            BuiltInTool(
                "apply_patch",
                "apc_",
                "operation",
                "Create, update or delete a file. The diff has no line numbers and no names of "
                "files. To create a file, each of its lines stands in the diff with + before it. "
                "To update one, each part of the diff begins with a line @@, which may name the "
                "class or function that the part is in; then come lines of the file, with - before "
                "those to remove, + before those to add, and a space before those that stay: show "
                "three of these before and after each change.",
                _parameters(
                    "type",
                    "path",
                    type={"type": "string", "enum": list(_OPERATIONS)},
                    path={"type": "string", "description": "The file, from the workspace's root."},
                    diff={"type": "string", "description": "What changes; not for delete_file."},
                ),
                _read_operation,
                _given,
                cut_status="in_progress",
            ),
        )
    }
)
"""By their types."""


def find_built_in(tool: Json) -> BuiltInTool | None:
    """Return what a tool of a request is. A shell in a container is OpenAI's to run, and none."""
    place = string(as_object(tool.get("environment")).get("type"))
    return BUILT_IN_TOOLS.get(string(tool.get("type"))) if place in ("", "local") else None


def describe(built_in: BuiltInTool, tool: Json) -> str:
    """Return a tool's description, with the skills that its environment has."""
    skills = objects(as_object(tool.get("environment")).get("skills"))
    told = (
        f"- {string(skill.get('name'))}, in {string(skill.get('path'))}: "
        f"{string(skill.get('description'))}"
        for skill in skills
    )
    heading = ["Skills; before you use one, read SKILL.md in its folder:"] if skills else []
    return "\n".join([built_in.description, *heading, *told])


def output_text(chunk: Json) -> str:
    """Return what a command of `shell` printed, and how it ended."""
    outcome = as_object(chunk.get("outcome"))
    ended = "Timed out." if outcome.get("type") == "timeout" else ""
    if "exit_code" in outcome:
        ended = f"Exit code: {outcome['exit_code']}"
    printed = (string(chunk.get(stream)).rstrip("\n") for stream in ("stdout", "stderr"))
    return "\n".join(filter(None, [*printed, ended]))
