"""The styles of a summary: all that sets one apart is its row in `STYLES`.

A style decides whether parts are made while the model still reasons, and the form of each part. The
name of a new style also goes into `SummaryStyle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

SummaryStyle = Literal["concise", "auto", "detailed"]
"""The values of `reasoning.summary` in a request."""


@dataclass(slots=True, frozen=True)
class ExtractRules:
    """Length and preferences of an extract."""

    chars_per_sentence: int  # characters of prose per sentence copied
    min_sentences: int
    max_sentences: int
    max_chars: int  # characters in all
    copy_all_chars: int  # prose up to this many characters is copied nearly whole
    task_score: float  # score for stating the task
    late_score: float  # score for a position near the end


@dataclass(slots=True, frozen=True)
class PartForm:
    """The form of a part: as a model is instructed to write it, and as it is extracted."""

    prompt: str  # the key in `summarizer.prompts` that replaces `instructions`
    instructions: str  # kept short, because they are sent with every part
    titled: bool  # a bold title and a blank line come first, as in OpenAI's parts
    extract: ExtractRules


@dataclass(slots=True, frozen=True)
class Style:
    live: bool  # make parts while reasoning streams; otherwise one summary at its end
    single: PartForm  # of a part that covers all the reasoning
    several: PartForm  # of one of several parts


_TASK = "Summarize a language model's reasoning."

_VOICE = "First person, present tense, in the reasoning's own language; nothing else."

_TITLE_RULE = "Write a short title, `**Like this**`, unlike earlier ones, a blank line, then"

_CONCISE = PartForm(
    prompt="concise",
    instructions=f"{_TASK} Write one or two sentences on its conclusion, no title. {_VOICE}",
    titled=False,
    extract=ExtractRules(
        chars_per_sentence=1500,
        min_sentences=1,
        max_sentences=2,
        max_chars=480,
        copy_all_chars=0,
        task_score=0.0,
        late_score=2.5,
    ),
)

_UNTITLED = replace(
    _CONCISE,
    extract=ExtractRules(
        chars_per_sentence=800,
        min_sentences=1,
        max_sentences=3,
        max_chars=640,
        copy_all_chars=240,
        task_score=1.0,
        late_score=2.0,
    ),
)

_TITLED = PartForm(
    prompt="titled",
    instructions=(
        f"{_TASK} {_TITLE_RULE} one to three sentences on what is found or decided. {_VOICE}"
    ),
    titled=True,
    extract=ExtractRules(
        chars_per_sentence=500,
        min_sentences=1,
        max_sentences=3,
        max_chars=640,
        copy_all_chars=160,
        task_score=2.0,
        late_score=0.5,
    ),
)

_DETAILED = PartForm(
    prompt="detailed",
    instructions=(
        f"{_TASK} {_TITLE_RULE} four to eight sentences that keep the steps, decisions and "
        f"conclusions, in order. {_VOICE}"
    ),
    titled=True,
    extract=ExtractRules(
        chars_per_sentence=250,
        min_sentences=2,
        max_sentences=7,
        max_chars=1600,
        copy_all_chars=400,
        task_score=2.0,
        late_score=0.5,
    ),
)

STYLES: Mapping[SummaryStyle, Style] = {
    "auto": Style(live=True, single=_UNTITLED, several=_TITLED),
    "concise": Style(live=False, single=_CONCISE, several=_CONCISE),
    "detailed": Style(live=True, single=_DETAILED, several=_DETAILED),
}


def part_form(style: SummaryStyle, *, whole: bool) -> PartForm:
    """Return the form of a part; `whole` means that it covers all the reasoning."""
    row = STYLES[style]
    return row.single if whole else row.several
