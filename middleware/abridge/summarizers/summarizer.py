"""The protocol of summarizers.

A summarizer takes a passage of reasoning and yields the text of one summary part as it is written,
then, if known, the usage of the call.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage


class Summarizer(Protocol):
    """Writes one part of a summary per call; several calls may run at once."""

    @property
    def name(self) -> str:
        """The label in metrics."""
        ...

    def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        """Yield the part's text in pieces, then at most one `SummarizerUsage`.

        Raises SummarizerError on failure; any other exception counts as `upstream_error`. The
        iterator is closed early (`aclose`) when the part is no longer needed.
        """
        ...


T = TypeVar("T")


@asynccontextmanager
async def closing_iterator(iterator: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Like `contextlib.aclosing`, but accept an iterator without `aclose`."""
    try:
        yield iterator
    finally:
        aclose = getattr(iterator, "aclose", None)
        if aclose is not None:
            await aclose()
