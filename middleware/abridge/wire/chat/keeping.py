"""Accumulate a choice of a translated answer, and build its envelope at the end."""

from __future__ import annotations

from io import StringIO

from abridge.turn.events import Closed, Event, Native, Raw, Sealed
from abridge.wire.chat.dialects import ANSWER
from abridge.wire.chat.message import Message
from abridge.wire.chat.turns import turn_of
from abridge.wire.codec import Json
from abridge.wire.envelope import Envelope


class Keeping:
    """Accumulate the reasoning as events, and the answer as written deltas.

    Past `limit` characters of either give up: there is no envelope then.
    """

    def __init__(self, limit: int) -> None:
        self._thoughts = Thoughts(limit)
        self._answer = Message(limit)

    def hear(self, event: Event) -> None:
        self._thoughts.hear(event)

    def see(self, delta: Json) -> None:
        self._answer.add({key: delta[key] for key in ANSWER if key in delta})

    def envelope(self) -> Envelope | None:
        """Build the envelope; None if there was no raw reasoning, or too much to keep."""
        thoughts, turn = self._thoughts, turn_of(self._answer.as_dict())
        if not (thoughts.told and thoughts.whole and self._answer.whole):
            return None
        details = [{**entry, "index": index} for index, entry in enumerate(thoughts.entries())]
        calls = tuple(call.id for call in turn.calls)
        return Envelope([{"reasoning_details": details}], calls=calls, text=turn.text)


class Thoughts:
    """Accumulate reasoning as `reasoning_details`, which hold text, summaries and state in order.

    State that only repeats the text, as Ollama's does, is left out.
    """

    def __init__(self, limit: int) -> None:
        self.told = False  # there is raw reasoning, and not only summaries or state
        self._room = limit
        self._entries: list[Json] = []
        self._said = StringIO()
        self._parts: dict[int, StringIO] = {}

    @property
    def whole(self) -> bool:
        return self._room >= 0

    def hear(self, event: Event) -> None:
        match event:
            case Raw():
                self._keep(self._said, event.text)
                self.told = self.told or bool(event.text.strip())
            case Native():
                self._keep(self._parts.setdefault(event.part, StringIO()), event.text)
            case Sealed():
                self._seal(event)
            case Closed():
                self._end()

    def entries(self) -> list[Json]:
        self._end()
        return self._entries

    def _keep(self, kept: StringIO, text: str) -> None:
        self._room -= len(text)
        if self.whole:
            kept.write(text)

    def _seal(self, event: Sealed) -> None:
        self._room -= len(event.data)
        text = self._said.getvalue()
        if not event.signs:
            self._end()
            if event.data.strip() != text.strip():
                self._entries.append({"type": "reasoning.encrypted", "data": event.data})
            return
        if text:
            self._parts.clear()
        self._said = StringIO()
        self._end()
        self._entries.append({"type": "reasoning.text", "text": text, "signature": event.data})

    def _end(self) -> None:
        """End the current entry, without a signature: its text, or else its summary parts."""
        text = self._said.getvalue()
        if text.strip():
            self._entries.append({"type": "reasoning.text", "text": text})
        else:
            parts = (part.getvalue() for part in self._parts.values())
            said = filter(str.strip, parts)
            self._entries += [{"type": "reasoning.summary", "summary": part} for part in said]
        self._said, self._parts = StringIO(), {}
