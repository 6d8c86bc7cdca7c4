"""Replay the reasoning of earlier turns.

What a client sends back with a message is read in any dialect's fields, and written into, or moved
to, the place where upstream reads it (`ReasoningReturn`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeGuard

from abridge.apis.chat.reasoning import (
    LIST_FIELDS,
    REASONING_FIELDS,
    find_thinking_chunks,
    is_plain,
    read_chunk_text,
    split_inline,
    without_thinking_chunks,
)
from abridge.apis.json import string
from abridge.core.conversation import Json
from abridge.core.model_request import MessagePart, ReasoningPart, UnknownPart, Unsupported
from abridge.providers.catalog import PROFILES, TEXT_FIELDS
from abridge.providers.profile import TAGS, Profile, ReasoningPlace, ReasoningReturn

REASONING_SEPARATOR = "\n\n"
"""Separates the reasoning of several stretches."""

NO_TEXT_PLACES: frozenset[ReasoningPlace] = frozenset({*LIST_FIELDS, "extra_content", "nothing"})
"""Places to which plain text is not moved: upstream reads it in a field as well, or not at all."""


# Read


def read_reasoning(message: Json, param: str) -> list[MessagePart]:
    """Read the reasoning of an assistant's message, inline reasoning excepted.

    Text that several fields repeat is read once, opaque state from every field that holds some.
    """
    listed = _read_lists(message, param)
    if any(isinstance(part, ReasoningPart) and (part.text or part.summary) for part in listed):
        return listed
    field_text = next((text for name in TEXT_FIELDS if (text := string(message.get(name)))), "")
    chunks = find_thinking_chunks(message.get("content"))
    text = field_text or "\n".join(filter(str.strip, map(read_chunk_text, chunks)))
    return _attach_signatures(
        [*([ReasoningPart(text, param=param)] if text.strip() else []), *listed]
    )


def split_leading_inline(content: Any, *, known: str | None = None) -> tuple[str, Any]:
    """Split inline reasoning from a content.

    With `known`, the reasoning that a field holds, tags belong to the answer, unless what they hold
    is the same.
    """
    inline, rest = split_inline(content, PROFILES["auto"], no_field=True)
    is_reasoning = known is None or inline.strip() == known.strip()
    return (inline, rest) if is_reasoning else ("", content)


def _read_lists(message: Json, param: str) -> list[MessagePart]:
    """Read LiteLLM's `thinking_blocks`, or else OpenRouter's `reasoning_details`."""
    for name, read in (("thinking_blocks", _read_block), ("reasoning_details", _read_detail)):
        entries, found = message.get(name), []
        for i, entry in enumerate(entries if isinstance(entries, list) else ()):
            found += read(entry if isinstance(entry, dict) else {}, f"{param}.{name}[{i}]")
        if found:
            return _attach_signatures(found)
    return []


def _read_block(block: Json, param: str) -> list[MessagePart]:
    """Read a thinking block.

    One without a signature holds a summary: among the APIs that give blocks, only one that has no
    signatures omits it, and it shows summaries only.
    """
    kind, text = block.get("type"), string(block.get("thinking"))
    signature, data = string(block.get("signature")), string(block.get("data"))
    if kind == "thinking":
        if signature:
            return [ReasoningPart(text, state=signature, is_signature=True, param=param)]
        return [ReasoningPart(summary=(text,), param=param)] if text.strip() else []
    if kind == "redacted_thinking":
        return [ReasoningPart(state=data, param=param)] if data else []
    return [UnknownPart(block, param, essential=False)]


def _read_detail(detail: Json, param: str) -> list[MessagePart]:
    kind, text = detail.get("type"), string(detail.get("text"))
    signature, data = string(detail.get("signature")), string(detail.get("data"))
    summary = string(detail.get("summary"))
    if kind == "reasoning.text":
        reasoning = ReasoningPart(text, state=signature, is_signature=bool(signature), param=param)
        return [reasoning] if text.strip() or signature else []
    if kind == "reasoning.summary":
        return [ReasoningPart(summary=(summary,), param=param)] if summary.strip() else []
    if kind == "reasoning.encrypted":
        return [ReasoningPart(state=data, param=param)] if data else []
    return [UnknownPart(detail, param, essential=False)]


def _attach_signatures(parts: list[MessagePart]) -> list[MessagePart]:
    """Join a signature that comes alone, as in LiteLLM's streams, to the text before it."""
    joined: list[MessagePart] = []
    for part in parts:
        last = joined[-1] if joined else None
        if _is_signature(part) and isinstance(last, ReasoningPart) and not last.state:
            text = last.text or "".join(last.summary)
            joined[-1] = replace(last, text=text, summary=(), state=part.state, is_signature=True)
        else:
            joined.append(part)
    return joined


def _is_signature(part: MessagePart) -> TypeGuard[ReasoningPart]:
    return isinstance(part, ReasoningPart) and part.is_signature and not part.text


# Write


