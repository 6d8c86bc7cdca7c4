"""What is known of Responses, where raw reasoning is hidden. `ResponsesRebuilder` drops the rest.
The shapes say what a response, its items and their parts, and the events of a stream may hold
(openai-openapi: `Response`, `OutputItem`, `ItemResource`, `InputItem`, `ResponseStreamEvent`, and
the types of the `openai` package, which are ahead of it).
Beside that they know what servers send though the description lacks it: request parameters that
openresponses' `ResponseResource` repeats, and errors in the form of an error body.

Log probabilities stay where their tokens are the text beside them. Known, but left out:
padding, which could spell out anything, and `output_text`, which only client libraries set.
Upstream's error messages are told in other words: servers quote in them what the model wrote. What
a response repeats of the request is taken from the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from abridge.apis import errors
from abridge.apis.json import as_object, string
from abridge.apis.logprobs import LOGPROBS, with_logprobs
from abridge.apis.markers import is_marked, unless_marked
from abridge.apis.responses.items import (
    CONTENT_PART_ADDED,
    ITEM_ADDED,
    ITEM_DONE,
    TEXT_TYPES,
    Addresses,
    upstream_id,
)
from abridge.apis.responses.reasoning import SHOWN_ITEM
from abridge.apis.shapes import (
    ANNOTATION,
    FILTER_RESULTS,
    MODERATION_RESULT,
    PADDING,
    DropCount,
    Shape,
    by_type,
    call_name,
    described,
    each,
    either,
    fields,
    figures,
    json_text,
    json_value,
    name,
    number,
    opaque,
    opaque_state,
    proper_name,
    streamed_json,
    streamed_text,
    text,
    under,
    under_names,
    unused,
)
from abridge.core.conversation import Json

# Values


def _renumbered(value: Any, drops: DropCount) -> Any:
    """The number of an event, which the writer sets: here it is always 0."""
    return 0 if isinstance(value, int) else number(value, drops)


def _echoed(_value: Any, _: DropCount) -> Any:
    """A value that repeats the request. See `ECHOED`."""


_REBUILT_FIELDS = ("id", "call_id", "status", "summary")
"""Fields of a reasoning item that are read for what clients are shown."""


def _reasoning_item(value: Any, drops: DropCount) -> Any:
    """A reasoning item with all that upstream may want back. Its writer shows a `SHOWN_ITEM`."""
    shown = SHOWN_ITEM(value, drops)
    return {
        key: shown.get(key, inner)
        for key, inner in value.items()
        if key in shown or key not in _REBUILT_FIELDS
    }


# Content parts

OUTPUT_TEXT = with_logprobs(
    fields(names="type", text=streamed_text, annotations=each(ANNOTATION), logprobs=LOGPROBS),
    "text",
)

OUTPUT_PARTS: Mapping[str, Shape] = {
    **dict.fromkeys(TEXT_TYPES, unless_marked(OUTPUT_TEXT)),
    "refusal": fields(names="type", refusal=streamed_text),
}

_REASONING_PART = fields(names="type", text=streamed_text)

EVENT_PARTS: Mapping[str, Shape] = {**OUTPUT_PARTS, "reasoning_text": _REASONING_PART}

_input_part = partial(fields, prompt_cache_breakpoint=fields(names="mode ttl"))

_FILE = _input_part(
    names="type file_id detail", addresses="image_url file_url file_data", texts="filename"
)


def _input_parts(text: Shape) -> dict[str, Shape]:
    files = under("input_image input_file computer_screenshot", _FILE)
    return {"input_text": _input_part(names="type", text=text), **files}


# Items

_ITEM_FIELDS: Mapping[str, Shape] = {
    **under("id type status role phase call_id created_by name namespace execution", name),
    **under("server_label approval_request_id container_id fingerprint", name),
    "caller": fields(names="type caller_id"),
    "async": number,
}

_item = partial(fields, _ITEM_FIELDS)
"""The shape of an item: fields of several types of items, and its own."""


def _tool_output(text: Shape) -> Shape:
    return _item(output=either(text, each(by_type(_input_parts(text)))))


_SAFETY_CHECKS = each(fields(names="id code", texts="message"))

_COMPUTER_ACTION = fields(
    names="type button",
    numbers="x y scroll_x scroll_y",
    texts="text",
    keys=each(text),
    path=each(fields(numbers="x y")),
)

_SEARCH_RESULT = fields(
    names="file_id",
    texts="filename text",
    numbers="score",
    attributes=described("file attributes"),
)

_WEB_ACTION = fields(
    names="type",
    texts="query pattern",
    addresses="url",
    queries=each(text),
    sources=each(fields(names="type name", addresses="url")),
)
"""A source is a page, or one of OpenAI's own, which has a name: `oai-weather`."""

