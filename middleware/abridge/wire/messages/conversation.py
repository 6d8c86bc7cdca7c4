"""Reads the history of a Messages request and rewrites it for upstream.

An assistant message is one turn. A user message may be several: each tool result, then the user's
own content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from abridge.turn.conversation import Call, Heard, ItemKey, Turn
from abridge.wire.api import Spelt
from abridge.wire.codec import Json, objects, string
from abridge.wire.envelope import Open
from abridge.wire.profile import Profile

REASONING = ("thinking", "redacted_thinking")
RESULT = "tool_result"

PLACES = {"text": 1, "tool_use": 2}
"""Block order of clients that keep one text and one list of calls per message: reasoning first."""


class MessagesConversation:
    """See `History`."""

    insists = True

    def __init__(self, body: Json) -> None:
        self._body = body
        self.turns = [Turn("system", _text(body.get("system")))]
        for message in objects(body.get("messages")):
            self.turns += _turns(message)

    def strip(self, turn: Turn, ours: Callable[[str], bool]) -> tuple[int, bool]:
        content = objects(turn.items[0].get("content"))
        kept = [block for block in content if not ours(_thought(block))]
        if len(kept) < len(content):
            turn.items[0]["content"] = kept
        return len(content) - len(kept), any(_thought(block).strip() for block in kept)

    def unmark(self, turn: Turn) -> int:  # noqa: ARG002 -- no client speaks this API
        return 0

    def unseal(self, turn: Turn, opened: Open) -> bool:  # noqa: ARG002
        """Return False: no client speaks this API, so it holds no envelope."""
        return False

    def put_back(self, turn: Turn, original: list[Json]) -> None:
        said = _answer(turn.items[0].get("content"))
        turn.items[0]["content"] = _in_place(original, said) or [*filter(_thinks, original), *said]

    def drop(self, turn: Turn) -> bool:
        content = objects(turn.items[0].get("content"))
        kept = [block for block in content if not _thinks(block)]
        if len(kept) < len(content):
            turn.items[0]["content"] = kept
        return len(kept) < len(content)

    def spell(self, turn: Turn, profile: Profile) -> Spelt:  # noqa: ARG002 -- only one place
        return "as it was"

    def body(self) -> Json:
        """Return the request body. With a fixed thinking budget, remove `thinking` from a round of
        calls that began without thinking: upstream would refuse it (Anthropic's guide to extended
        thinking)."""
        thinking = self._body.get("thinking")
        fixed = isinstance(thinking, dict) and thinking.get("type") == "enabled"
        if fixed and _calls_thoughtlessly(objects(self._body.get("messages"))):
            del self._body["thinking"]
        return self._body


def hear(content: list[Json], keys: tuple[ItemKey, ...]) -> list[Heard]:
    """Return the turn that an answer's blocks make, if they include reasoning, shown or not. If the
    blocks are in another order than clients can keep, the original holds all of them."""
    original = list(filter(_thinks, content))
    if not original:
        return []
    (turn,) = _turns({"role": "assistant", "content": content})
    raw = "".join(map(_thought, original))
    places = [PLACES.get(string(block.get("type")), 0) for block in content]
    return [Heard(turn, raw, original if places == sorted(places) else content, keys)]


def _in_place(original: list[Json], said: list[Json]) -> list[Json] | None:
    """Return the content in its original order; None if the answer was edited since."""
    if all(map(_thinks, original)):
        return None
    before, now = _assistant({}, _answer(original)), _assistant({}, said)
    if before.canonical() != now.canonical():
        return None
    calls = (block for block in said if block.get("type") == "tool_use")
    return [
        next(calls) if block.get("type") == "tool_use" else block
        for block in original
        if block.get("type") != "text" or string(block.get("text")).strip()
    ]


def _turns(message: Json) -> Iterator[Turn]:
    role, content = string(message.get("role")), message.get("content")
    said = _answer(content)
    if role == "assistant":
        yield _assistant(message, said)
        return
    for block in said:
        if block.get("type") == RESULT:
            answers = string(block.get("tool_use_id"))
            yield Turn("tool", _text(block.get("content")), answers=answers, items=[block])
    others = [block for block in said if block.get("type") != RESULT]
    if others or not said:
        yield Turn(role, _text(others), items=[message])


def _assistant(message: Json, said: list[Json]) -> Turn:
    thoughts = [thought for thought in map(_thought, objects(message.get("content"))) if thought]
    return Turn(
        role="assistant",
        text=_text([block for block in said if block.get("type") != "tool_use"]),
        calls=tuple(_call(block) for block in said if block.get("type") == "tool_use"),
        shown=tuple(dict.fromkeys(["".join(thoughts), *thoughts])) if thoughts else (),
        items=[message],
    )


def _answer(content: Any) -> list[Json]:
    """Return the content blocks without reasoning."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in objects(content) if not _thinks(block)]


def _thinks(block: Json) -> bool:
    return block.get("type") in REASONING


def _thought(block: Json) -> str:
    return string(block.get("thinking")) if block.get("type") == "thinking" else ""


def _call(block: Json) -> Call:
    """Read a call. Its input is an object, or in an answer the JSON as the model wrote it."""
    given = block.get("input")
    arguments = given if isinstance(given, str) else json.dumps(given, sort_keys=True)
    return Call(string(block.get("id")), string(block.get("name")), arguments)


def _text(content: Any) -> str:
    """Return the text of a content; blocks without text as JSON."""
    if isinstance(content, str):
        return content
    blocks = objects(content)
    texts = "".join(string(block.get("text")) for block in blocks)
    others = [json.dumps(block, sort_keys=True) for block in blocks if "text" not in block]
    return "\n".join([texts, *others])


def _calls_thoughtlessly(messages: Sequence[Json]) -> bool:
    """Return whether the current round of calls began without thinking. All calls since the last
    user message belong to one turn, and only its first message has to think."""
    rounds = takewhile(_continues, reversed(messages))
    spoken = [message for message in rounds if message.get("role") == "assistant"]
    first = next(iter(objects(spoken[-1].get("content"))), {}) if spoken else {}
    return bool(spoken) and first.get("type") not in REASONING


def _continues(message: Json) -> bool:
    """Return whether a message belongs to a round of calls and is not a new user message."""
    kinds = {block.get("type") for block in objects(message.get("content"))}
    return bool({RESULT, "tool_use"} & kinds)
