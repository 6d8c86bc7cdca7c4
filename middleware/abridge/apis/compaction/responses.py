"""Compactions on Responses: which items one stands for, which stay, how it is asked for and told.

Sources: openai-openapi, `CompactResource`, `CompactionTriggerItemParam`, `CompactionBody`;
developers.openai.com, guides/compaction. What comes back of a conversation that was compacted are
"all user messages, followed by a single compaction item"; clients may leave out what stands before
the item, or send it all. So of that only what Codex keeps too has a meaning: messages of the user's
and instructions (openai/codex, `build_v2_compacted_history`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from abridge.apis import sse
from abridge.apis.compaction.form import (
    CompactedAnswer,
    CompactionForm,
    FoundCompaction,
    is_summary,
)
from abridge.apis.display import Display
from abridge.apis.effort import CONFIGURATION_UPDATE
from abridge.apis.json import as_object, dumps, entries, loads_exact, objects, spelled, string
from abridge.apis.openai import mint_id
from abridge.apis.params import DAMAGED_CODE
from abridge.apis.protocols import RequestEcho
from abridge.apis.responses.items import ITEM_ADDED, ITEM_DONE
from abridge.apis.responses.messages import read_input_items
from abridge.apis.responses.tools import ADDITIONAL_TOOLS
from abridge.apis.responses.writer import ResponsesWriter
from abridge.apis.token_counters import estimate_tokens
from abridge.apis.usage import RESPONSES_USAGE
from abridge.core.conversation import Json
from abridge.core.envelope import is_envelope
from abridge.core.events import ResponseEnded
from abridge.core.model_request import INSTRUCTION_ROLES
from abridge.core.usage import NO_TOKENS, Tokens
from abridge.errors import RequestError

COMPACTION, TRIGGER = "compaction", "compaction_trigger"

CONTEXT_MANAGEMENT = "context_management"

RETAINED_TOKENS = 20_000
"""Tokens of the user's messages that stay before a compaction, the latest ones. What is older is in
the summary only."""

LEFT_OUT = frozenset(
    {
        *(CONTEXT_MANAGEMENT, "truncation", "background", "store", "image"),
        *("include", "text", "top_logprobs", "max_tool_calls", "stream_options", "stream"),
    }
)
"""Fields that say something of an answer, or of what is sent for it, and nothing of a summary."""


# What stays


def without_summaries(items: Sequence[Json]) -> list[Json]:
    """Return items without the summaries of earlier compactions, which the next one takes over."""
    others = []
    for item in items:
        content = item.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        own = [part for part in parts if not is_summary(string(as_object(part).get("text")))]
        if len(own) == len(parts):
            others.append(item)
        elif own:
            others.append({**item, "content": own})
    return others


def retained_items(items: Sequence[Json], besides: Sequence[Json] = ()) -> list[int]:
    """Return the indexes of the items that stay before a compaction: instructions, and the user's
    latest messages but for those that it keeps itself (`besides`)."""
    kept = {_words_of(item) for item in besides}
    room, indexes = RETAINED_TOKENS, list[int]()
    for index in reversed(range(len(items))):
        item = items[index]
        is_users = _role(item) == "user"
        if is_users and _words_of(item) not in kept and room > 0:
            room -= estimate_tokens({"input": [item]})
        elif is_users or not _is_instruction(item):
            continue
        if room >= 0 or not is_users:
            indexes.append(index)
    return indexes[::-1]


def kept_items(items: Sequence[Json], budget: int) -> list[Json]:
    """Return the items that a compaction keeps as they are: the last ones that take no more tokens
    than this, no output among them without its call; the user's last message, if that does not take
    more either; and all calls that have no output yet."""
    said = [item for item in items if _role(item) or "call_id" in item]
    start = _start_of_last(said, budget)
    kept = {*range(start, len(said)), *open_calls(said)}
    users = [index for index, item in enumerate(said) if _role(item) == "user"]
    if users and estimate_tokens({"input": [said[users[-1]]]}) <= budget:
        kept.add(users[-1])
    return [item for index, item in enumerate(said) if index in kept and not _is_instruction(item)]


def open_calls(items: Sequence[Json]) -> list[int]:
    """Return the indexes of the calls without an output."""
    answered = {string(item.get("call_id")) for item in items if _is_output(item)}
    return [
        index
        for index, item in enumerate(items)
        if (call_id := string(item.get("call_id"))) and call_id not in answered
    ]


def _start_of_last(items: Sequence[Json], budget: int) -> int:
    """Return where the last items begin that fit, so that each output has its call."""
    start, callless = len(items), set[str]()
    for index in reversed(range(len(items))):
        item = items[index]
        budget -= estimate_tokens({"input": [item]})
        if budget < 0:
            break
        if _is_output(item):
            callless.add(string(item.get("call_id")))
        else:
            callless.discard(string(item.get("call_id")))
        if not callless:
            start = index
    return start


def _role(item: Json) -> str:
    return string(item.get("role")) if item.get("type") in (None, "message") else ""


def _is_instruction(item: Json) -> bool:
    is_change = item.get("type") in (ADDITIONAL_TOOLS, CONFIGURATION_UPDATE)
    return is_change or _role(item) in INSTRUCTION_ROLES


def _is_output(item: Json) -> bool:
    return string(item.get("type")).endswith("_output")


def _words_of(item: Json) -> bytes:
    """Return what a message says, however its content is written."""
    content = item.get("content")
    parts = objects(content) if isinstance(content, list) else [{"text": content}]
    return dumps([_role(item), *(part.get("text") or part for part in parts)])


# Requests


def _is_asked(body: Json) -> bool:
    last = entries(body.get("input"))[-1:]
    return any(item.get("type") == TRIGGER for item in objects(last))


def _read_request(body: Json) -> tuple[Json, str]:
    return {**body, "input": body["input"][:-1]} if _is_asked(body) else body, ""


def _write_request(body: Json, prompt: str, max_tokens: int) -> Json:
    """Return the request for the summary: the same conversation, so that what is cached of it
    holds, with the prompt at its end."""
    items = objects(read_input_items(body))
    unanswered = set(open_calls(items))
    conversation = [item for index, item in enumerate(items) if index not in unanswered]
    asked = {name: value for name, value in body.items() if name not in LEFT_OUT}
    asked["input"] = [*conversation, {"type": "message", "role": "user", "content": prompt}]
    asked |= {"store": False, "max_output_tokens": max_tokens}
    asked.pop("tool_choice", None)
    return {**asked, "tool_choice": "none"} if asked.get("tools") else asked


def _read_threshold(body: Json) -> int | None:
    for index, entry in enumerate(objects(body.get(CONTEXT_MANAGEMENT))):
        if entry.get("type") != COMPACTION:
            continue
        threshold = entry.get("compact_threshold")
        if type(threshold) is int and threshold > 0:
            return threshold
        if threshold is not None:
            param = f"{CONTEXT_MANAGEMENT}[{index}].compact_threshold"
            raise RequestError(
                f"Invalid value for '{param}': {spelled(threshold)}. Expected a number of tokens.",
                param=param,
                code="invalid_value",
            )
    return None


def without_compaction(body: Json) -> Json:
    """Return a request that leaves its context as it is."""
    entries = body.get(CONTEXT_MANAGEMENT)
    others = [entry for entry in objects(entries) if entry.get("type") != COMPACTION]
    kept = {name: value for name, value in body.items() if name != CONTEXT_MANAGEMENT}
    return {**kept, CONTEXT_MANAGEMENT: others} if others else kept


def _find(body: Json) -> FoundCompaction | None:
    items = entries(body.get("input"))
    for index in reversed(range(len(items))):
        item = as_object(items[index])
        if item.get("type") == COMPACTION and is_envelope(item.get("encrypted_content")):
            param = f"input[{index}].encrypted_content"
            return FoundCompaction((index,), item["encrypted_content"], param)
    return None


def _replace(body: Json, found: FoundCompaction, items: list[Json]) -> list[int]:
    (place,) = found.place
    before = objects(body["input"][:place])
    stays = retained_items(before, items)
    body["input"] = [*(before[index] for index in stays), *items, *body["input"][place + 1 :]]
    after = range(place + 1, place + 1 + len(body["input"]) - len(stays) - len(items))
    return [*stays, *[place] * len(items), *after]


# Answers


def compaction_item(blob: str) -> Json:
    return {"id": mint_id("cmp_"), "type": COMPACTION, "encrypted_content": blob}


def write_usage(tokens: Tokens | None) -> Json:
    return RESPONSES_USAGE.write((tokens or NO_TOKENS).with_total()) or {}


def _write_whole(answer: CompactedAnswer, echo: RequestEcho) -> Json:
    """Write a response with the compaction; on the endpoint for these, an object of its own."""
    messages = map(_as_output, answer.retained or ())
    written = {
        "output": [*messages, compaction_item(answer.blob)],
        "usage": write_usage(answer.tokens),
    }
    if answer.retained is not None:
        head = {"id": mint_id("resp_"), "object": "response.compaction"}
        return {**head, "created_at": int(echo.now()), **written}
    writer = ResponsesWriter(Display(style=None), echo)
    response = loads_exact(writer.write_whole(ResponseEnded(None, None, ok=True)))
    return {**response, **written}


def _as_output(message: Json) -> Json:
    """Return a message of the user's as an item of an output, which has an id and parts."""
    content = message.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    named = {"id": mint_id("msg_"), "type": "message", "status": "completed", "role": "user"}
    return {**named, **message, "type": "message", "content": parts}