_IMAGE_CALL = _item(
    names="action background output_format quality size",
    texts="revised_prompt",
    result=opaque,
    error=errors.ERROR,
    svg_usage=partial(figures, names=("model",)),
)

_LOCAL_SHELL_ACTION = fields(
    names="type user",
    texts="working_directory",
    numbers="timeout_ms",
    command=each(text),
    env=under_names(text),
)

_SHELL_ACTION = fields(numbers="timeout_ms max_output_length", commands=each(text))

_ENVIRONMENT = fields(
    names="type container_id", skills=each(fields(names="name", texts="description path"))
)

_SHELL_OUTPUT = fields(
    texts="stdout stderr",
    names="created_by",
    outcome=fields(names="type", numbers="exit_code"),
)

_TOOL = described("tool schemas")

_MCP_TOOL = fields(under("input_schema annotations", _TOOL), name=call_name, texts="description")

_MCP_TEXT = by_type({"text": fields(names="type", texts="text")})

_MCP_ERROR = either(
    text,
    fields(names="type", numbers="code", texts="message", content=either(text, each(_MCP_TEXT))),
)

_CODE_OUTPUT = by_type(
    {"logs": fields(names="type", texts="logs"), "image": fields(names="type", addresses="url")}
)


def _message(roles: str, content: Shape) -> Shape:
    """A message of one of these roles, or of none, and of a known phase."""
    phases = dict.fromkeys(("", "commentary", "final_answer"), _item(content=content))
    return by_type(dict.fromkeys(("", *roles.split()), by_type(phases, "phase")), "role")


ITEMS: Mapping[str, Shape] = {
    "message": unless_marked(_message("assistant", each(by_type(OUTPUT_PARTS)))),
    "reasoning": _reasoning_item,
    "compaction": _item(encrypted_content=opaque_state),
    "function_call": _item(name=call_name, arguments=streamed_json),
    "function_call_output": _tool_output(text),
    "custom_tool_call": _item(name=call_name, input=streamed_text),
    "custom_tool_call_output": _tool_output(text),
    "tool_search_call": _item(arguments=json_value),
    "tool_search_output": _item(tools=each(_TOOL)),
    "additional_tools": _item(tools=each(_TOOL)),
    "program": _item(texts="code"),
    "program_output": _item(texts="result"),
    "file_search_call": _item(queries=each(text), results=each(_SEARCH_RESULT)),
    "web_search_call": _item(action=_WEB_ACTION),
    "image_generation_call": _IMAGE_CALL,
    "code_interpreter_call": _item(code=text, outputs=each(_CODE_OUTPUT)),
    "computer_call": _item(
        action=_COMPUTER_ACTION,
        actions=each(_COMPUTER_ACTION),
        pending_safety_checks=_SAFETY_CHECKS,
    ),
    "computer_call_output": _item(
        output=fields(names="type file_id", addresses="image_url"),
        acknowledged_safety_checks=_SAFETY_CHECKS,
    ),
    "local_shell_call": _item(action=_LOCAL_SHELL_ACTION),
    "local_shell_call_output": _item(texts="output"),
    "shell_call": _item(action=_SHELL_ACTION, environment=_ENVIRONMENT),
    "shell_call_output": _item(numbers="max_output_length", output=each(_SHELL_OUTPUT)),
    "apply_patch_call": _item(operation=fields(names="type", texts="path diff")),
    "apply_patch_call_output": _item(texts="output"),
    "mcp_call": _item(texts="output", name=call_name, arguments=json_text, error=_MCP_ERROR),
    "mcp_list_tools": _item(texts="error", tools=each(_MCP_TOOL)),
    "mcp_approval_request": _item(name=call_name, arguments=json_text),
    "mcp_approval_response": _item(numbers="approve", texts="reason"),
}

