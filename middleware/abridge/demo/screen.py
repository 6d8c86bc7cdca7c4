"""Show the demo in a terminal: thinking on the left, its summary beside it, the answer below.

`render_lines` makes the lines and knows no terminal. `ScreenRenderer` repaints them on the
alternate screen, so that the window may be resized and is restored at the end.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import zip_longest
from time import monotonic
from typing import Self, TextIO

from abridge.demo.flow import wrap
from abridge.demo.scene import Part, Scene

NARROW = 90
"""Minimum columns for two texts side by side."""

RATE = 20
"""Maximum repaints per second."""

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # alternate screen, no cursor, no lines broken by itself
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _TO_LINE_END, _TO_SCREEN_END = "\x1b[H", "\x1b[K", "\x1b[J"


class Look:
    """Makes text dim or bold, or leaves it alone if `styled` is false."""

    def __init__(self, *, styled: bool) -> None:
        self._styled = styled

    def dim(self, text: str) -> str:
        return self._set("2", text)

    def bold(self, text: str) -> str:
        return self._set("1", text)

    def _set(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._styled and text.strip() else text


def frame(scene: Scene, title: str, look: Look, width: int, height: int | None = None) -> list[str]:
    """Render the response in lines of at most `width` columns.

    With `height`, render at most that many lines, with the newest of each text; without, the whole
    summary and the whole answer.
    """
    head = [*map(look.bold, wrap(title, width)), ""]
    answer = ["", *wrap(scene.answer, width)] if scene.answer else []
    if height is None:
        return head + _middle(scene, look, width, None) + answer
    room = max(height - len(head), 0)
    answer = _last(answer, room // 2)
    return (head + _middle(scene, look, width, room - len(answer)) + answer)[:height]


def _middle(scene: Scene, look: Look, width: int, height: int | None) -> list[str]:
    make = _stacked if width < NARROW else _side_by_side
    return make(scene, look, width, height)


def _side_by_side(scene: Scene, look: Look, width: int, height: int | None) -> list[str]:
    left_width = (width - 3) // 2
    right = _summary(scene.parts, look, width - 3 - left_width)
    rows = len(right) if height is None else max(height - 1, 0)
    left = [
        look.dim(line.ljust(left_width)) for line in _last(wrap(scene.thinking, left_width), rows)
    ]
    blank = " " * left_width
    cells = zip_longest(left, _last(right, rows), fillvalue=None)
    return [
        f"{_thought(scene).ljust(left_width)} | {_told(scene)}",
        *(f"{one or blank} | {other or ''}".rstrip() for one, other in cells),
    ]


def _stacked(scene: Scene, look: Look, width: int, height: int | None) -> list[str]:
    summary = [f"| {line}".rstrip() for line in _summary(scene.parts, look, width - 2)]
    thinking = wrap(scene.thinking, width)
    if height is None:
        thinking = []
    else:
        summary = _last(summary, max(height - 2, 0) * 2 // 3)
        thinking = _last(thinking, max(height - 2 - len(summary), 0))
    return [_thought(scene), *map(look.dim, thinking), _told(scene), *summary]


def _summary(parts: Sequence[Part], look: Look, width: int) -> list[str]:
    lines: list[str] = []
    for part in parts:
        lines += [""] if lines else []
        lines += [look.bold(line) for line in wrap(part.title, width)]
        lines += wrap(part.body, width)
    return lines


def _thought(scene: Scene) -> str:
    return f"thinking, {len(scene.thinking):,} characters"


def _told(scene: Scene) -> str:
    return f"summary, {len(scene.parts)} part{'' if len(scene.parts) == 1 else 's'}"


def _last(lines: Sequence[str], count: int) -> list[str]:
    return list(lines[len(lines) - count :] if count < len(lines) else lines)


class Screen:
    """Shows a response live in a terminal, and at the end leaves it there as text."""

    def __init__(self, terminal: TextIO, title: str) -> None:
        self._terminal = terminal
        self._title = title
        self._look = Look(styled=not os.environ.get("NO_COLOR"))
        self._due = 0.0

    def __enter__(self) -> Self:
        self._write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(_LEAVE)

    def show(self, scene: Scene) -> None:
        now = monotonic()
        if now >= self._due:
            self._due = now + 1 / RATE
            size = os.get_terminal_size(self._terminal.fileno())
            self._paint(frame(scene, self._title, self._look, size.columns, size.lines))

    def finish(self, scene: Scene) -> None:
        """Print the complete response on the normal screen."""
        width = os.get_terminal_size(self._terminal.fileno()).columns
        self._write("\n".join([*frame(scene, self._title, self._look, width), ""]))

    def _paint(self, lines: Sequence[str]) -> None:
        body = "\n".join(line + _TO_LINE_END for line in lines)
        self._write(_HOME + body + _TO_SCREEN_END)

    def _write(self, text: str) -> None:
        self._terminal.write(text)
        self._terminal.flush()
