"""Show one response as it arrives: live in a terminal, or line by line where there is none.

`ResponseProgress` collects what the client has received so far. In a terminal, thinking is on the
left, its summary beside it and the answer below: `render_lines` makes the lines and knows no
terminal; `ScreenRenderer` repaints them on the alternate screen, so that the window may be resized
and is restored at the end. Elsewhere, `PlainRenderer` prints lines, each with a label.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from time import monotonic
from typing import Protocol, Self, TextIO

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


class Renderer(Protocol):
    """Shows the progress of a response while it runs, and once more when it has ended."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def show(self, progress: ResponseProgress) -> None: ...

    def finish(self, progress: ResponseProgress) -> None: ...


class LineWrapper:
    """Breaks text at spaces into lines of at most `width` characters."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._rest = ""
        self._after_break = False

    def feed(self, text: str) -> list[str]:
        """Return the lines that `text` completes."""
        self._rest += text
        self._skip_spaces()
        lines: list[str] = []
        while (end := self._line_end()) is not None:
            lines.append(self._rest[:end].rstrip())
            self._after_break = self._rest[end] != "\n"
            self._rest = self._rest[end if self._after_break else end + 1 :]
            self._skip_spaces()
        return lines

    def end(self) -> list[str]:
        """Return the last line."""
        rest, self._rest = self._rest.rstrip(), ""
        return [rest] if rest else []

    def _skip_spaces(self) -> None:
        """Drop the spaces at which a line was broken, also those that arrive later."""
        if self._after_break:
            self._rest = self._rest.lstrip(" ")
            self._after_break = not self._rest

    def _line_end(self) -> int | None:
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
    wrapper = LineWrapper(width)
    return wrapper.feed(text.rstrip()) + wrapper.end()


PLAIN_WIDTH = 88
"""Characters of text on a line, after the label, where no terminal is narrower."""

_LABEL_WIDTH = len("question | ")


class PlainRenderer:
    """Prints new text as it arrives; a part of the summary once it is complete."""

    def __init__(self, out: TextIO, title: str) -> None:
        self._out = out
        self._title = title
        self._width = PLAIN_WIDTH
        if out.isatty():
            self._width = max(min(PLAIN_WIDTH, _terminal_size(out).columns - _LABEL_WIDTH), 1)
        self._thinking, self._answer = LineWrapper(self._width), LineWrapper(self._width)
        self._printed_thinking = self._printed_answer = self._printed_parts = 0
        self._last_label = ""

    def __enter__(self) -> Self:
        self._print("question", wrap(self._title, self._width))
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the output as it is; there is nothing to restore."""

    def show(self, progress: ResponseProgress) -> None:
        self._print("thinking", self._thinking.feed(progress.thinking[self._printed_thinking :]))
        self._printed_thinking = len(progress.thinking)
        for part in progress.parts[self._printed_parts :]:
            if part.done:
                self._print("summary", wrap(part.text, self._width))
                self._printed_parts += 1
        if progress.thinking_ended is not None:
            self._print("thinking", self._thinking.end())
        self._print("answer", self._answer.feed(progress.answer[self._printed_answer :]))
        self._printed_answer = len(progress.answer)

    def finish(self, progress: ResponseProgress) -> None:
        self.show(progress)
        self._print("answer", self._answer.end())

    def _print(self, label: str, lines: Sequence[str]) -> None:
        if lines and label != self._last_label:
            self._out.write("\n")
            self._last_label = label
        for line in lines:
            self._out.write(f"{label:8} | {line}".rstrip() + "\n")
            self._out.flush()


SIDE_BY_SIDE_COLUMNS = 90
"""Minimum columns for two texts side by side."""

MAX_REPAINT_RATE = 20
"""Maximum repaints per second."""

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"  # alternate screen, no cursor, no lines broken by itself

_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"

_HOME, _ERASE_LINE, _ERASE_BELOW = "\x1b[H", "\x1b[2K", "\x1b[J"

_UNKNOWN_SIZE = os.terminal_size((80, 24))


def _terminal_size(terminal: TextIO) -> os.terminal_size:
    """Return the columns and lines of a terminal as it is now; one may not know its own."""
    size = os.get_terminal_size(terminal.fileno())
    return size if size.columns and size.lines else _UNKNOWN_SIZE