_INPUT_MESSAGE = _message(
    "assistant user system developer tool unknown",
    either(streamed_text, each(by_type({**OUTPUT_PARTS, **_input_parts(streamed_text)}))),
)

_CLIENTS_OUTPUT = _tool_output(streamed_text)

INPUT_ITEMS: Mapping[str, Shape] = {
    **ITEMS,
    "message": _INPUT_MESSAGE,
    "": _INPUT_MESSAGE,
    "function_call_output": _CLIENTS_OUTPUT,
    "custom_tool_call_output": _CLIENTS_OUTPUT,
    "item_reference": _item(),
    "compaction_trigger": _item(),
    "configuration_update": _item(reasoning=fields(names="effort")),
}

ITEM_LIST = fields(
    names="object first_id last_id", numbers="has_more", data=each(by_type(INPUT_ITEMS))
)
"""A page of a response's input (`ResponseItemList`)."""

DELETED = fields(names="id object", numbers="deleted")
"""The answer to a deletion."""


# The response

_MODERATION = fields(MODERATION_RESULT, message=errors.message)

_CONTENT_FILTER = fields(
    numbers="blocked",
    names="source_type",
    content_filter_results=FILTER_RESULTS,
    content_filter_offsets=figures,
)

RESPONSE = fields(
    under("instructions metadata prompt tools", _echoed),
    names="id object status previous_response_id service_tier truncation user safety_identifier "
    "prompt_cache_key prompt_cache_retention",
    numbers="created_at completed_at background store max_output_tokens max_tool_calls "
    "parallel_tool_calls temperature top_p top_logprobs presence_penalty frequency_penalty",
    model=proper_name,
    text=fields(names="verbosity", format=_echoed),
    tool_choice=either(name, _echoed),
    content_filters=each(_CONTENT_FILTER),  # Azure
    reasoning=fields(names="effort summary generate_summary mode context"),
    prompt_cache_options=fields(names="mode ttl comparison_response_id"),
    prompt_cache_diagnostics=partial(figures, names=("type", "reason")),
    access_programs=under_names(name),
    image=fields(names="context_compression"),
    input_transformations=each(fields(names="id action reason type")),
    tool_usage=figures,
    conversation=fields(names="id"),
    billing=fields(names="payer"),
    moderation=fields(input=_MODERATION, output=_MODERATION),
    incomplete_details=fields(names="reason"),
    error=errors.ERROR,
    usage=figures,
    output=each(by_type(ITEMS)),
    output_text=unused,
)


# Events

_EVENT_FIELDS: Mapping[str, Shape] = {
    **under("type item_id status", name),
    "sequence_number": _renumbered,
    **under("output_index content_index summary_index annotation_index", number),
    **under("command_index partial_image_index", number),
    **PADDING,
}


def _events(kinds: str, **own: Shape) -> dict[str, Shape]:
    return {f"response.{kind}": fields(_EVENT_FIELDS, own) for kind in kinds.split()}


def _logprob_events(kind: str, key: str) -> dict[str, Shape]:
    events = _events(kind, **{key: streamed_text, "logprobs": LOGPROBS})
    return {kind: with_logprobs(shape, key) for kind, shape in events.items()}


RESPONSE_EVENTS: Mapping[str, Shape] = {
    **_events("created queued in_progress completed incomplete failed", response=RESPONSE),
    "error": fields(
        under("param code", errors.identifier),
        names="type",
        sequence_number=_renumbered,
        message=errors.message,
        error=errors.ERROR,
        response=RESPONSE,
    ),
}
"""Events about the whole response."""

