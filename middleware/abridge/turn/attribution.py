"""Which reasoning led to which tool call.

A call is given all that was thought since the one before it, which is then spent. A call for which
nothing was thought since refers to the latest of its turn that was given something. Text spends
nothing, so it is no step here: what is left when the turn ends led to it.
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
"""Characters that a part, or a call, takes of what may be kept, beside its text."""

Key = TypeVar("Key", bound=Hashable)


class Part(NamedTuple):
    """Reasoning as it was shown; `redacted` stands for some that nobody shows, and has no text."""

    kind: Kind
    text: str = ""


@dataclass(slots=True, frozen=True)
class Attribution(Generic[Key]):
    """What led to a call: `parts`, or what led to the call that `ref` names, or nothing known."""

    parts: tuple[Part, ...] = ()
    ref: Key | None = None


@dataclass(slots=True)
class _Growing:
    kind: Kind
    stretch: Hashable
    pieces: list[str] = field(default_factory=list)


class Attributor(Generic[Key]):
    """Follows one turn. Of all that is thought in it, and its calls, it keeps at most `room`
    characters; past that nothing more is known, since half of it would be wrong."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._pending: list[_Growing] = []
        self._growing: dict[Hashable, _Growing] = {}
        self._latest: Key | None = None

    @property
    def over(self) -> bool:
        """Whether there was more than could be kept."""
        return self._room < 0

    def think(self, kind: Kind, text: str, *, part: Hashable = 0, stretch: Hashable = 0) -> None:
        """A piece of a part. A stretch is reasoning that may be shown both raw and summarized."""
        if not text:
            return
        growing = self._growing.get((stretch, kind, part))
        if growing is None:
            growing = self._growing[stretch, kind, part] = self._add(kind, stretch)
        growing.pieces.append(text)
        self._weigh(len(text))

    def redact(self, *, stretch: Hashable = 0) -> None:
        """Some reasoning that nobody shows; what goes on after it goes on as another part."""
        self._growing.clear()
        self._add(REDACTED, stretch)
        self._weigh(0)

    def call(self, key: Key) -> Attribution[Key]:
        """The next call of the turn, told apart by its key."""
        self._weigh(WEIGHT)
        parts = self.left
        self._spend()
        if parts:
            self._latest = key
            return Attribution(parts)
        return Attribution(ref=None if self.over else self._latest)

    @property
    def left(self) -> tuple[Part, ...]:
        """What no call was given: at the end of a turn, what led to its text."""
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
    """What is told of a stretch: raw reasoning rather than its summary, and that rather than that
    there was some. What is blank says nothing."""
    said = [part for part in parts if part.kind == REDACTED or part.text.strip()]
    kinds = {part.kind for part in said}
    if RAW in kinds:
        return [part for part in said if part.kind != SUMMARY]
    if SUMMARY in kinds:
        return [part for part in said if part.kind == SUMMARY]
    return said
