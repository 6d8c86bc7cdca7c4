"""Accumulate a choice of a translated answer, and build its envelope at the end."""

from __future__ import annotations

from io import StringIO

from abridge.apis.chat.history import read_turn
from abridge.apis.chat.message import MessageAccumulator
from abridge.apis.chat.reasoning import ANSWER_FIELDS
from abridge.apis.display import Envelope
from abridge.core.conversation import Json
from abridge.core.events import Event, NativeSummary, ProviderState, ReasoningDelta, ReasoningEnded


class EnvelopeBuilder:
    """Accumulate the reasoning as events, and the answer as written deltas.

    Past `limit` characters of either give up: there is no envelope then.
    """

    def __init__(self, limit: int) -> None:
        self._details = ReasoningDetails(limit)
        self._answer = MessageAccumulator(limit)

    def add_event(self, event: Event) -> None:
        self._details.add(event)

    def add_delta(self, delta: Json) -> None:
        self._answer.add({key: delta[key] for key in ANSWER_FIELDS if key in delta})

    def build(self) -> Envelope | None:
        """Build the envelope; None if there was no raw reasoning, or too much to keep."""
        reasoning, turn = self._details, read_turn(self._answer.as_dict())
        if not (reasoning.has_raw and reasoning.is_complete and self._answer.is_complete):
            return None
        details = [{**entry, "index": index} for index, entry in enumerate(reasoning.entries())]
        calls = tuple(call.id for call in turn.calls)
        return Envelope([{"reasoning_details": details}], call_ids=calls, text=turn.text)


class ReasoningDetails:
    """Accumulate reasoning as `reasoning_details`, which hold text, summaries and state in order.

    State that only repeats the text, as Ollama's does, is left out.
    """

    def __init__(self, limit: int) -> None:
        self.has_raw = False  # there is raw reasoning, and not only summaries or state
        self._remaining = limit
        self._entries: list[Json] = []
        self._text = StringIO()
        self._summary_parts: dict[int, StringIO] = {}

    @property
    def is_complete(self) -> bool:
        return self._remaining >= 0

    def add(self, event: Event) -> None:
        match event:
            case ReasoningDelta():
                self._append(self._text, event.text)
                self.has_raw = self.has_raw or bool(event.text.strip())
            case NativeSummary():
                self._append(self._summary_parts.setdefault(event.index, StringIO()), event.text)
            case ProviderState():
                self._add_state(event)
            case ReasoningEnded():
                self._end_entry()

    def entries(self) -> list[Json]:
        self._end_entry()
        return self._entries

    def _append(self, buffer: StringIO, text: str) -> None:
        self._remaining -= len(text)
        if self.is_complete:
            buffer.write(text)

    def _add_state(self, event: ProviderState) -> None:
        self._remaining -= len(event.data)
        text = self._text.getvalue()
        if not event.signs:
            self._end_entry()
            if event.data.strip() != text.strip():
                self._entries.append({"type": "reasoning.encrypted", "data": event.data})
            return
        if text:
            self._summary_parts.clear()
        self._text = StringIO()
        self._end_entry()
        self._entries.append({"type": "reasoning.text", "text": text, "signature": event.data})

    def _end_entry(self) -> None:
        """End the current entry, without a signature: its text, or else its summary parts."""
        text = self._text.getvalue()
        if text.strip():
            self._entries.append({"type": "reasoning.text", "text": text})
        else:
            parts = (part.getvalue() for part in self._summary_parts.values())
            texts = filter(str.strip, parts)
            self._entries += [{"type": "reasoning.summary", "summary": part} for part in texts]
        self._text, self._summary_parts = StringIO(), {}