ITEM_EVENTS: Mapping[str, Shape] = {
    **_events("output_item.added output_item.done", item=by_type(ITEMS)),
    **_events("content_part.added content_part.done", part=by_type(EVENT_PARTS)),
    **_logprob_events("output_text.delta", "delta"),
    **_logprob_events("output_text.done", "text"),
    **_events("output_text.annotation.added", annotation=ANNOTATION),
    **_events("refusal.done", refusal=streamed_text),
    **_events("reasoning_text.done reasoning_summary_text.done", text=streamed_text),
    **_events(
        "reasoning_summary_part.added reasoning_summary_part.done",
        part=by_type({"summary_text": _REASONING_PART}),
    ),
    **_events("function_call_arguments.done", name=call_name, arguments=streamed_json),
    **_events("mcp_call_arguments.done", name=call_name, arguments=json_text),
    **_events("custom_tool_call_input.done", input=streamed_text),
    **_events("code_interpreter_call_code.done", code=text),
    **_events("shell_call_command.added shell_call_command.done", command=text),
    **_events(
        "refusal.delta reasoning_text.delta reasoning_summary_text.delta "
        "function_call_arguments.delta custom_tool_call_input.delta",
        delta=streamed_text,
    ),
    # these come again as a whole, which can be looked through
    **_events(
        "mcp_call_arguments.delta code_interpreter_call_code.delta shell_call_command.delta "
        "shell_call_output_content.delta apply_patch_call_operation_diff.delta "
        "audio.transcript.delta",
        delta=unused,
    ),
    **_events("apply_patch_call_operation_diff.done", diff=text),
    **_events("shell_call_output_content.done", output=each(_SHELL_OUTPUT)),
    **_events("audio.delta", delta=opaque),
    **_events(
        "image_generation_call.partial_image",
        partial_image_b64=opaque,
        **under("size quality background output_format", name),
    ),
    **_events(
        "file_search_call.in_progress file_search_call.searching file_search_call.completed "
        "web_search_call.in_progress web_search_call.searching web_search_call.completed "
        "code_interpreter_call.in_progress code_interpreter_call.interpreting "
        "code_interpreter_call.completed image_generation_call.in_progress "
        "image_generation_call.generating image_generation_call.completed "
        "mcp_call.in_progress mcp_call.completed mcp_call.failed "
        "mcp_list_tools.in_progress mcp_list_tools.completed mcp_list_tools.failed "
        "audio.done audio.transcript.done compaction.compacting"
    ),
}
"""Events about an item, or what is in one."""


# Rebuilding

ECHOED: Mapping[str, Any] = {
    "instructions": None,
    "metadata": {},
    "prompt": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
}
"""Fields in which a response repeats the request, and their values where that has none. They are
taken from the request itself, since they hold keys of the client's own."""


def with_echo(rebuilt: Json, echoed: Json) -> Json:
    """Return a rebuilt response with what it repeats of the request, and else with upstream's
    defaults as far as they are known."""
    repeated = {
        key: echoed.get(key) or rebuilt[key] or ECHOED[key] for key in ECHOED if key in rebuilt
    }
    if "text" in repeated:
        defaults = {key: value for key, value in as_object(rebuilt["text"]).items() if value}
        repeated["text"] = {**ECHOED["text"], **defaults, **as_object(repeated["text"])}
        repeated["text"]["format"] = repeated["text"].get("format") or ECHOED["text"]["format"]
    return {**rebuilt, **repeated}


_CONTENTS = ("item", "part", "annotation", "delta")
"""Without these an event says nothing."""

MAX_ADDRESSES = 8192
"""Items and content parts that are remembered."""

TEXT_EVENTS = ("response.output_text.", "response.refusal.")
"""Beginnings of the types of events about a text of the answer."""

_ITEM_BOUNDS = (ITEM_ADDED, ITEM_DONE)


