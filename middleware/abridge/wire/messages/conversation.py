"""Reads the messages of a Messages request, and changes what of them upstream gets.

A message of the assistant's is a turn. One of the user's may be several: each result of a tool,
then what the user says.
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
"""The order of clients that know but one place for text and one for calls, reasoning before."""


class MessagesConversation:
    """See `abridge.wire.api.Conversation`."""

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

    def unmark(self, turn: Turn) -> int:  # noqa: ARG002 -- no client of ours speaks this API
        return 0

    def unseal(self, turn: Turn, opened: Open) -> bool:  # noqa: ARG002
        """No client speaks this API, so nothing of ours is in its words."""
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

    def spell(self, turn: Turn, profile: Profile) -> Spelt:  # noqa: ARG002 -- there is one place
        return "as it was"

    def body(self) -> Json:
        """Under a fixed budget, a round of calls that began without thinking goes on without it:
        upstream would refuse it (Anthropic's guide to extended thinking)."""
        thinking = self._body.get("thinking")
        fixed = isinstance(thinking, dict) and thinking.get("type") == "enabled"
        if fixed and _calls_thoughtlessly(objects(self._body.get("messages"))):
            del self._body["thinking"]
        return self._body


def hear(content: list[Json], keys: tuple[ItemKey, ...]) -> list[Heard]:
    """The turn that an answer's blocks make, if there is reasoning among them, shown or not. Where
    they are in another order than clients know, the original has the others, too."""
    original = list(filter(_thinks, content))
    if not original:
        return []
    (turn,) = _turns({"role": "assistant", "content": content})
    raw = "".join(map(_thought, original))
    places = [PLACES.get(string(block.get("type")), 0) for block in content]
    return [Heard(turn, raw, original if places == sorted(places) else content, keys)]


def _in_place(original: list[Json], said: list[Json]) -> list[Json] | None:
    """All that was said in its original order; None where the answer was edited since."""
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
    """The blocks of a content less its reasoning."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in objects(content) if not _thinks(block)]


def _thinks(block: Json) -> bool:
    return block.get("type") in REASONING


def _thought(block: Json) -> str:
    return string(block.get("thinking")) if block.get("type") == "thinking" else ""


def _call(block: Json) -> Call:
    """Its input is an object, or in an answer its JSON as the model wrote it."""
    given = block.get("input")
    arguments = given if isinstance(given, str) else json.dumps(given, sort_keys=True)
    return Call(string(block.get("id")), string(block.get("name")), arguments)


def _text(content: Any) -> str:
    """All that a content says: its text, and what is no text as JSON."""
    if isinstance(content, str):
        return content
    blocks = objects(content)
    texts = "".join(string(block.get("text")) for block in blocks)
    others = [json.dumps(block, sort_keys=True) for block in blocks if "text" not in block]
    return "\n".join([texts, *others])


def _calls_thoughtlessly(messages: Sequence[Json]) -> bool:
    """Whether the calls that were answered last came without thinking. Each round of them since
    the user last spoke belongs to one turn, and it is the first of them that thinks."""
    rounds = takewhile(_continues, reversed(messages))
    spoken = [message for message in rounds if message.get("role") == "assistant"]
    first = next(iter(objects(spoken[-1].get("content"))), {}) if spoken else {}
    return bool(spoken) and first.get("type") not in REASONING


def _continues(message: Json) -> bool:
    """Whether a message is of a round of calls, and no word of the user's."""
    kinds = {block.get("type") for block in objects(message.get("content"))}
    return bool({RESULT, "tool_use"} & kinds)
