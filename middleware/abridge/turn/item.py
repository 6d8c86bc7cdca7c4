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
    """`arrived` and `shown` count its stretches, as upstream said them and as the client saw them.

    `native` maps upstream's count of its own parts to the item's; with `owned` true upstream
    summarizes the item itself.
    """

    key: ItemKey
    segmenter: Segmenter
    arrived: int = 0
    arriving: bool = False
    shown: int = 0
    parts: list[Part] = field(default_factory=list)
    indexes: int = 0
    native: dict[int, int] = field(default_factory=dict)
    owned: bool = False
    trouble: Trouble | None = None

    def plan(self, number: int, cut: Cut) -> Part:
        """The part that says `cut`: a new one, or the last if that could not be asked for yet."""
        last = self.unasked()
        if last is not None:
            last.text += cut.text
            last.stretch = self.arrived
            return last
        whole = not self.arriving and not self.parts
        self.parts.append(Part(number, self.arrived, cut.text, cut.before, whole))
        return self.parts[-1]

    def unasked(self) -> Part | None:
        """The last part, if it could not be asked for yet."""
        return self.parts[-1] if self.parts and self.parts[-1].planned else None

    @property
    def silent(self) -> bool:
        """Whether no part has anything to say any more, or yet."""
        return not self.parts or self.parts[-1].closed

    def due(self) -> Iterator[Part]:
        """The open parts that are due by the end of the stretch now shown, lowest first."""
        return (part for part in self.parts if not part.closed and part.stretch <= self.shown)

    def titles(self) -> tuple[str, ...]:
        """Those of the parts that are closed."""
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
