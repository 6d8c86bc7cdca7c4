"""Record a response as a picture that moves: what a terminal shows of it, as an SVG.

The picture needs no script and loads nothing, so that it plays where a README is shown. Where
animation is off, it shows its last frame.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import pairwise
from time import monotonic
from typing import NamedTuple, Self, TextIO

from abridge.sidecar.demo.render import Emphasis, ResponseProgress, render_lines

COLUMNS, LINES = 100, 28
"""The size of the terminal that the picture shows, in characters."""

FRAME_SECONDS = 0.35
"""Seconds between two frames."""

LAST_FRAME_SECONDS = 6.0
"""Seconds for which the end stays, before it begins again."""

_CELL, _LINE, _MARGIN = 8.4, 19, 20  # in units of the picture: a character, a line, the border

_STYLE = """\
svg { background: #16181d; border-radius: 10px }
text { font: 14px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #d7dae0 }
.dim { fill: #8b919d }
.bold { font-weight: bold; fill: #fff }
.frame { visibility: hidden; animation-timing-function: step-end;
  animation-iteration-count: infinite }
.frame:last-of-type { visibility: visible }
@media (prefers-reduced-motion: reduce) { .frame { animation: none !important } }"""

_CODE = re.compile(r"\x1b\[(\d)m")
_CLASSES = {"0": "plain", "1": "bold", "2": "dim"}
_WORDS = re.compile(r"\S+(?: \S+)*")


class Frame(NamedTuple):
    """What the terminal shows from `at` on, in seconds since the first frame."""

    at: float
    lines: list[str]


class PictureRenderer:
    """Records what a terminal would show, and writes the picture at the end."""

    def __init__(self, out: TextIO, title: str) -> None:
        self._out = out
        self._title = title
        self._started = monotonic()
        self._frames: list[Frame] = []

    def __enter__(self) -> Self:
        self._started = monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind; a response that fails makes no picture."""

    def show(self, progress: ResponseProgress) -> None:
        now = monotonic() - self._started
        if not self._frames or now >= self._frames[-1].at + FRAME_SECONDS:
            self._record(now, progress)

    def finish(self, progress: ResponseProgress) -> None:
        self._record(monotonic() - self._started, progress)
        self._out.write(draw(self._frames))

    def _record(self, now: float, progress: ResponseProgress) -> None:
        styled = Emphasis(styled=True)
        self._frames.append(Frame(now, render_lines(progress, self._title, styled, COLUMNS, LINES)))


def draw(frames: list[Frame]) -> str:
    """Return the frames, one after the other, as an SVG."""
    width, height = f"{COLUMNS * _CELL + 2 * _MARGIN:g}", LINES * _LINE + 2 * _MARGIN
    seconds = frames[-1].at + LAST_FRAME_SECONDS
    starts = [frame.at / seconds for frame in frames]
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        "<title>A model thinks aloud; the summary appears beside it, then the answer</title>",
        "<style>",
        _STYLE,
        f".frame {{ animation-duration: {seconds:.2f}s }}",
        *(_timing(n, *span) for n, span in enumerate(pairwise([*starts, 1.0]))),
        "</style>",
        *(f'<g class="frame" id="f{n}">{_draw(frame)}</g>' for n, frame in enumerate(frames)),
        "</svg>\n",
    ]
    return "\n".join(pieces)


def _timing(number: int, start: float, end: float) -> str:
    """Return the style by which a frame is visible from `start` to `end`, shares of the whole."""
    shown = f"{start:.2%} {{ visibility: visible }} {end:.2%} {{ visibility: hidden }}"
    return (
        f"#f{number} {{ animation-name: f{number} }} "
        f"@keyframes f{number} {{ 0% {{ visibility: hidden }} {shown} }}"
    )


def _draw(frame: Frame) -> str:
    return "".join(
        f'<text class="{name}" x="{_MARGIN + column * _CELL:g}" '
        f'y="{_MARGIN + (row + 1) * _LINE - 5}" '
        f'textLength="{len(text) * _CELL:g}">{escape(text)}</text>'
        for row, line in enumerate(frame.lines)
        for column, name, text in _runs(line)
    )


def _runs(line: str) -> Iterator[tuple[int, str, str]]:
    """Yield the words of a line up to a wider gap: column, class and text."""
    pieces = _CODE.split(f"\x1b[0m{line}")[1:]
    column = 0
    for code, text in zip(pieces[::2], pieces[1::2], strict=True):
        for words in _WORDS.finditer(text):
            yield column + words.start(), _CLASSES[code], words[0]
        column += len(text)
