"""How one response is to be summarized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from abridge.turn.part import Passage, Style
from abridge.turn.segment import Segmenter

Substitute = Callable[[Passage], str]


@dataclass(slots=True, frozen=True)
class Plan:
    """Sizes are in characters of reasoning, times in seconds, `held` in bytes on the wire.

    `style` None asks for nothing. `grace` is how long the answer may wait, a budget per lane, and
    `first_token` how much of it a part gets that has said nothing. `reasoning` is the most that is
    gathered for one part. `max_overhead` is what the summary may cost, as a share of the model's
    own tokens; None is no bound. `substitute` makes a part's text where its summarizer failed.
    `fail`: a failed summary ends the response, after the answer.
    """

    style: Style | None = "auto"
    live: bool = True
    part_chars: int = 1500
    max_parts: int = 12
    tail_chars: int = 400
    min_chars: int = 1
    reasoning: int = 4 << 20
    grace: float = 5.0
    first_token: float = 2.0
    held: int = 256 << 10
    max_overhead: float | None = None
    substitute: Substitute | None = None
    fail: bool = False

    def segmenter(self) -> Segmenter:
        return Segmenter(
            size=self.part_chars,
            parts=self.max_parts,
            tail=self.tail_chars,
            least=self.min_chars,
            ceiling=self.reasoning,
            live=self.live and self.style in ("auto", "detailed"),
        )
