"""Test that text is broken into lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abridge.sidecar.demo.render import wrap

TEXTS = st.text(st.sampled_from("ab \n°—"), max_size=60)
WIDTHS = st.integers(min_value=1, max_value=12)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("one two", ["one two"]),
        ("one two three four", ["one two", "three four"]),
        ("one two th", ["one two th"]),
        ("one two thr", ["one two", "thr"]),
        ("one\ntwo", ["one", "two"]),
        ("one\n\ntwo\n\n", ["one", "", "two"]),
        ("0123456789\nten", ["0123456789", "ten"]),
        ("0123456789 ten", ["0123456789", "ten"]),
        ("012345678901234", ["0123456789", "01234"]),
        ("at  20:30", ["at  20:30"]),
    ],
)
def test_lines_are_broken_at_spaces(text: str, lines: list[str]) -> None:
    assert wrap(text, 10) == lines


@given(text=TEXTS, width=WIDTHS)
def test_no_line_is_too_long_and_no_letter_is_lost(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())
