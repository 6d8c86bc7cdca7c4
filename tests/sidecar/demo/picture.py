"""Record the demo as the picture that the README shows: what a terminal shows of it, as an SVG.

`python -m tests.sidecar.demo.picture > docs/demo.svg` makes it. It needs no script and loads
nothing, so that it plays where a README is shown. Where animation is off, it shows its last frame.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import aclosing
from html import escape
from itertools import pairwise
from time import monotonic
from typing import NamedTuple

import httpx
from prometheus_client import CollectorRegistry

from abridge.sidecar.app import create_app
from abridge.sidecar.demo.model import scripted_model
from abridge.sidecar.demo.render import ResponseProgress, render_lines
from abridge.sidecar.demo.script import QUESTION
from abridge.sidecar.demo.show import NORMAL_PAUSE, stream_events
from tests.support.deployments import settings_for
from tests.support.servers import serve

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


async def record() -> list[Frame]:
    """Return what a terminal shows of the demo, at its pace."""
    progress, recorded = ResponseProgress(), list[Frame]()
    async with serve(scripted_model(NORMAL_PAUSE)) as model:
        settings = settings_for(upstreams=[{"base_url": f"{model}/v1"}])
        app = create_app(settings, registry=CollectorRegistry())
        async with (
            aclosing(app),
            serve(app) as url,
            httpx.AsyncClient(base_url=url, trust_env=False, timeout=30) as client,
        ):
            started = monotonic()
            async for event in stream_events(client):
                now = monotonic() - started
                progress.apply(event, now)
                if not recorded or now >= recorded[-1].at + FRAME_SECONDS:
                    recorded.append(_frame(now, progress))
    return [*recorded, _frame(monotonic() - started, progress)]


def _frame(at: float, progress: ResponseProgress) -> Frame:
    return Frame(at, render_lines(progress, QUESTION, COLUMNS, LINES))


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


if __name__ == "__main__":
    sys.stdout.write(draw(asyncio.run(record())))
