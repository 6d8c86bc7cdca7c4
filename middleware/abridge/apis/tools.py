"""The tools that an upstream is offered: which of the client's, under which names, in which form.

For an upstream that knows nothing but functions, custom tools become functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b
from itertools import count
from typing import Any, Literal, TypeAlias

from abridge.apis.json import loads_exact, parse_object_text
from abridge.core.conversation import Json
from abridge.core.model_request import (
    FilePart,
    ImagePart,
    MessagePart,
    ModelRequest,
    TextPart,
    Tool,
    ToolCallPart,
    ToolChoice,
    ToolOutputPart,
    TranslatedRequest,
)

MAX_TOOL_NAME = 64
"""The most characters in a tool's name (openai-openapi, `FunctionObject.name`)."""

DISPENSABLE_PREFIXES = ("web_search", "tool_search")
"""Prefixes of the hosted tools that a model can do without beside others: those that clients such
as Codex always send (`web_search`, `web_search_preview`, either with a date), and the search for
tools whose loading is deferred, since all of them are offered. `image_generation` is not one of
these: Codex sends it only if the user's account has it, so that a client that sends it relies on
it.
"""

BUILT_IN = "built_in"
"""The group of tools that are named by their type, where a function has that name."""

_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")


class ToolNames:
    """Assign the names under which upstream knows the tools.

    A tool always gets the same name, whatever kind of tool it was when it was called.
    """

    def __init__(self) -> None:
        self._assigned: dict[tuple[str, str], str] = {}
        self._by_client_name: dict[str, str] = {}
        self._taken: set[str] = set()

    def assign(self, client_name: str, group: str = "") -> str:
        key = (group, client_name)
        if key not in self._assigned:
            self._assigned[key] = self._choose_name(client_name, group, "/".join(key))
            self._by_client_name.setdefault(client_name, self._assigned[key])
            self._taken.add(self._assigned[key])
        return self._assigned[key]

    def assigned_name(self, client_name: str, group: str = "") -> str:
        """Return the name assigned to a tool; without `group` it may be in any group."""
        assigned = self._assigned.get((group, client_name))
        return assigned or self._by_client_name.get(client_name, client_name)

    def assign_type(self, kind: str, *, has_namesake: bool = False) -> str:
        """Return the name of a tool that the client names by its type: another than that of a
        function, if it offers one of that name as well."""
        key = (BUILT_IN, kind)
        return self.assign(kind, BUILT_IN if has_namesake or key in self._assigned else "")

    def names_in_group(self, group: str) -> list[str]:
        """Return the names assigned to a group's tools."""
        return [name for key, name in self._assigned.items() if key[0] == group]

    def _choose_name(self, client_name: str, group: str, key: str) -> str:
        full_name = f"{group.removesuffix('__')}__{client_name}" if group else client_name
        name = _INVALID_CHARACTER.sub("_", full_name)[:MAX_TOOL_NAME]
        if name == full_name and name not in self._taken:
            return name
        suffixes = (_short_digest(f"{key}/{n}") for n in count())
        candidates = (f"{name[: MAX_TOOL_NAME - len(suffix) - 1]}_{suffix}" for suffix in suffixes)
        return next(name for name in candidates if name not in self._taken)


def _short_digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest()


NamedTools: TypeAlias = Literal["some", "required", "one"]
"""Which tools a choice can name, in an API: some of those offered, whether or not one of them must
be called; some, of which one must be; or only the one that must be."""


def choose_tools(
    request: ModelRequest,
    translated: TranslatedRequest,
    named: NamedTools,
    *,
    as_functions: bool,
) -> tuple[list[Tool], ToolChoice | None]:
    """Return the tools to offer, none of which is hosted, and the choice among them.

    If only some may be called, and a choice cannot name those, the others are not offered.
    """
    tools = [tool for tool in request.tools if tool.kind != "hosted"]
    for tool in request.tools:
        if tool.kind == "hosted":
            message = f"This model's API cannot run the tool {tool.name!r:.80}."
            is_essential = not _is_dispensable(tool, request.tool_choice, tools)
            translated.leave_out(tool.param, message, essential=is_essential)
    choice = request.tool_choice
    if choice is not None and choice.names and not _can_name(choice, named):
        tools = [tool for tool in tools if tool.name in choice.names]
        choice = ToolChoice(choice.mode)
    offered = list(map(as_function, tools)) if as_functions else tools
    translated.tools = {tool.name: tool for tool in offered}
    return offered, choice


