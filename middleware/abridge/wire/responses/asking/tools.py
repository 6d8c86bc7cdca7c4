"""Read and write the tools, tool choices and calls of the Responses API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from abridge.turn.question import Tool, ToolChoice, ToolKind
from abridge.wire.asking.disguise import free_text, shell_action
from abridge.wire.asking.offer import Names
from abridge.wire.asking.require import a_list, a_string, an_object, entries, invalid
from abridge.wire.codec import Json, read_object, string

MODES = ("none", "auto", "required")

ADDITIONAL, FOUND = "additional_tools", "tool_search_output"
"""Types of input items that bring tools: additional ones, and those that a search found.

Codex sends all of its tools as additional ones to models that it knows to accept them. Source:
openai-openapi, `AdditionalToolsItemParam`, `ToolSearchOutputItemParam`.
"""


def read_tools(body: Json, names: Names) -> list[Tool]:
    """Read the tools, including each of a namespace, once however often the client sends one.

    Tools outside of namespaces get their names first, since they may keep them. The name of a
    hosted tool is its type.
    """
    given = [*entries(body.get("tools"), "tools"), *_brought(body.get("input"))]
    told = (each for tool, param in given for each in _read(tool, param))
    read = list({_identity(tool): tool for tool in told}.values())
    for tool in sorted(read, key=lambda tool: bool(tool.group)):
        if tool.kind != "hosted":
            names.give(tool.own, tool.group)
    return [tool if tool.kind == "hosted" else _renamed(tool, names) for tool in read]


def _brought(items: Any) -> Iterator[tuple[Json, str]]:
    """Yield the tools that come in input items."""
    for i, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict) and item.get("type") in (ADDITIONAL, FOUND):
            yield from entries(item.get("tools"), f"input[{i}].tools")


def read_found(item: Json, param: str, names: Names) -> list[str]:
    """Return the names that upstream gets for the tools that a search found."""
    given = entries(item.get("tools"), f"{param}.tools")
    found = [each for tool, name in given for each in _read(tool, name)]
    return [names.give(tool.own, tool.group) for tool in found if tool.kind != "hosted"]


def _identity(tool: Tool) -> tuple[str, str, str]:
    """Return what identifies a tool. There may be several hosted ones of a type."""
    return tool.group, tool.own, tool.param if tool.kind == "hosted" else ""


def _renamed(tool: Tool, names: Names) -> Tool:
    return replace(tool, name=names.give(tool.own, tool.group))


def _read(tool: Json, param: str) -> Iterator[Tool]:
    kind = a_string(tool.get("type"), f"{param}.type")
    if kind == "namespace":
        group = a_string(tool.get("name"), f"{param}.name")
        inner = a_list(tool.get("tools"), f"{param}.tools")
        for entry, name in entries(inner, f"{param}.tools"):
            for read in _read(entry, name):
                yield replace(read, group=group)
    elif kind == "function":
        yield _function(tool, param)
    elif kind == "custom":
        name = a_string(tool.get("name"), f"{param}.name")
        told, grammar = string(tool.get("description")), _grammar(tool.get("format"))
        yield Tool(name, "custom", told, grammar=grammar, own=name, spelled=tool, param=param)
    elif kind == "tool_search" and tool.get("execution") == "client":
        yield Tool(
            kind, "tool_search", *_described(tool, param), own=kind, spelled=tool, param=param
        )
    else:
        of: ToolKind = "local_shell" if kind == "local_shell" else "hosted"
        yield Tool(kind, of, own=kind, spelled=tool, param=param)


def _function(tool: Json, param: str) -> Tool:
    """Read a function, flat or nested as on Chat Completions.

    If the client does not set `strict`, a function is strict if its schema can be: this API falls
    back where it cannot, others refuse (OpenAI's guide to function calling, strict mode).
    """
    inner = tool.get("function")
    holder, said = (f"{param}.function", inner) if isinstance(inner, dict) else (param, tool)
    name = a_string(said.get("name"), f"{holder}.name")
    (told, parameters), given = _described(said, holder), said.get("strict")
    strict = _is_closed(parameters) if given is None else given is not False
    return Tool(name, "function", told, parameters, strict, own=name, spelled=tool, param=param)


def _described(tool: Json, param: str) -> tuple[str, Json | None]:
    """Return a tool's description and its parameters."""
    parameters = tool.get("parameters")
    if parameters is not None:
        an_object(parameters, f"{param}.parameters")
    return string(tool.get("description")), parameters


def _is_closed(schema: Json | None) -> bool:
    """Return whether every object of a schema allows just what it requires, as strict ones do."""
    left: list[Any] = [{} if schema is None else schema]
    closed = "properties" in left[0]
    while left:
        node = left.pop()
        if isinstance(node, dict) and isinstance(node.get("properties"), dict):
            required = node.get("required")
            closed &= node.get("additionalProperties") is False
            closed &= isinstance(required, list) and node["properties"].keys() <= {
                *map(str, required)
            }
        if isinstance(node, dict | list):
            left += node.values() if isinstance(node, dict) else node
    return closed


def _grammar(format_: Any) -> Json | None:
    if not isinstance(format_, dict) or format_.get("type") != "grammar":
        return None
    return {key: format_.get(key) for key in ("syntax", "definition")}


def spell_tool(tool: Tool) -> Json:
    told = {"description": tool.description} if tool.description else {}
    if tool.kind == "custom":
        grammar = {"type": "grammar", **(tool.grammar or {})}
        asked = {"format": grammar} if tool.grammar else {}
        return {"type": "custom", "name": tool.name, **told, **asked}
    parameters = tool.parameters
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    said = {"parameters": parameters, "strict": tool.strict}
    return {"type": "function", "name": tool.name, **told, **said}


def read_choice(body: Json, names: Names) -> ToolChoice | None:
    choice = body.get("tool_choice")
    if choice is None or choice in MODES:
        return ToolChoice(choice) if choice else None
    said = an_object(choice, "tool_choice")
    if said.get("type") != "allowed_tools":
        return ToolChoice("required", tuple(_named(said, "tool_choice", names)))
    mode, tools = said.get("mode"), entries(said.get("tools"), "tool_choice.tools")
    if mode not in MODES[1:]:
        raise invalid(mode, "tool_choice.mode")
    named = [name for tool, param in tools for name in _named(tool, param, names)]
    return ToolChoice(mode, tuple(named))


def _named(said: Json, param: str, names: Names) -> list[str]:
    """Return the names of the tools that an entry names. A hosted tool's name is its type."""
    kind = string(said.get("type"))
    if kind == "namespace":
        return names.group(a_string(said.get("name"), f"{param}.name"))
    if kind not in ("function", "custom"):
        return [kind]
    own, group = a_string(said.get("name"), f"{param}.name"), string(said.get("namespace"))
    return [names.known(own, group)]


def spell_choice(choice: ToolChoice, tools: Mapping[str, Tool]) -> str | Json:
    """Write a tool choice. `tools` are those offered, by name."""
    if not choice.names:
        return choice.mode
    named: list[Json] = [_spell_named(name, tools.get(name)) for name in choice.names]
    if choice.mode == "required" and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "mode": choice.mode, "tools": named}


def _spell_named(name: str, tool: Tool | None) -> Json:
    return {
        "type": "custom" if tool is not None and tool.kind == "custom" else "function",
        "name": name,
    }


def spell_call(
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
    if tool.kind == "local_shell":
        return {"type": "local_shell_call", **head, "action": shell_action(arguments or "{}")}
    if tool.kind == "tool_search":
        given = read_object(arguments.encode(errors="surrogatepass")) or {}
        return {"type": "tool_search_call", **head, "execution": "client", "arguments": given}
    group = {"namespace": tool.group} if tool.group else {}
    head = {**head, **group, "name": tool.own or name}
    if tool.kind == "custom":
        return {"type": "custom_tool_call", **head, "input": free_text(tool, arguments)}
    return {"type": "function_call", **head, "arguments": arguments}
