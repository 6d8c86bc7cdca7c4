"""The turns of the fault matrix, independent of any API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tests.support.streams import THOUGHT


class Kind(StrEnum):
    THOUGHT = "thought"
    TEXT = "text"
    CALL = "call"


@dataclass(frozen=True)
class Turn:
    """A model's output in order; of a call, its arguments."""

    steps: tuple[tuple[Kind, str], ...]

    def all(self, kind: Kind) -> str:
        return "".join(text for each, text in self.steps if each is kind)


THOUGHTS, TEXT = (Kind.THOUGHT, THOUGHT), (Kind.TEXT, "The sum is one hundred.")
TURN = Turn((THOUGHTS, TEXT, (Kind.CALL, '{"first": 10, "kind": "odd"}')))
ANSWER = TEXT[1], TURN.steps[2][1]
"""The model's turn and its answer. Its reasoning fills two parts of a summary."""

SUMMARY = "**Adding up**\n\nI add the numbers."
NOTE = Turn(((Kind.THOUGHT, "What is this about?"), (Kind.TEXT, SUMMARY)))
SILENCE = Turn(NOTE.steps[:1])
"""The summarizer's turns, which reason too: with a summary and without."""


@dataclass(frozen=True)
class ParsedAnswer:
    """A parsed answer.

    `thought` is the text in raw reasoning's field, which on Chat Completions is also the
    `summary`'s. `items` counts reasoning items; `code` is that of the first summary error.
    """

    thought: str = ""
    summary: str = ""
    text: str = ""
    arguments: str = ""
    items: int = 0
    code: str | None = None
    usage: Mapping[str, Any] | None = None
    failed: bool = False
    complete: bool = False

    @property
    def answer(self) -> tuple[str, str]:
        return self.text, self.arguments
