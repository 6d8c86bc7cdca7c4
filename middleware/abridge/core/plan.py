"""The plan for the summary of one response: its settings, and the budget for its cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from abridge.core.native import TitleSplitter
from abridge.core.segmenter import Segmenter
from abridge.core.styles import STYLES, SummaryStyle, title_of
from abridge.core.usage import Tokens


@dataclass(slots=True, frozen=True)
class Passage:
    """The input for one summary part: reasoning to summarize, and its context."""

    text: str  # the reasoning to summarize
    style: SummaryStyle = "auto"
    whole: bool = True  # `text` is all the reasoning; otherwise the part is one of several
    last: bool = True  # no more reasoning is known to follow, so the conclusion belongs here
    before: str = ""  # the reasoning just before `text`
    told: tuple[str, ...] = ()
    """Earlier parts, with their titles, as far as they were written when this one was requested."""
    language: str | None = None
    """The language to write in, a tag such as `de` or `pt-BR`; None: that of the reasoning."""
    translates: bool = False
    """`text` is already a summary and only needs translating into that language."""
    hidden: bool = False
    """The client must not see the reasoning, so no sentence of it may be repeated."""

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles of the earlier parts."""
        return tuple(title for title in map(title_of, self.told) if title)


REST_SHARE = 3
"""One in so many parts of a part's reasoning follows each cut but the first if extracts are made:
a part of less is hardly a paragraph. A model's calls begin at once, to be done when the answer
comes."""

LEAST_SIZE = 240
"""The size of an extract, about 40 words, below which it becomes no part of its own if more
reasoning follows: what it tells goes with that."""

Fallback = Callable[[Passage], str]

NativeReasoning: TypeAlias = Literal["shown", "copied", "translated"]
"""What becomes of reasoning that is a summary already: it is shown where it stands, copied into
summary parts, or written into such parts in its reader's language."""


@dataclass(slots=True, frozen=True)
class SummaryPlan:
    """Sizes are in characters of reasoning and times in seconds, unless stated otherwise."""

    style: SummaryStyle | None = "auto"  # None: no summary
    native: NativeReasoning | None = None  # None: the reasoning is raw, and summarized
    live: bool = True  # summarize while the model still reasons
    language: str | None = None  # see Passage
    hidden: bool = False  # see Passage
    part_chars: int = 1500  # size of a part; a wide character counts `WIDE_CHAR_SIZE`
    first_share: float = 1.0  # of that size, at which the first part is cut
    max_parts: int = 40  # number of parts after which they grow
    tail_chars: int = 400  # the least rest that gets a part of its own
    min_chars: int = 1  # the least reasoning that is summarized, without blanks
    reasoning_limit: int = 4 << 20  # the most that is gathered for one part
    grace: float = 5.0  # time that a lane's answer may wait, in total
    first_token_timeout: float = 2.0  # time within the grace that a part without text gets
    in_turn: bool = False
    """Request a part only when those before it are written. The summarizer is the one that is the
    fallback, too: to use that for a part whose turn does not come in time is no failure."""
    held_limit: int = 256 << 10  # bytes that may wait before upstream is no longer read
    max_overhead: float | None = None
    """The most the summary may cost, as a share of the model's own tokens; None: no limit."""
    fallback: Fallback | None = None  # makes a part's text if its summarizer failed
    fail_response: bool = False  # a failed summary fails the response, after the answer

    def new_segmenter(self) -> Segmenter:
        return Segmenter(
            part_chars=self.part_chars,
            max_parts=self.max_parts,
            tail_chars=self.tail_chars,
            min_chars=self.min_chars,
            max_chars=self.reasoning_limit,
            live=self.live and self.style is not None and STYLES[self.style].live,
            first_share=self.first_share,
            rest_chars=self.part_chars // REST_SHARE if self.in_turn else 0,
        )

    def new_title_splitter(self) -> TitleSplitter | None:
        if self.native not in ("copied", "translated") or self.style is None:
            return None
        return TitleSplitter(self.max_parts, self.reasoning_limit)


BYTES_PER_TOKEN = 4
"""Bytes of UTF-8 per token, near enough in any script. Used where usage is not reported (yet)."""


class OverheadBudget:
    """Allow summarizer calls up to a share of the model's own tokens.

    The model's tokens are estimated, since they are reported when it is too late. A call's tokens
    are estimated until they are reported. The first call is always allowed. Without `max_overhead`
    there is no limit.
    """

    def __init__(self, max_overhead: float | None) -> None:
        self._max_overhead = max_overhead
        self.is_limited = max_overhead is not None
        self._model_bytes = 0
        self._reported_tokens = 0
        self._estimated_bytes: dict[int, int] = {}

    def add_model_text(self, text: str) -> None:
        """Count text of the model's, reasoning or answer; needless if there is no limit."""
        self._model_bytes += byte_length(text)

    def start_call(self, part_id: int, passage: Passage) -> None:
        """Count a call's input."""
        self._estimated_bytes[part_id] = byte_length(passage.text) + byte_length(passage.before)

    def add_call_text(self, part_id: int, text: str) -> None:
        """Count a piece of a call's output."""
        if part_id in self._estimated_bytes:
            self._estimated_bytes[part_id] += byte_length(text)

    def settle_call(self, part_id: int, spent: Tokens | None) -> None:
        """Replace a finished call's estimate with its reported usage, if that is complete."""
        if spent is not None and spent.input is not None and spent.output is not None:
            self._estimated_bytes.pop(part_id, None)
            self._reported_tokens += spent.input + spent.output

    def has_room(self) -> bool:
        if self._max_overhead is None:
            return True
        spent = self._reported_tokens * BYTES_PER_TOKEN + sum(self._estimated_bytes.values())
        return spent <= self._max_overhead * self._model_bytes


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
