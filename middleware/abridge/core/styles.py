"""The styles of a summary: all that sets one apart is its row in `STYLES`.

A style decides whether parts are made while the model still reasons, and the form of each part.
Settings, requests, summarizers and the page read its name and the rest of it in that table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

NativeStyle = Literal["auto", "concise", "detailed"]
"""The styles that OpenAI's models know (openai-openapi, `Reasoning.summary`)."""

TITLE = re.compile(r"(?<!\s)\s*+\*\*(.+?)\*\*")
"""The title of a part, at its beginning."""


@dataclass(slots=True, frozen=True)
class ExtractRules:
    """Length of an extract."""

    chars_per_sentence: int  # characters of prose per sentence copied
    max_sentences: int
    max_chars: int  # characters in all
    min_chars: int  # characters that are told as far as anything may be


@dataclass(slots=True, frozen=True)
class Style:
    """The form of a style's parts: as a model is asked to write them, and as they are extracted."""

    native: NativeStyle  # what an upstream is asked for that makes summaries itself
    live: bool  # make parts while reasoning streams; otherwise one summary at its end
    titled: bool  # a bold title comes first, as in OpenAI's parts
    form: str  # what to write, as a model is told; sent with every part, so it is short
    short_form: str  # the same for a short passage
    example: str  # one to show a model, until it has been told parts of its own
    size: int  # of the longest part: characters, of which a wide one counts 2.5
    extract: ExtractRules  # of the text below the title, or of what a title alone is made of
    title_only: bool = False  # there is no text below the title
    lists: bool = False  # text may be a list; otherwise bullets are taken out of what a model wrote

    @property
    def max_tokens(self) -> int:
        """The most that a part may cost: twice the tokens of the longest, of which one is a size
        of four."""
        return self.size // 2


_TITLE_FORM = "bold title (3 to 7 words, what you are doing)"

_EXAMPLE = """\
**Comparing the two routes**

I compare the coast road with the motorway. The motorway saves half an hour. It may be closed on \
Sunday, but I am not sure. The ferry no longer runs, so I drop it. I settle on the motorway."""

STYLES: Mapping[SummaryStyle, Style] = {
    "auto": Style(
        native="auto",
        live=True,
        titled=True,
        form=f"{_TITLE_FORM}, blank line, about five sentences (60 to 90 words)",
        short_form=f"{_TITLE_FORM}, blank line, two or three short sentences",
        example=_EXAMPLE,
        size=600,
        extract=ExtractRules(chars_per_sentence=25, max_sentences=8, max_chars=700, min_chars=580),
    ),
    "concise": Style(
        native="concise",
        live=False,
        titled=False,
        form="one or two sentences, no title",
        short_form="one sentence, no title",
        example="I weigh the coast road against the motorway and settle on the motorway.",
        size=400,
        extract=ExtractRules(chars_per_sentence=800, max_sentences=2, max_chars=400, min_chars=0),
    ),
    "detailed": Style(
        native="detailed",
        live=True,
        titled=True,
        form=f"{_TITLE_FORM}, blank line, six to nine sentences, the steps in order",
        short_form=f"{_TITLE_FORM}, blank line, three or four sentences",
        example=_EXAMPLE,
        size=1100,
        extract=ExtractRules(
            chars_per_sentence=25, max_sentences=12, max_chars=1000, min_chars=340
        ),
    ),
    "title": Style(
        native="auto",
        live=True,
        titled=True,
        form=f"only {_TITLE_FORM}",
        short_form=f"only {_TITLE_FORM}",
        example="**Comparing the two routes**",
        size=80,
        extract=ExtractRules(chars_per_sentence=1500, max_sentences=3, max_chars=640, min_chars=0),
        title_only=True,
    ),
}
"""The styles by the names that requests and settings have for them. `title` is an extension."""

if TYPE_CHECKING:
    SummaryStyle: TypeAlias = Literal["auto", "concise", "detailed", "title"]
    DefaultStyle: TypeAlias = Literal["off", SummaryStyle]
else:
    SummaryStyle = Literal[tuple(STYLES)]
    """The values of `reasoning.summary` in a request. Type checkers, which run nothing, are told
    them above."""

    DefaultStyle = Literal[("off", *STYLES)]
    """The same, and the value for no summary."""


def title_of(text: str) -> str | None:
    """Return the title of a part's text, or None if it has none."""
    match = TITLE.match(text)
    return match[1] if match else None


def body_of(text: str) -> str:
    """Return a part's text without its title."""
    match = TITLE.match(text)
    return (text if match is None else text[match.end() :]).strip()
