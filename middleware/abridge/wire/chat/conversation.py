"""Reads the messages of a Chat Completions conversation, and changes what of them upstream gets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

from abridge.turn.conversation import Call, Heard, Turn
from abridge.wire.api import Spelt
from abridge.wire.attribution import unmark
from abridge.wire.chat.choice import ITEM
from abridge.wire.chat.dialects import (
    ANSWER,
    LISTS,
    PLAIN,
    SPELLINGS,
    answer_text,
    chunk_text,
    find,
    sealed,
    thinking_chunks,
    without_chunks,
)
from abridge.wire.chat.inline import split_inline
from abridge.wire.chat.message import STATE
from abridge.wire.chat.respelling import respell
from abridge.wire.chat.sealing import take_blobs
from abridge.wire.codec import Json, objects, string
from abridge.wire.envelope import Open
from abridge.wire.profiles import PROFILES, Profile

MARKS = ("summary_error",)
"""What Abridge adds to a message beside its reasoning."""

COPIES = "provider_specific_fields"
"""Where LiteLLM's client keeps, and returns, a second one of the fields that it does not know."""

TEXTS = ("summary", "text", "thinking")
"""Where an entry of a list of reasoning has what can be read."""


class ChatConversation:
    """See `abridge.wire.api.Conversation`. Each message is a turn."""

    insists = False

    def __init__(self, body: Json) -> None:
        self._body = body
        self.turns = [turn_of(message) for message in objects(body.get("messages"))]

    def strip(self, turn: Turn, ours: Callable[[str], bool]) -> tuple[int, bool]:
        message = turn.items[0]
        taken = sum(message.pop(mark, None) is not None for mark in MARKS)
        taken += _strip_fields(message, ours)
        if isinstance(copies := message.get(COPIES), dict):
            taken += _strip_fields(copies, ours)
        kept, inline = _without(message.get("content"), ours)
        if kept != message.get("content"):
            message["content"], turn.text = kept, _text(kept)
            taken += 1
        found = find(message)
        return taken, inline or (found is not None and bool(found.text.strip()))

    def unseal(self, turn: Turn, opened: Open) -> bool:
        """What was sealed of a message is all of its reasoning: what stands beside a blob that is
        of no use is a summary, or state that means nothing without what it signs."""
        message = turn.items[0]
        blobs = take_blobs(message)
        if not blobs:
            return False
        turn.text = _said(message)
        param = f"messages[{self._numbers[id(message)]}]"
        opening = [opened(blob, f"{param}.{place}", turn, "") for place, blob in blobs]
        found = next(filter(None, opening), None)
        self.put_back(turn, found.reasoning if found is not None else [sealed(message)])
        turn.shown = _shown(message)
        return found is not None

    def unmark(self, turn: Turn) -> int:
        return sum(map(unmark, objects(turn.items[0].get("tool_calls"))))

    def put_back(self, turn: Turn, original: list[Json]) -> None:
        message = turn.items[0]
        for name in SPELLINGS:
            message.pop(name, None)
        for said in original:
            content = _rejoined(turn, said["content"]) if "content" in said else None
            message.update({key: said[key] for key in said if key not in ANSWER})
            if content is not None:
                message["content"] = content
            _restate(message, said)

    def drop(self, turn: Turn) -> bool:
        message, content = turn.items[0], turn.items[0].get("content")
        holders = [message, *filter(None, [_object(message.get(COPIES))])]
        said = [name for said in holders for name in SPELLINGS if said.pop(name, None)]
        said += [STATE for said in _holders(message) if said.pop(STATE, None)]
        kept = _answer(content)
        if kept != content:
            message["content"] = kept or None
        return bool(said) or kept != content

    def spell(self, turn: Turn, profile: Profile) -> Spelt:
        if profile.returns.place == "nothing":
            return "dropped" if self.drop(turn) else "as it was"
        return "moved" if respell(turn.items[0], profile) else "as it was"

    def body(self) -> Json:
        return self._body

    @cached_property
    def _numbers(self) -> dict[int, int]:
        """Which message is which, as the client counts them."""
        return {id(message): number for number, message in enumerate(self._body["messages"])}


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
        turn.text = _text(kept)
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