class Emphasis:
    """Makes text dim or bold, or leaves it alone if `styled` is false."""

    def __init__(self, *, styled: bool) -> None:
        self._styled = styled

    def dim(self, text: str) -> str:
        return self._wrap_code("2", text)

    def bold(self, text: str) -> str:
        return self._wrap_code("1", text)

    def _wrap_code(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._styled and text.strip() else text


def render_lines(
    progress: ResponseProgress,
    title: str,
    emphasis: Emphasis,
    width: int,
    height: int | None = None,
) -> list[str]:
    """Render the response in lines of at most `width` columns.

    With `height`, render at most that many lines, with the newest of each text; without, the whole
    summary and the whole answer.
    """
    head = [*map(emphasis.bold, wrap(title, width)), ""]
    answer = ["", *wrap(progress.answer, width)] if progress.answer else []
    if height is None:
        return head + _render_texts(progress, emphasis, width, None) + answer
    room = max(height - len(head), 0)
    answer = _last_lines(answer, room // 2)
    return (head + _render_texts(progress, emphasis, width, room - len(answer)) + answer)[:height]


def _render_texts(
    progress: ResponseProgress, emphasis: Emphasis, width: int, height: int | None
) -> list[str]:
    render = _render_stacked if width < SIDE_BY_SIDE_COLUMNS else _render_side_by_side
    return render(progress, emphasis, width, height)


def _render_side_by_side(
    progress: ResponseProgress, emphasis: Emphasis, width: int, height: int | None
) -> list[str]:
    left_width = (width - 3) // 2
    right = _summary_lines(progress.parts, emphasis, width - 3 - left_width)
    rows = len(right) if height is None else max(height - 1, 0)
    left = [
        emphasis.dim(line.ljust(left_width))
        for line in _last_lines(wrap(progress.thinking, left_width), rows)
    ]
    blank = " " * left_width
    cells = zip_longest(left, _last_lines(right, rows), fillvalue=None)
    return [
        f"{_thinking_heading(progress).ljust(left_width)} | {_summary_heading(progress)}",
        *(f"{one or blank} | {other or ''}".rstrip() for one, other in cells),
    ]


def _render_stacked(
    progress: ResponseProgress, emphasis: Emphasis, width: int, height: int | None
) -> list[str]:
    summary = [f"| {line}".rstrip() for line in _summary_lines(progress.parts, emphasis, width - 2)]
    thinking = wrap(progress.thinking, width)
    if height is None:
        thinking = []
    else:
        summary = _last_lines(summary, max(height - 2, 0) * 2 // 3)
        thinking = _last_lines(thinking, max(height - 2 - len(summary), 0))
    return [
        _thinking_heading(progress),
        *map(emphasis.dim, thinking),
        _summary_heading(progress),
        *summary,
    ]


def _summary_lines(parts: Sequence[DisplayedPart], emphasis: Emphasis, width: int) -> list[str]:
    lines: list[str] = []
    for part in parts:
        lines += [""] if lines else []
        lines += map(emphasis.bold, wrap(title_of(part.text) or "", width))
        lines += wrap(body_of(part.text), width)
    return lines


def _thinking_heading(progress: ResponseProgress) -> str:
    return f"thinking, {len(progress.thinking):,} characters"


def _summary_heading(progress: ResponseProgress) -> str:
    return f"summary, {len(progress.parts)} part{'' if len(progress.parts) == 1 else 's'}"


def _last_lines(lines: Sequence[str], count: int) -> list[str]:
    return list(lines[len(lines) - count :] if count < len(lines) else lines)


class ScreenRenderer:
    """Shows a response live in a terminal, and at the end leaves it there as text."""

    def __init__(self, terminal: TextIO, title: str) -> None:
        self._terminal = terminal
        self._title = title
        self._emphasis = Emphasis(styled=not os.environ.get("NO_COLOR"))
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
            size = _terminal_size(self._terminal)
            lines = render_lines(progress, self._title, self._emphasis, size.columns, size.lines)
            self._paint(lines, size.lines)

    def finish(self, progress: ResponseProgress) -> None:
        """Print the complete response on the normal screen."""
        width = _terminal_size(self._terminal).columns
        self._write("\n".join([*render_lines(progress, self._title, self._emphasis, width), ""]))

    def _paint(self, lines: Sequence[str], height: int) -> None:
        """Write each line over the one before, erased first: to erase behind a line that fills the
        screen's width would take its last character, where the cursor stays."""
        body = "\n".join(_ERASE_LINE + line for line in lines)
        self._write(f"{_HOME}{body}\n{_ERASE_BELOW}" if len(lines) < height else _HOME + body)

    def _write(self, text: str) -> None:
        self._terminal.write(text)
        self._terminal.flush()
