"""Seal the reasoning of an answer, so that it travels with the client and comes back whole.

What is sealed are its pieces: each text beside the opaque state that is for it. An envelope is
bound to what its reasoning answers: the call before it in the answer or, before the first one, what
the request ends with (`core/places.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from io import StringIO
from typing import TypeAlias

from abridge.core.conversation import Json
from abridge.core.envelope import Envelope, SealEnvelope
from abridge.core.events import Event, NativeSummary, ProviderState, ReasoningDelta, ReasoningEnded
from abridge.core.model_request import ReasoningPart
from abridge.core.places import place_after_call

WritePieces: TypeAlias = Callable[[Iterable[ReasoningPart]], Iterable[Json]]
"""Writes pieces in the form of an API, as its upstreams would send them."""


class Sealing:
    """Seal the reasoning of one answer, of which its writer says when a stretch begins.

    Of a stretch with more than `limit` characters nothing is kept, and nothing at all without a
    `seal`. State that only repeats its text, as Ollama's does, is left out.
    """

    def __init__(self, seal: SealEnvelope | None, write: WritePieces, limit: int) -> None:
        self.is_on = seal is not None
        self._seal = seal
        self._write = write
        self._limit = limit if self.is_on else -1
        self._place: bytes | None = None  # once there was a call
        self.begin()

    def begin(self) -> None:
        """Begin a stretch."""
        self._room_left = self._limit
        self._has_withheld = False  # state that no client is shown
        self._pieces: list[ReasoningPart] = []
        self._texts: dict[int | None, StringIO] = {}  # of the piece: raw, and its summary's parts

    def note_call(self, call_id: str) -> None:
        """Take a call of the answer, by the id under which its output comes back."""
        self._place = place_after_call(call_id) or self._place

    def add(self, event: Event) -> None:
        """Take an event of the stretch."""
        match event:
            case ReasoningDelta():
                self._keep(None, event.text)
            case NativeSummary():
                self._keep(event.index, event.text)
            case ProviderState():
                self._room_left -= len(event.data)
                self._has_withheld = self._has_withheld or event.withheld
                self._end_piece(event.data, signs=event.signs)
            case ReasoningEnded():
                self._end_piece()

    def collected(self) -> list[Json] | None:
        """Return the stretch in the form of the API; None if there was too much to keep."""
        self._end_piece()
        return None if self._room_left < 0 else list(self._write(self._pieces))

    @property
    def is_needed(self) -> bool:
        """Return whether clients lack some of what was collected: texts, or withheld state."""
        return self._has_withheld or any(piece.text.strip() for piece in self._pieces)

    def seal(self, reasoning: list[Json], item_id: str = "", place: bytes | None = None) -> str:
        """Return the blob of reasoning, at this place or after the last call; "" for none."""
        envelope = Envelope(reasoning, item_id, place or self._place)
        return "" if self._seal is None else self._seal(envelope)

    def _keep(self, part: int | None, text: str) -> None:
        self._room_left -= len(text)
        if self._room_left >= 0:
            self._texts.setdefault(part, StringIO()).write(text)

    def _end_piece(self, state: str = "", *, signs: bool = False) -> None:
        texts, self._texts = self._texts, {}
        text, *parts = [one.getvalue() for one in (texts.pop(None, StringIO()), *texts.values())]
        summary = () if text.strip() else tuple(filter(str.strip, parts))
        if state.strip() == text.strip() and not signs:
            state = ""
        if (text.strip() or summary or state) and self._room_left >= 0:
            self._pieces.append(ReasoningPart(text, summary, state, signs))
