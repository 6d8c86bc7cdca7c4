"""Items that a client sends again beside `previous_response_id`, which stands for them already.

Semantic Kernel sends the questions again with each tool's output. A question may also be asked
twice, so a message is a repeat only if the input follows the stored conversation: something after
it is of that for certain (a call, the output of one, or a message of the assistant), or something
right before it is, and it comes next there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from abridge.apis.json import string
from abridge.apis.responses.history import read_turns
from abridge.core.conversation import Json


class StoredConversation:
    """What a stored conversation has, to find repeats by."""

    def __init__(self, items: Sequence[Json]) -> None:
        self._keys = list(map(_key, items))
        self._positions = {key: position for position, key in enumerate(self._keys) if key}

    def find_repeats(self, items: Sequence[Json]) -> set[int]:
        """Return the indexes of the items that the conversation has."""
        keys = list(map(_key, items))
        certain = [index for index, item in enumerate(items) if self._is_certain(item, keys[index])]
        after = certain[-1] + 1 if certain else 0
        repeats = {
            index
            for index, item in enumerate(items)
            if keys[index] in self._positions and (index < after or not _is_question(item))
        }
        return repeats | set(self._follow(keys, after))

    def _is_certain(self, item: Json, key: str) -> bool:
        """Return whether an item is of the conversation; of a call's output, its call may be."""
        call = f"call {_call_id(item)}" if _call_id(item) else key
        return call in self._positions and not _is_question(item)

    def _follow(self, keys: Sequence[str], after: int) -> Iterator[int]:
        """Yield the indexes of the questions that come next in the conversation, too."""
        end = len(self._keys)
        start = self._positions.get(keys[after - 1], end) if after else end
        questions = [key for key in self._keys[start:] if key.startswith("user ")]
        for index, (key, question) in enumerate(zip(keys[after:], questions, strict=False), after):
            if key != question:
                return
            yield index


def _call_id(item: Json) -> str:
    return string(item.get("call_id"))


def _is_question(item: Json) -> bool:
    return not _call_id(item) and item.get("role") != "assistant"


def _key(item: Json) -> str:
    """Return what an item is recognized by: a call and its output by the call's id, a message by
    its text, however it is written. Anything else, such as reasoning, is not."""
    if call_id := _call_id(item):
        return f"{'output' if 'output' in item else 'call'} {call_id}"
    role = string(item.get("role"))
    return f"{role} {[turn.text for turn in read_turns([item])]}" if role else ""