def add_reasoning(message: Json, reasoning: Sequence[ReasoningPart], profile: Profile) -> Json:
    """Return the message with the reasoning that preceded it: raw text and state, no summaries.

    What its content repeats of that, in tags, is said once.
    """
    place = profile.returns.place
    text = REASONING_SEPARATOR.join(part.text for part in reasoning if part.text.strip())
    if text and message.get("content"):
        message = {**message, "content": split_leading_inline(message["content"], known=text)[1]}
    if place in _INLINE_WRITERS:
        return (
            {**message, "content": _INLINE_WRITERS[place](text, message, profile)}
            if text
            else message
        )
    if place in _LIST_WRITERS:
        entries = [entry for part in reasoning for entry in _LIST_WRITERS[place](part)]
        indexed = [{**entry, "index": index} for index, entry in enumerate(entries)]
        fields: Json = {place: indexed} if indexed else {}
        unsigned = [part.text for part in reasoning if not part.is_signature]
        if place == "thinking_blocks" and (
            unsigned_text := REASONING_SEPARATOR.join(filter(str.strip, unsigned))
        ):
            fields["reasoning_content"] = unsigned_text
        return {**message, **fields}
    needed = profile.returns.required_even_empty and "tool_calls" in message
    return {**message, place: text} if place in TEXT_FIELDS and (text or needed) else message


def report_lost_reasoning(
    reasoning: Sequence[ReasoningPart], profile: Profile
) -> Iterator[Unsupported]:
    """Report the reasoning that upstream does not get; none of it is essential."""
    place = profile.returns.place
    for part in reasoning:
        if part.state and place not in LIST_FIELDS:
            message = "Opaque reasoning is of use only to the API that it came from."
            yield Unsupported(part.param, message, essential=False)
        elif part.text.strip() and place in ("nothing", "extra_content"):
            yield Unsupported(
                part.param, "This model's API takes no reasoning back.", essential=False
            )


def _write_tags(text: str, message: Json, profile: Profile) -> str | list[Json]:
    tag, content = (profile.tags or TAGS)[0], message["content"]
    inline = f"{tag.opening}\n{text}\n{tag.closing}\n\n"
    if isinstance(content, list):
        return [{"type": "text", "text": inline}, *content]
    return inline + (content or "")


def _write_chunks(text: str, message: Json, _: Profile) -> list[Json]:
    thinking: Json = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    content = message["content"] or []
    chunks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return [thinking, *chunks]


def _write_details(part: ReasoningPart) -> Iterator[Json]:
    signature = {"signature": part.state} if part.is_signature else {}
    if part.text.strip() or signature:
        yield {"type": "reasoning.text", "text": part.text, **signature}
    if part.state and not part.is_signature:
        yield {"type": "reasoning.encrypted", "data": part.state}


def _write_blocks(part: ReasoningPart) -> Iterator[Json]:
    if part.is_signature:
        yield {"type": "thinking", "thinking": part.text, "signature": part.state}
    elif part.state:
        yield {"type": "redacted_thinking", "data": part.state}


_INLINE_WRITERS: Mapping[ReasoningPlace, Callable[[str, Json, Profile], str | list[Json]]] = (
    MappingProxyType({"tags": _write_tags, "chunks": _write_chunks})
)

_LIST_WRITERS: Mapping[ReasoningPlace, Callable[[ReasoningPart], Iterator[Json]]] = (
    MappingProxyType({"reasoning_details": _write_details, "thinking_blocks": _write_blocks})
)

# Move

_UNKNOWN_RETURN = ReasoningReturn()
"""What is assumed of an upstream of which nothing is known."""


def move_reasoning(message: Json, profile: Profile) -> bool:
    """Move a message's reasoning to the profile's place; return true if the message has changed.

    Reasoning that is there already, or inline in the content, stays as it is. Fields that upstream
    refuses, and empty ones, are removed; an empty one is added if upstream requires it with calls.
    """
    returns = profile.returns
    knows_nothing = profile.learns and returns == _UNKNOWN_RETURN  # more of this upstream yet
    if knows_nothing and is_plain(message.get("content")):
        return False
    before = dict(message)
    _say_once(message, returns.place)
    if knows_nothing:
        return message != before
    if returns.place not in NO_TEXT_PLACES and _is_elsewhere(message, returns.place):
        _move_text(message, profile)
    for name in TEXT_FIELDS:
        if name in message and (name in returns.rejects or not message[name]):
            del message[name]
    if returns.required_even_empty and message.get("tool_calls") and returns.place in TEXT_FIELDS:
        message.setdefault(returns.place, "")
    return message != before


def _say_once(message: Json, place: ReasoningPlace) -> None:
    """Remove reasoning that is said twice, in a field and in tags, where the profile does not read
    it."""
    for name in [name for name in TEXT_FIELDS if string(message.get(name)).strip()]:
        inline, rest = split_leading_inline(message.get("content"), known=message[name])
        if not inline.strip():
            continue
        if place == "tags":
            del message[name]
        else:
            message["content"] = rest


def _is_elsewhere(message: Json, place: ReasoningPlace) -> bool:
    content = message.get("content")
    chunks = bool(find_thinking_chunks(content))
    if message.get(place) or (place == "chunks" and chunks):
        return False
    elsewhere = chunks or any(message.get(name) for name in REASONING_FIELDS)
    return elsewhere and not split_leading_inline(content)[0].strip()


def _move_text(message: Json, profile: Profile) -> None:
    """Move the text alone: opaque state is of use only to the API that it came from."""
    parts = read_reasoning(message, "")
    reasoning = [
        ReasoningPart(part.text) for part in parts if isinstance(part, ReasoningPart) and part.text
    ]
    content = message.get("content")
    bare = {key: value for key, value in message.items() if key not in REASONING_FIELDS}
    bare["content"] = without_thinking_chunks(content) or None
    moved = add_reasoning(bare, reasoning, profile)
    if moved["content"] is None and content is None:
        moved = {key: value for key, value in moved.items() if key != "content" or key in message}
    message.clear()
    message.update(moved)
