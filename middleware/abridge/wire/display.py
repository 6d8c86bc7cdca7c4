"""Settings for the display of reasoning to a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from abridge.wire.envelope import Seal

Expose = Literal["auto", "both", "summary", "raw", "none"]
SummaryField = Literal["auto", "reasoning_content", "reasoning"]
Listed = Literal["reasoning_details", "thinking_blocks"]


@dataclass(slots=True, frozen=True)
class Display:
    raw: bool = True  # raw reasoning is shown
    summary: bool = True  # summaries are shown
    style: str | None = "auto"  # the requested summary; None if none is made
    merged: bool = True  # the totals include the summarizer's tokens
    summary_field: SummaryField = "auto"  # for summaries on Chat Completions
    raw_field: SummaryField = "auto"  # for raw reasoning on Chat Completions
    details: bool = False  # adds `reasoning_details` on Chat Completions
    seal: Seal | None = None
    """Seals what is not shown, if that is to travel with the client."""
    envelope: Listed = "reasoning_details"  # the list for envelopes on Chat Completions

    @property
    def plain(self) -> bool:
        """Everything is shown as upstream sends it: no summary is made and nothing is hidden."""
        return self.raw and self.summary and self.style is None
