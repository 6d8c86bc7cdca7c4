"""Reasoning in pieces, as envelopes keep it: each text beside the opaque state that is for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO

from abridge.core.events import Event, NativeSummary, ProviderState, ReasoningDelta, ReasoningEnded


@dataclass(slots=True, frozen=True)
class Piece:
    """A text, or upstream's summary in its place, and the opaque state that came after it."""

    text: str = ""
    summary: tuple[str, ...] = ()
    state: str = ""
    signs: bool = False  # the state is a signature of the text


def have_text(pieces: Iterable[Piece] | None) -> bool:
    """Return whether there is text that can be read, and not only summaries or state."""
    return any(piece.text.strip() for piece in pieces or ())


class ReasoningPieces:
    """Collect the pieces of reasoning from its events. Past `limit` characters give up.

    State that only repeats its text, as Ollama's does, is left out.
    """

    def __init__(self, limit: int) -> None:
        self._room_left = limit
        self.have_withheld = False  # state that no client is shown
        self._pieces: list[Piece] = []
        self._text = StringIO()
        self._summary: dict[int, StringIO] = {}

    def add(self, event: Event) -> None:
        match event:
            case ReasoningDelta():
                self._write(self._text, event.text)
            case NativeSummary():
                self._write(self._summary.setdefault(event.index, StringIO()), event.text)
            case ProviderState():
                self._room_left -= len(event.data)
                self.have_withheld = self.have_withheld or event.withheld
                self._end_piece(event.data, signs=event.signs)
            case ReasoningEnded():
                self._end_piece()

    def build(self) -> list[Piece] | None:
        """Return the pieces; None if there was too much to keep."""
        self._end_piece()
        return None if self._room_left < 0 else self._pieces

    def _write(self, buffer: StringIO, text: str) -> None:
        self._room_left -= len(text)
        if self._room_left >= 0:
            buffer.write(text)

    def _end_piece(self, state: str = "", *, signs: bool = False) -> None:
        text, parts = self._text.getvalue(), [part.getvalue() for part in self._summary.values()]
        summary = () if text.strip() else tuple(filter(str.strip, parts))
        if state.strip() == text.strip() and not signs:
            state = ""
        if (text.strip() or summary or state) and self._room_left >= 0:
            self._pieces.append(Piece(text, summary, state, signs))
        self._text, self._summary = StringIO(), {}
