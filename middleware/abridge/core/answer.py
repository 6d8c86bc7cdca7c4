"""The parts of an answer, which all its events refer to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

PartKind: TypeAlias = Literal["reasoning", "redacted", "text", "call", "other"]
"""`redacted` is reasoning that nobody can read, where it has no events of its own."""


class Part:
    """A part of one answer.

    Its reader says of it what upstream has said, and its stages what became of it for the client.
    Nobody compares parts: each is itself.
    """

    __slots__ = (
        *("free_text", "goes_on", "is_closed", "is_ended", "item", "kind", "number", "shown"),
        "texts",
    )

    def __init__(
        self,
        kind: PartKind,
        number: int = 0,
        *,
        free_text: bool = False,
        item: Part | None = None,
    ) -> None:
        self.kind = kind
        self.item = item  # that it belongs to, where an API's items have parts
        self.number = number  # of its reasoning item, or among the calls
        self.free_text = free_text  # a call whose arguments are no JSON
        self.goes_on = False  # it continues a message that was ended because others came
        self.texts: list[str] = []  # what upstream has said of it, as far as that is kept
        self.shown: list[str] | None = None
        """What a stage left of the texts, or made of them; None if they go out as they came."""
        self.is_ended = False  # upstream said that it is over
        self.is_closed = False  # it ended for the client, perhaps before upstream ended it

    @property
    def whole(self) -> Part:
        """The item that it belongs to, or the part itself: such follow each other."""
        return self if self.item is None else self.item

    @property
    def said_text(self) -> str:
        return "".join(self.texts)

    @property
    def shown_text(self) -> str:
        return self.said_text if self.shown is None else "".join(self.shown)


AttributionKind: TypeAlias = Literal["reasoning_text", "summary_text", "redacted"]


class AttributionPart(NamedTuple):
    """Reasoning as the client sees it; `redacted` stands for hidden reasoning and has no text."""

    kind: AttributionKind
    text: str = ""


@dataclass(slots=True)
class Attribution:
    """The reasoning that led to a call. With no `parts` and no `source` it is unknown."""

    parts: tuple[AttributionPart, ...] = ()
    source: Attribution | None = None  # that of the call that has the reasoning
    call_id: str = field(default="", compare=False)  # as the client knows it, once it was written
