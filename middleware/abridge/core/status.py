"""The newest title of a summary, for a line that says what the model is doing."""

from __future__ import annotations

from abridge.core.events import Event, SummaryTextDelta
from abridge.core.styles import TITLE

MAX_TITLE_CHARS = 200
"""Characters of a part's beginning in which its title ends, or it has none."""


class SummaryStatus:
    """Finds the titles in a summary's text as it is written."""

    __slots__ = ("_beginning", "_part")

    def __init__(self) -> None:
        self._part: tuple[int | None, int, int] | None = None
        self._beginning: str | None = None  # of the part, while its title may still end

    def take(self, event: Event) -> str:
        """Return the title that ends in this event; nothing if none does."""
        if not isinstance(event, SummaryTextDelta):
            return ""
        part = event.lane, event.item, event.index
        if part != self._part:
            self._part, self._beginning = part, ""
        if self._beginning is None:
            return ""
        self._beginning += event.text
        found = TITLE.match(self._beginning)
        if found or len(self._beginning) > MAX_TITLE_CHARS:
            self._beginning = None
        return found[1].strip() if found else ""
