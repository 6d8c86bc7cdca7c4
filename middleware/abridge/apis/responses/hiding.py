"""Rebuild what upstream sends from what is known of it, where raw reasoning is hidden.

The tables say what a response, its items and their parts, and the events of a stream may hold
(openai-openapi: `Response`, `OutputItem`, `ItemResource`, `InputItem`, `ResponseStreamEvent`).
Beside that they know what servers send though the description lacks it: request parameters that
openresponses' `ResponseResource` repeats, and errors in the form of an error body.

Known, but left out: log probabilities and `obfuscation`, which could spell out anything, and
`output_text`, which only client libraries set. Upstream's error messages are told in other words:
servers quote in them what the model wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from abridge.apis import own_errors
from abridge.apis.json import as_object, string
from abridge.apis.responses.items import upstream_id
from abridge.apis.responses.reasoning import SHOWN_ITEM
from abridge.apis.shapes import (
    DROPPED,
    DropCount,
    Shape,
    address,
    by_type,
    each,
    either,
    fields,
    figures,
    json_text,
    name,
    number,
    opaque,
    streamed_json,
    streamed_text,
    text,
    unknown,
)
from abridge.core.conversation import Json

# Values


def _unused(_value: Any, _: DropCount) -> Any:
    """A value that is known, but says nothing."""
    return DROPPED


def _echoed(_value: Any, _: DropCount) -> Any:
    """A value that repeats the request. See `ECHOED`."""


def _no_logprobs(value: Any, drops: DropCount) -> Any:
    """An empty list: the description requires one."""
    if isinstance(value, list):
        drops.drop(value)
        return []
    return value if value is None else drops.drop(value)


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


def _under_names(shape: Shape) -> Shape:
    """An object of values of one shape."""

    def rebuild_object(value: Any, drops: DropCount) -> Any:
        if not isinstance(value, dict):
            return value if value is None else drops.drop(value)
        known = {key: shape for key in value if name(key, drops) is not DROPPED}
        return fields(known)(value, drops)

    return rebuild_object


def _all(keys: str, shape: Shape) -> dict[str, Shape]:
    return dict.fromkeys(keys.split(), shape)


# Content parts

ANNOTATION = by_type(
    _all(
        "file_citation url_citation container_file_citation file_path",
        fields(
            _all("type file_id container_id", name)
            | _all("index start_index end_index", number)
            | _all("filename title", text)
            | {"url": address}
        ),
    )
)

OUTPUT_TEXT = fields(
    {"type": name, "text": streamed_text, "annotations": each(ANNOTATION), "logprobs": _no_logprobs}
)

OUTPUT_PARTS: Mapping[str, Shape] = {
    **dict.fromkeys(("output_text", "text", ""), OUTPUT_TEXT),
    "refusal": fields({"type": name, "refusal": streamed_text}),
}
"""Some servers name no type, or another one: `contents.TEXT_TYPE_ALIASES`."""

EVENT_PARTS: Mapping[str, Shape] = {
    **OUTPUT_PARTS,
    **_all("reasoning_text summary_text", fields({"type": name, "text": streamed_text})),
}

_BREAKPOINT = {"prompt_cache_breakpoint": fields({"mode": name})}


def _input_parts(texts: Shape) -> dict[str, Shape]:
    return {
        "input_text": fields({"type": name, "text": texts, **_BREAKPOINT}),
        **_all(
            "input_image input_file computer_screenshot",
            fields(
                _all("type file_id detail", name)
                | _all("image_url file_url file_data", address)
                | {"filename": text, **_BREAKPOINT}
            ),
        ),
    }


# Items

_ITEM_FIELDS = {
    **_all("id type status role phase call_id created_by name namespace execution", name),
    **_all("server_label approval_request_id container_id fingerprint", name),
    "caller": fields({"type": name, "caller_id": name}),
}
"""Fields of several types of items."""


def _item(**own: Shape) -> Shape:
    return fields({**_ITEM_FIELDS, **own})


def _tool_output(texts: Shape) -> Shape:
    return _item(output=either(texts, each(by_type(_input_parts(texts)))))


_SAFETY_CHECKS = each(fields({"id": name, "code": name, "message": text}))

_COMPUTER_ACTION = fields(
    _all("type button", name)
    | _all("x y scroll_x scroll_y", number)
    | {"text": text, "keys": each(text), "path": each(fields({"x": number, "y": number}))}
)

_SEARCH_RESULT = fields(
    {"file_id": name, "filename": text, "text": text, "score": number}
    | {"attributes": unknown("file attributes")}
)

_WEB_ACTION = fields(
    {"type": name, "query": text, "queries": each(text), "url": address, "pattern": text}
    | {"sources": each(fields({"type": name, "url": address}))}
)

_LOCAL_SHELL_ACTION = fields(
    {"type": name, "user": name, "working_directory": text, "timeout_ms": number}
    | {"command": each(text), "env": unknown("the environment")}
)

_SHELL_ACTION = fields({"commands": each(text)} | _all("timeout_ms max_output_length", number))

_ENVIRONMENT = fields(
    {"type": name, "container_id": name}
    | {"skills": each(fields({"name": name, "description": text, "path": text}))}
)

_SHELL_OUTPUT = fields(
    {"stdout": text, "stderr": text, "created_by": name}
    | {"outcome": fields({"type": name, "exit_code": number})}
)

_MCP_TOOL = fields(
    {"name": name, "description": text} | _all("input_schema annotations", unknown("tool schemas"))
)

_MCP_ERROR = either(
    text,
    fields(
        {"type": name, "code": number, "message": text}
        | {"content": either(text, each(fields({"type": name, "text": text})))}
    ),
)

ITEMS: Mapping[str, Shape] = {
    "message": _item(content=each(by_type(OUTPUT_PARTS))),
    "reasoning": _reasoning_item,
    "compaction": _item(encrypted_content=opaque),
    "function_call": _item(arguments=streamed_json),
    "function_call_output": _tool_output(text),
    "custom_tool_call": _item(input=streamed_text),
    "custom_tool_call_output": _tool_output(text),
    "tool_search_call": _item(arguments=json_text),
    "tool_search_output": _item(tools=unknown("tool schemas")),
    "additional_tools": _item(tools=unknown("tool schemas")),
    "program": _item(code=text),
    "program_output": _item(result=text),
    "file_search_call": _item(queries=each(text), results=each(_SEARCH_RESULT)),
    "web_search_call": _item(action=_WEB_ACTION),
    "image_generation_call": _item(result=opaque),
    "code_interpreter_call": _item(
        code=text, outputs=each(fields({"type": name, "logs": text, "url": address}))
    ),
    "computer_call": _item(
        action=_COMPUTER_ACTION,
        actions=each(_COMPUTER_ACTION),
        pending_safety_checks=_SAFETY_CHECKS,
    ),
    "computer_call_output": _item(
        output=fields({"type": name, "file_id": name, "image_url": address}),
        acknowledged_safety_checks=_SAFETY_CHECKS,
    ),
    "local_shell_call": _item(action=_LOCAL_SHELL_ACTION),
    "local_shell_call_output": _item(output=text),
    "shell_call": _item(action=_SHELL_ACTION, environment=_ENVIRONMENT),
    "shell_call_output": _item(output=each(_SHELL_OUTPUT), max_output_length=number),
    "apply_patch_call": _item(operation=fields({"type": name, "path": text, "diff": text})),
    "apply_patch_call_output": _item(output=text),
    "mcp_call": _item(arguments=json_text, output=text, error=_MCP_ERROR),
    "mcp_list_tools": _item(tools=each(_MCP_TOOL), error=text),
    "mcp_approval_request": _item(arguments=json_text),
    "mcp_approval_response": _item(approve=number, reason=text),
}

_INPUT_MESSAGE = _item(
    content=either(streamed_text, each(by_type({**OUTPUT_PARTS, **_input_parts(streamed_text)})))
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
}

ITEM_LIST = fields(
    _all("object first_id last_id", name) | {"has_more": number, "data": each(by_type(INPUT_ITEMS))}
)
"""A page of a response's input (`ResponseItemList`)."""


