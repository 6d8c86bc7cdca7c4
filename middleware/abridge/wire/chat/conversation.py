"""Read the messages of a Chat Completions request, and change their reasoning for upstream."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any

from abridge.turn.conversation import Turn
from abridge.wire.api import Spelt
from abridge.wire.attribution import unmark
from abridge.wire.chat.dialects import (
    ANSWER,
    COPIES,
    LISTS,
    PLAIN,
    SPELLINGS,
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
from abridge.wire.chat.turns import answer_of, holders, text_of, told, turn_of
from abridge.wire.codec import Json, objects, string
from abridge.wire.envelope import Open
from abridge.wire.profiles import PROFILES, Profile

MARKS = ("summary_error",)
"""Fields that Abridge adds to a message besides reasoning."""

TEXTS = ("summary", "text", "thinking")
"""Keys under which an entry of a list of reasoning may hold readable text."""


class ChatConversation:
    """See the protocol `History`. Each message is a turn."""

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
            message["content"], turn.text = kept, text_of(kept)
            taken += 1
        found = find(message)
        return taken, inline or (found is not None and bool(found.text.strip()))

    def unseal(self, turn: Turn, opened: Open) -> bool:
        """Replace a message's reasoning by what its envelope holds, which is all of it.

        If no blob opens, only opaque state is left: the text next to a blob is a summary, and a
        signature means nothing without the text it signs.
        """
        message = turn.items[0]
        blobs = take_blobs(message)
        if not blobs:
            return False
        turn.text, _ = told(message)
        param = f"messages[{self._numbers[id(message)]}]"
        opening = [opened(blob, f"{param}.{place}", turn, "") for place, blob in blobs]
        found = next(filter(None, opening), None)
        for name in SPELLINGS:
            _object(message.get(COPIES)).pop(name, None)
        self.put_back(turn, found.reasoning if found is not None else [sealed(message)])
        _, turn.shown = told(message)
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
        fields = [message, *filter(None, [_object(message.get(COPIES))])]
        said = [name for said in fields for name in SPELLINGS if said.pop(name, None)]
        said += [STATE for said in holders(message) if said.pop(STATE, None)]
        kept = answer_of(content)
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
        """The index of each message, as the client counts them, by the identity of its object."""
        return {id(message): number for number, message in enumerate(self._body["messages"])}


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _strip_fields(said: Json, ours: Callable[[str], bool]) -> int:
    """Remove Abridge's summaries from the fields of reasoning; return how many."""
    taken = 0
    for name in PLAIN:
        if (text := said.get(name)) and ours(string(text)):
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
    """Return the original content, with its reasoning, around the answer as it is now.

    A turn that is identified by its calls may have a different text by now.
    """
    answer = answer_of(turn.items[0].get("content"))
    if not turn.calls or text_of(without_chunks(original)).endswith(text_of(answer)):
        return original
    if chunks := thinking_chunks(original):
        text = [{"type": "text", "text": answer}] if isinstance(answer, str) else answer
        return [*chunks, *objects(text)]
    before = original.removesuffix(answer_of(original)) if isinstance(original, str) else ""
    return before + string(answer)


def _restate(message: Json, said: Json) -> None:
    """Restore the opaque state of the calls; calls with the same id, or none, get it in order."""
    stateful = deque(objects(said.get("tool_calls")))
    for call in objects(message.get("tool_calls")):
        if stateful and stateful[0]["id"] == call.get("id"):
            call[STATE] = stateful.popleft()[STATE]


def _is(entry: Any, ours: Callable[[str], bool]) -> bool:
    return isinstance(entry, dict) and any(ours(string(entry.get(key))) for key in TEXTS)


def _without(content: Any, ours: Callable[[str], bool]) -> tuple[Any, bool]:
    """Remove a summary of Abridge's that a client put inline or into a thinking chunk.

    Returns the content, and true if it holds inline reasoning that is not Abridge's.
    """
    if isinstance(content, list):
        content = [chunk for chunk in content if not _thinks(chunk, ours)]
    inline, answer = split_inline(content, PROFILES["auto"], alone=True)
    return (answer, False) if ours(inline) else (content, bool(inline.strip()))


def _thinks(chunk: Any, ours: Callable[[str], bool]) -> bool:
    return isinstance(chunk, dict) and chunk.get("type") == "thinking" and ours(chunk_text(chunk))
