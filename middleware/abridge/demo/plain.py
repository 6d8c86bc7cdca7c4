"""Print the demo where there is no terminal: line by line, each with a label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self, TextIO

from abridge.demo.flow import Flow, wrap
from abridge.demo.scene import Scene

WIDTH = 88
"""Characters of text on a line, after the label."""


class Plain:
    """Prints new text as it arrives; a part of the summary once it is complete."""

    def __init__(self, out: TextIO, title: str) -> None:
        self._out = out
        self._title = title
        self._thinking, self._answer = Flow(WIDTH), Flow(WIDTH)
        self._thought = self._answered = self._told = 0
        self._last = ""

    def __enter__(self) -> Self:
        self._print("question", wrap(self._title, WIDTH))
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the output as it is; there is nothing to restore."""

    def show(self, scene: Scene) -> None:
        self._print("thinking", self._thinking.feed(scene.thinking[self._thought :]))
        self._thought = len(scene.thinking)
        for part in scene.parts[self._told :]:
            if part.closed:
                self._print("summary", wrap(part.text, WIDTH))
                self._told += 1
        if scene.thought_until is not None:
            self._print("thinking", self._thinking.end())
        self._print("answer", self._answer.feed(scene.answer[self._answered :]))
        self._answered = len(scene.answer)

    def finish(self, scene: Scene) -> None:
        self.show(scene)
        self._print("answer", self._answer.end())

    def _print(self, what: str, lines: Sequence[str]) -> None:
        if lines and what != self._last:
            self._out.write("\n")
            self._last = what
        for line in lines:
            self._out.write(f"{what:8} | {line}".rstrip() + "\n")
            self._out.flush()
