"""The parts of an answer, which all its events refer to."""

from __future__ import annotations

from typing import Literal, TypeAlias

from abridge.core.events import ErrorDetail

PartKind: TypeAlias = Literal["reasoning", "text", "call", "other"]

STRAY_ARGUMENTS = ErrorDetail(
    "upstream_error", "Upstream sent arguments of a call that was over, or had not begun."
)


class Part:
    """A part of one answer.

    Its reader says of it what upstream has said, and its stages what became of it for the client.
    Nobody compares parts: each is itself.
    """

    __slots__ = ("free_text", "is_closed", "is_ended", "kind", "number", "shown", "texts")

    def __init__(self, kind: PartKind, number: int = 0, *, free_text: bool = False) -> None:
        self.kind = kind
        self.number = number  # of its reasoning item, or among the calls
        self.free_text = free_text  # a call whose arguments are no JSON
        self.texts: list[str] = []  # what upstream has said of it, as far as that is kept
        self.shown: list[str] | None = None
        """What a stage left of the texts, or made of them; None if they go out as they came."""
        self.is_ended = False  # upstream said that it is over
        self.is_closed = False  # it ended for the client, perhaps before upstream ended it

    @property
    def said_text(self) -> str:
        return "".join(self.texts)

    @property
    def shown_text(self) -> str:
        return self.said_text if self.shown is None else "".join(self.shown)
