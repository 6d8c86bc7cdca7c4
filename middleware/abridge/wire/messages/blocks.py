"""The content blocks of an answer, translated as they stream.

A block starts, gets deltas and stops. A block of a non-streamed body starts with all its content
and yields the same events.
"""

from __future__ import annotations

from abridge.turn.events import Called, Closed, Event, Opened, Raw, Said, Sealed
from abridge.wire.codec import Json, dumps, string

LANE = 0
"""The only lane: the whole answer waits together."""


class Answer:
    """State shared by the blocks of one answer: the number of reasoning items and calls so far, and
    how many characters may still be kept."""

    def __init__(self, limit: int) -> None:
        self.items = 0
        self.calls = 0
        self._room = limit

    @property
    def whole(self) -> bool:
        """True while everything kept fits in the limit."""
        return self._room >= 0

    def keep(self, pieces: list[str], text: str) -> None:
        self._room -= len(text)
        if self.whole:
            pieces.append(text)

    def next_item(self) -> int:
        self.items += 1
        return self.items - 1

    def next_call(self) -> int:
        self.calls += 1
        return self.calls - 1


class Block:
    """A content block without a translation: server tools and unknown types.

    `item` is the reasoning item a block became. Each thinking block is an item of its own, because
    its signature covers that block alone.
    """

    told = False
    """True for types of blocks that are translated into events."""

    def __init__(self, begun: Json, answer: Answer) -> None:
        self._begun = begun
        self._answer = answer
        self.item: int | None = None
        self.open = True

    def begin(self) -> list[Event]:
        return []

    def go_on(self, _delta: Json) -> list[Event]:
        """Take a delta. One of another type than the block's has no effect."""
        return []

    def stop(self) -> list[Event]:
        self.open = False
        return []

    def spelled(self) -> Json | None:
        """Return the block as in a non-streamed body; None if it holds nothing."""
        return None


class Reasoning(Block):
    """A thinking block of either type. The item starts with the first content: a block without any
    is no item."""

    told = True

    def _opening(self) -> list[Event]:
        if self.item is not None:
            return []
        self.item = self._answer.next_item()
        return [Opened(LANE, None, self.item)]

    def _sealed(self, data: str, *, signs: bool) -> list[Event]:
        if not data:
            return []
        return [*self._opening(), Sealed(LANE, None, self.item or 0, data, signs)]

    def stop(self) -> list[Event]:
        self.open = False
        return [] if self.item is None else [Closed(LANE, None, self.item)]


class Thinking(Reasoning):
    def __init__(self, begun: Json, answer: Answer) -> None:
        super().__init__(begun, answer)
        self._said: list[str] = []
        self._signature = ""

    def begin(self) -> list[Event]:
        return self.go_on(self._begun)

    def go_on(self, delta: Json) -> list[Event]:
        if signature := string(delta.get("signature")):
            self._answer.keep([], signature)
            self._signature = signature  # each delta replaces it, as in the official client
        return self._say(string(delta.get("thinking")))

    def stop(self) -> list[Event]:
        return [*self._sealed(self._signature, signs=True), *super().stop()]

    def spelled(self) -> Json | None:
        if self.item is None:
            return None
        signed = {"signature": self._signature} if self._signature else {}
        return {**self._begun, "thinking": "".join(self._said), **signed}

    def _say(self, text: str) -> list[Event]:
        if not text:
            return []
        self._answer.keep(self._said, text)
        return [*self._opening(), Raw(LANE, None, self.item or 0, text)]


class Redacted(Reasoning):
    """Redacted thinking. It arrives whole in its start event."""

    def begin(self) -> list[Event]:
        data = string(self._begun.get("data"))
        self._answer.keep([], data)
        return self._sealed(data, signs=False)

    def spelled(self) -> Json | None:
        return None if self.item is None else self._begun


class Text(Block):
    """Answer text. Citations are dropped: clients of another API could not resolve what they point
    at."""

    told = True

    def __init__(self, begun: Json, answer: Answer) -> None:
        super().__init__(begun, answer)
        self._said: list[str] = []

    def begin(self) -> list[Event]:
        return self.go_on(self._begun)

    def go_on(self, delta: Json) -> list[Event]:
        text = string(delta.get("text"))
        self._answer.keep(self._said, text)
        return [Said(LANE, None, text)] if text else []

    def spelled(self) -> Json | None:
        return {"type": "text", "text": "".join(self._said)}


class ToolUse(Block):
    """A call of one of the client's tools. The input in a stream's start event is empty, and is
    used only if no delta follows."""

    told = True

    def __init__(self, begun: Json, answer: Answer) -> None:
        super().__init__(begun, answer)
        self._call = answer.next_call()
        self._id, self._name = string(begun.get("id")), string(begun.get("name"))
        self._said: list[str] = []
        self._silent = True

    def begin(self) -> list[Event]:
        return [Called(LANE, None, call=self._call, id=self._id, name=self._name)]

    def go_on(self, delta: Json) -> list[Event]:
        fragment = string(delta.get("partial_json"))
        if not fragment:
            return []
        self._silent = False
        self._answer.keep(self._said, fragment)
        return [Called(LANE, None, call=self._call, arguments=fragment)]

    def stop(self) -> list[Event]:
        self.open = False
        if not self._silent:
            return []
        return self.go_on({"partial_json": dumps(self._begun.get("input") or {}).decode()})

    def spelled(self) -> Json | None:
        said = "".join(self._said)
        return {"type": "tool_use", "id": self._id, "name": self._name, "input": said}


KINDS: dict[str, type[Block]] = {
    "thinking": Thinking,
    "redacted_thinking": Redacted,
    "text": Text,
    "tool_use": ToolUse,
}
