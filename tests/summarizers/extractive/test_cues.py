"""Test which cues are found in a sentence, and where."""

from __future__ import annotations

import pytest

from abridge.summarizers.extractive import cues


@pytest.mark.parametrize(
    ("text", "cue", "start"),
    [
        ("in the end the answer must be 7", cues.CONCLUSION, 0),
        ("we know that the answer is 7", cues.CONCLUSION, 13),
        ("so must refuse to write it", cues.CONCLUSION, 3),
        ("the user wants a short plan", cues.TASK, 0),
        ("ich nehme vielleicht den zug", cues.HEDGE, 10),
    ],
)
def test_a_cue_is_found_where_it_begins_first(text: str, cue: cues.Cue, start: int) -> None:
    found = cue.search(text, wide=False)
    assert found is not None
    assert found.start() == start


def test_cues_of_scripts_without_spaces_are_looked_for_alone() -> None:
    text = "因此 the user"
    assert cues.CONCLUSION.search(text, wide=True)
    assert not cues.CONCLUSION.search(text, wide=False)
    assert not cues.TASK.search(text, wide=True)


@pytest.mark.parametrize("text", ["nevertheless it runs", "the ensuring of it", "x_so the y"])
@pytest.mark.parametrize("cue", [cues.CONCLUSION, cues.HEDGE, cues.META, cues.TASK])
def test_a_cue_is_a_whole_word(text: str, cue: cues.Cue) -> None:
    assert cue.search(text, wide=False) is None
