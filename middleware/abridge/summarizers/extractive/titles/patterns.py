"""A way in which sentences say what they are about, and the form of the title made of it.

A pattern finds a verb and its object ("I need to compare the two plans"), or what is found ("So the
pump is off"). Those of a task are looked for from the beginning of a part, those of a finding from
its end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from abridge.lazy_re import lazy_compile
from abridge.summarizers.extractive.titles.phrases import Grammar

TASK_SCORE = 1.5  # for what the first part of all says of the task
DATA_SCORE = -0.4  # for what that part states, which is often given

Part = Literal["phrase", "clause", "value", "frequent"]


@dataclass(frozen=True)
class Pattern:
    """It finds a `verb` and an `object`, or one of them, in small letters; where it has no group
    `object`, that is what follows."""

    found: re.Pattern[str]
    form: str  # of the title, from all groups
    score: float
    grammar: Grammar | None = None  # None: the script has no spaces
    part: Part = "phrase"  # what of the object is taken
    late: bool = False  # a finding: the later its sentence, the better
    first: float = TASK_SCORE  # what is added in the first part of all
    verb_of: Callable[[str], str] = str
    """Return a verb as it stands in a title, empty if it makes none."""

    @cached_property
    def find(self) -> Callable[[str], re.Match[str] | None]:
        return self.found.match if self.found.pattern[0] == "^" else self.found.search

    def in_first_part(self) -> Pattern:
        """Return the pattern with the score that it has in the first part of all."""
        return replace(self, score=self.score + self.first)


def patterns(
    grammar: Grammar | None,
    *rows: tuple[str, str, float],
    cut: Part = "phrase",
    late: bool = False,
    verbs: Callable[[str], str] = str,
    first: float = TASK_SCORE,
) -> tuple[Pattern, ...]:
    first = DATA_SCORE if late else first
    return tuple(
        Pattern(lazy_compile(found), form, score, grammar, cut, late, first, verbs)
        for found, form, score in rows
    )
