"""What shape a part has."""

from __future__ import annotations

from typing import Literal

from abridge.turn.part import Passage

Form = Literal["concise", "titled", "detailed"]
"""Concise: one or two sentences on the conclusion, no title. Titled: a bold title, a blank line and
a few sentences, as OpenAI's parts are. Detailed: the same, with more of the steps and decisions."""


def form(passage: Passage) -> Form:
    """The form in which a passage is said; `auto` titles a part only where there may be others."""
    if passage.style == "detailed":
        return "detailed"
    return "concise" if passage.style == "concise" or passage.whole else "titled"
