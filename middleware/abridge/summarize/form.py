"""The form of a summary part."""

from __future__ import annotations

from typing import Literal

from abridge.turn.part import Passage

Form = Literal["concise", "titled", "detailed"]
"""`concise`: one or two sentences on the conclusion, no title. `titled`: a bold title, a blank line
and a few sentences, as in OpenAI's parts. `detailed`: the same, with more steps and decisions."""


def form(passage: Passage) -> Form:
    """Choose the form for a passage; style `auto` adds a title only if there may be other parts."""
    if passage.style == "detailed":
        return "detailed"
    return "concise" if passage.style == "concise" or passage.whole else "titled"
