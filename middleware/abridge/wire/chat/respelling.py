"""Move a message's reasoning to the place where upstream reads it."""

from __future__ import annotations

from abridge.turn.question import Thought
from abridge.wire.chat.asking.returning import returned
from abridge.wire.chat.asking.thoughts import read_thoughts, without_inline
from abridge.wire.chat.dialects import PLAIN, SPELLINGS, thinking_chunks, without_chunks
from abridge.wire.codec import Json
from abridge.wire.profile import Place, Profile, Returns

OPAQUE: frozenset[Place] = frozenset(
    {"reasoning_details", "thinking_blocks", "extra_content", "nothing"}
)
"""Places to which plain text is not moved: upstream reads it in a field as well, or not at all."""


def respell(message: Json, profile: Profile) -> bool:
    """Move a message's reasoning to the profile's place; return true if the message has changed.

    Reasoning that is there already, or inline in the content, stays as it is. Fields that upstream
    refuses, and empty ones, are removed; an empty one is added if upstream requires it with calls.
    """
    returns = profile.returns
    if profile.learns and returns == Returns():
        return False  # nothing is known of this upstream yet
    before = dict(message)
    if returns.place not in OPAQUE and _stands_elsewhere(message, returns.place):
        _move(message, profile)
    for name in PLAIN:
        if name in message and (name in returns.refuses or not message[name]):
            del message[name]
    if returns.even_empty and message.get("tool_calls") and returns.place in PLAIN:
        message.setdefault(returns.place, "")
    return message != before


def _stands_elsewhere(message: Json, place: Place) -> bool:
    content = message.get("content")
    chunks = bool(thinking_chunks(content))
    if message.get(place) or (place == "chunks" and chunks):
        return False
    elsewhere = chunks or any(message.get(name) for name in SPELLINGS)
    return elsewhere and not without_inline(content, thought=False)[0].strip()


def _move(message: Json, profile: Profile) -> None:
    """Move the text alone: opaque state is of use only to the API that it came from."""
    told = read_thoughts(message, "")
    thoughts = [Thought(part.text) for part in told if isinstance(part, Thought) and part.text]
    content = message.get("content")
    bare = {key: value for key, value in message.items() if key not in SPELLINGS}
    bare["content"] = without_chunks(content) or None
    moved = returned(bare, thoughts, profile)
    if moved["content"] is None and content is None:
        moved = {key: value for key, value in moved.items() if key != "content" or key in message}
    message.clear()
    message.update(moved)
