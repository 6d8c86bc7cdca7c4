"""Read one choice for a client of another API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from abridge.turn.events import (
    Event,
    Failed,
    Native,
    Opened,
    Other,
    Raw,
    Refused,
    Said,
    Stopped,
    StopReason,
    Trouble,
)
from abridge.wire.chat.calls import Calls
from abridge.wire.chat.choice import ITEM, Choice, Piece
from abridge.wire.chat.dialects import find, said_in
from abridge.wire.chat.seals import seals, with_seals
from abridge.wire.codec import Json, objects, string
from abridge.wire.display import Display
from abridge.wire.profiles import Profile
from abridge.wire.think import MOST_BLANKS

KEPT: Mapping[str, StopReason] = {"length": "length", "content_filter": "content_filter"}
"""Finish reasons to pass on. Any other means `tool_calls` if there were calls, else `stop`."""


class ToldChoice(Choice):
    """Read the deltas of one choice into events without frames that hold all another API needs."""

    def __init__(self, lane: int, profile: Profile, display: Display, limit: int) -> None:
        super().__init__(lane, profile, display, limit)
        self._calls = Calls(lane)
        self._stopped = False
        self._blank = ""

    def more(self, choice: Json, frame: bytes | None) -> Event | None:
        return None if choice.get("logprobs") else super().more(choice, frame)

    def flush(self) -> list[Piece]:
        return self._told(super().flush(), {})

    def read(self, choice: Json, *, apart: bool) -> list[Piece]:
        opening = self._open_for_seals(choice)
        entries = seals(said_in(choice)) if self._open else []
        thinking = self._open
        pieces = super().read(choice, apart=apart)
        told = [piece.event for piece in self._told(pieces, choice)]
        opens = any(isinstance(event, Opened) for event in told)
        if not (thinking or opens):
            told = self._hold_blank(told)
        if entries:
            told = with_seals(told, entries, self.lane, ITEM)
        if opens:
            self._let_go_blank(told)
        return [Piece(event) for event in (*opening, *told, *self._finish(choice))]

    def _hold_blank(self, told: list[Event]) -> list[Event]:
        """Hold back blank reasoning, which opens no stretch, for the stretch that comes next."""
        blank = "".join(event.text for event in told if isinstance(event, Raw))
        self._blank += blank[: MOST_BLANKS - len(self._blank)]
        return [event for event in told if not isinstance(event, Raw | Native)]

    def _let_go_blank(self, told: list[Event]) -> None:
        first = next((event for event in told if isinstance(event, Raw)), None)
        if first is not None:
            first.text, self._blank = self._blank + first.text, ""

    def stop(self, reason: str = "") -> list[Event]:
        """End the choice, if it has not ended before."""
        if self._stopped:
            return []
        self._stopped = True
        if reason in KEPT:
            return [Stopped(self.lane, None, KEPT[reason])]
        plain: StopReason = "tool_calls" if self._calls.told else "stop"
        return [*self._calls.settle(), Stopped(self.lane, None, plain)]

    def _open_for_seals(self, choice: Json) -> list[Event]:
        """Open a stretch for opaque state, even if it holds nothing else."""
        said = said_in(choice)
        if self._open or self.finished or not seals(said):
            return []
        self._open, found = True, find(said)
        return [Opened(self.lane, None, ITEM, found.field if found is not None else "")]

    def _finish(self, choice: Json) -> list[Event]:
        reason = string(choice.get("finish_reason"))
        if reason == "error":
            self._stopped = True
            error = choice.get("error")
            message = string(error.get("message")) if isinstance(error, dict) else ""
            return [Failed(None, None, Trouble("upstream_error", message))]
        return self.stop(reason) if reason else []

    def _told(self, pieces: list[Piece], choice: Json) -> list[Piece]:
        return [Piece(event) for piece in pieces for event in self._tell(piece, choice)]

    def _tell(self, piece: Piece, choice: Json) -> Iterator[Event]:
        event, held = piece.event, (piece.choices or [{}])[0]
        if isinstance(event, Said):
            yield from self._answers(event.text, held, whole=held is choice)
        elif not isinstance(event, Other) and not (isinstance(event, Raw) and not event.text):
            yield event

    def _answers(self, text: str, choice: Json, *, whole: bool) -> Iterator[Event]:
        delta = said_in(choice)
        logprobs = _logprobs(choice, "content")
        if not (whole or "".join(string(entry.get("token")) for entry in logprobs) == text):
            logprobs = []  # they cover reasoning, too
        if text:
            yield Said(self.lane, None, text, logprobs)
        if refusal := string(delta.get("refusal")):
            yield Refused(self.lane, None, logprobs=_logprobs(choice, "refusal"), refusal=refusal)
        yield from self._calls.tell(delta)


def _logprobs(choice: Json, name: str) -> Sequence[Mapping[str, Any]]:
    said = choice.get("logprobs")
    return objects(said.get(name)) if isinstance(said, dict) else []