# The response

_MODERATION = fields(
    _all("type model code", name)
    | {"flagged": number, "message": own_errors.message}
    | _all("categories category_scores", _under_names(number))
    | {"category_applied_input_types": _under_names(each(name))}
)

_RESPONSE = fields(
    _all("id object status model previous_response_id service_tier truncation", name)
    | _all("user safety_identifier prompt_cache_key prompt_cache_retention", name)
    | _all("created_at completed_at background store max_output_tokens max_tool_calls", number)
    | _all("parallel_tool_calls temperature top_p top_logprobs", number)
    | _all("presence_penalty frequency_penalty", number)
    | _all("instructions metadata prompt text tool_choice tools", _echoed)
    | {
        "reasoning": fields(_all("effort summary generate_summary mode context", name)),
        "prompt_cache_options": fields({"mode": name, "ttl": name}),
        "conversation": fields({"id": name}),
        "billing": fields({"payer": name}),
        "moderation": fields({"input": _MODERATION, "output": _MODERATION}),
        "incomplete_details": fields({"reason": name}),
        "error": own_errors.ERROR,
        "usage": figures,
        "output": each(by_type(ITEMS)),
        "output_text": _unused,
    }
)


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
    """Return a rebuilt response with what it repeats of the request."""
    repeated = {key: echoed.get(key) or ECHOED[key] for key in ECHOED if key in rebuilt}
    if "text" in repeated:
        repeated["text"] = {**ECHOED["text"], **as_object(repeated["text"])}
    return {**rebuilt, **repeated}