def _is_dispensable(tool: Tool, choice: ToolChoice | None, others: list[Tool]) -> bool:
    choice = choice or ToolChoice("auto")
    is_helper = tool.name.startswith(DISPENSABLE_PREFIXES) and tool.name not in choice.names
    return choice.mode == "none" or (is_helper and bool(others))


def _can_name(choice: ToolChoice, named: NamedTools) -> bool:
    is_required = choice.mode == "required"
    return named == "some" or (is_required and (named == "required" or len(choice.names) == 1))


# Tools as functions


def object_schema(*required: str, **properties: Json) -> Json:
    """Return the schema of an object with these properties; of any other keys it says nothing."""
    return {"type": "object", "properties": properties, "required": list(required)}


def closed_schema(*required: str, **properties: Json) -> Json:
    """Return the schema of an object with no other keys."""
    return {**object_schema(*required, **properties), "additionalProperties": False}


def text_schema(description: str, **fields: Any) -> Json:
    return {"type": "string", "description": description, **fields}


def integer_schema(description: str) -> Json:
    return {"type": "integer", "description": description}


FREE_TEXT_PARAMETERS = closed_schema("input", input=text_schema("The whole input, as free text."))
"""The parameters of a custom tool that is offered as a function."""

AS_FUNCTION_NOTE = "It is called as a function here: `input` holds the free text, as it is."
"""Appended to a custom tool's description, which may say that it takes no JSON, as Codex's do."""


def as_function(tool: Tool) -> Tool:
    """Return the tool as a function; one with `parameters` already is one."""
    if tool.kind == "custom":
        return replace(
            tool, description=_describe_custom_tool(tool), parameters=FREE_TEXT_PARAMETERS
        )
    return tool


def _describe_custom_tool(tool: Tool) -> str:
    paragraphs = [tool.description, AS_FUNCTION_NOTE] if tool.description else []
    if tool.grammar:
        syntax, definition = tool.grammar.get("syntax"), tool.grammar.get("definition")
        paragraphs.append(f"`input` must match this {syntax} grammar:\n{definition}")
    return "\n\n".join(paragraphs)


def wrap_free_text(text: str) -> str:
    """Return a custom tool's input as the arguments of its function."""
    return json.dumps({"input": text}, ensure_ascii=False)


def parse_arguments(call: ToolCallPart, invalid_key: str) -> Json:
    """Parse a call's arguments for an API where they are an object. Those that are none (of a call
    that was cut short) are kept as text under `invalid_key`."""
    arguments = wrap_free_text(call.arguments) if call.custom else call.arguments
    if not arguments.strip():
        return {}
    parsed = parse_object_text(arguments, loads_exact)
    return {invalid_key: arguments} if parsed is None else parsed


def unwrap_free_text(tool: Tool, arguments: str) -> str:
    """Return a custom tool's input from the arguments of its function.

    Arguments that do not follow the schema are passed on as they are: the client's tool reports
    what is wrong with them.
    """
    if tool.parameters is None:
        return arguments
    given = (parse_object_text(arguments) or {}).get("input")
    return given if isinstance(given, str) else arguments


# Outputs of tools


def split_output(
    parts: Iterable[MessagePart],
) -> tuple[tuple[TextPart | ImagePart | FilePart, ...], list[MessagePart]]:
    """Split what a tool returned into what it may return, and what no API takes from tools."""
    output, others = list[TextPart | ImagePart | FilePart](), list[MessagePart]()
    for part in parts:
        if isinstance(part, TextPart | ImagePart | FilePart):
            output.append(part)
        else:
            others.append(part)
    return tuple(output), others


FAILED_NOTE = "The tool failed:"
"""Begins the output of a tool that failed, in APIs that have no field for that."""


def stated_output(output: ToolOutputPart) -> tuple[TextPart | ImagePart | FilePart, ...]:
    """Return a tool's output as all that the model gets: if it failed, its text says so."""
    if not output.failed:
        return output.parts
    first = output.parts[0] if output.parts else TextPart("")
    if not isinstance(first, TextPart):
        return (TextPart(FAILED_NOTE), *output.parts)
    stated = f"{FAILED_NOTE}\n{first.text}".rstrip()
    return (TextPart(stated, first.cache_control), *output.parts[1:])
