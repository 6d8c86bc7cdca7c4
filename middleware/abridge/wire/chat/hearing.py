"""Record an answer's message as a turn, to remember its reasoning by."""

from __future__ import annotations

from abridge.turn.conversation import Heard
from abridge.wire.chat.choice import ITEM
from abridge.wire.chat.dialects import (
    SPELLINGS,
    find,
    thinking_chunks,
)
from abridge.wire.chat.inline import split_inline
from abridge.wire.chat.message import STATE
from abridge.wire.chat.turns import text_of, turn_of
from abridge.wire.codec import Json, objects
from abridge.wire.profiles import Profile


def hear(message: Json, lane: int, profile: Profile, *, hidden: bool) -> Heard | None:
    """Record an answer's message; None if it holds neither reasoning nor opaque state.

    With `hides_raw` the turn's text is without inline reasoning, as the client gets it.
    """
    turn, content = turn_of(message), message.get("content")
    original = _original(message)
    found, kept, raw = find(message), content, ""
    if found is None or hidden:
        raw, kept = split_inline(content, profile, alone=found is None)
    if found is not None and not found.native:
        raw = found.text
    if kept != content:
        turn.text = text_of(kept)
    if kept != content or thinking_chunks(content):
        original["content"] = content
    return Heard(turn, raw, [original], ((lane, ITEM),)) if raw.strip() or original else None


def _original(message: Json) -> Json:
    """Return the fields to restore later: reasoning and opaque state, that of calls by call id."""
    original = {name: message[name] for name in (*SPELLINGS, STATE) if message.get(name)}
    calls = [
        {"id": call.get("id"), STATE: call[STATE]}
        for call in objects(message.get("tool_calls"))
        if call.get(STATE)
    ]
    return {**original, "tool_calls": calls} if calls else original
