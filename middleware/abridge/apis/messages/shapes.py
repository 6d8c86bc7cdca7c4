"""What is known of Messages, where raw reasoning is hidden. `MessagesRebuilder` drops the rest.

That is the Anthropic API reference's `Message`, its content blocks and the events of a stream, with
those of the beta API (anthropic-sdk-python: `types/`, `types/beta/`). Upstream's error messages and
what explains a refusal are told in other words or left out: either may quote what the model wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from abridge.apis import errors
from abridge.apis.json import as_integer, as_object, string
from abridge.apis.markers import is_marked, unless_marked
from abridge.apis.shapes import (
    PADDING,
    DropCount,
    Shape,
    by_type,
    call_name,
    each,
    either,
    fields,
    figures,
    name,
    opaque,
    opaque_state,
    proper_name,
    rebuild,
    stop_sequence,
    streamed_text,
    text,
    under,
    unknown,
)
from abridge.core.conversation import Json

_typed = partial(fields, {"type": name})
"""The shape of an object with a type, and other keys."""


def _input(value: Any, drops: DropCount) -> Any:
    """The input of a call: the reader looks through it for thinking."""
    return value if value is None or isinstance(value, dict) else drops.drop(value)


# What tools of the server answer

_ERROR = _typed(names="error_code", texts="error_message")

_OUTPUT = _typed(
    texts="stdout stderr",
    numbers="return_code",
    names="abort_reason",
    encrypted_stdout=opaque,
    content=each(_typed(names="file_id")),
)

_EDITED = _typed(
    names="file_type",
    numbers="num_lines start_line total_lines new_lines new_start old_lines old_start "
    "is_file_update",
    texts="content",
    lines=each(text),
)

_DOCUMENT = _typed(
    texts="title",
    source=_typed(names="media_type", texts="data"),
    citations=fields(numbers="enabled"),
)

_RESULT = by_type(
    {
        "web_search_result": _typed(
            texts="title page_age", addresses="url", encrypted_content=opaque
        ),
        "web_fetch_result": _typed(addresses="url", texts="retrieved_at", content=_DOCUMENT),
        **under("code_execution_result encrypted_code_execution_result", _OUTPUT),
        "bash_code_execution_result": _OUTPUT,
        **under(
            "text_editor_code_execution_view_result text_editor_code_execution_create_result "
            "text_editor_code_execution_str_replace_result",
            _EDITED,
        ),
        "tool_search_tool_search_result": _typed(tool_references=each(_typed(names="tool_name"))),
        **under(
            "web_search_tool_result_error web_fetch_tool_result_error "
            "code_execution_tool_result_error bash_code_execution_tool_result_error "
            "text_editor_code_execution_tool_result_error tool_search_tool_result_error",
            _ERROR,
        ),
        "text": _typed(texts="text"),
    }
)


def _results(value: Any, drops: DropCount) -> Any:
    """One result, or a list of them, or a text."""
    if isinstance(value, list):
        return each(_RESULT)(value, drops)
    return either(text, _RESULT)(value, drops)


# Content blocks

CITATION = by_type(
    under(
        "char_location page_location content_block_location search_result_location "
        "web_search_result_location",
        _typed(
            texts="cited_text document_title title",
            numbers="document_index start_char_index end_char_index start_page_number "
            "end_page_number start_block_index end_block_index search_result_index",
            addresses="url source",
            names="file_id",
            encrypted_index=opaque,
        ),
    )
)

_called = partial(_typed, caller=_typed(names="tool_id"))

_CALL = _called(names="id server_name toolset_name", name=call_name, input=_input)

_TOOL_RESULT = _called(names="tool_use_id", numbers="is_error", content=_results)

_TEXT = _typed(text=streamed_text, citations=each(CITATION))


def _text(value: Any, drops: DropCount) -> Any:
    """A text; a block of thinking where it is marked so."""
    if not is_marked(value):
        return _TEXT(value, drops)
    drops.drop(value)
    return {"type": "thinking", "thinking": string(value.get("text")), "signature": ""}


CONTENT_BLOCKS: Mapping[str, Shape] = {
    "text": _text,
    **under("thinking redacted_thinking", unknown("reasoning items")),
    **under("tool_use server_tool_use mcp_tool_use", _CALL),
    **under(
        "web_search_tool_result web_fetch_tool_result code_execution_tool_result "
        "bash_code_execution_tool_result text_editor_code_execution_tool_result "
        "tool_search_tool_result mcp_tool_result",
        _TOOL_RESULT,
    ),
    "container_upload": _typed(names="file_id"),
    "fallback": _typed(under("from to", fields(model=proper_name))),
}
"""By type. A compaction is not among them: the model writes it of all it knows, thinking included.
"""

_SHOWN = {
    "thinking": _typed(thinking=streamed_text, signature=opaque_state),
    "redacted_thinking": _typed(data=opaque_state),
}


def show_reasoning(block: Json, drops: DropCount) -> Json:
    """Return a block as clients are shown it: one of reasoning, which is kept whole for upstream,
    rebuilt from known keys."""
    shape = _SHOWN.get(string(block.get("type")))
    if shape is None:
        return block
    shown: Json = rebuild(block, shape, drops)
    return shown


# The message and the events

_STOP: Mapping[str, Shape] = {
    "stop_reason": name,
    "stop_sequence": stop_sequence,
    "stop_details": _typed(names="category"),
    "container": fields(names="id expires_at", skills=each(_typed(names="skill_id version"))),
}

_ANSWER: Mapping[str, Shape] = {
    "usage": partial(figures, names=("service_tier", "inference_geo", "speed", "type", "model")),
    "context_management": fields(
        applied_edits=each(
            _typed(numbers="cleared_tool_uses cleared_thinking_turns cleared_input_tokens")
        )
    ),
}

MESSAGE = _typed(
    _STOP, _ANSWER, names="id role", model=proper_name, content=each(by_type(CONTENT_BLOCKS))
)

DELTAS = by_type(
    {
        "text_delta": unless_marked(_typed(text=streamed_text)),
        "thinking_delta": _typed(thinking=streamed_text, numbers="estimated_tokens"),
        "signature_delta": _typed(signature=unknown("reasoning items")),
        "input_json_delta": _typed(partial_json=streamed_text),
        "citations_delta": _typed(citation=CITATION),
    }
)

EVENTS: Mapping[str, Shape] = {
    "message_start": _typed(message=MESSAGE),
    "content_block_start": _typed(numbers="index", content_block=by_type(CONTENT_BLOCKS)),
    "content_block_delta": _typed(PADDING, numbers="index", delta=DELTAS),
    "content_block_stop": _typed(numbers="index"),
    "message_delta": _typed(_ANSWER, delta=fields(_STOP)),
    "message_stop": _typed(),
    "ping": _typed(),
    "error": _typed(error=errors.ERROR),
}
"""By type."""


BLOCK_EVENTS = ("content_block_start", "content_block_delta", "content_block_stop")

MAX_INDEXES = 8192
"""Indexes of blocks that are remembered. An answer with more of them goes on without the rest of
its blocks."""


class MessagesRebuilder:
    """Rebuild the events of one answer, or a whole one.

    Of a block of unknown type nothing is left: neither its beginning and end nor its deltas, even
    those of a known type.
    """

    def __init__(self, drops: DropCount | None = None) -> None:
        self.drops = drops or DropCount()
        self._types: dict[int | None, str] = {}
        """The types of blocks by their index, "" for an unknown one; of the last one by None, to
        which belongs what names no block that has begun."""

    def rebuild_message(self, message: Json) -> Json:
        """Return a whole message rebuilt. Thinking in its texts is still there."""
        rebuilt: Json = rebuild(message, MESSAGE, self.drops)
        return rebuilt

    def rebuild(self, event: Json) -> Json | None:
        """Return the event rebuilt; None if it, or what it brings, is not understood."""
        kind = string(event.get("type"))
        shape = EVENTS.get(kind)
        if kind in BLOCK_EVENTS:
            block_type = self._find_type(event)
            shape = shape if block_type else None
            event = _as_thinking(event) if block_type == "thinking" else event
        if shape is None:
            self.drops.drop(event)
            return None
        rebuilt: Json = rebuild(event, shape, self.drops)
        if "delta" in event and "delta" not in rebuilt:
            return None
        has_only_type = as_object(rebuilt.get("delta")).keys() <= {"type"}
        return None if kind == "content_block_delta" and has_only_type else rebuilt

    def _find_type(self, event: Json) -> str:
        """Return the type of the block that an event is about, for which its index stands from its
        start on; "" for an unknown one."""
        index, types = as_integer(event.get("index")), self._types
        if event["type"] == "content_block_start":
            types[None] = _type_of(as_object(event.get("content_block")))
            if len(types) <= MAX_INDEXES:
                types[index] = types[None]
        return "" if len(types) > MAX_INDEXES else types.get(index, types.get(None, "text"))


def _type_of(block: Json) -> str:
    """Return the type under which a block goes on; "" if it does not."""
    kind = string(block.get("type"))
    if kind == "text" and is_marked(block):
        return "thinking"
    return kind if kind in CONTENT_BLOCKS else ""


def _as_thinking(event: Json) -> Json:
    """Return an event of a block of thinking, of which no delta is a text of the answer."""
    delta = as_object(event.get("delta"))
    if delta.get("type") != "text_delta":
        return event
    return {**event, "delta": {"type": "thinking_delta", "thinking": delta.get("text")}}
