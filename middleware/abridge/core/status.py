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

    def take(self, events: list[Event]) -> str:
        """Return the last title that ends in these events; nothing if none does."""
        title = ""
        for event in events:
            if isinstance(event, SummaryTextDelta):
                title = self._take_text(event) or title
        return title

    def _take_text(self, event: SummaryTextDelta) -> str:
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