# Events

_EVENT_FIELDS = {
    **_all("type item_id status", name),
    **_all("sequence_number output_index content_index summary_index annotation_index", number),
    **_all("command_index partial_image_index", number),
    "obfuscation": _unused,
}


def _events(kinds: str, **own: Shape) -> dict[str, Shape]:
    return {f"response.{kind}": fields({**_EVENT_FIELDS, **own}) for kind in kinds.split()}


RESPONSE_EVENTS: Mapping[str, Shape] = {
    **_events("created queued in_progress completed incomplete failed", response=_RESPONSE),
    "error": fields(
        {"type": name, "param": own_errors.identifier}
        | {"sequence_number": number, "code": own_errors.identifier, "message": own_errors.message}
        | {"error": own_errors.ERROR, "response": _RESPONSE}
    ),
}
"""Events about the whole response."""

ITEM_EVENTS: Mapping[str, Shape] = {
    **_events("output_item.added output_item.done", item=by_type(ITEMS)),
    **_events("content_part.added content_part.done", part=by_type(EVENT_PARTS)),
    **_events("output_text.delta", delta=streamed_text, logprobs=_no_logprobs),
    **_events("output_text.done", text=streamed_text, logprobs=_no_logprobs),
    **_events("output_text.annotation.added", annotation=ANNOTATION),
    **_events("refusal.done", refusal=streamed_text),
    **_events("reasoning_text.done reasoning_summary_text.done", text=streamed_text),
    **_events(
        "reasoning_summary_part.added reasoning_summary_part.done", part=by_type(EVENT_PARTS)
    ),
    **_events("function_call_arguments.done", name=name, arguments=streamed_json),
    **_events("mcp_call_arguments.done", name=name, arguments=json_text),
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
        "shell_call_output_content.delta audio.transcript.delta",
        delta=_unused,
    ),
    **_events("shell_call_output_content.done", output=each(_SHELL_OUTPUT)),
    **_events("audio.delta", delta=opaque),
    **_events(
        "image_generation_call.partial_image",
        partial_image_b64=opaque,
        **_all("size quality background output_format", name),
    ),
    **_events(
        "file_search_call.in_progress file_search_call.searching file_search_call.completed "
        "web_search_call.in_progress web_search_call.searching web_search_call.completed "
        "code_interpreter_call.in_progress code_interpreter_call.interpreting "
        "code_interpreter_call.completed image_generation_call.in_progress "
        "image_generation_call.generating image_generation_call.completed "
        "mcp_call.in_progress mcp_call.completed mcp_call.failed "
        "mcp_list_tools.in_progress mcp_list_tools.completed mcp_list_tools.failed "
        "audio.done audio.transcript.done"
    ),
}
"""Events about an item, or what is in one."""

