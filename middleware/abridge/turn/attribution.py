"""Determine which reasoning led to which tool call.

A call is attributed all reasoning since the call before it. A call without reasoning since then
refers to the turn's latest call that has some. Text in between changes nothing; the reasoning that
is left at the end of the turn led to its text.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

Kind = Literal["reasoning_text", "summary_text", "redacted"]
RAW: Kind = "reasoning_text"
SUMMARY: Kind = "summary_text"
REDACTED: Kind = "redacted"

WEIGHT = 64
"""Characters that a part or a call counts for, beside its text."""

Key = TypeVar("Key", bound=Hashable)


class Part(NamedTuple):
    """Reasoning as the client sees it; `redacted` stands for hidden reasoning and has no text."""

    kind: Kind
    text: str = ""


@dataclass(slots=True, frozen=True)
class Attribution(Generic[Key]):
    """The reasoning that led to a call. With no `parts` and no `ref` it is unknown."""

    parts: tuple[Part, ...] = ()
    ref: Key | None = None  # the call that has the reasoning


@dataclass(slots=True)
class _Growing:
    kind: Kind
    stretch: Hashable
    pieces: list[str] = field(default_factory=list)


class Attributor(Generic[Key]):
    """Follows the reasoning and the calls of one turn.

    Keeps at most `max_chars` characters. Beyond that nothing more is attributed, since a part of
    the reasoning would be misleading.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._pending: list[_Growing] = []
        self._growing: dict[Hashable, _Growing] = {}
        self._latest: Key | None = None

    @property
    def over(self) -> bool:
        """The turn had more reasoning than could be kept."""
        return self._room < 0

    def think(self, kind: Kind, text: str, *, part: Hashable = 0, stretch: Hashable = 0) -> None:
        """Add a piece of a part. A stretch is reasoning that may come both raw and summarized."""
        if not text:
            return
        growing = self._growing.get((stretch, kind, part))
        if growing is None:
            growing = self._growing[stretch, kind, part] = self._add(kind, stretch)
        growing.pieces.append(text)
        self._weigh(len(text))

    def redact(self, *, stretch: Hashable = 0) -> None:
        """Add reasoning that nobody shows; reasoning after it begins a new part."""
        self._growing.clear()
        self._add(REDACTED, stretch)
        self._weigh(0)

    def call(self, key: Key) -> Attribution[Key]:
        """Attribute the pending reasoning to the turn's next call; `key` identifies the call."""
        self._weigh(WEIGHT)
        parts = self.left
        self._spend()
        if parts:
            self._latest = key
            return Attribution(parts)
        return Attribution(ref=None if self.over else self._latest)

    @property
    def left(self) -> tuple[Part, ...]:
        """The reasoning that no call was given: at the end of the turn, what led to its text."""
        stretches: dict[Hashable, list[Part]] = {}
        for said in self._pending:
            part = Part(said.kind, "".join(said.pieces))
            stretches.setdefault(said.stretch, []).append(part)
        return tuple(part for parts in stretches.values() for part in _told(parts))

    def _add(self, kind: Kind, stretch: Hashable) -> _Growing:
        self._room -= WEIGHT
        self._pending.append(_Growing(kind, stretch))
        return self._pending[-1]

    def _weigh(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            self._spend()

    def _spend(self) -> None:
        self._pending.clear()
        self._growing.clear()


def _told(parts: list[Part]) -> list[Part]:
    """Drop blank parts and, of a stretch, the less precise ones.

    Raw reasoning is preferred to its summary, and a summary to `redacted`.
    """
    said = [part for part in parts if part.kind == REDACTED or part.text.strip()]
    kinds = {part.kind for part in said}
    if RAW in kinds:
        return [part for part in said if part.kind != SUMMARY]
    if SUMMARY in kinds:
        return [part for part in said if part.kind == SUMMARY]
    return said
