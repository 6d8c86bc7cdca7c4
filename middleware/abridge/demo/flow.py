"""Text that comes in pieces, in lines."""

from __future__ import annotations


class Flow:
    """Breaks text at spaces, where a line would be longer than `width` characters."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rest = ""
        self._broken = False

    def feed(self, text: str) -> list[str]:
        """The lines that `text` completes."""
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
        """What is left."""
        rest, self._rest = self._rest.rstrip(), ""
        return [rest] if rest else []

    def _skip(self) -> None:
        """Spaces at which a line was broken are not the next one's, nor are those yet to come."""
        if self._broken:
            self._rest = self._rest.lstrip(" ")
            self._broken = not self._rest

    def _end(self) -> int | None:
        """Where the line ends, or None while it may go on."""
        newline = self._rest.find("\n", 0, self._width + 1)
        if newline >= 0:
            return newline
        if len(self._rest) <= self._width:
            return None
        space = self._rest.rfind(" ", 0, self._width + 1)
        return space if space > 0 else self._width


def wrap(text: str, width: int) -> list[str]:
    """The lines of a text, less blank ones at its end."""
    flow = Flow(width)
    return flow.feed(text.rstrip()) + flow.end()
