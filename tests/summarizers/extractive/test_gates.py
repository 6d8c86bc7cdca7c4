"""Hold extracts of many models' reasoning to a score that lies beside the project.

The reasoning is read in place. Each text is cut as it would be while it streams, and each part is
told what the parts before it said.
"""

from __future__ import annotations

import json
import re
import runpy
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from abridge.core.plan import Passage, SummaryPlan
from abridge.core.segmenter import Cut
from abridge.pipeline.exchange_plan import FIRST_SHARE
from abridge.summarizers.extractive.extract import extract
from tests.support.shared import REASONING, needs_reasoning

pytestmark = needs_reasoning

DELTA_CHARS = 50


def cut(reasoning: str) -> Iterator[tuple[Cut, bool]]:
    """Yield the cuts of a text, and whether each ends a stretch. A form feed begins a stretch."""
    segmenter = SummaryPlan(tail_chars=120, first_share=FIRST_SHARE, in_turn=True).new_segmenter()
    for stretch in reasoning.split("\f"):
        segmenter.begin_stretch()
        for start in range(0, len(stretch), DELTA_CHARS):
            for one in segmenter.feed(stretch[start : start + DELTA_CHARS]):
                yield one, False
        if (rest := segmenter.end_stretch()) is not None:
            yield rest, True


def summarize(reasoning: str) -> list[str]:
    cuts, told = list(cut(reasoning)), list[str]()
    for one, last in cuts:
        whole = len(cuts) == 1
        passage = Passage(one.text, whole=whole, last=last, before=one.before, told=tuple(told))
        told.append(extract(passage))
    return told


def mend_debris(names: dict[str, Any]) -> None:
    """Count as debris what is debris: not two prices in a sentence, nor one that ends with a number
    of two digits; and leave the quotation mark that closes a sentence with that sentence."""
    debris = names["DEBRIS"].pattern
    prices, numbers = r"\$[^$]{1,60}\$", r"\b\d{1,2}\.$"
    assert prices in debris
    assert numbers in debris
    debris = debris.replace(prices, r"\$(?!\d)[^$]{1,60}\$").replace(numbers, r"^\W*\d{1,2}\.$")
    names["DEBRIS"] = re.compile(debris, names["DEBRIS"].flags)
    ends = names["SENT"].pattern
    closed = ends.replace(
        r"""(?<=[.!?…])[\"'”’)\]]*\s+""", r"""(?:(?<=[.!?…])|(?<=[.!?…][\"'”’)\]]))\s+"""
    )
    assert closed != ends
    names["SENT"] = re.compile(closed)


@cache
def measure() -> dict[str, Any]:
    """Return the score's table for all texts, in percent; `never` is a number."""
    score = runpy.run_path(str(REASONING / "score.py"))
    mend_debris(score["score"].__globals__)
    results = []
    for one in json.loads((REASONING / "manifest.json").read_text()):
        reasoning = (REASONING / one["file"]).read_text()
        told = summarize(reasoning)
        results.append(score["score"](reasoning.replace("\f", "\n\n"), told, one))
    table: dict[str, Any] = score["table"]({"extracts": results})[0]
    return table


@pytest.mark.parametrize(("measure_name", "least"), [("key", 92), ("final", 95)])
def test_what_matters_is_told(measure_name: str, least: float) -> None:
    assert measure()[measure_name] >= least


@pytest.mark.parametrize(
    ("measure_name", "most"),
    [
        ("never", 1),
        ("takenback", 3),
        ("dangling", 3),
        ("debris", 3),
        ("badtitle", 2),
        ("again", 1),
    ],
)
def test_what_may_not_be_shown_is_not(measure_name: str, most: float) -> None:
    assert measure()[measure_name] <= most