class ResponsesRebuilder:
    """Rebuild the events of one stream.

    Of an item of unknown type nothing is left: neither its beginning and end nor the events that
    name it, even those of a known type. Nor is anything left of an event that items of the type
    that it names do not have: nobody looks for thinking there.
    """

    def __init__(self, echoed: Json, drops: DropCount | None = None) -> None:
        self.drops = drops or DropCount(echoed)
        self._echoed = echoed
        self._items = _AnnouncedItems()

    def rebuild_response(self, response: Json) -> Json:
        """Return a whole response rebuilt."""
        return with_echo(RESPONSE(response, self.drops), self._echoed)

    def rebuild(self, event: Json) -> Json | None:
        """Return the event rebuilt; None if it, or what it brings, is not understood."""
        kind = string(event.get("type"))
        shape = RESPONSE_EVENTS.get(kind)
        if shape is None and (kind in _ITEM_BOUNDS or self._items.have(kind, event)):
            shape = ITEM_EVENTS.get(kind)
        if kind.startswith(TEXT_EVENTS) and is_marked(event):
            shape = None
        if kind == CONTENT_PART_ADDED:
            self._items.note_part(event)
        if shape is None:
            self.drops.drop(event)
            return None
        rebuilt: Json = shape(event, self.drops)
        if isinstance(rebuilt.get("response"), dict):
            rebuilt["response"] = with_echo(rebuilt["response"], self._echoed)
        if kind in _ITEM_BOUNDS:
            self._items.note(event, is_known="item" in rebuilt)
        return rebuilt if all(key in rebuilt for key in _CONTENTS if key in event) else None


@dataclass(slots=True, eq=False)
class _Item:
    type: str | None  # "" if it is unknown, None if it was not announced
    closed_parts: dict[int | None, bool] = field(default_factory=dict)
    """Whether a part is no text of the answer, by `content_index`."""
    is_closed: bool = False  # the last part is none

    def has_closed(self, index: Any) -> bool:
        """Return whether the part at an index, or the last one, is no text of the answer."""
        if not isinstance(index, int):
            return self.is_closed
        return self.closed_parts.get(index, self.closed_parts.get(None, False))


class _AnnouncedItems:
    """The items of which a stream has sent the beginning or the end.

    Some servers leave that out, and the address, too: then an event is about the last item. Past
    `MAX_ADDRESSES`, what is not remembered is unknown.
    """

    def __init__(self) -> None:
        self._addresses = Addresses[_Item]()
        self._last: _Item | None = None
        self._room = MAX_ADDRESSES

    def note(self, event: Json, *, is_known: bool) -> None:
        given = as_object(event.get("item"))
        self._last = _Item(string(given.get("type")) if is_known else "")
        if self._reserve():
            self._addresses.add(self._last, upstream_id(given), event.get("output_index"))

    def note_part(self, event: Json) -> None:
        """Note whether a part holds text of the answer."""
        item, index = self._find(event, self._named(event)), event.get("content_index")
        if not self._reserve():
            if item is not None:
                item.closed_parts[None] = True
            return
        if item is None:
            item = _Item(None)
            self._addresses.add(item, event.get("item_id"), event.get("output_index"))
        part = as_object(event.get("part"))
        item.is_closed = string(part.get("type")) not in OUTPUT_PARTS or is_marked(part)
        item.closed_parts[index if isinstance(index, int) else None] = item.is_closed

    def have(self, kind: str, event: Json) -> bool:
        """Return whether an event may be about an item that is known, or that was not announced."""
        named = self._named(event)
        item = self._find(event, named)
        if item is None:
            return True
        if kind.startswith(TEXT_EVENTS) and item.has_closed(event.get("content_index")):
            return False
        if item.type is None or (item.type and named is None):
            return True
        return bool(item.type) and _fits(kind, item.type)

    def _find(self, event: Json, named: _Item | None) -> _Item | None:
        """Return the item that an event names, else the last; None if it names another one."""
        if named is not None or isinstance(event.get("output_index"), int):
            return named or (None if self._room else _Item(""))
        return self._last

    def _named(self, event: Json) -> _Item | None:
        return self._addresses.find(event.get("item_id"), event.get("output_index"))

    def _reserve(self) -> bool:
        self._room = max(0, self._room - 1)
        return bool(self._room)


def _fits(kind: str, item_type: str) -> bool:
    """Return whether items of a type have events of this one. Those that do not begin with a type
    of item are about what a model says. Reasoning is hidden in any item."""
    name = kind.removeprefix("response.")
    is_said = item_type in ("message", "reasoning") and not name.startswith(tuple(ITEMS))
    return is_said or name.startswith((item_type, "reasoning"))
