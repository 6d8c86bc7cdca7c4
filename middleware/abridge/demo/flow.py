"""Wrap text that arrives in pieces."""

from __future__ import annotations


class Flow:
    """Breaks text at spaces into lines of at most `width` characters."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rest = ""
        self._broken = False

    def feed(self, text: str) -> list[str]:
        """Return the lines that `text` completes."""
        self._rest += text
        self._skip()
        lines: list[str] = []
        while (end := self._end()) is not None:
            lines.append(self._rest[:end].rstrip())
            self._broken = self._rest[end] != "\n"
            self._rest = self._rest[end if self._broken else end + 1 :]
            self._skip()
        return lines

    def end(self) -> list[str]:
        """Return the last line."""
        rest, self._rest = self._rest.rstrip(), ""
        return [rest] if rest else []

    def _skip(self) -> None:
        """Drop the spaces at which a line was broken, also those that arrive later."""
        if self._broken:
            self._rest = self._rest.lstrip(" ")
            self._broken = not self._rest

    def _end(self) -> int | None:
        """Return the end of the first line, or None while it may continue."""
        newline = self._rest.find("\n", 0, self._width + 1)
        if newline >= 0:
            return newline
        if len(self._rest) <= self._width:
            return None
        space = self._rest.rfind(" ", 0, self._width + 1)
        return space if space > 0 else self._width


def wrap(text: str, width: int) -> list[str]:
    """Wrap a complete text, without blank lines at its end."""
    flow = Flow(width)
    return flow.feed(text.rstrip()) + flow.end()
