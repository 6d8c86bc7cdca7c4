"""Write the reasoning of earlier turns into the place where a chat upstream reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from abridge.turn.question import Thought, Unfit
from abridge.wire.codec import Json
from abridge.wire.profile import TAGS, Place, Profile

BETWEEN = "\n\n"
"""Separates the reasoning of several stretches."""

SEALING = frozenset({"reasoning_details", "thinking_blocks"})
"""Places that take opaque state."""


def returned(message: Json, thoughts: Sequence[Thought], profile: Profile) -> Json:
    """Return the message with the reasoning that preceded it: raw text and state, no summaries."""
    place = profile.returns.place
    text = BETWEEN.join(thought.text for thought in thoughts if thought.text.strip())
    if place in _INLINE:
        return {**message, "content": _INLINE[place](text, message, profile)} if text else message
    if place in _LISTS:
        entries = [entry for thought in thoughts for entry in _LISTS[place](thought)]
        indexed = [{**entry, "index": index} for index, entry in enumerate(entries)]
        said: Json = {place: indexed} if indexed else {}
        unsigned = [thought.text for thought in thoughts if not thought.signed]
        if place == "thinking_blocks" and (told := BETWEEN.join(filter(str.strip, unsigned))):
            said["reasoning_content"] = told
        return {**message, **said}
    needed = profile.returns.even_empty and "tool_calls" in message
    return {**message, place: text} if place in _FIELDS and (text or needed) else message


def lost(thoughts: Sequence[Thought], profile: Profile) -> Iterator[Unfit]:
    """Report the reasoning that upstream does not get; none of it is essential."""
    place = profile.returns.place
    for thought in thoughts:
        if thought.sealed and place not in SEALING:
            message = "Opaque reasoning is of use only to the API that it came from."
            yield Unfit(thought.param, message, matters=False)
        elif thought.text.strip() and place in ("nothing", "extra_content"):
            yield Unfit(thought.param, "This model's API takes no reasoning back.", matters=False)


def _in_tags(text: str, message: Json, profile: Profile) -> str | list[Json]:
    tag, content = (profile.tags or TAGS)[0], message["content"]
    inline = f"{tag.opening}\n{text}\n{tag.closing}\n\n"
    if isinstance(content, list):
        return [{"type": "text", "text": inline}, *content]
    return inline + (content or "")


def _in_chunks(text: str, message: Json, _: Profile) -> list[Json]:
    thinking: Json = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
    content = message["content"] or []
    said = content if isinstance(content, list) else [{"type": "text", "text": content}]
    return [thinking, *said]


def _detail(thought: Thought) -> Iterator[Json]:
    signature = {"signature": thought.sealed} if thought.signed else {}
    if thought.text.strip() or signature:
        yield {"type": "reasoning.text", "text": thought.text, **signature}
    if thought.sealed and not thought.signed:
        yield {"type": "reasoning.encrypted", "data": thought.sealed}


def _block(thought: Thought) -> Iterator[Json]:
    if thought.signed:
        yield {"type": "thinking", "thinking": thought.text, "signature": thought.sealed}
    elif thought.sealed:
        yield {"type": "redacted_thinking", "data": thought.sealed}


_FIELDS: frozenset[Place] = frozenset({"reasoning_content", "reasoning"})
_INLINE: Mapping[Place, Callable[[str, Json, Profile], str | list[Json]]] = MappingProxyType(
    {"tags": _in_tags, "chunks": _in_chunks}
)
_LISTS: Mapping[Place, Callable[[Thought], Iterator[Json]]] = MappingProxyType(
    {"reasoning_details": _detail, "thinking_blocks": _block}
)
