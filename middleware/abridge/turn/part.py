"""One part of a summary: planned, asked for, speaking, closed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

Style = Literal["concise", "auto", "detailed"]
"""What a client may ask for, besides nothing."""

_TITLE = re.compile(r"\s*\*\*(.+?)\*\*")


@dataclass(slots=True, frozen=True)
class Passage:
    """What a summarizer is given: reasoning to say in one part, and what it needs around it.

    `whole` is true when `text` is all the reasoning there is; else the part is one of several and
    wants a title. `before` is the reasoning just before `text`, `titles` those of the parts that
    were closed when this one was asked for.
    """

    text: str
    style: Style = "auto"
    whole: bool = True
    before: str = ""
    titles: tuple[str, ...] = ()


@dataclass(slots=True)
class Part:
    """`stretch` is the stretch of its item by whose end it is due. `waiting` is what the summarizer
    has said and the client has not seen yet; `index` is None until the part is announced."""

    id: int
    stretch: int
    text: str
    before: str
    whole: bool
    asked_at: float | None = None
    waiting: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    index: int | None = None
    ended: bool = False
    complete: bool = False
    extracted: bool = False
    closed: bool = False

    @property
    def planned(self) -> bool:
        """Not asked for yet, or refused."""
        return self.asked_at is None and not self.ended

    @property
    def silent(self) -> bool:
        """Nothing has come of it yet."""
        return self.index is None and not self.waiting and not self.ended

    @property
    def speaking(self) -> bool:
        return self.index is not None and not self.closed

    @property
    def title(self) -> str | None:
        found = _TITLE.match("".join(self.said))
        return found[1] if found else None

    def say(self) -> str:
        """Move what is waiting to what is said."""
        text = "".join(self.waiting)
        self.waiting.clear()
        self.said.append(text)
        return text

    def end(self, *, complete: bool) -> None:
        self.ended, self.complete = True, complete
        if not complete and self.index is None:
            self.waiting.clear()  # a part that fails before it spoke leaves no trace

    def close(self) -> None:
        """All is said; the reasoning is not needed any more, and there may be much of it."""
        self.closed = True
        self.text = self.before = ""

    def stand_in(self, text: str) -> None:
        """Say `text` in the summarizer's place."""
        self.waiting = [text]
        self.extracted = True
        self.end(complete=True)
