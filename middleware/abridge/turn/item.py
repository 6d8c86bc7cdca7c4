"""A reasoning item and the parts of its summary."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from abridge.turn.conversation import ItemKey
from abridge.turn.events import Summary, Trouble
from abridge.turn.part import Part
from abridge.turn.segment import Cut, Segmenter


@dataclass(slots=True)
class Item:
    key: ItemKey
    segmenter: Segmenter
    arrived: int = 0  # stretches that upstream has begun
    arriving: bool = False  # its reasoning is still coming in
    shown: int = 0  # stretches whose ReasoningStarted was emitted
    parts: list[Part] = field(default_factory=list)
    indexes: int = 0  # number of part indexes given out
    native: dict[int, int] = field(default_factory=dict)
    """From upstream's index of a native part to the item's index."""
    owned: bool = False  # upstream makes a summary of this item
    trouble: Trouble | None = None  # the first thing that went wrong

    def plan(self, number: int, cut: Cut) -> Part:
        """Add `cut` to the last part if that is not requested yet, else to a new one; return it."""
        last = self.unasked()
        if last is not None:
            last.text += cut.text
            last.stretch = self.arrived
            return last
        whole = not self.arriving and not self.parts
        self.parts.append(Part(number, self.arrived, cut.text, cut.before, whole))
        return self.parts[-1]

    def unasked(self) -> Part | None:
        """Return the last part if it is not requested yet."""
        return self.parts[-1] if self.parts and self.parts[-1].planned else None

    @property
    def silent(self) -> bool:
        """No part has anything to emit."""
        return not self.parts or self.parts[-1].closed

    def due(self) -> Iterator[Part]:
        """Yield the unclosed parts that are due by the end of the emitted stretch, lowest first."""
        return (part for part in self.parts if not part.closed and part.stretch <= self.shown)

    def titles(self) -> tuple[str, ...]:
        """Return the titles of the closed parts."""
        return tuple(part.title for part in self.parts if part.closed and part.title)

    def next_index(self) -> int:
        self.indexes += 1
        return self.indexes - 1

    def native_index(self, part: int) -> int:
        if part not in self.native:
            self.native[part] = self.next_index()
        return self.native[part]

    def summary(self) -> Summary:
        spoken = [part for part in self.parts if part.index is not None]
        return Summary(
            parts=tuple("".join(part.said) for part in spoken),
            trouble=self.trouble,
            native=self.owned,
            unfinished=sum(not part.complete for part in self.parts),
            extracted=sum(part.extracted for part in spoken),
        )
