"""Test which cues are found in a sentence, and where."""

from __future__ import annotations

import pytest

from abridge.summarizers.extractive import cues
from abridge.summarizers.extractive.cues import find_cues


@pytest.mark.parametrize(
    ("text", "cue", "start"),
    [
        ("in the end the answer must be 7", cues.CONCLUSION, 0),
        ("we know that the answer is 7", cues.CONCLUSION, 13),
        ("so must refuse to write it", cues.DECISION, 8),
        ("the user wants a short plan", cues.TASK, 0),
        ("ich nehme vielleicht den zug", cues.HEDGE, 10),
    ],
)
def test_a_cue_is_found_where_it_begins_first(text: str, cue: cues.Cue, start: int) -> None:
    assert find_cues(text, wide=False)[cue] == start


def test_cues_of_scripts_without_spaces_are_looked_for_alone() -> None:
    text = "因此 the user"
    assert find_cues(text, wide=True) == {cues.CONCLUSION: 0}
    assert find_cues(text, wide=False) == {}


@pytest.mark.parametrize("text", ["nevertheless it runs", "the ensuring of it", "x_so the y"])
def test_a_cue_is_a_whole_word(text: str) -> None:
    assert find_cues(text, wide=False) == {}
