"""One part of a summary, from planned to closed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Style = Literal["concise", "auto", "detailed"]
"""The values of `reasoning.summary` in a request."""

_TITLE = re.compile(r"\s*\*\*(.+?)\*\*")


@dataclass(slots=True, frozen=True)
class Passage:
    """The input for one summary part: reasoning to summarize, and its context."""

    text: str  # the reasoning to summarize
    style: Style = "auto"
    whole: bool = True
    """`text` is all the reasoning; otherwise the part is one of several and needs a title."""
    before: str = ""  # the reasoning just before `text`
    titles: tuple[str, ...] = ()  # titles of the parts that were closed when this one was requested


@dataclass(slots=True)
class Part:
    id: int
    stretch: int  # the stretch of its item by whose end the part is due
    text: str  # the reasoning to summarize
    before: str  # the reasoning just before it
    whole: bool  # see Passage
    asked_at: float | None = None  # None if not requested yet, or refused
    waiting: list[str] = field(default_factory=list)
    """Received from the summarizer, not emitted yet."""
    said: list[str] = field(default_factory=list)  # emitted
    index: int | None = None  # None until its SummaryPartAdded is emitted
    ended: bool = False  # no more text will come
    complete: bool = False  # the summarizer finished its text
    extracted: bool = False  # the text is a fallback, not the summarizer's
    closed: bool = False  # nothing is left to emit

    @property
    def planned(self) -> bool:
        """Not requested yet, or refused."""
        return self.asked_at is None and not self.ended

    @property
    def silent(self) -> bool:
        """No text has come for it yet."""
        return self.index is None and not self.waiting and not self.ended

    @property
    def speaking(self) -> bool:
        """Between its SummaryPartAdded and its SummaryPartDone."""
        return self.index is not None and not self.closed

    @property
    def title(self) -> str | None:
        found = _TITLE.match("".join(self.said))
        return found[1] if found else None

    def say(self) -> str:
        """Return the text that is to be emitted now, and count it as emitted."""
        text = "".join(self.waiting)
        self.waiting.clear()
        self.said.append(text)
        return text

    def end(self, *, complete: bool) -> None:
        self.ended, self.complete = True, complete
        if not complete and self.index is None:
            self.waiting.clear()  # a part that fails before it was announced leaves no trace

    def close(self) -> None:
        """Mark the part as closed and free its reasoning, which may be large."""
        self.closed = True
        self.text = self.before = ""

    def stand_in(self, text: str) -> None:
        """Use `text` in place of what the summarizer would have written."""
        self.waiting = [text]
        self.extracted = True
        self.end(complete=True)
