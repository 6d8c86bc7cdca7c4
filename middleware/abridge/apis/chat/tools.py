"""Read and write the tools, tool choice and calls of Chat Completions.

Of the calls of an answer it is told which fragment is of which, and which reasoning led to each.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from abridge.apis import sse
from abridge.apis.attribution_fields import attribute_call
from abridge.apis.chat.chunks import CallFragment
from abridge.apis.chat.reasoning import (
    LIST_FIELDS,
    REASONING_ITEM,
    ReasoningEntry,
    find_reasoning,
    get_delta,
    read_entries,
)
from abridge.apis.display import Display
from abridge.apis.frames import parse_frame
from abridge.apis.json import as_integer, as_object, dumps, nested_value, objects, string
from abridge.apis.openai import NAMED_KINDS, nested, read_named_tool, write_custom_tool
from abridge.apis.params import check_string, iter_objects, require_string
from abridge.apis.tools import wrap_free_text
from abridge.core.answer import Attribution, AttributionPart
from abridge.core.by_number import ByNumber
from abridge.core.conversation import Json
from abridge.core.events import PART_SEPARATOR, Event, NativeSummary, ReasoningDelta, ToolCallDelta
from abridge.core.model_request import Tool, ToolCallPart
from abridge.stages.attribution import RAW, REDACTED, SUMMARY, Attributor, CallAttribution

LEGACY_CALL = -1
"""The index of the only call that `function_call` has, which `tool_calls` replaced."""

MAX_NAMELESS = 1 << 16
"""Characters of arguments for which a call waits for its name."""


def read_tools(body: Json) -> Iterator[Tool]:
    for tool, param in iter_objects(body.get("tools"), "tools"):
        yield _read_tool(tool, param)


def _read_tool(tool: Json, param: str) -> Tool:
    kind = check_string(tool.get("type", "function"), f"{param}.type")
    if kind not in NAMED_KINDS:
        return Tool(kind, "hosted", source=tool, param=param)
    read, fields = read_named_tool(tool, param)
    if kind == "function":
        return replace(read, strict=fields.get("strict") is True)
    return replace(read, grammar=as_object(nested_value(fields, "format.grammar")) or None)


def write_tool(tool: Tool) -> Json:
    """Write a tool as a function, or as a custom tool if it has no parameters."""
    if tool.kind == "custom" and tool.parameters is None:
        return write_custom_tool(tool, nested)
    description = {"description": tool.description} if tool.description else {}
    function: Json = {"name": tool.name, **description}
    if tool.parameters is not None:
        function["parameters"] = tool.parameters
    if tool.strict:  # false is the default
        function["strict"] = True
    return nested("function", function)


def read_tool_names(entry: Json, param: str) -> Iterator[str]:
    """Yield the name of the tool that an entry names; a hosted tool's type is its name."""
    kind = string(entry.get("type"))
    if kind not in NAMED_KINDS:
        yield kind
        return
    inner = entry.get(kind)
    fields = inner if isinstance(inner, dict) else entry
    yield require_string(fields, "name", f"{param}.{kind}")


def write_call(call: ToolCallPart, *, native: bool) -> Json:
    """Write a call of an earlier turn: without `native` a custom tool's as a function's."""
    if call.custom and native:
        return {"id": call.id, **nested("custom", {"name": call.name, "input": call.arguments})}
    arguments = wrap_free_text(call.arguments) if call.custom else call.arguments
    return {"id": call.id, **nested("function", {"name": call.name, "arguments": arguments})}


# The calls of an answer


class CallNumbers:
    """Tells which call of a choice a fragment is of: that of its index; without one (Gemini) that
    of its id; else the last, unless it names a function, which begins another. So does a name with
    another id than that of its index."""

    def __init__(self) -> None:
        self._by_index: dict[int, int] = {}  # where it is another number
        self._by_id: dict[str, int] = {}
        self._ids: dict[int, str] = {}
        self._last = -1
        self._next = 0

    def find(self, index: Any, identity: str, name: str) -> int:
        given, of_id = as_integer(index), self._by_id.get(identity, self._next)
        if given is None:
            number = of_id if identity or name or self._last < 0 else self._last
        else:
            number = self._by_index.get(given, given)
            if name and identity and self._ids.get(number, identity) != identity:
                number = self._by_index[given] = of_id
        self._last, self._next = number, max(self._next, number + 1)
        if identity:
            self._by_id[identity] = number
            self._ids.setdefault(number, identity)
        return number


