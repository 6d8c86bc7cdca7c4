"""Test the lines of the demo's screen."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.sidecar.demo.render import (
    DisplayedPart,
    ResponseProgress,
    render_lines,
)

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

THINKING = " ".join(f"thought-{number}" for number in range(200))
PARTS = [
    DisplayedPart("**First**\n\nIt begins.", done=True),
    DisplayedPart("**Second**\n\nIt goes on."),
]
ANSWER = "\n".join(f"line {number}" for number in range(8))


def bare_lines(scene: ResponseProgress, width: int, height: int | None = None) -> list[str]:
    return [ESCAPE.sub("", line).rstrip() for line in render_lines(scene, "Why?", width, height)]


def test_summary_stands_beside_thinking() -> None:
    scene = ResponseProgress(thinking="one two three", parts=PARTS)
    assert bare_lines(scene, 101, 20) == [
        "Why?",
        "",
        f"{'thinking, 13 characters':49} | summary, 2 parts",
        f"{'one two three':49} | First",
        f"{'':49} | It begins.",
        f"{'':49} |",
        f"{'':49} | Second",
        f"{'':49} | It goes on.",
    ]


def test_so_it_does_on_a_narrow_screen() -> None:
    scene = ResponseProgress(thinking="one two three", parts=PARTS[:1])
    assert bare_lines(scene, 30, 20) == [
        "Why?",
        "",
        "thinking, 13  | summary, 1 par",
        "one two three | First",
        "              | It begins.",
    ]


def test_the_newest_thinking_is_shown() -> None:
    lines = bare_lines(ResponseProgress(thinking=THINKING), 100, 12)
    assert len(lines) == 12
    assert "thought-199" in lines[-1]
    assert not any(line.startswith("thought-0 ") for line in lines)


@pytest.mark.parametrize("width", [60, 100])
def test_the_answer_has_at_most_half_the_room(width: int) -> None:
    scene = ResponseProgress(thinking=THINKING, parts=PARTS, answer=ANSWER)
    lines = bare_lines(scene, width, 14)
    assert lines[-1] == "line 7"
    assert sum(line.startswith("line ") for line in lines) == 6
    assert any("thought-199" in line for line in lines)


@pytest.mark.parametrize("width", [60, 100])
def test_without_a_height_the_whole_text_is_shown(width: int) -> None:
    text = " ".join(["word"] * 400)
    scene = ResponseProgress(thinking=THINKING, parts=[DisplayedPart(text)] * 3, answer=ANSWER)
    rendered = "\n".join(bare_lines(scene, width))
    assert rendered.count("word") == 1200
    assert rendered.endswith(ANSWER)


def test_thinking_is_dim_and_titles_are_bold() -> None:
    lines = render_lines(ResponseProgress(thinking="hm", parts=PARTS), "Why?", 100, 20)
    assert lines[0] == "\x1b[1mWhy?\x1b[0m"
    assert lines[3] == f"\x1b[2m{'hm':48}\x1b[0m | \x1b[1mFirst\x1b[0m"


SCENES = st.builds(
    ResponseProgress,
    thinking=st.text("ab \n", max_size=500),
    parts=st.lists(st.builds(DisplayedPart, st.text("*ab \n", max_size=200)), max_size=4),
    answer=st.text("ab \n", max_size=300),
)


@given(scene=SCENES, width=st.integers(4, 140), height=st.integers(1, 50))
def test_a_frame_always_fits(scene: ResponseProgress, width: int, height: int) -> None:
    lines = bare_lines(scene, width, height)
    assert len(lines) <= height
    assert all(len(line) <= max(width, 5) for line in lines)
    assert not any("\n" in line for line in lines)
