"""Upstream answers, and unexpected values to put anywhere into them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from hypothesis import strategies as st

from tests.apis.gemini import scripts as gemini
from tests.apis.interactions import scripts as interactions
from tests.apis.messages import scripts as messages
from tests.support.streams import call as tool_call
from tests.support.streams import (
    call_item,
    chat_stream,
    completion,
    message_item,
    reasoning_item,
    response,
    responses_stream,
)
from tests.support.upstream import Answer

SECRET = "zugzwang"
THOUGHT = f"{SECRET} {SECRET} {SECRET}"
DETAILS = [{"type": "reasoning.text", "text": THOUGHT, "signature": "s", "index": 0}]
BLOCKS = [{"type": "thinking", "thinking": THOUGHT, "signature": "s"}]
MESSAGE = {
    "role": "assistant",
    "content": "Hello.",
    "reasoning_content": THOUGHT,
    "reasoning_details": DETAILS,
    "thinking_blocks": BLOCKS,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
OUTPUT = [reasoning_item(0, THOUGHT), message_item(1, "Hello."), call_item(2, "f", "{}")]

BLOCKS = [
    messages.thinking(THOUGHT),
    messages.redacted("b3BhcXVl"),
    *messages.search(),
    messages.text("Hello."),
    messages.tool_use(0, "f", a=1),
]
PARTS = [
    gemini.thought(THOUGHT),
    {"executableCode": {"language": "PYTHON", "code": THOUGHT}},
    gemini.text("Hello."),
    gemini.signed(gemini.function_call("fc_1", "f", a=1), "b3BhcXVl"),
]
STEPS = [
    interactions.thought(THOUGHT),
    {"type": "code_execution_call", "id": "c_1", "arguments": {"code": THOUGHT}},
    interactions.output("Hello."),
    interactions.function_call("fc_1", "f", a=1),
]

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"


def payloads(frames: list[bytes]) -> list[Any]:
    lines = (line[6:] for frame in frames for line in frame.split(b"\n") if line[:6] == b"data: ")
    return [json.loads(data) for data in lines if data != b"[DONE]"]


STREAMS: dict[str, Any] = {
    "chat": payloads(chat_stream(THOUGHT, "Hello.", calls=[tool_call("f", "{}")])),
    "responses": payloads(responses_stream(OUTPUT)),
    "messages": payloads(messages.stream(BLOCKS, "tool_use")),
    "gemini": payloads(gemini.stream(PARTS)),
    "interactions": interactions.events(STEPS),
}
WHOLE: dict[str, Any] = {
    "chat": completion(MESSAGE),
    "responses": response(OUTPUT),
    "messages": messages.message(BLOCKS, "tool_use"),
    "gemini": gemini.whole(PARTS),
    "interactions": interactions.whole(STEPS),
}
"""An answer of each API that has what it may have."""

BARE = [*BLOCKS[:-1], messages.tool_use(0, "f")]
"""With a call that has no arguments, which is whole JSON whatever is taken out of the stream."""

DOCUMENTS: dict[str, tuple[str, bool, Any]] = {
    f"{api} {kind}": (path, kind == "stream", answers[api])
    for api, path in (("chat", CHAT), ("responses", RESPONSES), ("messages", MESSAGES))
    for kind, answers in (
        ("stream", {**STREAMS, "messages": payloads(messages.stream(BARE, "tool_use"))}),
        ("whole", WHOLE),
    )
}
ODD = st.sampled_from(
    [
        *[None, True, 0, -1, 1.5, 10**30, float("nan"), "", "x", "\ud800", [], {}, {"a": 1}],
        *[[None], [[]], ["x"], [{}], [{"type": None}], [{"type": ["x"]}], [{"type": "reasoning"}]],
    ]
)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    entries = document.items() if isinstance(document, dict) else ()
    if isinstance(document, list):
        entries = enumerate(document)
    for key, value in entries:
        yield from places(value, (*path, key))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a document with another value in a place; the same if an earlier change took that."""
    if not path:
        return value
    made = copy.deepcopy(document)
    place = made
    with suppress(TypeError, KeyError, IndexError):
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
    return made


def answer(document: Any, *, stream: bool) -> Answer:
    if not stream:
        return Answer.json(document)
    events = document if isinstance(document, list) else [document]
    return Answer(
        [f"data: {json.dumps(one)}\n\n".encode() for one in events] + [b"data: [DONE]\n\n"]
    )
