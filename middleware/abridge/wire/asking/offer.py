"""Choose which of a client's tools an upstream is offered, and name them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from itertools import count

from abridge.turn.question import Json, Question, Tool, ToolChoice, Unfit, Written
from abridge.wire.profile import Profile

LONGEST = 64
"""The most characters in a tool's name (openai-openapi, `FunctionObject.name`)."""

DISPENSABLE = "web_search"
"""Prefix of the hosted tools that clients such as Codex always send beside their own (`web_search`,
`web_search_preview`, either with a date): a model can do without them. `image_generation` is not
one of these: Codex sends it only if the user's account has it, so that a client that sends it
relies on it.
"""

_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


class Names:
    """Assigns the names under which upstream knows the tools.

    A tool always gets the same name, whatever kind of tool it was when it was called.
    """

    def __init__(self) -> None:
        self._given: dict[tuple[str, str], str] = {}
        self._grouped: dict[str, str] = {}
        self._taken: set[str] = set()

    def give(self, own: str, group: str = "") -> str:
        key = (group, own)
        if key not in self._given:
            self._given[key] = self._find(own, group, "/".join(key))
            self._grouped.setdefault(own, self._given[key])
            self._taken.add(self._given[key])
        return self._given[key]

    def known(self, own: str, group: str = "") -> str:
        """Return the name assigned to a tool; without `group` it may be in any group."""
        return self._given.get((group, own)) or self._grouped.get(own, own)

    def group(self, group: str) -> list[str]:
        """Return the names assigned to a group's tools."""
        return [name for key, name in self._given.items() if key[0] == group]

    def _find(self, own: str, group: str, key: str) -> str:
        whole = f"{group.removesuffix('__')}__{own}" if group else own
        name = _UNFIT.sub("_", whole)[:LONGEST]
        if name == whole and name not in self._taken:
            return name
        marks = (blake2b(f"{key}/{n}".encode(), digest_size=4).hexdigest() for n in count())
        marked = (f"{name[: LONGEST - len(mark) - 1]}_{mark}" for mark in marks)
        return next(name for name in marked if name not in self._taken)


def offered(question: Question) -> tuple[list[Tool], list[Unfit]]:
    """Return the tools that any upstream can be offered; hosted tools are unsupported."""
    choice = question.choice or ToolChoice("auto")
    tools = [tool for tool in question.tools if tool.kind != "hosted"]
    unfit = []
    for tool in question.tools:
        if tool.kind == "hosted":
            spared = tool.name.startswith(DISPENSABLE) and tool.name not in choice.names
            spared = choice.mode == "none" or (spared and bool(tools))
            message = f"This model's API cannot run the tool {tool.name!r:.80}."
            unfit.append(Unfit(tool.param, message, matters=not spared))
    return tools, unfit


def narrowed(choice: ToolChoice | None, tools: list[Tool]) -> tuple[ToolChoice | None, list[Tool]]:
    """Return the same choice for an API in which a choice can name one tool at most.

    If only some of several tools may be called, the others are not offered.
    """
    if choice is None or not choice.names or (choice.mode == "required" and len(choice.names) == 1):
        return choice, tools
    chosen = frozenset(choice.names)
    return ToolChoice(choice.mode), [tool for tool in tools if tool.name in chosen]


def write_tools(
    question: Question,
    profile: Profile,
    written: Written,
    spell_tool: Callable[[Tool], Json],
    spell_choice: Callable[[ToolChoice, Mapping[str, Tool]], str | Json],
) -> None:
    """Write the tools into a body, and the choice if there are any."""
    tools, unfit = offered(question)
    choice = question.choice
    if "allowed_tools" not in profile.knows:
        choice, tools = narrowed(choice, tools)
    written.unfit += unfit
    written.tools = by_name = {tool.name: tool for tool in tools}
    if tools:
        written.body["tools"] = [spell_tool(tool) for tool in tools]
        if choice is not None:
            written.body["tool_choice"] = spell_choice(choice, by_name)