@dataclass(slots=True)
class _ReadCall:
    id: str = ""
    number: int | None = None  # counts the calls reported; None until its name has come
    custom: bool = False
    waiting: list[str] = field(default_factory=list)  # arguments that came before the name
    room_left: int = MAX_NAMELESS
    lacks_arguments: bool = True  # a function that has had no arguments so far


class ToolCallFragments:
    """Read the calls of one choice, in which each fragment has the index of its call."""

    def __init__(self, lane: int) -> None:
        self._lane = lane
        self._calls: ByNumber[int, _ReadCall] = ByNumber(lambda _: _ReadCall())
        self._reported: list[_ReadCall] = []

    @property
    def count(self) -> int:
        """The number of calls reported so far."""
        return len(self._reported)

    def report_nameless(self) -> Iterator[ToolCallDelta]:
        """Report the calls that wait for their name, now that none will come."""
        for call in self._calls.values():
            if call.number is None and (call.id or "".join(call.waiting).strip()):
                yield self._report(call, "")

    def finish(self) -> Iterator[ToolCallDelta]:
        """End the calls: give `{}` to those without arguments, which some servers leave out."""
        for number, call in enumerate(self._reported):
            if call.lacks_arguments:
                yield ToolCallDelta(self._lane, None, call_index=number, arguments="{}")

    def read(self, delta: Json) -> list[ToolCallDelta]:
        """Read the calls in a delta or a message."""
        fragments, legacy = objects(delta.get("tool_calls")), delta.get("function_call")
        if isinstance(legacy, dict):
            fragments = [*fragments, {"index": LEGACY_CALL, "function": legacy}]
        return [piece for one in fragments if (piece := self._read_fragment(one)) is not None]

    def has_arguments(self, index: int) -> bool:
        call = self._calls.get(index)
        return call is not None and not call.lacks_arguments

    def _read_fragment(self, fragment: Json) -> ToolCallDelta | None:
        kind, identity, name, text = CallFragment.read(fragment)
        if not isinstance(text, str):
            text = dumps(text).decode() if isinstance(text, dict) else ""
        call, custom = self._calls[fragment["index"]], kind == "custom"
        call.id = call.id or identity
        call.lacks_arguments = call.lacks_arguments and not (custom or text.strip())
        if call.number is not None:
            told = ToolCallDelta(
                self._lane, None, call_index=call.number, arguments=text, custom=custom
            )
            return told if text else None
        call.custom = call.custom or custom
        call.waiting.append(text)
        call.room_left -= len(text)
        return self._report(call, name) if name or call.room_left < 0 else None

    def _report(self, call: _ReadCall, name: str) -> ToolCallDelta:
        call.number = len(self._reported)
        self._reported.append(call)
        arguments, call.waiting = "".join(call.waiting), []
        return ToolCallDelta(
            self._lane,
            None,
            call_index=call.number,
            id=call.id,
            name=name,
            arguments=arguments,
            custom=call.custom,
        )


def call_index(call: Json, position: int) -> int:
    """Return the index of a call, or its position if it has none."""
    index = call.get("index")
    return index if isinstance(index, int) else position


# What led to them


_CALLS_NEEDLE = b'"tool_calls"'

_LIST_NEEDLES = tuple(f'"{name}"'.encode() for name in LIST_FIELDS)


