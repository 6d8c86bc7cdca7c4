"""Show one response as it arrives: live in a terminal, or line by line where there is none.

`ResponseProgress` collects what the client has received so far. In a terminal, thinking is on the
left, its summary beside it and the answer below: `render_lines` makes the lines and knows no
terminal; `ScreenRenderer` repaints them on the alternate screen, so that the window may be resized
and is restored at the end. Elsewhere, `PlainRenderer` prints lines, each with a label.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from time import monotonic
from typing import Self, TextIO

import click

from abridge.core.conversation import Json
from abridge.core.styles import body_of, title_of


@dataclass
class DisplayedPart:
    """A part of the summary, which may still grow."""

    text: str = ""
    done: bool = False


@dataclass
class ResponseProgress:
    """The state of one response. Times are in seconds since the request; None means not yet."""

    thinking: str = ""
    parts: list[DisplayedPart] = field(default_factory=list)
    answer: str = ""
    usage: Json | None = None  # set when the response completes
    first_summary: float | None = None
    thinking_ended: float | None = None

    def apply(self, event: Json, now: float) -> None:
        """Apply the next event of a Responses stream."""
        match event["type"]:
            case "response.reasoning_text.delta":
                self.thinking += event["delta"]
            case "response.reasoning_text.done":
                self.thinking_ended = now
            case "response.reasoning_summary_part.added":
                self.parts.append(DisplayedPart())
            case "response.reasoning_summary_text.delta":
                self.parts[-1].text += event["delta"]
                self.first_summary = now if self.first_summary is None else self.first_summary
            case "response.reasoning_summary_part.done":
                self.parts[-1].done = True
            case "response.output_text.delta":
                self.answer += event["delta"]
            case "response.completed":
                self.usage = event["response"].get("usage")


def wrap(text: str, width: int) -> list[str]:
    """Break a text at spaces into lines of at most `width` characters, without blank ones at its
    end."""
    return _wrap_lines(text.rstrip(), width)


def _wrap_lines(text: str, width: int) -> list[str]:
    return [
        row
        for line in text.splitlines()
        for row in textwrap.wrap(line, width, break_on_hyphens=False) or [""]
    ]


MAX_COLUMNS = 99
"""Characters on a line, with its label, where no terminal is narrower."""


class PlainRenderer:
    """Prints each paragraph, and each part of the summary, once it is complete."""

    def __init__(self, out: TextIO, title: str) -> None:
        self._out = out
        self._title = title
        columns = shutil.get_terminal_size((MAX_COLUMNS, 0)).columns
        self._width = max(min(columns, MAX_COLUMNS) - len("question | "), 1)
        self._printed: Counter[str] = Counter()  # characters, by label
        self._printed_parts = 0
        self._last_label = ""

    def __enter__(self) -> Self:
        self._print("question", wrap(self._title, self._width))
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the output as it is; there is nothing to restore."""

    def show(self, progress: ResponseProgress) -> None:
        is_over = progress.thinking_ended is not None
        self._print_text("thinking", progress.thinking, is_over=is_over)
        for part in progress.parts[self._printed_parts :]:
            if part.done:
                self._print("summary", wrap(part.text, self._width))
                self._printed_parts += 1
        self._print_text("answer", progress.answer)

    def finish(self, progress: ResponseProgress) -> None:
        self.show(progress)
        self._print_text("answer", progress.answer, is_over=True)

    def _print_text(self, label: str, text: str, *, is_over: bool = False) -> None:
        """Print what is new of a text, up to the last line that is complete."""
        end = len(text) if is_over else text.rfind("\n") + 1
        self._print(label, _wrap_lines(text[self._printed[label] : end], self._width))
        self._printed[label] = end

    def _print(self, label: str, lines: Sequence[str]) -> None:
        if lines and label != self._last_label:
            self._out.write("\n")
            self._last_label = label
        for line in lines:
            self._out.write(f"{label:8} | {line}".rstrip() + "\n")
            self._out.flush()


