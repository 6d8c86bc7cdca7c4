"""What an answer's message is remembered by."""

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
    """The turn that an answer's message makes, if it holds reasoning, or opaque state.

    With `hidden` true its text is what is left without inline reasoning, as the client gets it.
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
    """What of a message is to come back; its calls, too, where they hold opaque state."""
    original = {name: message[name] for name in (*SPELLINGS, STATE) if message.get(name)}
    calls = [
        {"id": call.get("id"), STATE: call[STATE]}
        for call in objects(message.get("tool_calls"))
        if call.get(STATE)
    ]
    return {**original, "tool_calls": calls} if calls else original
