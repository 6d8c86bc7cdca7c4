"""Determine which reasoning led to which tool call.

A call is attributed all reasoning since the call before it. A call without reasoning since then
refers to the turn's latest call that has some. Text in between changes nothing; the reasoning that
is left at the end of the turn led to its text.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, Literal, NamedTuple, TypeVar

AttributionKind = Literal["reasoning_text", "summary_text", "redacted"]

RAW: AttributionKind = "reasoning_text"

SUMMARY: AttributionKind = "summary_text"

REDACTED: AttributionKind = "redacted"

ENTRY_OVERHEAD = 64
"""Characters that a part or a call counts for, beside its text."""

Key = TypeVar("Key", bound=Hashable)


class AttributionPart(NamedTuple):
    """Reasoning as the client sees it; `redacted` stands for hidden reasoning and has no text."""

    kind: AttributionKind
    text: str = ""


@dataclass(slots=True, frozen=True)
class Attribution(Generic[Key]):
    """The reasoning that led to a call. With no `parts` and no `ref` it is unknown."""

    parts: tuple[AttributionPart, ...] = ()
    ref: Key | None = None  # the call that has the reasoning


@dataclass(slots=True)
class _PendingPart:
    kind: AttributionKind
    stretch: Hashable
    pieces: list[str] = field(default_factory=list)


class Attributor(Generic[Key]):
    """Follow the reasoning and the calls of one turn.

    At most `max_chars` characters are kept. Beyond that nothing more is attributed, since a part of
    the reasoning would be misleading. With `native`, what is called raw is a summary already.
    """

    def __init__(self, max_chars: int, *, native: bool = False) -> None:
        self._chars_left = max_chars
        self._raw_kind = SUMMARY if native else RAW
        self._pending: list[_PendingPart] = []
        self._open_parts: dict[Hashable, _PendingPart] = {}
        self._latest_key: Key | None = None

    @property
    def is_over_limit(self) -> bool:
        """The turn had more reasoning than could be kept."""
        return self._chars_left < 0

    def add_reasoning(
        self, kind: AttributionKind, text: str, *, part: Hashable = 0, stretch: Hashable = 0
    ) -> None:
        """Add a piece of a part. A stretch is reasoning that may come both raw and summarized."""
        if not text:
            return
        kind = self._raw_kind if kind == RAW else kind
        pending = self._open_parts.get((stretch, kind, part))
        if pending is None:
            pending = self._open_parts[stretch, kind, part] = self._open_part(kind, stretch)
        pending.pieces.append(text)
        self._charge(len(text))

    def add_redacted(self, *, stretch: Hashable = 0) -> None:
        """Add reasoning that nobody shows; reasoning after it begins a new part."""
        self._open_parts.clear()
        self._open_part(REDACTED, stretch)
        self._charge(0)

    def attribute_call(self, key: Key) -> Attribution[Key]:
        """Attribute the pending reasoning to the turn's next call; `key` identifies the call."""
        self._charge(ENTRY_OVERHEAD)
        parts = self.unattributed
        self._clear_pending()
        if parts:
            self._latest_key = key
            return Attribution(parts)
        return Attribution(ref=None if self.is_over_limit else self._latest_key)

    @property
    def unattributed(self) -> tuple[AttributionPart, ...]:
        """The reasoning that no call was given: at the end of the turn, what led to its text."""
        stretches: dict[Hashable, list[AttributionPart]] = {}
        for pending in self._pending:
            part = AttributionPart(pending.kind, "".join(pending.pieces))
            stretches.setdefault(pending.stretch, []).append(part)
        return tuple(part for parts in stretches.values() for part in _preferred_parts(parts))

    def _open_part(self, kind: AttributionKind, stretch: Hashable) -> _PendingPart:
        self._chars_left -= ENTRY_OVERHEAD
        self._pending.append(_PendingPart(kind, stretch))
        return self._pending[-1]

    def _charge(self, size: int) -> None:
        self._chars_left -= size
        if self._chars_left < 0:
            self._clear_pending()

    def _clear_pending(self) -> None:
        self._pending.clear()
        self._open_parts.clear()


def _preferred_parts(parts: list[AttributionPart]) -> list[AttributionPart]:
    """Drop blank parts and, of a stretch, the less precise ones.

    Raw reasoning is preferred to its summary, and a summary to `redacted`.
    """
    nonblank = [part for part in parts if part.kind == REDACTED or part.text.strip()]
    kinds = {part.kind for part in nonblank}
    if RAW in kinds:
        return [part for part in nonblank if part.kind != SUMMARY]
    if SUMMARY in kinds:
        return [part for part in nonblank if part.kind == SUMMARY]
    return nonblank
