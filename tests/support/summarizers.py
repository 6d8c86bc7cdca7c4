"""A scripted summarizer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from abridge.core.plan import Passage
from abridge.core.usage import SummarizerUsage, Tokens

SPENT = SummarizerUsage(Tokens(10, 5, 15), "mini")


class Scripted:
    """Yields `text` in a few pieces, each once `gate` is set; or raises.

    `requests` are the passages received; `running` and `stopped` count active and cancelled calls.
    """

    name = "scripted"

    def __init__(
        self,
        text: str = "**Adding up**\n\nI add the numbers.",
        *,
        error: Exception | None = None,
        spent: SummarizerUsage | None = SPENT,
        gate: asyncio.Event | None = None,
        pieces: int = 3,
    ) -> None:
        self.text = text
        self.error = error
        self.spent = spent
        self.gate = gate
        self.pieces = pieces
        self.requests: list[Passage] = []
        self.running = 0
        self.stopped = 0

    async def summarize(self, passage: Passage) -> AsyncIterator[str | SummarizerUsage]:
        self.requests.append(passage)
        self.running += 1
        try:
            size = max(1, -(-len(self.text) // self.pieces))
            for start in range(0, len(self.text), size):
                if self.gate is not None:
                    await self.gate.wait()
                yield self.text[start : start + size]
            if self.error is not None:
                raise self.error
            if self.spent is not None:
                yield self.spent
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        finally:
            self.running -= 1