def _write_stream(whole: Json) -> bytes:
    (item,) = whole["output"]
    begun = {**whole, "status": "in_progress", "completed_at": None, "output": [], "usage": None}
    events = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
        *item_events(item),
        ("response.completed", {"response": whole}),
    ]
    return b"".join(encode_events(events))


def item_events(item: Json) -> list[tuple[str, Json]]:
    """Return the events of a compaction that comes first in its response."""
    address = {"output_index": 0, "item": item}
    progress = {"item_id": item["id"], "output_index": 0}
    return [
        (ITEM_ADDED, {**address, "item": {**item, "encrypted_content": ""}}),
        ("response.compaction.compacting", progress),
        (ITEM_DONE, address),
    ]


def encode_events(events: Iterable[tuple[str, Json]], first: int = 0) -> list[bytes]:
    """Encode events as frames of a stream, numbered from `first`."""
    return [
        sse.encode_frame(dumps({"type": kind, "sequence_number": first + number, **fields}), kind)
        for number, (kind, fields) in enumerate(events)
    ]


RESPONSES_COMPACTION = CompactionForm(
    param="input",
    needle=b'"compaction',
    endpoint="/responses/compact",
    is_asked=_is_asked,
    read_request=_read_request,
    write_request=_write_request,
    find=_find,
    replace=_replace,
    write_whole=_write_whole,
    write_stream=_write_stream,
    unreadable_code=DAMAGED_CODE,
    needs_blob=True,
    read_threshold=_read_threshold,
    is_opaque=True,
)
