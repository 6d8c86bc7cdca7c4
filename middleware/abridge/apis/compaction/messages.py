"""Compactions on Messages: how one is asked for, found in a request, and told.

Source: platform.claude.com, build-with-claude/compaction-on-demand. The block shows its summary in
the clear, and its `signature` is what is sent back with it: here the sealed compaction.
"""

from __future__ import annotations

from abridge.apis.compaction.form import CompactedAnswer, CompactionForm, FoundCompaction
from abridge.apis.frames import encode_event
from abridge.apis.json import as_object, entries, objects, string
from abridge.apis.messages.reader import unfold_message
from abridge.apis.openai import mint_id
from abridge.apis.params import invalid_value_error, read_string, require_object
from abridge.apis.protocols import RequestEcho
from abridge.core.conversation import Json
from abridge.core.envelope import is_envelope
from abridge.core.usage import NO_TOKENS, Tokens
from abridge.errors import RequestError

COMPACTION = "compaction"

MAX_INSTRUCTION_CHARS = 16_384

LEFT_OUT = frozenset({COMPACTION, "stream", "stop_sequences", "output_format"})

INCOMPATIBLE = "context_management"
"""What cannot be combined with it."""

STOP_REASONS = {"length": "max_tokens", "content_filter": "refusal", "tool_calls": "tool_use"}
"""The reasons for which a summary did not come to its end."""


def _is_asked(body: Json) -> bool:
    if body.get(COMPACTION) is None:
        return False
    kind = require_object(body, COMPACTION).get("type")
    if kind != "summarize":
        raise invalid_value_error(kind, f"{COMPACTION}.type")
    if body.get(INCOMPATIBLE) is not None:
        message = f"It cannot be combined with {COMPACTION}."
        raise RequestError(message, param=INCOMPATIBLE, code="invalid_value")
    return True


def _read_request(body: Json) -> tuple[Json, str]:
    instructions = (read_string(as_object(body.get(COMPACTION)), "instructions") or "").strip()
    if len(instructions) > MAX_INSTRUCTION_CHARS:
        message = f"The instructions are longer than {MAX_INSTRUCTION_CHARS} characters."
        raise RequestError(message, param=f"{COMPACTION}.instructions", code="invalid_value")
    _check_turn(body)
    return {name: value for name, value in body.items() if name != COMPACTION}, instructions


def _check_turn(body: Json) -> None:
    """Raise RequestError if the last call has no result yet."""
    messages = objects(body.get("messages"))
    last = messages[-1] if messages else {}
    blocks = objects(last.get("content"))
    if last.get("role") == "assistant" and any(b.get("type") == "tool_use" for b in blocks):
        raise RequestError(
            "The last turn ends in a call without a result: send the result first.",
            param="messages",
            code="compaction_incomplete_turn",
        )


def _write_request(body: Json, prompt: str, _max_tokens: int) -> Json:
    """Return the request for the summary, with `max_tokens` as the client has it: that limits the
    call, as it does with Anthropic."""
    asked = {name: value for name, value in body.items() if name not in LEFT_OUT}
    if config := as_object(body.get("output_config")):
        asked["output_config"] = {name: config[name] for name in config if name != "format"}
    asked["messages"] = [*body["messages"], {"role": "user", "content": prompt}]
    asked.pop("tool_choice", None)
    return {**asked, "tool_choice": {"type": "none"}} if asked.get("tools") else asked


def _find(body: Json) -> FoundCompaction | None:
    messages = entries(body.get("messages"))
    for number in reversed(range(len(messages))):
        blocks = entries(as_object(messages[number]).get("content"))
        for index in reversed(range(len(blocks))):
            block = as_object(blocks[index])
            if block.get("type") == COMPACTION and is_envelope(block.get("signature")):
                param = f"messages.{number}.content.{index}.signature"
                text = string(block.get("content"))
                return FoundCompaction((number, index), block["signature"], param, text)
    return None


def _replace(body: Json, found: FoundCompaction, messages: list[Json]) -> list[int]:
    number, index = found.place
    holder, *after = body["messages"][number:]
    rest = [{**holder, "content": holder["content"][index + 1 :]}]
    rest = rest if rest[0]["content"] else []
    body["messages"] = [*messages, *rest, *after]
    later = range(number + 1, number + 1 + len(after))
    return [*[number] * (len(messages) + len(rest)), *later]


# Answers


def _write_whole(answer: CompactedAnswer, _echo: RequestEcho) -> Json:
    block = {"type": COMPACTION, "content": answer.text, "signature": answer.blob}
    return {
        "id": mint_id("msg_"),
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": [block] if answer.blob else [],
        "stop_reason": STOP_REASONS.get(answer.reason, COMPACTION if answer.blob else "end_turn"),
        "stop_sequence": None,
        "usage": _write_usage(answer.tokens),
    }


def _write_usage(tokens: Tokens | None) -> Json:
    """Write the usage: what the summary took is an iteration, and no answer took anything."""
    spent = tokens or NO_TOKENS
    cached, written = spent.cached or 0, spent.cache_written or 0
    iteration = {
        "type": COMPACTION,
        "input_tokens": max(0, (spent.input or 0) - cached - written),
        "output_tokens": spent.output or 0,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }
    none = {name: 0 for name in iteration if name != "type"}
    return {**none, "iterations": [iteration]}


def _write_stream(whole: Json) -> bytes:
    """Write the events: the block arrives whole, without deltas."""
    events = [*unfold_message(whole), {"type": "message_stop"}]
    return b"".join(encode_event(event["type"], event) for event in events)


MESSAGES_COMPACTION = CompactionForm(
    param="messages",
    needle=b'"compaction"',
    endpoint="",
    is_asked=_is_asked,
    read_request=_read_request,
    write_request=_write_request,
    find=_find,
    replace=_replace,
    write_whole=_write_whole,
    write_stream=_write_stream,
    unreadable_code="compaction_signature_invalid",
    needs_blob=False,
)
