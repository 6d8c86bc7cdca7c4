"""What a client is to see, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from abridge.wire.envelope import Seal

Expose = Literal["auto", "both", "summary", "raw", "none"]
SummaryField = Literal["auto", "reasoning_content", "reasoning"]
Listed = Literal["reasoning_details", "thinking_blocks"]


@dataclass(slots=True, frozen=True)
class Display:
    """`raw` and `summary`: which of the two is shown. `style` is the summary that was asked for,
    None where none is made. `merged`: the summarizer's tokens are in the totals. The fields are of
    Chat Completions, where `auto` chooses; `details` adds `reasoning_details` there.
    `seal` makes the blobs in which what is not shown travels, if there are to be any; `envelope` is
    the list in which they stand on Chat Completions."""

    raw: bool = True
    summary: bool = True
    style: str | None = "auto"
    merged: bool = True
    summary_field: SummaryField = "auto"
    raw_field: SummaryField = "auto"
    details: bool = False
    seal: Seal | None = None
    envelope: Listed = "reasoning_details"

    @property
    def plain(self) -> bool:
        """Whether all is shown as upstream shows it: no summary is made, and none hidden."""
        return self.raw and self.summary and self.style is None