_CONTENTS = ("item", "part", "annotation", "delta")
"""Without these an event says nothing."""


MAX_ADDRESSES = 8192
"""Ids and indexes of items, or addresses of parts, that are remembered."""

TEXT_EVENTS = ("response.output_text.", "response.refusal.")
"""Beginnings of the types of events about a text of the answer."""


class ResponseRebuilder:
    """Rebuild the events of one stream.

    Of an item of unknown type nothing is left: neither its beginning and end nor the events that
    name it, even those of a known type.
    """

    def __init__(self, echoed: Json) -> None:
        self.drops = DropCount()
        self._echoed = echoed
        self._is_known: dict[str | int | None, bool] = {}
        """Whether an item's type is known, by its id and `output_index`; of the last one by None,
        since some servers give neither."""
        self._closed_parts: set[tuple[str, ...]] = set()
        """Addresses of content parts that are no text of the answer."""

    def rebuild_response(self, response: Json) -> Json:
        """Return a whole response rebuilt."""
        return with_echo(_RESPONSE(response, self.drops), self._echoed)

    def rebuild(self, event: Json) -> Json | None:
        """Return the event rebuilt; None if it, or what it brings, is not understood."""
        kind = string(event.get("type"))
        shape = RESPONSE_EVENTS.get(kind)
        if shape is None and ("item" in event or self._is_of_known_item(event)):
            is_closed = kind.startswith(TEXT_EVENTS) and _address(event) in self._closed_parts
            shape = None if is_closed else ITEM_EVENTS.get(kind)
        if shape is None:
            self.drops.drop(event)
            return None
        rebuilt: Json = shape(event, self.drops)
        if isinstance(rebuilt.get("response"), dict):
            rebuilt["response"] = with_echo(rebuilt["response"], self._echoed)
        if "item" in event:
            self._note_item(event, is_known="item" in rebuilt)
        if kind == "response.content_part.added":
            self._note_part(event)
        return rebuilt if all(key in rebuilt for key in _CONTENTS if key in event) else None

    def _note_item(self, event: Json, *, is_known: bool) -> None:
        if len(self._is_known) > MAX_ADDRESSES:
            return
        item = event["item"] if isinstance(event["item"], dict) else {}
        index = event.get("output_index")
        self._is_known[upstream_id(item) or None] = self._is_known[None] = is_known
        if isinstance(index, int):
            self._is_known[index] = is_known

    def _note_part(self, event: Json) -> None:
        """Note whether a part holds text of the answer."""
        if string(as_object(event.get("part")).get("type")) in OUTPUT_PARTS:
            self._closed_parts.discard(_address(event))
        elif len(self._closed_parts) < MAX_ADDRESSES:
            self._closed_parts.add(_address(event))

    def _is_of_known_item(self, event: Json) -> bool:
        item_id, index = string(event.get("item_id")), event.get("output_index")
        if item_id in self._is_known:
            return self._is_known[item_id]
        if isinstance(index, int):
            return self._is_known.get(index, True)
        return bool(item_id) or self._is_known.get(None, True)


def _address(event: Json) -> tuple[str, ...]:
    """Return where an event's part is."""
    return tuple(str(event.get(key)) for key in ("item_id", "output_index", "content_index"))