MAX_REPAINT_RATE = 20
"""Maximum repaints per second."""

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # alternate screen, no cursor, no lines broken by itself

_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"

_HOME, _ERASE_LINE, _ERASE_BELOW = "\x1b[H", "\x1b[2K", "\x1b[J"

dim, bold = partial(click.style, dim=True), partial(click.style, bold=True)


def render_lines(
    progress: ResponseProgress, title: str, width: int, height: int | None = None
) -> list[str]:
    """Render the response in lines of at most `width` columns, with codes for dim and bold text.

    With `height`, render at most that many lines, with the newest of each text; without, the whole
    summary and the whole answer.
    """
    head = [*map(bold, wrap(title, width)), ""]
    answer = ["", *wrap(progress.answer, width)] if progress.answer else []
    if height is None:
        return head + _render_texts(progress, width, None) + answer
    room = max(height - len(head), 0)
    answer = _last_lines(answer, room // 2)
    return (head + _render_texts(progress, width, room - len(answer)) + answer)[:height]


def _render_texts(progress: ResponseProgress, width: int, height: int | None) -> list[str]:
    left_width = max((width - 3) // 2, 1)
    right_width = max(width - 3 - left_width, 1)
    right = _summary_lines(progress.parts, right_width)
    rows = len(right) if height is None else max(height - 1, 0)
    left = [
        dim(line.ljust(left_width))
        for line in _last_lines(wrap(progress.thinking, left_width), rows)
    ]
    blank = " " * left_width
    thinking = f"thinking, {len(progress.thinking):,} characters"
    summary = f"summary, {len(progress.parts)} part{'' if len(progress.parts) == 1 else 's'}"
    cells = zip_longest(left, _last_lines(right, rows), fillvalue=None)
    return [
        f"{thinking[:left_width].ljust(left_width)} | {summary[:right_width]}",
        *(f"{one or blank} | {other or ''}".rstrip() for one, other in cells),
    ]


def _summary_lines(parts: Sequence[DisplayedPart], width: int) -> list[str]:
    lines: list[str] = []
    for part in parts:
        lines += [""] if lines else []
        lines += map(bold, wrap(title_of(part.text) or "", width))
        lines += wrap(body_of(part.text), width)
    return lines


def _last_lines(lines: Sequence[str], count: int) -> list[str]:
    return list(lines[len(lines) - count :] if count < len(lines) else lines)


class ScreenRenderer:
    """Shows a response live in a terminal, and at the end leaves it there as text."""

    def __init__(self, terminal: TextIO, title: str) -> None:
        self._terminal = terminal
        self._title = title
        self._clean = click.unstyle if os.environ.get("NO_COLOR") else str
        self._next_paint = 0.0

    def __enter__(self) -> Self:
        self._write(_ENTER)
        return self

    def __exit__(self, *_: object) -> None:
        self._write(_LEAVE)

    def show(self, progress: ResponseProgress) -> None:
        now = monotonic()
        if now >= self._next_paint:
            self._next_paint = now + 1 / MAX_REPAINT_RATE
            size = shutil.get_terminal_size()
            self._paint(self._render(progress, size.columns, size.lines), size.lines)

    def finish(self, progress: ResponseProgress) -> None:
        """Print the complete response on the normal screen."""
        width = shutil.get_terminal_size().columns
        self._write("\n".join([*self._render(progress, width), ""]))

    def _render(
        self, progress: ResponseProgress, width: int, height: int | None = None
    ) -> list[str]:
        return [self._clean(line) for line in render_lines(progress, self._title, width, height)]

    def _paint(self, lines: Sequence[str], height: int) -> None:
        """Write each line over the one before, erased first: to erase behind a line that fills the
        screen's width would take its last character, where the cursor stays."""
        body = "\n".join(_ERASE_LINE + line for line in lines)
        self._write(f"{_HOME}{body}\n{_ERASE_BELOW}" if len(lines) < height else _HOME + body)

    def _write(self, text: str) -> None:
        self._terminal.write(text)
        self._terminal.flush()
