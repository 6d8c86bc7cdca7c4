"""Who writes the summary.

A summarizer is anything with the `Summarizer` protocol: it is given a passage of reasoning and
yields the part's text as it comes, and at its end, if it knows, what that cost.
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
    """What a call cost, as far as it was reported, and the model that answered it."""

    tokens: Tokens | None = None
    model: str | None = None


class Summarizer(Protocol):
    """Writes one part of a summary at a time; several calls may run at once.

    `name` labels it in metrics. `summarize` yields text, then at most one `Spent`. It raises
    `SummarizerError` where it fails; anything else it raises counts as `upstream_error`. It is
    closed early (`aclose`) when the part is no longer wanted.
    """

    @property
    def name(self) -> str: ...

    def summarize(self, passage: Passage) -> AsyncIterator[str | Spent]: ...
