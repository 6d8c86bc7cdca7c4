"""The summarizer protocol.

A summarizer takes a passage of reasoning and yields the text of one summary part as it is written,
then, if known, what the call used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from abridge.turn.part import Passage, Style
from abridge.turn.usage import Tokens

__all__ = ["Passage", "Spent", "Style", "Summarizer", "Tokens"]


@dataclass(slots=True, frozen=True)
class Spent:
    """Usage of one summarizer call, as far as it was reported."""

    tokens: Tokens | None = None
    model: str | None = None  # the model that answered


class Summarizer(Protocol):
    """Writes one part of a summary per call; several calls may run at once."""

    @property
    def name(self) -> str:
        """The label in metrics."""
        ...

    def summarize(self, passage: Passage) -> AsyncIterator[str | Spent]:
        """Yield the part's text in pieces, then at most one `SummarizerUsage`.

        Raise SummarizerError on failure; any other exception counts as `upstream_error`. The
        iterator is closed early (`aclose`) when the part is no longer needed.
        """
        ...
