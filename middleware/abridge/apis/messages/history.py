"""Read the turns of a Messages request, and change what of them reaches upstream.

An assistant message is one turn. A user message may be several: each tool result, then the user's
own content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from abridge.apis.api import Placement
from abridge.apis.display import OpenEnvelope
from abridge.apis.json import objects, string
from abridge.core.conversation import ItemKey, Json, RecordedTurn, ToolCall, Turn
from abridge.providers.profile import Profile

REASONING_TYPES = ("thinking", "redacted_thinking")

TOOL_RESULT = "tool_result"

BLOCK_ORDER = {"text": 1, "tool_use": 2}
"""Block order of clients that keep one text and one list of calls per message: reasoning first."""


class MessagesHistory:
    """See `History`."""

    requires_reasoning = True

    def __init__(self, body: Json) -> None:
        self._body = body
        self.turns = [Turn("system", _read_text(body.get("system")))]
        for message in objects(body.get("messages")):
            self.turns += _read_turns(message)

    def strip(self, turn: Turn, is_summary: Callable[[str], bool]) -> tuple[int, bool]:
        content = objects(turn.items[0].get("content"))
        remaining = [block for block in content if not is_summary(_thinking_text(block))]
        if len(remaining) < len(content):
            turn.items[0]["content"] = remaining
        return len(content) - len(remaining), any(
            _thinking_text(block).strip() for block in remaining
        )

    def strip_attribution(self, turn: Turn) -> int:  # noqa: ARG002 -- no client speaks this API
        return 0

    def open_envelopes(self, turn: Turn, open_envelope: OpenEnvelope) -> bool:  # noqa: ARG002 -- same
        """Return False: no client speaks this API, so it holds no envelope."""
        return False

    def restore(self, turn: Turn, original: list[Json]) -> None:
        answer = _without_reasoning(turn.items[0].get("content"))
        turn.items[0]["content"] = _in_original_order(original, answer) or [
            *filter(_is_reasoning, original),
            *answer,
        ]

    def drop_reasoning(self, turn: Turn) -> bool:
        content = objects(turn.items[0].get("content"))
        remaining = [block for block in content if not _is_reasoning(block)]
        if len(remaining) < len(content):
            turn.items[0]["content"] = remaining
        return len(remaining) < len(content)

    def place_reasoning(self, turn: Turn, profile: Profile) -> Placement:  # noqa: ARG002 -- only one place
        return "unchanged"

    def next_place(self) -> None:
        return None

    def body(self) -> Json:
        """Return the request body. With a fixed thinking budget, remove `thinking` from a round of
        calls that began without thinking: upstream would refuse it (Anthropic's guide to extended
        thinking)."""
        thinking = self._body.get("thinking")
        has_fixed_budget = isinstance(thinking, dict) and thinking.get("type") == "enabled"
        if has_fixed_budget and _began_without_thinking(objects(self._body.get("messages"))):
            del self._body["thinking"]
        return self._body


def record_turn(content: list[Json], keys: tuple[ItemKey, ...]) -> list[RecordedTurn]:
    """Return the turn that an answer's blocks make, if they include reasoning, shown or not. If the
    blocks are in another order than clients can keep, the original holds all of them."""
    original = list(filter(_is_reasoning, content))
    if not original:
        return []
    (turn,) = _read_turns({"role": "assistant", "content": content})
    raw = "".join(map(_thinking_text, original))
    order = [BLOCK_ORDER.get(string(block.get("type")), 0) for block in content]
    return [RecordedTurn(turn, raw, original if order == sorted(order) else content, keys)]


def _in_original_order(original: list[Json], current: list[Json]) -> list[Json] | None:
    """Return the content in its original order; None if the answer was edited since."""
    if all(map(_is_reasoning, original)):
        return None
    before, now = _assistant_turn({}, _without_reasoning(original)), _assistant_turn({}, current)
    if before.encode_canonical() != now.encode_canonical():
        return None
    calls = (block for block in current if block.get("type") == "tool_use")
    return [
        next(calls) if block.get("type") == "tool_use" else block
        for block in original
        if block.get("type") != "text" or string(block.get("text")).strip()
    ]


def _read_turns(message: Json) -> Iterator[Turn]:
    role, content = string(message.get("role")), message.get("content")
    blocks = _without_reasoning(content)
    if role == "assistant":
        yield _assistant_turn(message, blocks)
        return
    for block in blocks:
        if block.get("type") == TOOL_RESULT:
            call_id = string(block.get("tool_use_id"))
            yield Turn(
                "tool", _read_text(block.get("content")), answers_call=call_id, items=[block]
            )
    others = [block for block in blocks if block.get("type") != TOOL_RESULT]
    if others or not blocks:
        yield Turn(role, _read_text(others), items=[message])


def _assistant_turn(message: Json, blocks: list[Json]) -> Turn:
    texts = [text for text in map(_thinking_text, objects(message.get("content"))) if text]
    return Turn(
        role="assistant",
        text=_read_text([block for block in blocks if block.get("type") != "tool_use"]),
        calls=tuple(_read_call(block) for block in blocks if block.get("type") == "tool_use"),
        reasoning_texts=tuple(dict.fromkeys(["".join(texts), *texts])) if texts else (),
        items=[message],
    )


def _without_reasoning(content: Any) -> list[Json]:
    """Return the content blocks without reasoning."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in objects(content) if not _is_reasoning(block)]


def _is_reasoning(block: Json) -> bool:
    return block.get("type") in REASONING_TYPES


def _thinking_text(block: Json) -> str:
    return string(block.get("thinking")) if block.get("type") == "thinking" else ""


def _read_call(block: Json) -> ToolCall:
    """Read a call. Its input is an object, or in an answer the JSON as the model wrote it."""
    input_value = block.get("input")
    arguments = (
        input_value if isinstance(input_value, str) else json.dumps(input_value, sort_keys=True)
    )
    return ToolCall(string(block.get("id")), string(block.get("name")), arguments)


def _read_text(content: Any) -> str:
    """Return the text of a content; blocks without text as JSON."""
    if isinstance(content, str):
        return content
    blocks = objects(content)
    texts = "".join(string(block.get("text")) for block in blocks)
    others = [json.dumps(block, sort_keys=True) for block in blocks if "text" not in block]
    return "\n".join([texts, *others])


def _began_without_thinking(messages: Sequence[Json]) -> bool:
    """Return whether the current round of calls began without thinking. All calls since the last
    user message belong to one turn, and only its first message has to think."""
    rounds = takewhile(_is_in_tool_round, reversed(messages))
    assistant_messages = [message for message in rounds if message.get("role") == "assistant"]
    first = (
        next(iter(objects(assistant_messages[-1].get("content"))), {}) if assistant_messages else {}
    )
    return bool(assistant_messages) and first.get("type") not in REASONING_TYPES


def _is_in_tool_round(message: Json) -> bool:
    """Return whether a message belongs to a round of calls and is not a new user message."""
    kinds = {block.get("type") for block in objects(message.get("content"))}
    return bool({TOOL_RESULT, "tool_use"} & kinds)