class ChatCallAttribution(CallAttribution):
    """Attribute the calls of an answer; at most `limit` characters are kept of each choice.

    A choice is a turn. Frames of upstream's are read for what their events do not say: the entries
    of lists of reasoning, which keep the parts of its text apart, and the fragments that begin
    calls.
    """

    def __init__(self, display: Display, limit: int) -> None:
        super().__init__(
            limit,
            shows_raw=display.show_raw,
            shows_summary=display.show_summary,
            native=display.native,
            joins_stretches=True,
        )
        self._begun: dict[tuple[int, int], Attribution] = {}  # by choice and index of the call
        self._signatures: Counter[int] = Counter()  # so many in each choice

    def note(self, event: Event) -> None:
        frame, lane = event.frame, event.lane
        if frame is None or lane is None:
            super().note(event)
            return
        if _CALLS_NEEDLE in frame:
            event.frame = self._attribute_frame(frame, lane)
        has_lists = any(needle in frame for needle in _LIST_NEEDLES)
        choices = objects(parse_frame(frame).get("choices")) if has_lists else []
        self._note_entries(
            event, lane, [each for one in choices for each in read_entries(get_delta(one))]
        )

    def _note_entries(self, event: Event, lane: int, entries: list[ReasoningEntry]) -> None:
        """Add the entries of the lists in an event's frame; they may hold no text to show."""
        kind = {ReasoningDelta: RAW, NativeSummary: SUMMARY}.get(type(event))
        is_shown = self._shows_raw if kind == RAW else self._shows_summary
        if not any(entry.text for entry in entries if entry.kind == kind):
            super().note(event)
        turn = self.turns[lane]
        for entry in entries:
            if kind is not None and entry.kind == kind and is_shown:
                part = entry.part, self._signatures[lane]
                turn.add_reasoning(kind, entry.text, part=part, stretch=REASONING_ITEM)
            elif entry.tells_hidden:
                turn.add_redacted(stretch=REASONING_ITEM)
            self._signatures[lane] += entry.signs and bool(entry.data)

    def _attribute_frame(self, frame: bytes, lane: int) -> bytes:
        """Return the frame with its calls attributed; as it is, if it is nested too deep for
        that."""
        chunk = parse_frame(frame)
        try:
            changed = map_choices(chunk, partial(self._attribute_choice, lane))
            return frame if changed == chunk else sse.encode_frame(dumps(changed))
        except RecursionError:
            return frame

    def _attribute_choice(self, lane: int, choice: Json) -> Json:
        delta = get_delta(choice)
        calls = objects(delta.get("tool_calls"))
        if not calls or len(calls) < len(delta["tool_calls"]):
            return choice
        fragments = [
            self._attribute_fragment(lane, call, call_index(call, position))
            for position, call in enumerate(calls)
        ]
        key = "delta" if choice.get("delta") is delta else "message"
        return {**choice, key: {**delta, "tool_calls": fragments}}

    def _attribute_fragment(self, lane: int, call: Json, index: int) -> Json:
        """Return a call's fragment, with the attribution if it is the first of its call."""
        call_id, begun = CallFragment.read(call).id, self._begun.get((lane, index))
        if begun is not None:
            begun.call_id = begun.call_id or call_id
            return attribute_call(call, Attribution(), call_id)
        begun = self._begun[lane, index] = self.turns[lane].attribute_call()
        return attribute_call(call, begun, call_id)


def attribute_message(
    message: Json,
    display: Display,
    fields: tuple[str, str],
    summary: Sequence[str] = (),
    limit: int = sys.maxsize,
) -> Json:
    """Return the message with its calls attributed. It does not show the order of reasoning and
    calls, so all of its reasoning led to the first.

    `fields` hold raw reasoning and summary, where it has both; `summary` are the parts of a summary
    that Abridge made.
    """
    calls = objects(message.get("tool_calls"))
    if not calls or len(calls) < len(message["tool_calls"]):
        return message
    attributor = Attributor(limit, native=display.native)
    for number, part in enumerate(_read_parts(message, display, fields, summary)):
        if part.kind == REDACTED:
            attributor.add_redacted()
        else:
            attributor.add_reasoning(part.kind, part.text, part=number)
    attributed = [
        attribute_call(call, attributor.attribute_call(), string(call.get("id"))) for call in calls
    ]
    return {**message, "tool_calls": attributed}


def map_choices(body: Json, change: Callable[[Json], Json]) -> Json:
    """Return a chunk or a completion with `change` applied to its choices."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return body
    changed = [change(choice) if isinstance(choice, dict) else choice for choice in choices]
    return {**body, "choices": changed}


def _read_parts(
    message: Json, display: Display, fields: tuple[str, str], summary: Sequence[str]
) -> Iterator[AttributionPart]:
    """Return a message's reasoning, in parts if it has them.

    Its lists take precedence over its texts: they keep the parts apart.
    """
    entries = read_entries(message)
    kinds = {entry.kind for entry in entries if entry.text.strip()}
    for part in _read_text_parts(message, display, fields):
        if part.kind in kinds:
            continue
        is_own_summary = part.kind == SUMMARY and part.text == PART_SEPARATOR.join(summary)
        yield from (
            (AttributionPart(SUMMARY, text) for text in summary) if is_own_summary else [part]
        )
    for entry in entries:
        if entry.text or entry.tells_hidden:
            yield AttributionPart(entry.kind, entry.text)


def _read_text_parts(
    message: Json, display: Display, fields: tuple[str, str]
) -> Iterator[AttributionPart]:
    """Return the reasoning's text, as raw or summary. Two texts that differ are one of each, unless
    all is shown as upstream sends it."""
    found = find_reasoning(message)
    if found is None:
        return
    raw, summary = (string(message.get(name)) for name in fields)
    if found.native or not display.show_raw:
        yield AttributionPart(SUMMARY, found.text)
    elif raw and summary and raw != summary and not display.is_plain:
        yield AttributionPart(RAW, raw)
        yield AttributionPart(SUMMARY, summary)
    else:
        yield AttributionPart(RAW, found.text)
