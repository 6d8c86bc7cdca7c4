"""The base class of translated items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, TypeAlias

from abridge.wire.codec import Json
from abridge.wire.responses.spoken import Spoken

Status: TypeAlias = Literal["completed", "incomplete"]


class Composed(ABC):
    """An item being written: it is added, streams its content, ends, and is done."""

    def __init__(self, identity: str, index: int) -> None:
        self.id = identity
        self.late = False  # the item can be added only when it ends
        self.index = index
        self.at: Json = {"item_id": identity, "output_index": index}

    @abstractmethod
    def added(self) -> Json:
        """Return the item at its beginning."""

    @abstractmethod
    def end(self) -> Spoken:
        """Close what is open in the item."""

    @abstractmethod
    def done(self, status: Status) -> Json:
        """Return the item at its end."""