def _holders(message: Json) -> list[Json]:
    """Where opaque state may stand beside an answer."""
    return [message, *objects(message.get("tool_calls"))]


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _strip_fields(said: Json, ours: Callable[[str], bool]) -> int:
    """Take our summaries out of the fields that hold reasoning and nothing else."""
    taken = 0
    for name in PLAIN:
        if ours(string(said.get(name))):
            del said[name]
            taken += 1
    for name in LISTS:
        if isinstance(said.get(name), list):
            kept = [entry for entry in said[name] if not _is(entry, ours)]
            taken += len(said[name]) - len(kept)
            said[name] = kept
            if not kept:
                del said[name]
    return taken


def _rejoined(turn: Turn, original: Any) -> Any:
    """A content with reasoning in it, as the answer is by now: of a turn that is known by its calls
    it may have been edited since."""
    answer = _answer(turn.items[0].get("content"))
    if not turn.calls or _text(without_chunks(original)).endswith(_text(answer)):
        return original
    if chunks := thinking_chunks(original):
        text = [{"type": "text", "text": answer}] if isinstance(answer, str) else answer
        return [*chunks, *objects(text)]
    before = original.removesuffix(_answer(original)) if isinstance(original, str) else ""
    return before + string(answer)


def _answer(content: Any) -> Any:
    """A content less the reasoning before it."""
    return split_inline(without_chunks(content), PROFILES["auto"], alone=True)[1]


def _restate(message: Json, said: Json) -> None:
    """Give the calls back their opaque state."""
    states = {call["id"]: call[STATE] for call in objects(said.get("tool_calls"))}
    for call in objects(message.get("tool_calls")):
        if (state := states.get(call.get("id"))) is not None:
            call[STATE] = state


def turn_of(message: Json) -> Turn:
    """The turn that a message is."""
    return Turn(
        role=string(message.get("role")),
        text=_said(message),
        calls=tuple(_calls(message)),
        answers=string(message.get("tool_call_id")),
        shown=_shown(message),
        opaque=any(holder.get(STATE) for holder in _holders(message)),
        items=[message],
    )


def _shown(message: Json) -> tuple[str, ...]:
    plain = [string(message.get(name)) for name in PLAIN]
    found = find(message)
    inline, _ = split_inline(message.get("content"), PROFILES["auto"], alone=True)
    return tuple(filter(None, [*plain, found.text if found is not None else "", inline]))


def _said(message: Json) -> str:
    """Its answer: what stands inline before it is reasoning, unless that stands elsewhere."""
    content = message.get("content")
    if find(message) is None:
        _, content = split_inline(content, PROFILES["auto"], alone=True)
    return _text(content) or string(message.get("refusal"))


def _text(content: Any) -> str:
    """All that a content says: its text, and what is no text as JSON."""
    if isinstance(content, str):
        return content
    others = [
        json.dumps(chunk, sort_keys=True)
        for chunk in objects(content)
        if "text" not in chunk and chunk.get("type") != "thinking"
    ]
    return "\n".join([answer_text(content), *others])


def _calls(message: Json) -> Iterator[Call]:
    for call in objects(message.get("tool_calls")):
        function = call.get("function") or call.get("custom")
        function = function if isinstance(function, dict) else {}
        arguments = function.get("arguments", function.get("input"))
        yield Call(string(call.get("id")), string(function.get("name")), string(arguments))


def _is(entry: Any, ours: Callable[[str], bool]) -> bool:
    return isinstance(entry, dict) and any(ours(string(entry.get(key))) for key in TEXTS)


def _without(content: Any, ours: Callable[[str], bool]) -> tuple[Any, bool]:
    """A content without a summary that its client put where some providers have reasoning, and
    whether there is reasoning inline in it."""
    if isinstance(content, list):
        content = [chunk for chunk in content if not _thinks(chunk, ours)]
    inline, answer = split_inline(content, PROFILES["auto"], alone=True)
    return (answer, False) if ours(inline) else (content, bool(inline.strip()))


def _thinks(chunk: Any, ours: Callable[[str], bool]) -> bool:
    return isinstance(chunk, dict) and chunk.get("type") == "thinking" and ours(chunk_text(chunk))
