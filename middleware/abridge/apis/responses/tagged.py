"""Write reasoning into messages, between tags, for servers that have it there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from abridge.apis.json import string
from abridge.apis.responses.inline_text import begins_with_thinking
from abridge.apis.responses.reasoning import is_reasoning, raw_text
from abridge.core.conversation import Json
from abridge.providers.profile import TAGS, Profile


def takes_tags(profile: Profile) -> bool:
    """Return whether a server has reasoning in its messages, and wants it back there."""
    return profile.inline_on_responses and profile.returns.place == "tags"


def put_into_tags(items: Sequence[Json], profile: Profile) -> Iterator[Json]:
    """Yield the items of a turn, with reasoning at the beginning of the message after it, or in a
    message of its own if there is none. Reasoning that the message repeats is said once."""
    tagged = ""
    for item in items:
        raw = "" if item.get("encrypted_content") else raw_text(item) if is_reasoning(item) else ""
        if raw.strip():
            tagged += _write_tags(raw, profile)
            continue
        if tagged and item.get("role") == "assistant":
            yield _begin_with(tagged, item, profile)
        else:
            yield from ([_message(tagged), item] if tagged else [item])
        tagged = ""
    if tagged:
        yield _message(tagged)


def _write_tags(text: str, profile: Profile) -> str:
    tag = (profile.tags or TAGS)[0]
    text = text.removeprefix("\n").removesuffix("\n")
    return f"{tag.opening}\n{text}\n{tag.closing}\n\n"


def _message(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "content": content}


def _begin_with(tagged: str, item: Json, profile: Profile) -> Json:
    if begins_with_thinking({"type": "message", **item}, profile):
        return item
    return {**item, "content": _prefix(tagged, item.get("content"))}


def _prefix(tagged: str, content: Any) -> Any:
    if not isinstance(content, list):
        return tagged + string(content)
    first, *rest = content or [{}]
    if isinstance(first, dict) and isinstance(first.get("text"), str):
        return [{**first, "text": tagged + first["text"]}, *rest]
    return [{"type": "output_text", "text": tagged, "annotations": []}, *content]
