"""The settings for the summary of one response."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from abridge.turn.part import Passage, Style
from abridge.turn.segment import Segmenter

Substitute = Callable[[Passage], str]


@dataclass(slots=True, frozen=True)
class Plan:
    """Sizes are in characters of reasoning and times in seconds, unless stated otherwise."""

    style: Style | None = "auto"  # None: no summary
    live: bool = True  # summarize while the model still reasons
    part_chars: int = 1500  # size of the first part
    max_parts: int = 12  # number of parts after which they grow faster
    tail_chars: int = 400  # the least rest that gets a part of its own
    min_chars: int = 1  # the least reasoning that is summarized, without blanks
    reasoning: int = 4 << 20  # the most that is gathered for one part
    grace: float = 5.0  # time that a lane's answer may wait, in total
    first_token: float = 2.0  # time within the grace that a part without text gets
    held: int = 256 << 10  # bytes of the answer that may wait
    max_overhead: float | None = None
    """The most the summary may cost, as a share of the model's own tokens; None: no limit."""
    substitute: Substitute | None = None  # makes a part's text if its summarizer failed
    fail: bool = False  # a failed summary fails the response, after the answer

    def segmenter(self) -> Segmenter:
        return Segmenter(
            size=self.part_chars,
            parts=self.max_parts,
            tail=self.tail_chars,
            least=self.min_chars,
            ceiling=self.reasoning,
            live=self.live and self.style in ("auto", "detailed"),
        )
