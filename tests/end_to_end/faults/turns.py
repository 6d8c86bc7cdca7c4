"""What is said in the fault matrix, in no API's words."""

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
    """What a model says, one thing after another. Of a call it is the arguments."""

    said: tuple[tuple[Kind, str], ...]

    def all(self, kind: Kind) -> str:
        return "".join(text for each, text in self.said if each is kind)


THOUGHTS, TEXT = (Kind.THOUGHT, THOUGHT), (Kind.TEXT, "The sum is one hundred.")
TURN = Turn((THOUGHTS, TEXT, (Kind.CALL, '{"first": 10, "kind": "odd"}')))
ANSWER = TEXT[1], TURN.said[2][1]
"""The model's, and what of it is the answer. Its reasoning fills two parts of a summary."""

SUMMARY = "**Adding up**\n\nI add the numbers."
NOTE = Turn(((Kind.THOUGHT, "What is this about?"), (Kind.TEXT, SUMMARY)))
SILENCE = Turn(NOTE.said[:1])
"""The summarizer's, which thinks, too: with something to say, and without."""


@dataclass(frozen=True)
class Said:
    """`thought` is what stands where raw reasoning does; on Chat Completions that is also where
    the client finds the `summary`. `arguments` are the tool calls', `items` counts those of
    reasoning, and `code` is that of the first summary error."""

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
