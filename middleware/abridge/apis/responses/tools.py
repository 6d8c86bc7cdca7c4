"""Read and write the tools, tool choices and calls of the Responses API; attribute its calls."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from abridge.apis.attribution_fields import attribute_call
from abridge.apis.json import as_object, dumps, entries, objects, parse_object_text, string
from abridge.apis.openai import NAMED_KINDS, flat, read_named_tool, write_custom_tool
from abridge.apis.params import (
    iter_objects,
    require_list,
    require_object,
    require_string,
    unchanged,
)
from abridge.apis.responses.reasoning import call_id_of, is_reasoning, is_tool_call, part_texts
from abridge.apis.tools import (
    ToolNames,
    closed_schema,
    integer_schema,
    text_schema,
    unwrap_free_text,
)
from abridge.core.conversation import Json
from abridge.core.model_request import SIGNATURE_PREFIX, Tool, ToolKind
from abridge.stages.attribution import RAW, SUMMARY, Attributor

ADDITIONAL_TOOLS, FOUND_TOOLS = "additional_tools", "tool_search_output"
"""Types of input items that bring tools: additional ones, and those that a search found.

Codex sends all of its tools as additional ones to models that it knows to accept them. Source:
openai-openapi, `AdditionalToolsItemParam`, `ToolSearchOutputItemParam`.
"""


def read_tools(body: Json, names: ToolNames) -> list[Tool]:
    """Read the tools, including each of a namespace, once however often the client sends one.

    Tools outside of namespaces get their names first, since they may keep them. The name of a
    hosted tool is its type.
    """
    definitions = [*iter_objects(body.get("tools"), "tools"), *_input_tools(body.get("input"))]
    found = (each for tool, param in definitions for each in _read_tool(tool, param))
    tools = list({_tool_key(tool): tool for tool in found}.values())
    own = {each.client_name for each in tools if each.kind in NAMED_KINDS and not each.group}
    for tool in sorted(tools, key=lambda tool: bool(tool.group)):
        if _is_typed(tool):
            names.assign_type(tool.client_name, has_namesake=tool.client_name in own)
        elif tool.kind != "hosted":
            names.assign(tool.client_name, tool.group)
    return [tool if tool.kind == "hosted" else _with_given_name(tool, names) for tool in tools]


def _is_typed(tool: Tool) -> bool:
    """Return whether the client runs a tool that it names by its type alone."""
    return tool.kind not in (*NAMED_KINDS, "hosted") and not tool.group


def _input_tools(items: Any) -> Iterator[tuple[Json, str]]:
    for i, item in enumerate(entries(items)):
        if isinstance(item, dict) and item.get("type") in (ADDITIONAL_TOOLS, FOUND_TOOLS):
            yield from iter_objects(item.get("tools"), f"input[{i}].tools")


def read_found_tools(item: Json, param: str, names: ToolNames) -> list[str]:
    """Return the names that upstream gets for the tools that a search found."""
    definitions = iter_objects(item.get("tools"), f"{param}.tools")
    found = [each for tool, name in definitions for each in _read_tool(tool, name)]
    return [_with_given_name(tool, names).name for tool in found if tool.kind != "hosted"]


def _tool_key(tool: Tool) -> tuple[str, str, str, bool]:
    """Return what identifies a tool. There may be several hosted ones of a type."""
    place = tool.param if tool.kind == "hosted" else ""
    return tool.group, tool.client_name, place, _is_typed(tool)


def _with_given_name(tool: Tool, names: ToolNames) -> Tool:
    if _is_typed(tool):
        return replace(tool, name=names.assign_type(tool.client_name))
    return replace(tool, name=names.assign(tool.client_name, tool.group))


def _read_tool(tool: Json, param: str) -> Iterator[Tool]:
    kind = require_string(tool, "type", param)
    typed = Tool(kind, "hosted", client_name=kind, source=tool, param=param)
    if kind == "namespace":
        group = require_string(tool, "name", param)
        inner = require_list(tool, "tools", param)
        for entry, name in iter_objects(inner, f"{param}.tools"):
            for inner_tool in _read_tool(entry, name):
                yield replace(inner_tool, group=group)
    elif kind in NAMED_KINDS:
        yield _read_named_tool(tool, param)
    elif kind == "tool_search" and tool.get("execution") == "client":
        description, parameters = string(tool.get("description")), tool.get("parameters")
        if parameters is not None:
            require_object(tool, "parameters", param)
        yield replace(typed, kind="tool_search", description=description, parameters=parameters)
    elif built_in := find_built_in(tool):
        description, parameters = describe(built_in, tool), built_in.parameters
        yield replace(typed, kind=built_in.kind, description=description, parameters=parameters)
    else:
        yield typed


def _read_named_tool(tool: Json, param: str) -> Tool:
    """Read a function or a custom tool.

    If the client does not set `strict`, a function is strict if its schema can be: this API falls
    back where it cannot, others refuse (OpenAI's guide to function calling, strict mode).
    """
    read, fields = read_named_tool(tool, param)
    if read.kind == "custom":
        return replace(read, grammar=_read_grammar(fields.get("format")))
    strict = fields.get("strict")
    is_strict = _is_strict(read.parameters) if strict is None else strict is not False
    return replace(read, strict=is_strict)


def _is_strict(schema: Json | None) -> bool:
    """Return whether every object of a schema allows just what it requires, as strict ones do."""
    remaining: list[Any] = [{} if schema is None else schema]
    closed = "properties" in remaining[0]
    while remaining:
        node = remaining.pop()
        if isinstance(node, dict) and isinstance(node.get("properties"), dict):
            required = node.get("required")
            closed &= node.get("additionalProperties") is False
            closed &= isinstance(required, list) and node["properties"].keys() <= {
                *map(str, required)
            }
        if isinstance(node, dict | list):
            remaining += node.values() if isinstance(node, dict) else node
    return closed


def _read_grammar(format_: Any) -> Json | None:
    if not isinstance(format_, dict) or format_.get("type") != "grammar":
        return None
    return {key: format_.get(key) for key in ("syntax", "definition")}


def write_tool(tool: Tool) -> Json:
    if tool.kind == "custom":
        return write_custom_tool(tool, flat)
    description = {"description": tool.description} if tool.description else {}
    parameters = tool.parameters
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    fields = {"parameters": parameters, "strict": tool.strict}
    return flat("function", {"name": tool.name, **description, **fields})


def read_tool_names(names: ToolNames, entry: Json, param: str) -> list[str]:
    """Return the names of the tools that an entry names. A hosted tool's name is its type."""
    kind = string(entry.get("type"))
    if kind == "namespace":
        return names.names_in_group(require_string(entry, "name", param))
    if kind in BUILT_IN_TOOLS or kind == "tool_search":
        return [names.assign_type(kind)]
    if kind not in NAMED_KINDS:
        return [kind]
    client_name = require_string(entry, "name", param)
    return [names.assigned_name(client_name, string(entry.get("namespace")))]


def write_call(
    tool: Tool | None,
    call_id: str,
    name: str,
    arguments: str,
    item_id: str,
    *,
    status: str = "completed",
) -> Json:
    """Write a call as an item that calls the client's own tool.

    `tool` is the one offered by that name, if any. `arguments` are whole, or empty if they are
    still to come.
    """
    head: Json = {"id": item_id, "status": status, "call_id": call_id}
    if tool is None:
        return {"type": "function_call", **head, "name": name, "arguments": arguments}
    if tool.kind in BUILT_IN_TOOLS:
        return BUILT_IN_TOOLS[tool.kind].write_item(head, arguments)
    if tool.kind == "tool_search":
        searched = {"execution": "client", "arguments": parse_object_text(arguments) or {}}
        return {"type": "tool_search_call", **head, **searched}
    group = {"namespace": tool.group} if tool.group else {}
    head = {**head, **group, "name": tool.client_name or name}
    if tool.kind == "custom":
        return {"type": "custom_tool_call", **head, "input": unwrap_free_text(tool, arguments)}
    return {"type": "function_call", **head, "arguments": arguments}


# Built-in tools, which the client runs and a request names by their type alone: OpenAI's models
# know them. Any other model is offered each as a function, and the call of that becomes an item of
# the tool's own type, and back in later requests (openai-openapi, `LocalShellToolCall`,
# `FunctionShellCall`, `ApplyPatchToolCall`).


@dataclass(slots=True, frozen=True)
class BuiltInTool:
    """A tool, and the items that call it."""

    kind: ToolKind  # its type in a request
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


def _strings(given: Any) -> list[str]:
    return [each if isinstance(each, str) else dumps(each).decode() for each in given]


def _given(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


def _texts(description: str) -> Json:
    return {"type": "array", "items": {"type": "string"}, "description": description}


_TIMEOUT = integer_schema("How long it may run.")


def _read_exec(arguments: str) -> Json:
    """Read an action of `local_shell`: a model may write a command line in place of its words."""
    given = parse_object_text(arguments)
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
    names = {**unchanged("command", "timeout_ms", "env"), "working_directory": "workdir"}
    given = {names[key]: value for key, value in action.items() if value and key in names}
    return {"command": [], **given}


def _read_commands(arguments: str) -> Json:
    """Read an action of `shell`."""
    given = parse_object_text(arguments)
    commands = arguments if given is None else given.get("commands")
    commands = [commands] if isinstance(commands, str) else commands
    limits = {key: (given or {}).get(key) for key in ("timeout_ms", "max_output_length")}
    return {"commands": _strings(commands) if isinstance(commands, list) else [], **limits}


_OPERATIONS = ("update_file", "create_file", "delete_file")


def _read_operation(arguments: str) -> Json:
    """Read an operation of `apply_patch`."""
    given = parse_object_text(arguments)
    given = {"diff": arguments} if given is None else given
    kind = given.get("type") if given.get("type") in _OPERATIONS else _OPERATIONS[0]
    operation = {"type": kind, "path": string(given.get("path"))}
    has_diff = kind != "delete_file"
    return {**operation, "diff": string(given.get("diff"))} if has_diff else operation


BUILT_IN_TOOLS: Mapping[str, BuiltInTool] = {
    tool.kind: tool
    for tool in (
        BuiltInTool(
            "local_shell",
            "action",
            "Run a command on the user's machine and return what it prints.",
            closed_schema(
                "command",  # the names are those of Codex's own shell function
                command=_texts('The program and its arguments: ["bash", "-lc", "ls"].'),
                workdir=text_schema("The directory to run it in."),
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
            "action",
            "Run commands in a shell on the user's machine; return what each prints and how it "
            "ends.",
            closed_schema(
                "commands",
                commands=_texts("Command lines, such as ls -l | wc."),
                timeout_ms=_TIMEOUT,
                max_output_length=integer_schema("The most characters of output to return."),
            ),
            _read_commands,
            _given,
            {"environment": {"type": "local"}},
        ),
        BuiltInTool(
            "apply_patch",
            "operation",
            "Create, update or delete a file. The diff has no line numbers and no names of "
            "files. To create a file, each of its lines stands in the diff with + before it. "
            "To update one, each part of the diff begins with a line @@, which may name the "
            "class or function that the part is in; then come lines of the file, with - before "
            "those to remove, + before those to add, and a space before those that stay: show "
            "three of these before and after each change.",
            closed_schema(
                "type",
                "path",
                type={"type": "string", "enum": list(_OPERATIONS)},
                path=text_schema("The file, from the workspace's root."),
                diff=text_schema("What changes; not for delete_file."),
            ),
            _read_operation,
            _given,
            cut_status="in_progress",
        ),
    )
}
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


# What led to a call


class ItemAttributor:
    """Attribute the calls of one response, taking its items in order."""

    def __init__(self, limit: int) -> None:
        self._attributor: Attributor = Attributor(limit)
        self._stretch = 0

    def attribute(self, item: Any) -> Any:
        """Take the next item; return a call with its attribution, anything else unchanged."""
        if is_reasoning(item):
            self._add_reasoning(item)
        elif is_tool_call(item):
            return attribute_call(item, self._attributor.attribute_call(), call_id_of(item))
        return item

    def _add_reasoning(self, item: Json) -> None:
        """Record reasoning. Opaque state stands in where none is shown; a signature does not."""
        raw, summary = part_texts(item.get("content")), part_texts(item.get("summary"))
        self._stretch += 1
        for kind, texts in ((RAW, raw), (SUMMARY, summary)):
            for index, text in enumerate(texts):
                self._attributor.add_reasoning(kind, text, part=index, stretch=self._stretch)
        state = string(item.get("encrypted_content"))
        if state and not state.startswith(SIGNATURE_PREFIX) and not any([*raw, *summary]):
            self._attributor.add_redacted(stretch=self._stretch)


def attribute_response(response: Json, limit: int = sys.maxsize) -> Json:
    output = response.get("output")
    if not isinstance(output, list):
        return response
    items = ItemAttributor(limit)
    return {**response, "output": [items.attribute(item) for item in output]}
